//! Soundness: whether a log is still the one that was read, and what is done where it is not.
//!
//! Kafka may lose what it has confirmed: by an unclean election, or by somebody who deletes a topic. What looks like that
//! need not be it. An isolated leader answers by what it knew, and a broker that has just begun may not know a topic. So the
//! first sign is a *doubt*: for [`LOOK`] the log is busy for everybody. Then it is looked at again: whether its topic is
//! there, whether the topic is the one that was made for it (its birth record), and whether it still has the last record
//! that was read of it.
//!
//! - It has: the doubt was wrong, and the log is read on.
//! - It has another one in its place, or none though its leader has said that it was cut: it was cut there. A leader that
//!   only *ends* before the record is no proof of anything, however often it says so.
//! - Its birth record is not there: somebody has made the topic again, and nothing is left of the log. That is certain at
//!   once, whenever such a record is met.
//! - Its topic is not there, twice: the same.
//!
//! A log that has lost something is suspended, and its owner is told ([`Completion::Suspended`]), so that log 0 says it to
//! all. What it says comes back with specs ([`Soundness`]), of which the one of the latest place counts. When it says that
//! the loss is accepted, the log begins again from what is stated of the part that is left, in a life that it never had. A
//! row tells other nodes of it before anything is given or taken there: whoever has slept stops by that.
//!
//! Log 0 itself is not looked at twice: its commands have their own chain of proof.

use crate::asking::{REST, Waiter};
use crate::brokers::{Answer, Brokers, ConsumerId, Failure, Question, Slot, Taken};
use crate::layout::{MapTopics, incarnation};
use crate::place::{Offset, place_of};
use crate::statement::Witness;
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::{Completion, LogLoss, LogSpec, Refusal, Soundness};
use airmail_model::{Incarnation, LogId, Mono, Sequence};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time from a doubt until the log is looked at again.
const LOOK: Duration = Duration::from_secs(10);

/// Reason for which a record shows that a log is not what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsound {
    /// The first record is not the log's birth.
    BornAgain,
    /// A record that was read is another one.
    Another,
}

/// Reason of a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspicion {
    /// Its leader has said that it was cut there.
    Cut(Offset),
    /// It is another than it was, or not there; nobody has said from where on.
    Another,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It is looked at then.
    Waits(Mono),
    Bounds,
    /// Its first record is looked at.
    Birth(ConsumerId),
    /// The record that was read last is looked at.
    Last(ConsumerId),
}

/// A doubt about a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    suspicion: Suspicion,
    look: Look,
    low: Offset,
    high: Offset,
}

/// Everything that is known of logs' soundness.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    logs: BTreeMap<LogId, Doubt>,
    /// Logs whose topic was not there when they were to be opened, since when.
    missing: BTreeMap<LogId, Mono>,
    /// Word of log 0, and the place that it is of.
    said: BTreeMap<LogId, (Sequence, Soundness)>,
}

impl Doubts {
    /// The log that a consumer looks at.
    pub(crate) fn of_consumer(&self, consumer: ConsumerId) -> Option<LogId> {
        let mut logs = self.logs.iter();
        let found = logs.find(|(_, doubt)| doubt.consumer() == Some(consumer));
        found.map(|(id, _)| *id)
    }

    pub(crate) fn has(&self, id: LogId) -> bool {
        self.logs.contains_key(&id)
    }

    pub(crate) fn deadline(&self) -> Option<Mono> {
        let waits = self.logs.values().filter_map(|doubt| match doubt.look {
            Look::Waits(at) => Some(at),
            _ => None,
        });
        waits.min()
    }

    /// Takes what a spec says; what log 0 says of the log, as far as it is known.
    pub(crate) fn hear(&mut self, id: LogId, spec: &LogSpec) -> Soundness {
        let said = self.said.entry(id).or_default();
        if spec.as_of >= said.0 {
            *said = (spec.as_of, spec.soundness);
        }
        said.1
    }

