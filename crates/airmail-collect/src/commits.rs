//! Committed place of one source, as far as it is known.
//!
//! A commit is asked for, and then confirmed, refused, or never answered: a rebalance refuses it, and a
//! broker that dies takes the answer with it. Only a confirmed commit counts; a place that was
//! asked for and not confirmed is asked for again, also when nothing more is collected. Invariants:
//! - At most one commit waits for its answer, so that none overtakes another; one that waits for longer
//!   than [`ANSWER_MAX`] is taken for lost.
//! - After a refusal the next one waits, twice as long each time, up to [`BACKOFF_MAX`].
//! - A late answer counts for its own commit only: a refusal of another commit than the waiting one
//!   changes nothing, and a confirmation is the group's state, whichever instance asked for it.

use std::time::Duration;

/// Longest time that a commit waits for its answer. Longer than the client itself tries.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(60);
/// The longest time between a refusal and the next commit.
pub(crate) const BACKOFF_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
struct Asked {
    next: u64,
    at: Duration,
}

/// Commits of one source.
#[derive(Clone, Debug)]
pub(crate) struct Commits {
    /// The place that the group is known to have; `None` if nothing was ever committed.
    confirmed: Option<u64>,
    asked: Option<Asked>,
    /// Refusals since the last confirmation.
    refusals: u32,
    not_before: Duration,
}

impl Commits {
    /// Begins for a source that the group has committed up to here.
    pub(crate) fn new(confirmed: Option<u64>) -> Commits {
        Commits {
            confirmed,
            asked: None,
            refusals: 0,
            not_before: Duration::ZERO,
        }
    }

    /// Asks for a commit up to `next`, if it is not confirmed yet and it is time.
    pub(crate) fn ask(&mut self, next: u64, now: Duration) -> bool {
        let waits = self.asked.is_some_and(|asked| now < asked.at + ANSWER_MAX);
        if !self.is_open(next) || waits || now < self.not_before {
            return false;
        }
        self.asked = Some(Asked { next, at: now });
        true
    }

    /// Whether the group may lack a commit up to `next`.
    pub(crate) fn is_open(&self, next: u64) -> bool {
        // Nothing was ever taken, and nothing committed: where to begin is still open.
        self.confirmed.unwrap_or(0) != next
    }

    /// The group has this.
    pub(crate) fn confirmed(&mut self, next: u64) {
        self.confirmed = Some(next);
        if self.asked.is_some_and(|asked| asked.next == next) {
            self.asked = None;
        }
        self.refusals = 0;
        self.not_before = Duration::ZERO;
    }

    /// The group, or the client, has not done this; the next is asked for after a while, at first `every`.
    pub(crate) fn refused(&mut self, next: u64, now: Duration, every: Duration) {
        if self.asked.is_none_or(|asked| asked.next != next) {
            return;
        }
        self.asked = None;
        let backoff = every.saturating_mul(1 << self.refusals.min(16));
        self.refusals = self.refusals.saturating_add(1);
        self.not_before = now + backoff.min(BACKOFF_MAX.max(every));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_confirmed_is_not_asked_for_again() {
        let mut commits = Commits::new(Some(3));
        assert!(!commits.ask(3, S));
        assert!(commits.ask(5, S));
        commits.confirmed(5);
        assert!(!commits.ask(5, 1_000 * S));
    }

    #[test]
    fn what_is_refused_is_asked_for_again_later_and_later() {
        let mut commits = Commits::new(None);
        let mut now = S;
        let mut waits = Vec::new();
        for _ in 0..6 {
            assert!(commits.ask(5, now));
            commits.refused(5, now, S);
            let refused_at = now;
            while !commits.clone().ask(5, now) {
                now += S;
            }
            waits.push((now - refused_at).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        assert!(commits.ask(5, now));
        commits.confirmed(5);
        assert!(commits.ask(6, now), "no backoff is left");
    }

    #[test]
    fn what_is_not_answered_is_asked_for_again() {
        let mut commits = Commits::new(None);
        assert!(commits.ask(5, S));
        assert!(!commits.ask(7, 2 * S), "one at a time");
        assert!(commits.ask(7, S + ANSWER_MAX));
    }

    #[test]
    fn a_late_answer_is_believed_for_what_it_says() {
        let mut commits = Commits::new(Some(2));
        assert!(commits.ask(5, S));
        // Of a commit that was given up, or of the source's life before.
        commits.refused(4, S, S);
        assert!(!commits.ask(5, 2 * S), "the other one still waits");
        commits.confirmed(4);
        assert!(!commits.ask(5, 2 * S), "it still waits");
        commits.refused(5, 2 * S, S);
        assert!(commits.ask(5, 3 * S));
        commits.confirmed(5);
        // It was done before the one that is confirmed, or after it: nobody knows.
        commits.confirmed(4);
        assert!(commits.ask(5, 3 * S));
    }

    #[test]
    fn a_source_that_nothing_was_taken_of_commits_nothing() {
        assert!(!Commits::new(None).ask(0, S));
        assert!(!Commits::new(Some(0)).ask(0, S));
    }
}
