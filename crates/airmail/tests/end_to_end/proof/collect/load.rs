//! Producers of the small cluster: each record has a number of its own, and is remembered once it is
//! acknowledged.

use super::{FLOWS, Flow};
use airmail_testkit::kafka::KafkaCluster;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rdkafka::client::ClientContext;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Records a second, over all topics; in bursts.
const BURST: usize = 20;
const BETWEEN: Duration = Duration::from_millis(10);
const KEYS: u32 = 50;
/// Filling, so that records are as large as the paper's.
const BYTES: usize = 100;

#[derive(Debug, Default)]
struct Acks {
    acknowledged: Mutex<BTreeSet<u64>>,
    count: AtomicU64,
}

#[derive(Clone, Debug)]
struct Deliveries(Arc<Acks>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<u64>;

    fn delivery(&self, result: &DeliveryResult<'_>, number: Box<u64>) {
        if result.is_ok() {
            self.0.acknowledged.lock().insert(*number);
            self.0.count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The producers, in a thread.
pub(super) struct Load {
    acks: Arc<Acks>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    pub(super) fn start(small: &KafkaCluster, seed: u64) -> Load {
        let acks = Arc::new(Acks::default());
        let mut config = small.client();
        config.set("enable.idempotence", "true").set("acks", "all");
        config.set("message.timeout.ms", "0").set("linger.ms", "2");
        let producer = config.create_with_context(Deliveries(Arc::clone(&acks)));
        let producer: ThreadedProducer<Deliveries> = producer.unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let produce = move || {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut number = 0;
            while !stopped.load(Ordering::Relaxed) {
                for _ in 0..BURST {
                    let flow = FLOWS[random.random_range(0..FLOWS.len())];
                    send(&producer, flow, number, &mut random);
                    number += 1;
                }
                thread::sleep(BETWEEN);
            }
            producer.flush(Duration::from_secs(600)).unwrap();
        };
        let thread = thread::Builder::new()
            .name("producer".into())
            .spawn(produce);
        Load {
            acks,
            stop,
            thread: Some(thread.unwrap()),
        }
    }

    /// Number of records acknowledged so far.
    pub(super) fn count(&self) -> u64 {
        self.acks.count.load(Ordering::Relaxed)
    }

    /// Ends it when all that was sent is answered; the numbers that were acknowledged.
    pub(super) fn stop(mut self) -> BTreeSet<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        std::mem::take(&mut self.acks.acknowledged.lock())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn send(producer: &ThreadedProducer<Deliveries>, flow: Flow, number: u64, random: &mut SmallRng) {
    let key = random
        .random_bool(0.5)
        .then(|| random.random_range(0..KEYS));
    // A key is always of one partition.
    let partition = match key {
        Some(key) => key.cast_signed() % flow.partitions,
        None => random.random_range(0..flow.partitions),
    };
    let key = key.map(|key| key.to_string());
    let payload = format!("{number:0>BYTES$}");
    let record = BaseRecord::<str, str, _>::with_opaque_to(flow.from, Box::new(number));
    let mut record = record.partition(partition).payload(&payload);
    record.key = key.as_deref();
    // A full queue waits: the small cluster may be down.
    while let Err((error, back)) = producer.send(record) {
        assert_eq!(
            error.rdkafka_error_code(),
            Some(RDKafkaErrorCode::QueueFull)
        );
        record = back;
        thread::sleep(BETWEEN);
    }
}
