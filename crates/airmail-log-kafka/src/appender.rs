//! Appends alone: a handle of a process whose logs others read through.
//!
//! It has no consumer, so it cannot look whether a record is held: it takes batches of producers whose epochs are *whole*
//! here ([`sending`](crate::sending)), which their reports prove, and nothing else. Whether a log is there and sound, and
//! by which spec, it is told by its owner, who hears it from a node that has the log open.
//!
//! Everything else is as in the storage itself: appends of a log are answered in the order of the calls, an error in a
//! report is an unknown outcome and ends the producer's epoch here, and no log takes more than its share of the queue.
//!
//! Invariant `counted_queue`: the bytes under way are those of all logs.

use crate::brokers::{Brokers, NewRecord, NotTaken, Partition, Token, Told};
use crate::config::KafkaConfig;
use crate::layout::MapTopics;
use crate::place::Offset;
use crate::producers::Producers;
use crate::sending::{HandedOver, Proof, Sending, has_room};
use airmail_log::{Completion, LogSpec, Refusal, Tag};
use airmail_model::batch::ProducerStamp;
use airmail_model::{Batch, Checked, LogId, MapEpoch, Mono, Now};
use std::collections::BTreeMap;
use std::time::Duration;

/// A log that may be appended to.
#[derive(Debug)]
struct AppendLog {
    partition: Partition,
    spec: LogSpec,
    sending: Sending,
}

/// Appends to logs that are open elsewhere. See the module's documentation.
#[derive(Debug)]
pub struct KafkaAppender<B> {
    config: KafkaConfig,
    brokers: B,
    now: Now,
    last_token: u64,
    logs: BTreeMap<LogId, AppendLog>,
    /// Log of each record under way.
    of_tokens: BTreeMap<Token, LogId>,
    under_way_bytes: u64,
    /// Logs whose next append is not reported, and until when that is waited for at least.
    awaited: BTreeMap<LogId, Mono>,
    /// Nobody was ever seen here.
    nobody: Producers,
    is_closing: bool,
    out: Vec<Completion>,
}

impl<B: Brokers> KafkaAppender<B> {
    /// A handle on these brokers, to which no log is known.
    pub fn new(config: KafkaConfig, brokers: B) -> KafkaAppender<B> {
        KafkaAppender {
            config,
            brokers,
            now: Now::default(),
            last_token: 0,
            logs: BTreeMap::new(),
            of_tokens: BTreeMap::new(),
            under_way_bytes: 0,
            awaited: BTreeMap::new(),
            nobody: Producers::default(),
            is_closing: false,
            out: Vec::new(),
        }
    }

    /// A log is open elsewhere by this spec, or by a newer one than before. Log 0, and one whose spec this handle cannot
    /// keep, is not taken.
    pub(crate) fn open(&mut self, id: LogId, spec: &LogSpec) {
        let topics = MapTopics::decode(&spec.provisions).filter(|_| id != LogId::SYSTEM);
        let place =
            topics.and_then(|topics| Some((topics.topic(&self.config, id), topics.partition(id)?)));
        let is_kept = self.config.durability().satisfies(spec.durability);
        let Some((topic, number)) = place.filter(|_| is_kept && spec.storage.is_first()) else {
            // Input: log 0, or a log of another storage.
            return self.close_log(id);
        };
        let partition = Partition::new(&topic, number);
        match self.logs.get_mut(&id) {
            Some(log) if spec.as_of < log.spec.as_of => return,
            Some(log)
                if log.partition == partition && log.spec.soundness.cuts == spec.soundness.cuts =>
            {
                log.spec = *spec;
                return;
            }
            // A later spec names other topics, or another life, in which offsets are used again: what was is no more.
            Some(_) => self.close_log(id),
            None => {}
        }
        let sending = Sending::default();
        #[cfg(feature = "sabotage")]
        let sending = sending.with_bug(self.config.bug);
        let log = AppendLog {
            partition,
            spec: *spec,
            sending,
        };
        self.logs.insert(id, log);
    }

