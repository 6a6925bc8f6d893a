//! The core: it keeps the records under way and each source's committed place, and decides which
//! source must wait.
//!
//! `step(now, event)` gives effects. Invariants:
//! - A source is committed up to its watermark, never beyond ([`Ledger`] keeps it).
//! - A place that is not confirmed as committed is committed again, also when nothing more comes
//!   ([`Commits`] keeps the time).
//! - A ticket of a source's earlier life (revoked, and perhaps assigned again) changes nothing.
//! - Each of n sources has 1/n of the bound, is paused when it has reached that, and resumed at
//!   half of it: pausing throws away the records fetched ahead, so it must not flutter.

use crate::commits::Commits;
use crate::ledger::Ledger;
use crate::source::Source;
use crate::stamp::Range;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bounds on the records that are taken and not acknowledged, over all sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Records.
    pub records: usize,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// Names a record on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    source: Source,
    life: u64,
    index: u64,
}

impl Ticket {
    /// Where the record comes from.
    #[must_use]
    pub fn source(self) -> Source {
        self.source
    }
}

/// Events of the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A source is ours from now on, and goes on where it was committed; `None` if it never was.
    Assigned {
        /// The source.
        source: Source,
        /// The first number that is not collected yet.
        committed: Option<u64>,
    },
    /// A record has come.
    Took {
        /// The source.
        source: Source,
        /// Its number there.
        number: u64,
        /// Size of key and value.
        bytes: u32,
    },
    /// The main cluster has a record.
    Acknowledged(Ticket),
    /// The group has committed that everything of this source below `next` is collected.
    Committed {
        /// The source.
        source: Source,
        /// The number from [`Effect::Commit`].
        next: u64,
    },
    /// A commit has failed; it is tried again after a while. One whose answer never comes is, too.
    CommitFailed {
        /// The source.
        source: Source,
        /// The number from [`Effect::Commit`].
        next: u64,
    },
    /// A source is not ours any more. Its records under way are forgotten.
    Revoked(Source),
    /// Time has passed.
    Tick,
}

/// Actions for the shell, to be done in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send the record that was taken.
    Send(Ticket, Range),
    /// Take nothing more of this source.
    Pause(Source),
    /// Go on taking it.
    Resume(Source),
    /// Commit that everything of this source below `next` is collected.
    Commit {
        /// The source.
        source: Source,
        /// The first number that is not collected.
        next: u64,
    },
}

/// Records that are taken and not acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Records.
    pub records: usize,
    /// Bytes of them.
    pub bytes: u64,
}

#[derive(Debug)]
struct Account {
    life: u64,
    ledger: Ledger,
    paused: bool,
    commits: Commits,
}

/// All sources that are ours.
#[derive(Debug)]
pub struct Collector {
    bounds: Bounds,
    commit_every: Duration,
    commit_at: Duration,
    lives: u64,
    accounts: BTreeMap<Source, Account>,
}

impl Collector {
    /// One that has no source yet, and commits every so often what there is to commit.
    #[must_use]
    pub fn new(bounds: Bounds, commit_every: Duration) -> Collector {
        Collector {
            bounds,
            commit_every,
            commit_at: Duration::ZERO,
            lives: 0,
            accounts: BTreeMap::new(),
        }
    }

