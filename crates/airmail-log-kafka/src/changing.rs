//! Changes of logs: opening, beginning a new life, and the order of all changes. One of a log at a time, in the order of the
//! calls.
//!
//! What must hold after a crash is written before it is told: that a spec of a place was taken over, that a log was
//! deleted, that a life was begun are rows in the topic of rows. A topic that is not there is never made here: a log
//! whose topic is gone is refused by its topic's name.

use crate::brokers::{Answer, Brokers, Failure, NewRecord, Order, Partition};
use crate::layout::{MapTopics, meta_topic};
use crate::place::Offset;
use crate::rows::{Row, Statement};
use crate::start::state_partition;
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::{Call, Completion, LogSpec, Origin, Refusal, Soundness, Tag};
use airmail_model::{Holder, LogId, MapEpoch, Sequence, bug};
use std::collections::VecDeque;

/// A change of a log.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Open(Tag, Box<LogSpec>),
    Renew(Tag),
    Trim(Tag, Sequence),
    Delete(Tag, Sequence, Box<Origin>),
}

impl Change {
    pub(crate) fn tag(&self) -> Tag {
        match self {
            Change::Open(t, _) | Change::Renew(t) | Change::Trim(t, _) | Change::Delete(t, ..) => {
                *t
            }
        }
    }
}

/// Answer that the change under way waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Described,
    Altered,
    Written,
    /// The partition's bounds, before it is read.
    Begun,
    Bounds,
    Probed(Offset, u32),
    /// The log's end, up to which it is read before a new life begins.
    Read,
    /// A statement, without which a trim to this offset would take something away.
    Stated(Offset),
    /// The first statement about the life of this count.
    Begins(u32),
    /// The newest statements, before the partition is read.
    Following,
    Trimmed(Offset),
    /// The end of a partition that is to be emptied.
    Emptying,
    /// Removal of the other lane's topic, before the log's own.
    OtherLane,
    Removed,
}

/// Where a change is about.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) partition: Partition,
    pub(crate) topics: Option<MapTopics>,
    /// The spec as it will be.
    pub(crate) spec: LogSpec,
    /// The log has a spec of a later place, which stays.
    pub(crate) is_old: bool,
    /// Word of log 0 on losses of the log, of whichever place is the latest.
    pub(crate) soundness: Soundness,
}