    /// A log is no more, or is not to be used here: what is under way has an unknown outcome.
    pub(crate) fn close_log(&mut self, id: LogId) {
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was never taken.
            return;
        };
        self.under_way_bytes -= log.sending.bytes();
        log.sending.give_up();
        self.answer(id);
        self.logs.remove(&id);
        self.awaited.remove(&id);
    }

    /// Whether a sole batch is to be appended here: its epoch begins with it, or is whole here so far.
    pub(crate) fn takes(&self, id: LogId, stamp: ProducerStamp) -> bool {
        let log = self.logs.get(&id).filter(|_| !self.is_closing);
        log.is_some_and(|log| log.sending.may_be_whole(stamp))
    }

    /// Appends a sole batch that this handle takes. Answer: `Appended`, or `Refused`.
    pub(crate) fn append(&mut self, (t, id): (Tag, LogId), map: MapEpoch, batch: &Checked<Batch>) {
        let result = self.hand_over((t, id), map, batch);
        if let (Err(why), Some(log)) = (result, self.logs.get_mut(&id)) {
            log.sending.refuse(t, batch.producer(), why);
            self.answer(id);
        }
    }

    fn hand_over(
        &mut self,
        (t, id): (Tag, LogId),
        map: MapEpoch,
        batch: &Checked<Batch>,
    ) -> Result<(), Refusal> {
        let bytes = batch.bytes().len() as u64;
        let (now, sent_ms) = (self.now.mono, self.now.wall.0.div_euclid(1000));
        let has_room = self.has_room(id, bytes);
        let (Some(log), Some(stamp)) = (self.logs.get_mut(&id), batch.producer()) else {
            // Input: a log that was closed meanwhile.
            return Err(Refusal::NoLog);
        };
        let admitted = log.sending.admit((stamp, true), &self.nobody, now);
        if map != log.spec.epoch {
            let current = log.spec.epoch;
            return Err(Refusal::StaleMap { current });
        }
        if admitted? == Proof::Reading {
            // A copy of what was handed over before, of which nothing here can tell whether it is held.
            return Err(Refusal::OutcomeUnknown);
        }
        let busy = Refusal::Busy {
            retry_after: Duration::from_millis(200),
        };
        if self.is_closing || !has_room {
            return Err(busy);
        }
        let record = NewRecord {
            key: None,
            value: Some(batch.bytes().clone()),
            sent_ms,
        };
        self.last_token += 1;
        let token = Token(self.last_token);
        let produced = self.brokers.produce(token, &log.partition, record);
        produced.map_err(|why| match why {
            NotTaken::Full | NotTaken::Failed(_) => busy,
            NotTaken::Invalid(why) => Refusal::Unsupported(why.into()),
        })?;
        let append = HandedOver {
            token,
            stamp: Some(stamp),
            messages: batch.numbers(),
            bytes,
            sent_ms,
            floor: Offset(0),
            proof: Proof::Report,
        };
        log.sending.handed_over(t, append, now);
        if let Some(at) = log.sending.deadline() {
            self.awaited.entry(id).or_insert(at);
        }
        self.of_tokens.insert(token, id);
        self.under_way_bytes += bytes;
        Ok(())
    }

    fn has_room(&self, id: LogId, bytes: u64) -> bool {
        let own = self.logs.get(&id).map(|log| &log.sending);
        let all = self.logs.values().map(|log| &log.sending);
        let queue = (self.under_way_bytes, self.config.queue_bytes);
        own.is_some_and(|own| has_room((own, all), bytes, queue, self.now.mono))
    }

    /// Gives the answers of a log that are due.
    fn answer(&mut self, id: LogId) {
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was closed meanwhile.
            return;
        };
        let seen = (&self.nobody, Offset(0));
        let held = self.config.durability();
        log.sending.answer(held, seen, self.now.mono, &mut self.out);
        match log.sending.deadline() {
            Some(at) => self.awaited.insert(id, at),
            None => self.awaited.remove(&id),
        };
    }

    fn reported(&mut self, told: Told) {
        let Told::Produced { token, result } = told else {
            // Input: news of consumers and questions, of which there are none.
            return;
        };
        let Some(id) = self.of_tokens.remove(&token) else {
            // Input: a record that was told before.
            return;
        };
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was closed meanwhile.
            return;
        };
        let before = log.sending.bytes();
        if log.sending.report(token, result, self.now.mono) {
            self.under_way_bytes -= before - log.sending.bytes();
            self.answer(id);
        }
    }

    /// Takes the reports that have come, and gives what is due. When to poll again if nothing else happens.
    pub(crate) fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        self.now = now;
        let mut told = Vec::new();
        let deadline = self.brokers.poll(now, &mut told);
        for told in told {
            self.reported(told);
        }
        let awaited = self.awaited.iter();
        let due = awaited.filter(|(_, at)| **at <= now.mono);
        let due: Vec<LogId> = due.map(|(id, _)| *id).collect();
        for id in due {
            self.answer(id);
        }
        if self.is_closing && self.is_drained() {
            self.brokers.close(now);
        }
        if airmail_model::bug::is_checking() {
            self.check();
        }
        out.append(&mut self.out);
        let awaited = self.awaited.values().copied().min();
        deadline.into_iter().chain(awaited).min()
    }

    /// Begins to close: what is under way is answered, and nothing more is taken.
    pub(crate) fn close(&mut self) {
        self.is_closing = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closing && self.is_drained() && self.out.is_empty() && self.brokers.is_closed()
    }

    /// The error for which nothing can be stored at the moment.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.brokers.trouble()
    }

    fn is_drained(&self) -> bool {
        self.logs.values().all(|log| log.sending.is_empty())
    }

    fn check(&self) {
        let bytes = self.logs.values().map(|log| {
            log.sending.check();
            log.sending.bytes()
        });
        assert_eq!(bytes.sum::<u64>(), self.under_way_bytes, "counted_queue");
    }
}