    /// Takes one event; effects are added to `effects`.
    pub fn step(&mut self, now: Duration, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Assigned { source, committed } => {
                self.assigned(source, committed);
                // Everybody's part is smaller now.
                self.hold_all(effects);
            }
            Event::Took {
                source,
                number,
                bytes,
            } => self.took(source, number, bytes, effects),
            Event::Acknowledged(ticket) => self.acknowledged(ticket, effects),
            Event::Committed { source, next } => {
                if let Some(account) = self.accounts.get_mut(&source) {
                    account.commits.confirmed(next);
                }
            }
            Event::CommitFailed { source, next } => {
                if let Some(account) = self.accounts.get_mut(&source) {
                    account.commits.refused(next, now, self.commit_every);
                }
            }
            Event::Revoked(source) => {
                self.revoked(source, effects);
                self.hold_all(effects);
            }
            Event::Tick if now >= self.commit_at => {
                self.commit_at = now + self.commit_every;
                for (source, account) in &mut self.accounts {
                    effects.extend(commit(*source, account, now));
                }
            }
            Event::Tick => {}
        }
    }

    /// Records that are taken and not acknowledged, over all sources.
    #[must_use]
    pub fn outstanding(&self) -> Outstanding {
        let mut outstanding = Outstanding::default();
        for account in self.accounts.values() {
            outstanding.records += account.ledger.records();
            outstanding.bytes += account.ledger.bytes();
        }
        outstanding
    }

    /// The sources that are ours, each with the first number that is not collected yet.
    pub fn sources(&self) -> impl Iterator<Item = (Source, u64)> {
        let accounts = self.accounts.iter();
        accounts.map(|(source, account)| (*source, account.ledger.watermark()))
    }

    /// Whether nothing of this source is under way; also if it is not ours.
    #[must_use]
    pub fn is_settled(&self, source: Source) -> bool {
        let account = self.accounts.get(&source);
        account.is_none_or(|account| account.ledger.records() == 0)
    }

    /// Whether this source is to be left alone for now; also if it is not ours.
    #[must_use]
    pub fn is_paused(&self, source: Source) -> bool {
        self.accounts
            .get(&source)
            .is_none_or(|account| account.paused)
    }

    fn assigned(&mut self, source: Source, committed: Option<u64>) {
        self.lives += 1;
        let account = Account {
            life: self.lives,
            ledger: Ledger::new(committed.unwrap_or(0)),
            paused: false,
            commits: Commits::new(committed),
        };
        self.accounts.insert(source, account);
    }

    fn took(&mut self, source: Source, number: u64, bytes: u32, effects: &mut Vec<Effect>) {
        let part = self.part();
        let Some(account) = self.accounts.get_mut(&source) else {
            return;
        };
        let Some((index, range)) = account.ledger.take(number, bytes) else {
            return;
        };
        let life = account.life;
        let ticket = Ticket {
            source,
            life,
            index,
        };
        effects.push(Effect::Send(ticket, range));
        hold(source, account, part, effects);
    }

    fn acknowledged(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        let part = self.part();
        let account = self.accounts.get_mut(&ticket.source);
        let Some(account) = account.filter(|account| account.life == ticket.life) else {
            return;
        };
        account.ledger.acknowledge(ticket.index);
        hold(ticket.source, account, part, effects);
    }

    fn revoked(&mut self, source: Source, effects: &mut Vec<Effect>) {
        // For the last time: whether an earlier one is still on its way or not.
        if let Some(account) = self.accounts.remove(&source) {
            let next = account.ledger.watermark();
            if account.commits.is_open(next) {
                effects.push(Effect::Commit { source, next });
            }
        }
    }

    fn hold_all(&mut self, effects: &mut Vec<Effect>) {
        let part = self.part();
        for (source, account) in &mut self.accounts {
            hold(*source, account, part, effects);
        }
    }

    /// Each source's part of the bounds.
    fn part(&self) -> Bounds {
        let sources = self.accounts.len().max(1);
        Bounds {
            records: (self.bounds.records / sources).max(1),
            bytes: (self.bounds.bytes / sources as u64).max(1),
        }
    }
}

/// Pauses or resumes a source, if it is due.
fn hold(source: Source, account: &mut Account, part: Bounds, effects: &mut Vec<Effect>) {
    let (records, bytes) = (account.ledger.records(), account.ledger.bytes());
    if !account.paused && (records >= part.records || bytes >= part.bytes) {
        account.paused = true;
        effects.push(Effect::Pause(source));
    } else if account.paused && records <= part.records / 2 && bytes <= part.bytes / 2 {
        account.paused = false;
        effects.push(Effect::Resume(source));
    }
}

