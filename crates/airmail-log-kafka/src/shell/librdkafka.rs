//! The brokers of a real cluster, over librdkafka: the owner's side of everything.

use super::admin::Orders;
use super::clock::now as clock_now;
use super::consumer::{Events, Reader, ended};
use super::error::OpenError;
use super::finder::Finder;
use super::news::News;
use super::producer::{Life, Producer};
use super::properties;
use super::routes::{ANSWER, Query, Routes, closing};
use super::settings::KafkaSettings;
use super::slot::SlotDesk;
use super::turnstile::Turnstile;
use crate::brokers::{
    Brokers, ConsumerId, Failure, NewRecord, NotTaken, Order, Partition, Question, Slot, Taken,
    Token, Told, Unstored,
};
use crate::place::Offset;
use airmail_log::Waker;
use airmail_model::{Mono, Now};
use rdkafka::ClientConfig;
use rdkafka::consumer::BaseConsumer;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Random bytes in the name of the group that librdkafka wants of who assigns partitions.
const GROUP_BYTES: usize = 8;

/// [`Brokers`] of a cluster of Kafka. Nothing of it blocks, but opening it and dropping it: one that is dropped before it
/// is closed waits for its threads.
#[derive(Debug)]
pub struct LibrdkafkaBrokers {
    settings: KafkaSettings,
    /// Properties of consumers.
    config: ClientConfig,
    /// Properties of the producer.
    of_producer: ClientConfig,
    news: Arc<News>,
    producer: Option<Producer>,
    turnstile: Turnstile,
    /// The producer that has failed, while another is to be made.
    failed: Option<Arc<Life>>,
    finder: Option<Finder>,
    orders: Option<Orders>,
    slots: BTreeMap<Slot, SlotDesk>,
    readers: BTreeMap<ConsumerId, (Slot, Reader)>,
    /// Records whose reports were not told, and the bytes of each.
    under_way: BTreeMap<Token, u64>,
    under_way_bytes: u64,
    /// It closes when no record waits for another, or then.
    closes_by: Option<Instant>,
}

impl LibrdkafkaBrokers {
    /// Makes the clients, which begin to connect. `waker` is called whenever there is something to poll for.
    ///
    /// # Errors
    /// A property is not for users, or not in this build; a client or a thread cannot be had. Whether brokers are
    /// there is not known yet.
    pub fn open(settings: KafkaSettings, waker: Waker) -> Result<LibrdkafkaBrokers, OpenError> {
        let base = properties::client(&settings)?;
        let config = properties::consumer(&base, &settings, &group()?);
        let news = News::new(waker);
        let mut brokers = LibrdkafkaBrokers {
            settings,
            config,
            of_producer: ClientConfig::new(),
            news: Arc::clone(&news),
            producer: None,
            turnstile: Turnstile::default(),
            failed: None,
            finder: None,
            orders: None,
            slots: BTreeMap::new(),
            readers: BTreeMap::new(),
            under_way: BTreeMap::new(),
            under_way_bytes: 0,
            closes_by: None,
        };
        // What was started before a failure ends as `brokers` is dropped.
        brokers.of_producer = properties::producer(&base, &brokers.settings);
        brokers.producer = Some(brokers.start_producer()?);
        let client: BaseConsumer<Events> = properties::asker(&base).create_with_context(Events)?;
        brokers.finder = Some(Finder::start(Routes::new(client, Arc::clone(&news)))?);
        brokers.orders = Some(Orders::start(base, &news)?);
        Ok(brokers)
    }

    fn begin_closing(&mut self) {
        // Each client ends in its thread, which has it last: ending one may wait. The producer's thread has it until
        // closing has begun.
        self.producer = None;
        self.news.begin_closing();
        for token in self.turnstile.begin_anew() {
            self.news.tell(not_sent(token, "Kafka's client is closing"));
        }
        let readers = std::mem::take(&mut self.readers);
        for (slot, reader) in readers.into_values() {
            self.give_back(slot, &reader);
        }
        self.slots.clear();
        self.finder = None;
        self.orders = None;
    }

