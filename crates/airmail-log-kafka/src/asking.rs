//! Questions about a log's end and beginning, coalesced.
//!
//! Everything that needs a log's bounds waits here for an answer that was made *after* it asked: an answer that is
//! already on its way may be from before an append that was acknowledged meanwhile. So there is one question on its
//! way at a time; whoever comes while it is waits for the next one. A log whose leader has not answered in time answers
//! as busy at once for a while, so that a dead broker does not gather questions.

use crate::place::Offset;
use crate::reader::ReaderKey;
use airmail_log::Tag;
use airmail_log::TopicPage;
use airmail_model::Mono;
use std::time::Duration;

/// Time for which a log is busy after its leader has not answered.
pub(crate) const REST: Duration = Duration::from_secs(1);

/// Purpose for which the bounds of a log are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// Answers `Bounds`.
    Bounds(Tag),
    /// Answers `FindTime`: no record of that time is before this one.
    Found(Tag, Offset),
    /// Answers `Topics`, after a reader of the storage's own has looked through the log.
    Topics(Tag, Box<TopicPage>),
    /// Goes on with the change of the log that is under way.
    Change,
    /// Says whether a reader begins within the log.
    Reader(ReaderKey),
    /// Says where the log begins now: a consumer was out of range.
    OutOfRange,
}

/// Questions of one log.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    asked: Vec<Waiter>,
    /// To be asked for when the answer under way is there.
    waiting: Vec<Waiter>,
    is_under_way: bool,
    rests_until: Mono,
}

impl Asking {
    /// Takes a waiter. Whether there is a question to be asked now.
    pub(crate) fn add(&mut self, waiter: Waiter) -> bool {
        self.waiting.push(waiter);
        self.begin()
    }

    /// Whether it is being asked where the log begins now.
    pub(crate) fn is_out_of_range(&self) -> bool {
        let mut all = self.asked.iter().chain(&self.waiting);
        all.any(|waiter| *waiter == Waiter::OutOfRange)
    }

    /// Whether nobody is asked at the moment, because nobody has answered.
    pub(crate) fn is_resting(&self, now: Mono) -> bool {
        now < self.rests_until
    }

    /// Has whoever waits go with a question that is asked now, if none is under way.
    pub(crate) fn begin(&mut self) -> bool {
        if self.is_under_way || self.waiting.is_empty() {
            return false;
        }
        self.is_under_way = true;
        self.asked = std::mem::take(&mut self.waiting);
        true
    }

    /// The answer is there, for these.
    pub(crate) fn answered(&mut self) -> Vec<Waiter> {
        self.is_under_way = false;
        std::mem::take(&mut self.asked)
    }

    /// Nobody has answered in time: these get no answer, and whoever waits for the next one neither.
    pub(crate) fn failed(&mut self, now: Mono) -> Vec<Waiter> {
        self.rests_until = now.plus(REST);
        let mut all = self.answered();
        all.append(&mut self.waiting);
        all
    }

    /// Everybody who waits; nobody will be answered.
    pub(crate) fn give_up(&mut self) -> Vec<Waiter> {
        self.answered()
            .into_iter()
            .chain(std::mem::take(&mut self.waiting))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_while_a_question_is_under_way_waits_for_the_next() {
        let mut asking = Asking::default();
        assert!(asking.add(Waiter::Bounds(Tag(1))));
        assert!(!asking.add(Waiter::Bounds(Tag(2))));
        assert!(!asking.add(Waiter::Change));
        assert_eq!(asking.answered(), [Waiter::Bounds(Tag(1))]);
        assert!(asking.begin());
        assert!(!asking.add(Waiter::Bounds(Tag(3))));
        assert_eq!(asking.answered(), [Waiter::Bounds(Tag(2)), Waiter::Change]);
        assert!(asking.begin());
        assert_eq!(asking.answered(), [Waiter::Bounds(Tag(3))]);
        assert!(!asking.begin());
    }

    #[test]
    fn a_leader_that_does_not_answer_is_left_alone_for_a_second() {
        let mut asking = Asking::default();
        asking.add(Waiter::Bounds(Tag(1)));
        asking.add(Waiter::Bounds(Tag(2)));
        let all = asking.failed(Mono(5));
        assert_eq!(all, [Waiter::Bounds(Tag(1)), Waiter::Bounds(Tag(2))]);
        assert!(asking.is_resting(Mono(5)));
        assert!(!asking.is_resting(Mono(5).plus(REST)));
    }
}
