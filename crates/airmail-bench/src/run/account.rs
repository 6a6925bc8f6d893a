//! A subscriber's account, in which it enters messages as they come.

use crate::clock::now_us;
use crate::ledger::Ledger;
use crate::progress::Progress;
use crate::stamp::Stamp;
use std::sync::Arc;

/// Takes messages for one subscriber: between [`Account::begin`] and [`Account::end`]
/// what arrived at once.
#[derive(Debug)]
pub struct Account {
    /// One for each topic, in the order of the run's list.
    pub ledgers: Vec<Ledger>,
    /// Gaps that were told.
    pub gaps: u64,
    /// When something arrived last, in microseconds; 0 if nothing did.
    pub last_us: u64,
    run: u32,
    progress: Arc<Progress>,
    now_us: u64,
    /// Messages that came for the first time and are not told of yet.
    fresh: u64,
    /// Times that are not entered yet, each with how many messages had it.
    times: Vec<(u64, u64)>,
    lane: usize,
    numbering: Numbering,
}

/// Ways in which a publisher numbers the messages in its stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// Its messages, which use the topics in turn.
    InTurn,
    /// Its messages on each topic.
    ByTopic,
}

impl Account {
    pub(super) fn new(
        run: u32,
        ledgers: Vec<Ledger>,
        progress: &Arc<Progress>,
        lane: usize,
    ) -> Account {
        Account {
            ledgers,
            gaps: 0,
            last_us: 0,
            run,
            progress: Arc::clone(progress),
            now_us: 0,
            fresh: 0,
            times: Vec::new(),
            lane,
            numbering: Numbering::InTurn,
        }
    }

    /// Opens the account of a run with `topics` topics whose `publishers` number their messages on
    /// each of them.
    #[must_use]
    pub fn by_topic(
        run: u32,
        publishers: u32,
        topics: usize,
        progress: &Arc<Progress>,
        lane: usize,
    ) -> Account {
        let ledgers = vec![Ledger::new(publishers, 1); topics];
        Account {
            numbering: Numbering::ByTopic,
            ..Account::new(run, ledgers, progress, lane)
        }
    }

    /// Messages have arrived, now.
    pub fn begin(&mut self) {
        self.now_us = now_us();
    }

    /// One of them, in a run of one topic.
    pub fn take(&mut self, payload: &[u8]) {
        self.take_of(0, payload);
    }

    /// One of them, with its topic's place in the run's list.
    pub fn take_of(&mut self, topic: usize, payload: &[u8]) {
        let topics = match self.numbering {
            Numbering::InTurn => self.ledgers.len(),
            Numbering::ByTopic => 1,
        };
        let Some(ledger) = self.ledgers.get_mut(topic) else {
            return self.take_strange();
        };
        let stamp = Stamp::read(payload).filter(|stamp| stamp.is_of(self.run, payload.len()));
        // Publishers use the topics in turn.
        let of_topic = |stamp: &Stamp| topics == 1 || stamp.number % topics as u64 == topic as u64;
        let Some(stamp) = stamp.filter(of_topic) else {
            return ledger.enter_strange();
        };
        if !ledger.enter(&stamp) {
            return;
        }
        self.fresh += 1;
        let latency_us = self.now_us.saturating_sub(stamp.sent_us);
        match self.times.last_mut() {
            Some((same, count)) if *same == latency_us => *count += 1,
            _ => self.times.push((latency_us, 1)),
        }
    }

    /// Enters a message on a topic that is not of the run.
    pub fn take_strange(&mut self) {
        if let Some(ledger) = self.ledgers.first_mut() {
            ledger.enter_strange();
        }
    }

    /// A gap was told instead of messages.
    pub fn take_gap(&mut self) {
        self.gaps += 1;
    }

    /// Ends a group of messages: no more have arrived.
    pub fn end(&mut self) {
        if self.fresh > 0 {
            self.last_us = self.now_us;
            self.progress.deliver(self.lane, &self.times, self.fresh);
            self.times.clear();
        }
    }

    /// Number of messages that came for the first time since the last call.
    pub fn take_fresh(&mut self) -> u64 {
        std::mem::take(&mut self.fresh)
    }
}