    fn start_producer(&self) -> Result<Producer, OpenError> {
        Producer::start(&self.of_producer, &self.news, self.settings.flush)
    }

    /// Takes note of a report, and sends what has waited for it.
    fn reported(&mut self, token: Token, is_stored: bool) {
        let Some((partition, waiting)) = self.turnstile.reported(token, is_stored) else {
            // Input: a record for which nobody waits.
            return;
        };
        let mut refused = (!is_stored).then(|| "the one before it is not stored".to_owned());
        for (token, record) in waiting {
            if refused.is_none() {
                refused = match &self.producer {
                    Some(producer) => producer.produce(token, &partition, &record).err(),
                    None => Some(NotTaken::Full),
                }
                .map(|why| format!("{why:?}"));
                if let Some(why) = &refused {
                    // What is handed over from now on must not be stored without it.
                    self.news.note_fatal(why);
                }
            }
            if let Some(why) = &refused {
                self.news.tell(not_sent(token, why));
            }
        }
    }

    /// Makes another producer in place of one that has failed, when everything that it had is told.
    fn renew(&mut self, is_over: bool) {
        if self.news.is_closing() {
            return;
        }
        if let Some(why) = self.news.fatal()
            && let Some(producer) = self.producer.take()
        {
            self.failed = Some(producer.give_up());
            for token in self.turnstile.begin_anew() {
                self.news.tell(not_sent(token, &why));
            }
        } else if is_over {
            match self.start_producer() {
                Ok(producer) => {
                    self.producer = Some(producer);
                    self.failed = None;
                    self.news.note_renewed();
                }
                Err(error) => tracing::error!(%error, "Kafka's producer cannot be made anew yet"),
            }
        }
    }

    fn give_back(&self, slot: Slot, reader: &Reader) {
        // A slot that is not there has ended its consumers.
        if let Some(desk) = self.slots.get(&slot) {
            desk.stop(&reader.cell);
        }
    }

    /// The desk of a slot, whose client is made with its first consumer.
    fn desk(&mut self, slot: Slot) -> io::Result<&SlotDesk> {
        use std::collections::btree_map::Entry;
        match self.slots.entry(slot) {
            Entry::Occupied(desk) => Ok(desk.into_mut()),
            Entry::Vacant(place) => {
                let config = self.config.clone();
                Ok(place.insert(SlotDesk::start(config, slot, &self.news)?))
            }
        }
    }

    fn is_of_interest(&self, told: &Told) -> bool {
        match told {
            Told::Readable { consumer }
            | Told::OutOfRange { consumer }
            | Told::Truncated { consumer, .. }
            | Told::Ended { consumer, .. } => self.readers.contains_key(consumer),
            Told::Produced { .. } | Told::Answered { .. } => true,
        }
    }
}

impl Brokers for LibrdkafkaBrokers {
    fn produce(
        &mut self,
        token: Token,
        partition: &Partition,
        record: NewRecord,
    ) -> Result<(), NotTaken> {
        let Some(producer) = &self.producer else {
            return Err(NotTaken::Failed("Kafka's client is closing".to_owned()));
        };
        if let Some(why) = self.news.fatal() {
            return Err(NotTaken::Failed(why));
        }
        if self.closes_by.is_some() {
            return Err(NotTaken::Failed("Kafka's client is closing".to_owned()));
        }
        let bytes = record.value.as_ref().map_or(0, |value| value.len() as u64);
        let is_large = self.under_way_bytes + bytes > self.settings.queue_bytes;
        let is_alone = self.under_way.is_empty();
        if self.under_way.len() >= self.settings.records_max || is_large && !is_alone {
            return Err(NotTaken::Full);
        }
        if let Some(record) = self.turnstile.enter(token, partition, record, clock_now()) {
            let sent = producer.produce(token, partition, &record);
            sent.inspect_err(|why| {
                self.turnstile.leave(token);
                if let NotTaken::Failed(why) = why {
                    // It takes nothing any more, whether or not it has said so.
                    self.news.note_fatal(why);
                }
            })?;
        }
        self.under_way.insert(token, bytes);
        self.under_way_bytes += bytes;
        Ok(())
    }

