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
    /// The subscriber's topics, by their places in the run's list: the first, and the step to the next.
    topics: (usize, usize),
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
            topics: (0, 1),
        }
    }

    /// The account of a subscriber that has these topics alone: the first, and the step to the next.
    pub(super) fn of_topics(self, topics: (usize, usize)) -> Account {
        Account { topics, ..self }
    }

    /// Whether the topic at this place of the run's list is one of the subscriber's.
    pub(super) fn has(&self, topic: usize) -> bool {
        let (first, step) = self.topics;
        topic % step == first
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

    /// One of them, for a subscriber of one topic.
    pub fn take(&mut self, payload: &[u8]) {
        self.take_of(0, payload);
    }

    /// One of them, with its topic's place among the subscriber's.
    pub fn take_of(&mut self, place: usize, payload: &[u8]) {
        let (first, step) = self.topics;
        let topic = first + place * step;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_of_some_topics_enters_each_under_its_place_among_all() {
        let (run, progress) = (7, Arc::default());
        let ledgers = vec![Ledger::new(1, 6); 6];
        let mut account = Account::new(run, ledgers, &progress, 0).of_topics((1, 3));
        let payload = |number| {
            let stamp = Stamp {
                run,
                publisher: 0,
                number,
                sent_us: 0,
            };
            stamp.payload(100)
        };
        account.begin();
        for (place, number) in [(0, 1), (1, 4), (0, 7)] {
            account.take_of(place, &payload(number));
        }
        // One of another subscriber's.
        account.take_of(1, &payload(3));
        account.end();
        let counts = account.ledgers.iter().map(Ledger::tally);
        let counts: Vec<(u64, u64)> = counts
            .map(|tally| (tally.delivered, tally.strange))
            .collect();
        assert_eq!(counts, [(0, 0), (2, 0), (0, 0), (0, 0), (1, 1), (0, 0)]);
        let own: Vec<usize> = (0..6).filter(|topic| account.has(*topic)).collect();
        assert_eq!(own, [1, 4]);
    }
}
