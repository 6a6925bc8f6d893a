//! Brokers from which nothing is read while a file says so, as a test wants it. In no release.
//!
//! All else goes on: records are stored, and questions are answered. So a node hangs in its reading alone.

use airmail_log_kafka::brokers::{
    Brokers, ConsumerId, NewRecord, NotTaken, Order, Partition, Question, Slot, Taken, Token, Told,
};
use airmail_log_kafka::place::Offset;
use airmail_log_kafka::shell::LibrdkafkaBrokers;
use airmail_model::{Mono, Now};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Time between two looks at the file.
const LOOK: Duration = Duration::from_millis(50);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct HeldReading {
    brokers: LibrdkafkaBrokers,
    /// Nothing is read while this file is there.
    file: PathBuf,
    is_held: bool,
    look_at: Mono,
    /// Consumers that have something, which was not told.
    readable: BTreeSet<ConsumerId>,
}

impl HeldReading {
    pub(super) fn new(brokers: LibrdkafkaBrokers, file: PathBuf) -> HeldReading {
        HeldReading {
            brokers,
            file,
            is_held: false,
            look_at: Mono(0),
            readable: BTreeSet::new(),
        }
    }

    fn look(&mut self, now: Now, told: &mut Vec<Told>) {
        if now.mono < self.look_at {
            return;
        }
        self.look_at = now.mono.plus(LOOK);
        let is_held = self.file.exists();
        if is_held != self.is_held {
            tracing::warn!(
                is_held,
                "reading from Kafka is held, or goes on, as was asked for"
            );
        }
        self.is_held = is_held;
        if !is_held {
            let readable = std::mem::take(&mut self.readable);
            told.extend(
                readable
                    .into_iter()
                    .map(|consumer| Told::Readable { consumer }),
            );
        }
    }
}

impl Brokers for HeldReading {
    fn produce(
        &mut self,
        token: Token,
        partition: &Partition,
        record: NewRecord,
    ) -> Result<(), NotTaken> {
        self.brokers.produce(token, partition, record)
    }

    fn consume(&mut self, consumer: ConsumerId, slot: Slot, partition: &Partition, from: Offset) {
        self.brokers.consume(consumer, slot, partition, from);
    }

    fn stop(&mut self, consumer: ConsumerId) {
        self.readable.remove(&consumer);
        self.brokers.stop(consumer);
    }

    fn take(&mut self, consumer: ConsumerId, bytes_max: u64, taken: &mut Vec<Taken>) -> bool {
        if self.is_held {
            self.readable.insert(consumer);
            return false;
        }
        self.brokers.take(consumer, bytes_max, taken)
    }

    fn ask(&mut self, token: Token, partition: &Partition, question: Question) {
        self.brokers.ask(token, partition, question);
    }

    fn order(&mut self, token: Token, order: Order) {
        self.brokers.order(token, order);
    }

    fn poll(&mut self, now: Now, told: &mut Vec<Told>) -> Option<Mono> {
        self.look(now, told);
        let mut news = Vec::new();
        let deadline = self.brokers.poll(now, &mut news);
        for one in news {
            match one {
                Told::Readable { consumer } if self.is_held => _ = self.readable.insert(consumer),
                other => told.push(other),
            }
        }
        deadline.into_iter().chain([self.look_at]).min()
    }

    fn close(&mut self, now: Now) {
        self.brokers.close(now);
    }

    fn is_closed(&self) -> bool {
        self.brokers.is_closed()
    }

    fn trouble(&self) -> Option<String> {
        self.brokers.trouble()
    }
}
