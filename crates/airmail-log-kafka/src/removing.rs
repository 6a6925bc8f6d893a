//! Changes that remove: a log's beginning, or all of it.
//!
//! A trim goes by Kafka's `DeleteRecords`, which takes whole records: one that a trim's number lies within is kept, and
//! whether it ends before that number is in the record. What the records that go say of producers is stated before. A
//! deletion is written down first, so that no spec of an earlier place makes the log anew; then the log ends here, and its
//! topic goes with the last of the topic's logs, and with it that of a lane which was never used. After a restart the
//! deletion is known by its row. Whether the topic went with it is not: who deletes the log again, and brings its
//! provisions, has it deleted then.

use crate::brokers::{Brokers, Order, Partition, Question};
use crate::changing::{Change, Step, Target};
use crate::layout::MapTopics;
use crate::place::{Offset, place_of};
use crate::rows::Statement;
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::{Completion, LogSpec, Origin, Refusal, Soundness, Tag};
use airmail_model::{Holder, Lane, LogId, LogIndex, Provisions, Sequence};

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn begin_delete(
        &mut self,
        id: LogId,
        t: Tag,
        as_of: Sequence,
        origin: &Origin,
    ) -> Result<(), Refusal> {
        if !origin.storage.is_first() {
            return Err(Refusal::Elsewhere(Holder::default()));
        }
        if id == LogId::SYSTEM {
            return Err(Refusal::Unsupported("deletion of log 0".into()));
        }
        let is_later = self.last_spec(id).is_some_and(|(spec, _)| as_of < spec);
        let is_there = self.logs.contains_key(&id);
        let is_known = self.rows.of(id).deleted >= Some(as_of.max(Sequence(1)));
        let target = self.to_delete(id, &origin.provisions);
        let is_nothing = target.is_none() && (is_known || as_of == Sequence(0));
        if is_later || is_nothing {
            self.end_change(id, Completion::Done { t });
            return Ok(());
        }
        self.work.changes.entry(id).or_default().target = target;
        if is_known && !is_there {
            self.remove(id, t);
            return Ok(());
        }
        self.write(id, Statement::Deleted { as_of })
    }

    /// Where a log is that is to be deleted: as it is open, or as its provisions say. `None`: nobody knows.
    fn to_delete(&self, id: LogId, provisions: &Provisions) -> Option<Target> {
        if let Some(log) = self.logs.get(&id) {
            return Some(Target {
                partition: log.partition.clone(),
                topics: log.topics,
                spec: log.spec,
                is_old: false,
                soundness: Soundness::default(),
            });
        }
        let topics = MapTopics::decode(provisions)?;
        Some(Target {
            partition: Partition::new(&topics.topic(&self.config, id), topics.partition(id)?),
            topics: Some(topics),
            spec: LogSpec::default(),
            is_old: false,
            soundness: Soundness::default(),
        })
    }

    /// The log is deleted: it ends here, and its topic with the last of the topic's logs.
    pub(crate) fn remove(&mut self, id: LogId, t: Tag) {
        self.close_log(id, &Refusal::NoLog);
        self.work.doubts.forget(id);
        self.remove_statements(id);
        let Some(target) = self.target(id) else {
            // Input: a log that was deleted meanwhile.
            return self.end_change(id, Completion::Done { t });
        };
        let is_deleted =
            |log: LogId| self.rows.of(log).deleted.is_some() && !self.logs.contains_key(&log);
        let mut logs = target.topics.iter().flat_map(|topics| logs_of(topics, id));
        if !logs.all(is_deleted) {
            self.step(id, Step::Emptying);
            return self.ask(Purpose::Change(id), &target.partition, Question::Watermarks);
        }
        let lane = match id.lane {
            Lane::Normal => Lane::High,
            Lane::High => Lane::Normal,
        };
        let other = LogId { lane, ..id };
        let is_unused = |log: LogId| {
            let is_gone = is_deleted(log) || self.rows.of(log).spec.is_none();
            is_gone && !self.logs.contains_key(&log)
        };
        match target.topics {
            Some(topics) if logs_of(&topics, other).all(is_unused) => {
                let topic = topics.topic(&self.config, other);
                self.step(id, Step::OtherLane);
                self.order(Purpose::Change(id), Order::Delete { topic });
            }
            _ => self.remove_topic(id),
        }
    }

    /// Deletes a log's own topic.
    pub(crate) fn remove_topic(&mut self, id: LogId) {
        if let Some(target) = self.target(id) {
            let topic = target.partition.topic;
            self.step(id, Step::Removed);
            self.order(Purpose::Change(id), Order::Delete { topic });
        }
    }

    pub(crate) fn empty(&mut self, id: LogId, before: Offset) {
        if let Some(target) = self.target(id) {
            let partition = target.partition;
            self.step(id, Step::Removed);
            self.order(
                Purpose::Change(id),
                Order::DeleteRecords { partition, before },
            );
        }
    }

    pub(crate) fn trim_below(&mut self, id: LogId, before: Sequence, high: Offset) {
        let (offset, index) = place_of(before);
        let Some(log) = self.logs.get(&id) else {
            // Input: a log that was deleted meanwhile.
            return self.refuse_change(id, Refusal::NoLog);
        };
        if offset >= high {
            self.trim_to(id, high);
        } else if index == 0 || offset < log.low {
            self.trim_to(id, offset);
        } else {
            // Whether the record there ends before is in the record.
            self.step(id, Step::Probed(offset, index));
            let changes = self.work.changes.get(&id);
            if let Some(t) = changes.and_then(|of| of.queue.front()).map(Change::tag) {
                self.look_at(t, id, offset);
            }
        }
    }

    /// The record at a place that a trim has named has so many numbers.
    pub(crate) fn probed(&mut self, id: LogId, numbers: u32) {
        let step = self.work.changes.get(&id).and_then(|of| of.step.clone());
        let Some(Step::Probed(offset, index)) = step else {
            // Input: a look that outlived its change.
            return;
        };
        let is_over = index >= numbers;
        self.trim_to(id, if is_over { offset.plus(1) } else { offset });
    }

    pub(crate) fn trim_to(&mut self, id: LogId, before: Offset) {
        let Some(log) = self.logs.get(&id) else {
            // Input: a log that was deleted meanwhile.
            return self.refuse_change(id, Refusal::NoLog);
        };
        if before <= log.low {
            let changes = self.work.changes.get(&id);
            if let Some(t) = changes.and_then(|of| of.queue.front()).map(Change::tag) {
                self.end_change(id, Completion::Done { t });
            }
            return;
        }
        if self.work.stating.statements.place(id, log.incarnation) >= Some(before) {
            return self.trim_now(id, before);
        }
        if log.scan.next() < before {
            // Nobody knows yet what those records say of producers.
            return self.refuse_change(id, KafkaStorage::<B>::busy());
        }
        let life = log.incarnation;
        self.step(id, Step::Stated(before));
        self.ask_statement(id, life);
    }

    /// Removes what is stated.
    pub(crate) fn trim_now(&mut self, id: LogId, before: Offset) {
        let Some(log) = self.logs.get(&id) else {
            // Input: a log that was deleted meanwhile.
            return self.refuse_change(id, Refusal::NoLog);
        };
        let partition = log.partition.clone();
        self.step(id, Step::Trimmed(before));
        self.order(
            Purpose::Change(id),
            Order::DeleteRecords { partition, before },
        );
    }
}

/// The logs of a map, in the lane of one of them.
fn logs_of(topics: &MapTopics, of: LogId) -> impl Iterator<Item = LogId> + use<> {
    let first = topics.first.0;
    let indexes = first..first.saturating_add(topics.logs);
    indexes.map(move |index| LogId {
        index: LogIndex(index),
        ..of
    })
}
