//! Opening a log: its topic is described and checked, its spec is written down if that is new, and it is read from where
//! what is stated of it ends.

use crate::brokers::{Brokers, Described, Order, Question};
use crate::changing::{Step, Target};
use crate::layout::{check, retention_settings};
use crate::place::Offset;
use crate::rows::Statement;
use crate::soundness::cut_at;
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::{Completion, Refusal, Tag};
use airmail_model::LogId;

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn described(&mut self, id: LogId, found: &Described) -> Result<(), Refusal> {
        let Some(target) = self.target(id) else {
            return Err(Refusal::NoLog);
        };
        self.work.doubts.found(id);
        let topic = &target.partition.topic;
        let partitions = target.partition.number.0 + 1;
        check(&self.config, topic, found, partitions).map_err(Refusal::Io)?;
        let settings = retention_settings(&target.spec.retention);
        let is_kept = settings
            .iter()
            .all(|(name, value)| found.settings.get(name) == Some(value));
        if target.is_old || is_kept {
            return self.write_spec(id);
        }
        let topic = topic.clone();
        self.step(id, Step::Altered);
        self.order(Purpose::Change(id), Order::Alter { topic, settings });
        Ok(())
    }

    pub(crate) fn write_spec(&mut self, id: LogId) -> Result<(), Refusal> {
        let Some(target) = self.target(id) else {
            return Err(Refusal::NoLog);
        };
        let (as_of, epoch) = (target.spec.as_of, target.spec.epoch);
        let rows = self.rows.of(id);
        let is_deleted = rows.deleted.is_some_and(|deleted| deleted >= as_of);
        if rows.spec >= Some((as_of, epoch)) && !is_deleted {
            self.attach(id);
            return Ok(());
        }
        self.write(id, Statement::Spec { as_of, epoch })
    }

    /// The row about a cut that log 0 knows of, and the rows do not.
    fn cut_to_write(&self, id: LogId, target: &Target) -> Option<Statement> {
        let (soundness, nonce) = (target.soundness, target.topics?.nonce);
        let (count, at) = (soundness.cuts, cut_at(&soundness));
        let is_new = count > self.rows.of(id).cuts(nonce).0;
        is_new.then_some(Statement::Cuts { count, nonce, at })
    }

    /// Has the log read, if it is not.
    pub(crate) fn attach(&mut self, id: LogId) {
        let cut = self
            .target(id)
            .and_then(|target| self.cut_to_write(id, &target));
        if let Some(cut) = cut {
            if let Err(why) = self.write(id, cut) {
                self.refuse_change(id, why);
            }
            return;
        }
        if self.logs.contains_key(&id) {
            self.step(id, Step::Bounds);
            return self.wait_for_bounds(id, crate::asking::Waiter::Change);
        }
        if let Some(target) = self.target(id) {
            self.step(id, Step::Begun);
            self.ask(Purpose::Change(id), &target.partition, Question::Watermarks);
        }
    }

    pub(crate) fn begin_log(&mut self, id: LogId, low: Offset, high: Offset) {
        let Some(target) = self.target(id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        let has_followed = self.work.stating.followed.remove(&id);
        if !has_followed && !self.is_reached(id, target.topics, low) {
            self.step(id, Step::Following);
            return self.follow(id, target.topics, low);
        }
        self.begin_scan(id, target.partition, target.topics, target.spec, low);
        #[cfg(feature = "sabotage")]
        if self.config.has_bug(crate::sabotage::Bug::HomeWithoutTable) {
            self.scan_from_end(id, high);
        }
        self.step(id, Step::Bounds);
        let read = self.logs.get(&id).map_or(high, |log| log.scan.next());
        self.arrive_at(id, high.max(read), crate::bounds::Arriving::Change);
    }

    pub(crate) fn opened_at(&mut self, id: LogId, t: Tag, high: Offset) {
        let target = self.target(id);
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return self.refuse_change(id, Refusal::NoLog);
        };
        if let Some(why) = log.suspended.clone() {
            if !log.is_open && !self.work.doubts.has(id) {
                self.close_log(id, &Refusal::NoLog);
            }
            return self.refuse_change(id, why);
        }
        if log.scan.awaited.is_some() && !log.is_open {
            return self.refuse_change(id, KafkaStorage::<B>::busy());
        }
        if let Some(target) = target {
            log.spec = target.spec;
        }
        let has_begun = !std::mem::replace(&mut log.is_open, true);
        let bounds = log.bounds(high);
        if has_begun && log.cuts > 0 {
            // Whoever has read the life before is told before all that comes of this one.
            self.out.push(Completion::Gained { log: id, bounds });
        }
        self.end_change(id, Completion::Opened { t, bounds });
    }
}
