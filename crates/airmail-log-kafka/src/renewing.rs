//! New lives of logs: a log's records and numbers stay, under an incarnation that it never had.
//!
//! Statements about the life before do not count in the new one. So the log is read to the end that it has, and the first
//! statement about the new life says what is known there; only then the life is begun, by a row. A node that has the
//! log open, and reads that row, has not begun the life itself: it tells its owner, looks whether the log is still what
//! it has read, and states the new life, too.

use crate::asking::Waiter;
use crate::brokers::Brokers;
use crate::changing::{Change, Step};
use crate::layout::incarnation;
use crate::place::Offset;
use crate::rows::Statement;
use crate::storage::KafkaStorage;
use airmail_log::{Completion, Refusal};
use airmail_model::{LogId, bug};

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn begin_renew(&mut self, id: LogId) -> Result<(), Refusal> {
        self.open_log(id)?;
        self.step(id, Step::Read);
        self.wait_for_bounds(id, Waiter::Change);
        Ok(())
    }

    /// Has the first statement about a new life written: about all that there was in the life before, so that none about
    /// that one is needed any more.
    pub(crate) fn state_renewed(&mut self, id: LogId, high: Offset) -> Result<(), Refusal> {
        let log = self.open_log(id)?;
        let (nonce, next) = (log.topics.map_or(0, |topics| topics.nonce), log.scan.next());
        if next < high {
            return Err(KafkaStorage::<B>::busy());
        }
        let count = self.rows.of(id).lives(nonce) + 1;
        self.step(id, Step::Begins(count));
        let (cuts, _) = self.rows.of(id).cuts(nonce);
        let life = incarnation(self.config.cluster, id, nonce, (count, cuts));
        self.ask_statement(id, life);
        Ok(())
    }

    /// The statement is stored for which the change waits, or it could not be.
    pub(crate) fn change_stated(&mut self, id: LogId, is_stored: bool) {
        let changes = self.work.changes.get(&id);
        let change = changes.and_then(|of| of.queue.front()).cloned();
        let step = changes.and_then(|of| of.step.clone());
        let nonce = self
            .open_log(id)
            .map(|log| log.topics.map_or(0, |of| of.nonce));
        let result = match (step, nonce) {
            (_, Err(why)) => Err(why),
            (_, Ok(_)) if !is_stored => Err(KafkaStorage::<B>::busy()),
            (Some(Step::Stated(before)), Ok(_)) => {
                self.trim_now(id, before);
                Ok(())
            }
            // Somebody else has begun that life meanwhile.
            (Some(Step::Begins(count)), Ok(nonce)) if self.rows.of(id).lives(nonce) >= count => {
                Err(KafkaStorage::<B>::busy())
            }
            (Some(Step::Begins(count)), Ok(nonce)) => {
                self.write(id, Statement::Lives { count, nonce })
            }
            (step, Ok(_)) => {
                bug!("{id}: {change:?} at {step:?} waits for no statement");
                Ok(())
            }
        };
        if let Err(why) = result {
            self.refuse_change(id, why);
        }
    }

    /// Takes note of the life that the rows say a log is in. If somebody else has begun a new one, the owner is told, and
    /// it is looked at whether the log is still what was read of it.
    pub(crate) fn live_on(&mut self, id: LogId) {
        self.stop_cut(id);
        let changes = self.work.changes.get(&id);
        let change = changes.and_then(|of| of.queue.front());
        let is_own = matches!(change, Some(Change::Renew(_)));
        let topics = self.logs.get(&id).and_then(|log| log.topics);
        let life = self.life(id, topics.map_or(0, |topics| topics.nonce));
        let Some(log) = self.logs.get_mut(&id).filter(|log| log.incarnation != life) else {
            // Input: a row that says nothing new of a log that is read here.
            return;
        };
        if is_own || log.suspended.is_some() {
            return;
        }
        log.incarnation = life;
        if !log.is_open {
            return;
        }
        let bounds = log.bounds(log.scan.next().max(log.sending.end()));
        self.out.push(Completion::Gained { log: id, bounds });
        self.state_soon(id);
        self.stop_scan(id);
        self.wait_for_bounds(id, Waiter::OutOfRange);
    }
}
