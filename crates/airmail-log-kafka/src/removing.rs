//! Changes that remove: a log's beginning, or all of it.
//!
//! A trim goes by Kafka's `DeleteRecords`, which takes whole records: one that a trim's number lies within is kept, and
//! whether it ends before that number is in the record. What the records that go say of producers is stated before. A
//! deletion is written down first, so that no spec of an earlier place makes the log anew; then the log ends here, and its
//! topic goes with the last of the topic's logs. After a restart the deletion is known by its row, and by the topic that
//! is not there.

use crate::brokers::{Brokers, Order, Question};
use crate::changing::{Change, Step, Target};
use crate::place::{Offset, place_of};
use crate::rows::Statement;
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::{Completion, Refusal, Tag};
use airmail_model::{Holder, LogId, Sequence, StorageName};

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn begin_delete(
        &mut self,
        id: LogId,
        t: Tag,
        as_of: Sequence,
        storage: StorageName,
    ) -> Result<(), Refusal> {
        if !storage.is_first() {
            return Err(Refusal::Elsewhere(Holder::default()));
        }
        if id == LogId::SYSTEM {
            return Err(Refusal::Unsupported("deletion of log 0".into()));
        }
        let is_later = self.last_spec(id).is_some_and(|(spec, _)| as_of < spec);
        let is_there = self.logs.contains_key(&id);
        let is_known = self.rows.of(id).deleted >= Some(as_of.max(Sequence(1)));
        if is_later || !is_there && (is_known || as_of == Sequence(0)) {
            self.end_change(id, Completion::Done { t });
            return Ok(());
        }
        let target = self.logs.get(&id).map(|log| Target {
            partition: log.partition.clone(),
            topics: log.topics,
            spec: log.spec,
            is_old: false,
        });
        self.work.changes.entry(id).or_default().target = target;
        self.write(id, Statement::Deleted { as_of })
    }

    /// The log is deleted: it ends here, and its topic with the last of the topic's logs.
    pub(crate) fn remove(&mut self, id: LogId, t: Tag) {
        self.close_log(id, &Refusal::NoLog);
        self.remove_statements(id);
        let Some(target) = self.target(id) else {
            // Input: a log that was deleted meanwhile.
            return self.end_change(id, Completion::Done { t });
        };
        let is_deleted = |index: u16| {
            let log = LogId {
                index: airmail_model::LogIndex(index),
                ..id
            };
            self.rows.of(log).deleted.is_some() && !self.logs.contains_key(&log)
        };
        let is_last = target.topics.is_none_or(|topics| {
            let first = topics.first.0;
            (first..first.saturating_add(topics.logs)).all(is_deleted)
        });
        if is_last {
            let topic = target.partition.topic;
            self.step(id, Step::Removed);
            self.order(Purpose::Change(id), Order::Delete { topic });
        } else {
            self.step(id, Step::Emptying);
            self.ask(Purpose::Change(id), &target.partition, Question::Watermarks);
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