    /// The topic of a log is there.
    pub(crate) fn found(&mut self, id: LogId) {
        self.missing.remove(&id);
    }

    /// The log is deleted.
    pub(crate) fn forget(&mut self, id: LogId) {
        self.missing.remove(&id);
        self.said.remove(&id);
    }
}

impl Doubt {
    fn consumer(&self) -> Option<ConsumerId> {
        match self.look {
            Look::Birth(consumer) | Look::Last(consumer) => Some(consumer),
            Look::Waits(_) | Look::Bounds => None,
        }
    }
}

impl<B: Brokers> KafkaStorage<B> {
    /// A consumer has come upon something that must not be: its log is doubted.
    pub(crate) fn doubt_of(&mut self, consumer: ConsumerId, suspicion: Suspicion) {
        if self.start.is_consumer(consumer) {
            return self.rows_ended();
        }
        if let Some(id) = self.work.doubts.of_consumer(consumer) {
            return self.look_later(id);
        }
        let of_scan = self.scans.get(&consumer).copied();
        if let Some(id) = of_scan.or_else(|| self.end_sweep(consumer)) {
            self.doubt(id, suspicion);
        }
    }

    /// Something looks as if a log were not what it was.
    pub(crate) fn doubt(&mut self, id: LogId, suspicion: Suspicion) {
        let Some(log) = self.logs.get(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        if id == LogId::SYSTEM {
            let why = log.is_another();
            return self.stop_log(id, &Refusal::Io(why));
        }
        if let Some(doubt) = self.work.doubts.logs.get_mut(&id) {
            doubt.suspicion = match (doubt.suspicion, suspicion) {
                (Suspicion::Cut(one), Suspicion::Cut(other)) => Suspicion::Cut(one.min(other)),
                (cut @ Suspicion::Cut(_), _) | (_, cut @ Suspicion::Cut(_)) => cut,
                (other, _) => other,
            };
            return;
        }
        if log.suspended.is_some() {
            return;
        }
        self.stop_log(id, &KafkaStorage::<B>::busy());
        let doubt = Doubt {
            suspicion,
            look: Look::Waits(self.now.mono.plus(LOOK)),
            low: Offset(0),
            high: Offset(0),
        };
        self.work.doubts.logs.insert(id, doubt);
    }

    /// Looks at logs whose time has come.
    pub(crate) fn go_on_doubting(&mut self) {
        let now = self.now.mono;
        let due = |doubt: &Doubt| matches!(doubt.look, Look::Waits(at) if at <= now);
        let logs = self.work.doubts.logs.iter();
        let logs: Vec<LogId> = logs.filter(|(_, of)| due(of)).map(|(id, _)| *id).collect();
        for id in logs {
            if let (Some(log), Some(doubt)) =
                (self.logs.get(&id), self.work.doubts.logs.get_mut(&id))
            {
                doubt.look = Look::Bounds;
                let partition = log.partition.clone();
                self.ask(Purpose::Doubt(id), &partition, Question::Watermarks);
            }
        }
    }

    pub(crate) fn doubt_bounded(&mut self, id: LogId, answer: &Answer) {
        let (Some(doubt), Some(log)) = (self.work.doubts.logs.get_mut(&id), self.logs.get(&id))
        else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        match answer {
            Answer::Watermarks { low, high } => {
                (doubt.low, doubt.high) = (*low, *high);
                let has_birth = log.topics.is_some() && *low == Offset(0);
                if has_birth && *high == Offset(0) {
                    // No leader of the log's own was ever without its birth.
                    self.conclude(id, None);
                } else if has_birth {
                    let consumer = self.look_at_offset(id, Offset(0));
                    self.set_look(id, Look::Birth(consumer));
                } else {
                    self.look_at_last(id);
                }
            }
            Answer::Failed(Failure::NoTopic) => self.conclude(id, None),
            _ => self.look_later(id),
        }
    }

    fn set_look(&mut self, id: LogId, look: Look) {
        if let Some(doubt) = self.work.doubts.logs.get_mut(&id) {
            doubt.look = look;
        }
    }

    /// Starts a consumer that is to give one record.
    fn look_at_offset(&mut self, id: LogId, from: Offset) -> ConsumerId {
        let consumer = ConsumerId(self.id());
        if let Some(log) = self.logs.get(&id) {
            let partition = log.partition.clone();
            self.brokers.consume(consumer, Slot::TAIL, &partition, from);
        }
        consumer
    }

    /// Looks whether a log still has the record that was read last.
    fn look_at_last(&mut self, id: LogId) {
        let (Some(doubt), Some(log)) = (self.work.doubts.logs.get(&id), self.logs.get(&id)) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        let (low, high, suspicion) = (doubt.low, doubt.high, doubt.suspicion);
        match (log.last_read(), suspicion) {
            // Retention has taken it, or nothing was read: there is nothing to be compared.
            (None, _) => self.trust(id),
            (Some(last), _) if last.offset < low => self.trust(id),
            (Some(last), Suspicion::Cut(at)) if last.offset >= high => {
                self.conclude(id, Some(at.min(high)));
            }
            // It ends before, which an old leader may say, too.
            (Some(last), Suspicion::Another) if last.offset >= high => self.look_later(id),
            (Some(last), _) => {
                let consumer = self.look_at_offset(id, last.offset);
                self.set_look(id, Look::Last(consumer));
            }
        }
    }

    /// A consumer that looks has something.
    pub(crate) fn look_readable(&mut self, consumer: ConsumerId) {
        let mut taken = Vec::new();
        self.brokers.take(consumer, 1, &mut taken);
        let first = taken.into_iter().next();
        let Some(id) = self.work.doubts.of_consumer(consumer) else {
            // Input: a consumer that was stopped meanwhile.
            return;
        };
        let (Some(doubt), Some(log)) =
            (self.work.doubts.logs.get(&id).copied(), self.logs.get(&id))
        else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        let record = match first {
            None => return,
            Some(Taken::Record(record)) => Some(record),
            Some(Taken::End { .. }) => None,
        };
        let birth = log.topics.map(|topics| topics.birth());
        let is_same = match (&record, doubt.look) {
            (None, _) => false,
            (Some(record), Look::Birth(_)) => record.value == birth,
            (Some(record), _) => log.last_read() == Some(Witness::of(record)),
        };
        let floor = doubt.low.max(Offset(1));
        self.brokers.stop(consumer);
        match (doubt.look, doubt.suspicion, is_same) {
            (Look::Birth(_), _, true) => self.look_at_last(id),
            // What is not there yet may come: its leader has said so a moment ago.
            _ if record.is_none() => self.look_later(id),
            (Look::Birth(_), _, false) => self.conclude(id, None),
            (_, _, true) => self.trust(id),
            (_, Suspicion::Cut(at), false) => self.conclude(id, Some(at.max(floor))),
            (_, Suspicion::Another, false) => self.conclude(id, Some(floor)),
        }
    }

    /// Looks at a log once more, after a rest.
    fn look_later(&mut self, id: LogId) {
        let at = self.now.mono.plus(REST);
        self.stop_looking(id);
        self.set_look(id, Look::Waits(at));
    }

    /// Ends the consumer that looks at a log.
    fn stop_looking(&mut self, id: LogId) {
        let doubt = self.work.doubts.logs.get(&id);
        if let Some(consumer) = doubt.and_then(Doubt::consumer) {
            self.brokers.stop(consumer);
        }
    }

    /// Ends a doubt about a log, if there is one.
    pub(crate) fn end_doubt(&mut self, id: LogId) {
        self.stop_looking(id);
        self.work.doubts.logs.remove(&id);
    }

    /// The doubt was wrong: the log is read on.
    fn trust(&mut self, id: LogId) {
        self.end_doubt(id);
        if let Some(log) = self.logs.get_mut(&id) {
            log.suspended = None;
        }
        self.wait_for_bounds(id, Waiter::OutOfRange);
    }

    /// A log has lost what it had from an offset on, or all. It stops, and its owner is told.
    pub(crate) fn conclude(&mut self, id: LogId, at: Option<Offset>) {
        self.end_doubt(id);
        let Some(log) = self.logs.get(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        let partition = &log.partition;
        let why = match at {
            Some(at) => {
                format!("partition {partition} was cut at offset {at} by an unclean election")
            }
            None => format!("partition {partition} was made again under its name, or is not there"),
        };
        if id == LogId::SYSTEM {
            return self.stop_log(id, &Refusal::Io(why));
        }
        let end = log.scan.next().max(log.sending.end()).number();
        let nonce = log.topics.map_or(0, |topics| topics.nonce);
        let loss = LogLoss {
            life: log.incarnation,
            next_life: self.life_after(id, nonce, log.cuts),
            at: at.map(|at| at.max(Offset(1)).number()),
            end,
        };
        self.stop_log(id, &Refusal::Suspended(why));
        let loss = Box::new(loss);
        self.out.push(Completion::Suspended { log: id, loss });
    }

    /// The life of a log after so many cuts and one more.
    fn life_after(&self, id: LogId, nonce: u64, cuts: u32) -> Incarnation {
        let lives = self.rows.of(id).lives(nonce);
        incarnation(
            self.config.cluster,
            id,
            nonce,
            (lives, cuts.saturating_add(1)),
        )
    }

    /// The topic of a log that is to be opened is not there. Nobody makes it again; if it is still not there a while later,
    /// the log is gone.
    pub(crate) fn topic_missing(&mut self, id: LogId, topics: Option<MapTopics>) {
        let Some(topics) = topics.filter(|_| id != LogId::SYSTEM) else {
            // Input: log 0.
            return;
        };
        let now = self.now.mono;
        let since = *self.work.doubts.missing.entry(id).or_insert(now);
        if since.plus(LOOK) > now {
            return;
        }
        self.work.doubts.missing.insert(id, now);
        let loss = LogLoss {
            life: self.life(id, topics.nonce),
            next_life: self.life(id, topics.nonce),
            at: None,
            end: Sequence::MAX,
        };
        let loss = Box::new(loss);
        self.out.push(Completion::Suspended { log: id, loss });
    }

    /// Log 0 says that a log stops.
    pub(crate) fn suspend_as_said(&mut self, id: LogId) -> Refusal {
        let why = Refusal::Suspended("it has lost something, as log 0 says".to_owned());
        self.end_doubt(id);
        let log = self.logs.get(&id);
        match log.map(|log| log.suspended.clone()) {
            Some(Some(why @ Refusal::Suspended(_))) => return why,
            Some(_) => self.stop_log(id, &why),
            None => {}
        }
        why
    }

    /// The life before a log's last cut, and the offset up to which it is the same as the present one.
    pub(crate) fn life_before(&self, id: LogId, nonce: u64) -> Option<(Incarnation, Offset)> {
        let rows = self.rows.of(id);
        let (count, at) = rows.cuts(nonce);
        let before = count.checked_sub(1)?;
        let life = incarnation(self.config.cluster, id, nonce, (rows.lives(nonce), before));
        Some((life, at))
    }

    /// A row says that a log was cut, of which log 0 has not told here yet: nothing of the life before is given any more.
    pub(crate) fn stop_cut(&mut self, id: LogId) {
        let Some(log) = self.logs.get(&id) else {
            // Input: a row about a log that is not read here.
            return;
        };
        let nonce = log.topics.map_or(0, |topics| topics.nonce);
        if self.rows.of(id).cuts(nonce).0 > log.cuts {
            self.end_doubt(id);
            self.stop_log(id, &KafkaStorage::<B>::busy());
        }
    }
}

/// The offset from which on a log was cut, as log 0 says it.
pub(crate) fn cut_at(soundness: &Soundness) -> Offset {
    place_of(soundness.cut_at).0
}