/// Changes of one log.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) queue: VecDeque<Change>,
    pub(crate) step: Option<Step>,
    pub(crate) target: Option<Target>,
}

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn queue_change(&mut self, call: Call) {
        let (id, change) = match call {
            Call::Open { t, log, spec } => (log, Change::Open(t, spec)),
            Call::Renew { t, log } => (log, Change::Renew(t)),
            Call::Trim { t, log, before } => (log, Change::Trim(t, before)),
            Call::Delete {
                t,
                log,
                as_of,
                origin,
            } => (log, Change::Delete(t, as_of, origin)),
            other => {
                bug!("{other:?} changes no log");
                return;
            }
        };
        let changes = self.work.changes.entry(id).or_default();
        changes.queue.push_back(change);
        if changes.step.is_none() {
            self.work.due.insert(id);
        }
    }

    /// Begins changes that are due.
    pub(crate) fn change(&mut self) {
        self.begin_provisionings();
        let failure = self.start.failure().map(str::to_owned);
        if !self.start.is_over() && failure.is_none() {
            return;
        }
        while let Some(id) = self.work.due.pop_first() {
            let changes = self.work.changes.get(&id);
            let Some(change) = changes.and_then(|of| of.queue.front()).cloned() else {
                // Input: changes that have all been made.
                self.work.changes.remove(&id);
                continue;
            };
            let begun = match &failure {
                Some(why) => Err(Refusal::Io(why.clone())),
                None => self.begin_change(id, &change),
            };
            if let Err(why) = begun {
                self.end_change(
                    id,
                    Completion::Refused {
                        t: change.tag(),
                        why,
                    },
                );
            }
        }
    }

    fn begin_change(&mut self, id: LogId, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::Open(_, spec) => self.begin_open(id, spec),
            Change::Renew(_) => self.begin_renew(id),
            Change::Trim(..) => {
                self.open_log(id)?;
                self.step(id, Step::Bounds);
                self.wait_for_bounds(id, crate::asking::Waiter::Change);
                Ok(())
            }
            Change::Delete(t, as_of, origin) => self.begin_delete(id, *t, *as_of, origin),
        }
    }

    pub(crate) fn step(&mut self, id: LogId, step: Step) {
        self.work.changes.entry(id).or_default().step = Some(step);
    }

    pub(crate) fn target(&self, id: LogId) -> Option<Target> {
        self.work.changes.get(&id)?.target.clone()
    }

    /// Answers the change under way; the next one is due.
    pub(crate) fn end_change(&mut self, id: LogId, answer: Completion) {
        if let Some(changes) = self.work.changes.get_mut(&id) {
            changes.queue.pop_front();
            changes.step = None;
            changes.target = None;
        }
        self.work.due.insert(id);
        self.out.push(answer);
    }

    pub(crate) fn refuse_change(&mut self, id: LogId, why: Refusal) {
        let changes = self.work.changes.get(&id);
        if let Some(t) = changes.and_then(|of| of.queue.front()).map(Change::tag) {
            self.end_change(id, Completion::Refused { t, why });
        }
    }

    /// Place and map of the log's last spec, unless it was deleted since.
    pub(crate) fn last_spec(&self, id: LogId) -> Option<(Sequence, MapEpoch)> {
        let rows = self.rows.of(id);
        let open = self
            .logs
            .get(&id)
            .map(|log| (log.spec.as_of, log.spec.epoch));
        let written = rows
            .spec
            .filter(|(as_of, _)| rows.deleted.is_none_or(|deleted| deleted < *as_of));
        open.max(written)
    }

    fn begin_open(&mut self, id: LogId, spec: &LogSpec) -> Result<(), Refusal> {
        if !spec.storage.is_first() {
            return Err(Refusal::Elsewhere(Holder::default()));
        }
        if !self.config.durability().satisfies(spec.durability) {
            return Err(Refusal::Unsupported("durability".into()));
        }
        if self
            .rows
            .of(id)
            .deleted
            .is_some_and(|deleted| spec.as_of < deleted)
        {
            return Err(Refusal::NoLog);
        }
        let (topics, partition) = if id == LogId::SYSTEM {
            (None, Partition::new(&meta_topic(&self.config), 0))
        } else {
            let missing = || Refusal::Unsupported("a log without provisions".into());
            let topics = MapTopics::decode(&spec.provisions).ok_or_else(missing)?;
            let number = topics.partition(id).ok_or_else(missing)?;
            let topic = topics.topic(&self.config, id);
            (Some(topics), Partition::new(&topic, number))
        };
        let last = self.last_spec(id);
        let is_old = last.is_some_and(|(as_of, _)| spec.as_of < as_of);
        if let Some((_, current)) = last.filter(|(_, epoch)| !is_old && spec.epoch < *epoch) {
            return Err(Refusal::StaleMap { current });
        }
        let soundness = self.work.doubts.hear(id, spec);
        if soundness.is_suspended {
            return Err(self.suspend_as_said(id));
        }
        if self
            .logs
            .get(&id)
            .is_some_and(|log| log.cuts < soundness.cuts)
        {
            // It begins again, in another life.
            self.close_log(id, &KafkaStorage::<B>::busy());
        }
        let is_open = self.logs.get(&id).is_some_and(|log| log.is_open);
        if is_open && is_old {
            self.step(id, Step::Bounds);
            self.wait_for_bounds(id, crate::asking::Waiter::Change);
            return Ok(());
        }
        if self
            .logs
            .get(&id)
            .is_some_and(|log| log.partition != partition)
        {
            // A later spec names other topics: those of before are no more.
            self.close_log(id, &Refusal::NoLog);
        }
        let mut spec = *spec;
        if let Some((as_of, epoch)) = last.filter(|_| is_old) {
            (spec.as_of, spec.epoch) = (as_of, epoch);
        }
        let topic = partition.topic.clone();
        let changes = self.work.changes.entry(id).or_default();
        changes.step = Some(Step::Described);
        changes.target = Some(Target {
            partition,
            topics,
            spec,
            is_old,
            soundness,
        });
        self.order(Purpose::Change(id), Order::Describe { topic });
        Ok(())
    }

    /// Writes a row, for which the change waits.
    pub(crate) fn write(&mut self, id: LogId, statement: Statement) -> Result<(), Refusal> {
        let row = Row { log: id, statement };
        let record = NewRecord {
            key: Some(row.key()),
            value: Some(row.value()),
            sent_ms: self.wall_ms(),
        };
        let token = self.token(Purpose::Row(row, id));
        let partition = state_partition(&self.config);
        if self.brokers.produce(token, &partition, record).is_err() {
            self.untoken(token);
            return Err(KafkaStorage::<B>::busy());
        }
        self.step(id, Step::Written);
        Ok(())
    }

    pub(crate) fn row_reported(&mut self, row: Row, id: LogId, is_stored: bool) {
        if !is_stored {
            self.refuse_change(id, KafkaStorage::<B>::busy());
            // It may be stored all the same, and have been read.
            return self.live_on(id);
        }
        if let Some(before) = self.rows.take(row) {
            let removed = NewRecord {
                key: Some(before.key()),
                value: None,
                sent_ms: self.wall_ms(),
            };
            let token = self.token(Purpose::Nothing);
            let partition = state_partition(&self.config);
            if self.brokers.produce(token, &partition, removed).is_err() {
                // It is superfluous, and no more.
                self.untoken(token);
            }
        }
        let changes = self.work.changes.get(&id);
        match changes.and_then(|of| of.queue.front()) {
            Some(Change::Open(..)) => self.attach(id),
            Some(Change::Renew(_)) => {
                let topics = self.logs.get(&id).and_then(|log| log.topics);
                let life = self.life(id, topics.map_or(0, |topics| topics.nonce));
                if let Some(log) = self.logs.get_mut(&id) {
                    log.incarnation = life;
                }
                self.remove_superfluous(id);
                self.step(id, Step::Bounds);
                self.wait_for_bounds(id, crate::asking::Waiter::Change);
            }
            Some(Change::Delete(t, ..)) => self.remove(id, *t),
            Some(Change::Trim(..)) | None => bug!("{id}: {row:?} belongs to no change"),
        }
    }

    pub(crate) fn change_answered(&mut self, id: LogId, answer: Answer) {
        let Some(changes) = self.work.changes.get(&id) else {
            // Input: an answer that came after its change had ended.
            return;
        };
        let (Some(change), Some(step)) = (changes.queue.front().cloned(), changes.step.clone())
        else {
            // Input: an answer that came after its change had ended.
            return;
        };
        let t = change.tag();
        let topic = changes
            .target
            .as_ref()
            .map(|target| target.partition.topic.clone());
        let result = match (step, answer) {
            (Step::Removed, Answer::Done)
            | (Step::Removed | Step::Emptying, Answer::Failed(Failure::NoTopic)) => {
                return self.end_change(id, Completion::Done { t });
            }
            (Step::OtherLane, Answer::Done | Answer::Failed(Failure::NoTopic)) => {
                self.remove_topic(id);
                Ok(())
            }
            (Step::Trimmed(before), Answer::Done) => {
                if let Some(log) = self.logs.get_mut(&id) {
                    log.kept_from(before);
                }
                self.stirred.insert(id);
                return self.end_change(id, Completion::Done { t });
            }
            (Step::Described, Answer::Described(found)) => self.described(id, &found),
            (Step::Altered, Answer::Done) => self.write_spec(id),
            (Step::Begun, Answer::Watermarks { low, high }) => {
                self.begin_log(id, low, high);
                Ok(())
            }
            (Step::Emptying, Answer::Watermarks { high, .. }) => {
                self.empty(id, high);
                Ok(())
            }
            #[cfg(feature = "sabotage")]
            (Step::Described, Answer::Failed(Failure::NoTopic))
                if self.config.has_bug(crate::sabotage::Bug::MissingTopicMade) =>
            {
                self.make_again(id)
            }
            (step, Answer::Failed(Failure::NoTopic)) => {
                if step == Step::Described {
                    let topics = changes.target.as_ref().and_then(|target| target.topics);
                    self.topic_missing(id, topics);
                }
                let name = topic.map_or_else(String::new, |topic| topic.to_string());
                Err(Refusal::Io(format!("topic {name} is not there")))
            }
            (_, Answer::Failed(Failure::TimedOut)) => Err(KafkaStorage::<B>::busy()),
            (_, answer) => Err(Refusal::Io(format!("the brokers said {answer:?}"))),
        };
        if let Err(why) = result {
            self.refuse_change(id, why);
        }
    }

    /// The log's bounds are known, for the change that waits for them: its end is `high`.
    pub(crate) fn change_bounded(&mut self, id: LogId, high: Offset) {
        let changes = self.work.changes.get(&id);
        let Some(change) = changes.and_then(|of| of.queue.front()).cloned() else {
            // Input: a question that outlived its change.
            return;
        };
        match change {
            Change::Open(t, _) => self.opened_at(id, t, high),
            Change::Renew(_) if changes.is_some_and(|of| of.step == Some(Step::Read)) => {
                if let Err(why) = self.state_renewed(id, high) {
                    self.refuse_change(id, why);
                }
            }
            Change::Renew(t) => {
                if let Some(log) = self.logs.get(&id) {
                    let bounds = log.bounds(high);
                    self.end_change(id, Completion::Opened { t, bounds });
                }
            }
            Change::Trim(_, before) => self.trim_below(id, before, high),
            Change::Delete(..) => bug!("{id}: a deletion asks for no bounds"),
        }
    }
}
