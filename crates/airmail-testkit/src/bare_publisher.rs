//! A publisher of librdkafka alone, beside a system whose logs are on the same brokers: how long it waits for an ack is
//! what no system there can do without.

use crate::kafka::{KafkaCluster, wait_patiently};
use parking_lot::Mutex;
use rdkafka::ClientContext;
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Its topic, with partitions on every broker.
const TOPIC: &str = "bare";
const PARTITIONS: i32 = 6;
/// Time between two records of a partition.
const PERIOD: Duration = Duration::from_millis(10);

/// Acks of a partition.
#[derive(Clone, Copy, Debug)]
struct Acks {
    last: Instant,
    /// The longest time without one since the mark.
    longest: Duration,
}

/// Takes acks, on the client's own thread.
#[derive(Clone, Debug, Default)]
struct Taker(Arc<Mutex<BTreeMap<i32, Acks>>>);

impl ClientContext for Taker {}

impl ProducerContext for Taker {
    type DeliveryOpaque = ();

    #[expect(clippy::disallowed_methods, reason = "a real client has real time")]
    fn delivery(&self, report: &DeliveryResult<'_>, (): ()) {
        let Ok(record) = report else { return };
        let now = Instant::now();
        let mut acks = self.0.lock();
        let of = acks.entry(record.partition()).or_insert(Acks {
            last: now,
            longest: Duration::ZERO,
        });
        of.longest = of.longest.max(now - of.last);
        of.last = now;
    }
}

/// See the module's documentation. Stopped when dropped.
#[derive(Debug)]
pub struct BarePublisher {
    taker: Taker,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BarePublisher {
    /// Makes its topic, with a replica on every broker, two of which have to be in sync, and publishes a hundred records a
    /// second to each of six partitions. Waits until each has an ack.
    #[must_use]
    pub fn start(cluster: &KafkaCluster) -> BarePublisher {
        cluster.make_topic(TOPIC, PARTITIONS, &[("min.insync.replicas", "2")]);
        let taker = Taker::default();
        let mut config = cluster.client();
        config
            .set("enable.idempotence", "true")
            .set("linger.ms", "0");
        let producer: ThreadedProducer<Taker> = config.create_with_context(taker.clone()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let publishing = move || {
            while !is_stopped.load(Ordering::Relaxed) {
                for partition in 0..PARTITIONS {
                    let record = BaseRecord::<(), [u8]>::to(TOPIC);
                    // A full queue takes it the next time.
                    let _ = producer.send(record.partition(partition).payload(&[b'x'; 100]));
                }
                thread::sleep(PERIOD);
            }
            let _ = producer.flush(Duration::from_secs(1));
        };
        let thread = thread::Builder::new().name("bare-publisher".into());
        let thread = thread.spawn(publishing).unwrap();
        let publisher = BarePublisher {
            taker,
            stop,
            thread: Some(thread),
        };
        publisher.wait_for_all();
        publisher
    }

    /// Begins to measure anew.
    pub fn mark(&self) {
        for acks in self.taker.0.lock().values_mut() {
            acks.longest = Duration::ZERO;
        }
    }

    /// Longest time that a partition was without an ack since the mark. Waits until each has one from now on: a wait that
    /// has begun is over then.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        self.wait_for_all();
        let acks = self.taker.0.lock();
        let longest = acks.values().map(|acks| acks.longest).max();
        longest.unwrap_or_default()
    }

    #[expect(clippy::disallowed_methods, reason = "a real client has real time")]
    fn wait_for_all(&self) {
        let begun = Instant::now();
        wait_patiently("acks of every partition", || {
            let acks = self.taker.0.lock();
            acks.len() == PARTITIONS as usize && acks.values().all(|acks| acks.last >= begun)
        });
    }
}

impl Drop for BarePublisher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