    fn consume(&mut self, consumer: ConsumerId, slot: Slot, partition: &Partition, from: Offset) {
        let reader = Reader::new(consumer, partition, from);
        let cell = Arc::clone(&reader.cell);
        let why = if self.news.is_closing() {
            Some(closing())
        } else if slot.0 >= self.settings.slots {
            let (slots, slot) = (self.settings.slots, slot.0);
            Some(Failure::Other(format!("no slot {slot}: there are {slots}")))
        } else {
            match self.desk(slot) {
                Ok(desk) => {
                    desk.begin(cell);
                    None
                }
                Err(error) => Some(Failure::Other(error.to_string())),
            }
        };
        self.readers.insert(consumer, (slot, reader));
        if let Some(why) = why {
            self.news.tell(ended(consumer, why));
        }
    }

    fn stop(&mut self, consumer: ConsumerId) {
        if let Some((slot, reader)) = self.readers.remove(&consumer) {
            self.give_back(slot, &reader);
        }
    }

    fn take(&mut self, consumer: ConsumerId, bytes_max: u64, taken: &mut Vec<Taken>) -> bool {
        let reader = self.readers.get_mut(&consumer);
        reader.is_some_and(|(_, reader)| reader.take(bytes_max, taken, &self.news))
    }

    fn ask(&mut self, token: Token, partition: &Partition, question: Question) {
        match &self.finder {
            Some(finder) => finder.ask(Query {
                token,
                partition: partition.clone(),
                question,
                until: clock_now() + ANSWER,
            }),
            None => self.news.fail(token, closing()),
        }
    }

    fn order(&mut self, token: Token, order: Order) {
        match &self.orders {
            Some(orders) => orders.order(token, order),
            None => self.news.fail(token, closing()),
        }
    }

    fn poll(&mut self, now: Now, told: &mut Vec<Told>) -> Option<Mono> {
        let begin = told.len();
        let is_over = self.failed.as_ref().is_some_and(|life| life.is_over());
        self.news.take(told);
        for told in &told[begin..] {
            if let Told::Produced { token, result } = told {
                self.under_way_bytes -= self.under_way.remove(token).unwrap_or(0);
                self.reported(*token, result.is_ok());
            }
        }
        self.renew(is_over);
        let is_due = |by: Instant| clock_now() >= by || !self.turnstile.has_waiting();
        if self.closes_by.is_some_and(is_due) && !self.news.is_closing() {
            self.begin_closing();
        }
        let mut at = 0;
        told.retain(|one| {
            at += 1;
            at <= begin || self.is_of_interest(one)
        });
        if self.news.is_closing() && self.news.are_threads_done() {
            self.news.join();
        }
        // The waker tells of everything else.
        let by = self.closes_by.filter(|_| !self.news.is_closing())?;
        Some(now.mono.plus(by.saturating_duration_since(clock_now())))
    }

    fn close(&mut self, _: Now) {
        if self.closes_by.is_none() {
            self.closes_by = Some(clock_now() + self.settings.flush);
            self.news.wake();
        }
    }

    fn is_closed(&self) -> bool {
        self.news.is_closing() && self.news.are_threads_done() && self.news.is_empty()
    }

    fn trouble(&self) -> Option<String> {
        self.news.trouble()
    }
}

impl Drop for LibrdkafkaBrokers {
    fn drop(&mut self) {
        if !self.news.is_closing() {
            self.begin_closing();
        }
        self.news.join();
    }
}

/// News of a record that was never sent.
fn not_sent(token: Token, why: &str) -> Told {
    let result = Err(Unstored(why.to_owned()));
    Told::Produced { token, result }
}

/// A name that no other client has.
fn group() -> Result<String, OpenError> {
    let mut bytes = [0; GROUP_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("airmail-{digits}"))
}