/// Asks for a commit of everything that is not known to be committed, if it is time.
fn commit(source: Source, account: &mut Account, now: Duration) -> Option<Effect> {
    let next = account.ledger.watermark();
    let due = account.commits.ask(next, now);
    due.then_some(Effect::Commit { source, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Source = Source {
        topic: 0,
        partition: 0,
    };
    const B: Source = Source {
        topic: 0,
        partition: 1,
    };
    const S: Duration = Duration::from_secs(1);

    fn collector(records: usize) -> Collector {
        let bounds = Bounds {
            records,
            bytes: 1_000,
        };
        Collector::new(bounds, S)
    }

    fn step(collector: &mut Collector, now: Duration, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        collector.step(now, event, &mut effects);
        effects
    }

    fn assign(collector: &mut Collector, source: Source, committed: Option<u64>) -> Vec<Effect> {
        step(collector, S, Event::Assigned { source, committed })
    }

    fn take(collector: &mut Collector, source: Source, number: u64, bytes: u32) -> Vec<Effect> {
        let took = Event::Took {
            source,
            number,
            bytes,
        };
        step(collector, S, took)
    }

    #[track_caller]
    fn sent(effects: &[Effect]) -> Ticket {
        match effects.first() {
            Some(Effect::Send(ticket, _)) => *ticket,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_committed_is_what_was_acknowledged_without_a_hole() {
        let mut collector = collector(100);
        assign(&mut collector, A, Some(4));
        let first = sent(&take(&mut collector, A, 4, 1));
        let second = sent(&take(&mut collector, A, 5, 1));
        step(&mut collector, S, Event::Acknowledged(second));
        assert_eq!(step(&mut collector, S, Event::Tick), []);
        step(&mut collector, S, Event::Acknowledged(first));
        assert_eq!(step(&mut collector, S, Event::Tick), [], "not yet due");
        let commit = [Effect::Commit { source: A, next: 6 }];
        assert_eq!(step(&mut collector, 2 * S, Event::Tick), commit);
        let committed = Event::Committed { source: A, next: 6 };
        step(&mut collector, 3 * S, committed);
        assert_eq!(step(&mut collector, 3 * S, Event::Tick), [], "nothing new");
    }

    /// One with a source of which a record was taken and acknowledged, and its commit asked for.
    fn one_that_commits() -> Collector {
        let mut collector = collector(100);
        assign(&mut collector, A, Some(0));
        let ticket = sent(&take(&mut collector, A, 0, 1));
        step(&mut collector, S, Event::Acknowledged(ticket));
        let asked = step(&mut collector, S, Event::Tick);
        assert_eq!(asked, [COMMIT]);
        collector
    }

    const COMMIT: Effect = Effect::Commit { source: A, next: 1 };
    const FAILED: Event = Event::CommitFailed { source: A, next: 1 };
    const COMMITTED: Event = Event::Committed { source: A, next: 1 };

    /// Ticks once a second for `seconds`, and gives the effects.
    fn ticks(collector: &mut Collector, from: Duration, seconds: u32) -> Vec<Effect> {
        let ticks = (1..=seconds).map(|second| from + second * S);
        ticks
            .flat_map(|now| step(collector, now, Event::Tick))
            .collect()
    }

    #[test]
    fn a_commit_that_failed_is_made_again_though_nothing_more_comes() {
        let mut collector = one_that_commits();
        let mut now = S;
        for _ in 0..3 {
            step(&mut collector, now, FAILED);
            assert_eq!(ticks(&mut collector, now, 30), [COMMIT]);
            now += 30 * S;
        }
        step(&mut collector, now, COMMITTED);
        assert_eq!(ticks(&mut collector, now, 600), []);
    }

    #[test]
    fn a_commit_that_is_never_answered_is_made_again() {
        let mut collector = one_that_commits();
        assert_eq!(ticks(&mut collector, S, 30), []);
        assert_eq!(ticks(&mut collector, 31 * S, 40), [COMMIT]);
    }

    #[test]
    fn a_source_that_is_revoked_commits_what_is_not_confirmed() {
        for answer in [None, Some(FAILED)] {
            let mut collector = one_that_commits();
            answer.map(|answer| step(&mut collector, S, answer));
            assert_eq!(step(&mut collector, S, Event::Revoked(A)), [COMMIT]);
        }
        let mut collector = one_that_commits();
        step(&mut collector, S, COMMITTED);
        assert_eq!(step(&mut collector, S, Event::Revoked(A)), []);
    }

    #[test]
    fn an_answer_from_a_life_before_leaves_nothing_uncommitted() {
        for late in [FAILED, COMMITTED] {
            let mut collector = one_that_commits();
            step(&mut collector, S, Event::Revoked(A));
            assert_eq!(step(&mut collector, S, late), []);
            // Ours again, and collected further; then the answer comes.
            assign(&mut collector, A, Some(0));
            for number in 0..2 {
                let ticket = sent(&take(&mut collector, A, number, 1));
                step(&mut collector, S, Event::Acknowledged(ticket));
            }
            step(&mut collector, S, late);
            let further = Effect::Commit { source: A, next: 2 };
            assert_eq!(ticks(&mut collector, S, 30), [further]);
            step(&mut collector, 31 * S, late);
            assert_eq!(ticks(&mut collector, 31 * S, 70), [further]);
        }
    }

    #[test]
    fn a_source_that_is_revoked_commits_what_it_has_and_forgets_the_rest() {
        let mut collector = collector(100);
        assign(&mut collector, A, None);
        let first = sent(&take(&mut collector, A, 0, 1));
        let second = sent(&take(&mut collector, A, 1, 1));
        step(&mut collector, S, Event::Acknowledged(first));
        let revoked = step(&mut collector, S, Event::Revoked(A));
        assert_eq!(revoked, [Effect::Commit { source: A, next: 1 }]);
        assert_eq!(collector.outstanding(), Outstanding::default());
        // It is ours again, and the ack of its earlier life comes.
        assign(&mut collector, A, Some(1));
        let again = sent(&take(&mut collector, A, 1, 1));
        step(&mut collector, S, Event::Acknowledged(second));
        assert!(!collector.is_settled(A));
        step(&mut collector, S, Event::Acknowledged(again));
        assert!(collector.is_settled(A));
    }

    #[test]
    fn what_comes_after_a_revocation_or_twice_is_not_sent() {
        let mut collector = collector(100);
        assert_eq!(take(&mut collector, A, 0, 1), []);
        assign(&mut collector, A, Some(3));
        assert_eq!(take(&mut collector, A, 2, 1), []);
        sent(&take(&mut collector, A, 3, 1));
        assert_eq!(take(&mut collector, A, 3, 1), []);
    }

    #[test]
    fn a_source_is_paused_at_its_part_and_resumed_at_half_of_it() {
        let mut collector = collector(8);
        assign(&mut collector, A, Some(0));
        assign(&mut collector, B, Some(0));
        let mut tickets = Vec::new();
        for number in 0..3 {
            tickets.push(sent(&take(&mut collector, A, number, 1)));
        }
        let fourth = take(&mut collector, A, 3, 1);
        assert_eq!(fourth[1..], [Effect::Pause(A)]);
        assert!(collector.is_paused(A) && !collector.is_paused(B));
        sent(&take(&mut collector, B, 0, 1));
        assert_eq!(step(&mut collector, S, Event::Acknowledged(tickets[0])), []);
        let resumed = step(&mut collector, S, Event::Acknowledged(tickets[1]));
        assert_eq!(resumed, [Effect::Resume(A)]);
    }

    #[test]
    fn bytes_count_as_well_and_parts_follow_the_number_of_sources() {
        let mut collector = collector(100);
        assign(&mut collector, A, Some(0));
        assert_eq!(take(&mut collector, A, 0, 600).len(), 1);
        assert_eq!(assign(&mut collector, B, Some(0)), [Effect::Pause(A)]);
        let large = take(&mut collector, B, 0, 5_000);
        assert_eq!(large[1..], [Effect::Pause(B)], "it is sent all the same");
        assert_eq!(
            step(&mut collector, S, Event::Revoked(B)),
            [],
            "600 of 1,000 is more than half"
        );
    }
}
