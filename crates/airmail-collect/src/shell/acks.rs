//! Answers of the main cluster, on their way from the thread of librdkafka's producer to the
//! collector's.

use super::clients::log;
use crate::collector::Ticket;
use airmail_partition::{NodeId, PartitionId};
use parking_lot::Mutex;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A record on its way.
#[derive(Debug)]
pub(super) struct Departed {
    pub(super) ticket: Ticket,
    pub(super) number: u64,
    pub(super) partition: PartitionId,
    pub(super) leader: Option<NodeId>,
    pub(super) bytes: u32,
    pub(super) at: Duration,
}

/// Its end.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) departed: Departed,
    pub(super) error: Option<KafkaError>,
}

/// Where ends wait to be looked at. There are at most as many as may be under way.
#[derive(Debug, Default)]
pub(super) struct Acks {
    waiting: AtomicBool,
    ends: Mutex<Vec<Ended>>,
}

impl Acks {
    fn push(&self, ended: Ended) {
        let mut ends = self.ends.lock();
        ends.push(ended);
        self.waiting.store(true, Ordering::Release);
    }

    /// Takes the answers that have come.
    pub(super) fn take(&self, ends: &mut Vec<Ended>) {
        if self.waiting.load(Ordering::Acquire) {
            let mut waiting = self.ends.lock();
            self.waiting.store(false, Ordering::Release);
            mem::swap(&mut *waiting, ends);
        }
    }
}

/// Receiver of the producer's delivery reports.
#[derive(Clone, Debug)]
pub(super) struct Deliveries(pub(super) Arc<Acks>);

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log("main", level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(cluster = "main", %error, reason, "the client reports an error");
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<Departed>;

    fn delivery(&self, result: &DeliveryResult<'_>, departed: Box<Departed>) {
        let error = result.as_ref().err().map(|(error, _)| error.clone());
        self.0.push(Ended {
            departed: *departed,
            error,
        });
    }
}
