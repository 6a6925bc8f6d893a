//! Metrics of the mailboxes: requests, and the load of their store.

use airmail_mailbox::Mailboxes;
use airmail_mailbox::message::{Settle, Take};
use airmail_mailbox::store::StoreLoad;
use airmail_model::mailbox::MessageId;
use airmail_model::{Error, ErrorCode};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

type Labels = Vec<(&'static str, &'static str)>;
type Timings = Family<Labels, Histogram, fn() -> Histogram>;

/// 50 µs to 26 s, each twice the last.
fn timing() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 2.0, 20))
}

/// Metrics that the service counts. Cheap to share: each metric is a handle.
pub(crate) struct MailboxMetrics {
    requests: Family<Labels, Counter>,
    seconds: Timings,
    sent: Counter,
    handed_out: Family<Labels, Counter>,
    settled: Family<Labels, Counter>,
    waiting: Gauge,
    /// The mailboxes whose load is told, once they are open.
    mailboxes: OnceLock<Mailboxes>,
}

impl Default for MailboxMetrics {
    fn default() -> MailboxMetrics {
        MailboxMetrics {
            requests: Family::default(),
            seconds: Family::new_with_constructor(timing),
            sent: Counter::default(),
            handed_out: Family::default(),
            settled: Family::default(),
            waiting: Gauge::default(),
            mailboxes: OnceLock::new(),
        }
    }
}

/// A reader that waits, until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting(Gauge);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl MailboxMetrics {
    /// Tells the load of these from now on.
    pub(crate) fn watch(&self, mailboxes: Mailboxes) {
        self.mailboxes.get_or_init(|| mailboxes);
    }

    /// A request has been answered, well or with an error.
    pub(crate) fn answered(&self, name: &'static str, code: Option<ErrorCode>, took: Duration) {
        let code = code.map_or("OK", ErrorCode::name);
        let labels = vec![("request", name), ("code", code)];
        self.requests.get_or_create(&labels).inc();
        let timing = self.seconds.get_or_create(&vec![("request", name)]);
        timing.observe(took.as_secs_f64());
    }

    /// Messages were sent, or some of them.
    pub(crate) fn sent(&self, results: &[Result<MessageId, Error>]) {
        self.sent.inc_by(successes(results));
    }

    /// Messages were handed out.
    pub(crate) fn handed_out(&self, take: Take, count: usize) {
        let how = match take {
            Take::Peek => "peek",
            Take::Remove => "remove",
            Take::Lease { .. } => "lease",
        };
        let counter = self.handed_out.get_or_create(&vec![("take", how)]);
        counter.inc_by(count as u64);
    }

    /// Leases were ended or lengthened, or some of them.
    pub(crate) fn settled(&self, what: Settle, results: &[Result<(), Error>]) {
        let how = match what {
            Settle::Acknowledge => "acknowledge",
            Settle::Extend { .. } => "extend",
            Settle::Release { .. } => "release",
        };
        let counter = self.settled.get_or_create(&vec![("how", how)]);
        counter.inc_by(successes(results));
    }

    /// A reader waits if there is nothing.
    pub(crate) fn waiting(&self) -> Waiting {
        self.waiting.inc();
        Waiting(self.waiting.clone())
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "airmail_mailbox_requests",
            "Requests of mailboxes answered, by request and error",
            self.requests.clone(),
        );
        registry.register(
            "airmail_mailbox_request_seconds",
            "From a request's arrival to its answer, waits for a message included",
            self.seconds.clone(),
        );
        registry.register(
            "airmail_mailbox_sent_messages",
            "Messages put in queues",
            self.sent.clone(),
        );
        registry.register(
            "airmail_mailbox_handed_out_messages",
            "Messages shown, removed or leased",
            self.handed_out.clone(),
        );
        registry.register(
            "airmail_mailbox_settled_messages",
            "Leased messages acknowledged, extended or released",
            self.settled.clone(),
        );
        registry.register(
            "airmail_mailbox_waiting_readers",
            "Requests under way that wait if there is no message",
            self.waiting.clone(),
        );
    }

    /// The store's load at this moment.
    pub(super) fn load(&self) -> StoreLoad {
        self.mailboxes
            .get()
            .map(Mailboxes::load)
            .unwrap_or_default()
    }
}

fn successes<T>(results: &[Result<T, Error>]) -> u64 {
    results.iter().filter(|result| result.is_ok()).count() as u64
}

/// Writes a store's load, and the work it has done.
pub(super) fn encode(
    load: &StoreLoad,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let gauges = [
        (
            "airmail_mailbox_connections_max",
            "Connections for requests that the store may have",
            load.connections_max,
        ),
        (
            "airmail_mailbox_connections",
            "Connections to the store that are up",
            load.connections,
        ),
        (
            "airmail_mailbox_connections_busy",
            "Connections with a statement under way",
            load.busy,
        ),
        (
            "airmail_mailbox_queued_requests_max",
            "Requests that may wait for a connection",
            load.waiting_max,
        ),
        (
            "airmail_mailbox_queued_requests",
            "Requests that wait for a connection",
            load.waiting,
        ),
    ];
    for (name, help, value) in gauges {
        let value = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        let metric = encoder.encode_descriptor(name, help, None, value.metric_type())?;
        value.encode(metric)?;
    }
    let counters = [
        (
            "airmail_mailbox_store_requests",
            "Requests that the store has taken up",
            load.requests,
        ),
        (
            "airmail_mailbox_store_round_trips",
            "Round trips that they took, each for all that waited",
            load.round_trips,
        ),
    ];
    for (name, help, value) in counters {
        let value = ConstCounter::new(value);
        let metric = encoder.encode_descriptor(name, help, None, value.metric_type())?;
        value.encode(metric)?;
    }
    let times = [
        (
            "airmail_mailbox_store_waiting_seconds",
            "What requests waited for a connection to PostgreSQL, together",
            load.waited_us,
        ),
        (
            "airmail_mailbox_store_round_trip_seconds",
            "What round trips to PostgreSQL took, together",
            load.round_trips_us,
        ),
    ];
    for (name, help, us) in times {
        let value = ConstCounter::new(us as f64 / 1e6);
        let metric = encoder.encode_descriptor(name, help, None, value.metric_type())?;
        value.encode(metric)?;
    }
    Ok(())
}
