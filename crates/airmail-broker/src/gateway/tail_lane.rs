//! One lane of a tail: the live end of one log. What the tower gives of the log, once, goes to every
//! subscription that is live there, of every session: at once to those that have no filters, in turns to those that have
//! ([`super::matching_turns`]). So there are two ends: where the log has got to, and where what is held against filters has.
//!
//! Ranges are kept for each (session, log) and not for each subscription. A session's range stays
//! when its last live subscription here ends, so that whichever side counts on, `previous` of the
//! next delivery is never beyond what the client has accounted for (`ranges`, and `tiling` in the
//! simulator). Who is live on which topic is known to the [`super::tail_subscriptions::Tail`], for both lanes.

use super::matching_turns::MatchingTurns;
use super::wants::TailWants;
use crate::keys::{BehindKey, SessionKey, SubKey};
use airmail_log::AppendClock;
use airmail_model::{AppendTime, Sequence};
use hashbrown::HashSet;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

/// One session's live range of one log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// The first number not yet told.
    pub(crate) next: Sequence,
    /// Live subscriptions on it.
    pub(crate) live: u32,
}

/// Pace at which the sessions of a tail are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// In the step in which the tower gives something.
    AtOnce,
    /// When it has been held against their filters.
    InTurns,
}

impl Pace {
    pub(crate) const ALL: [Pace; 2] = [Pace::AtOnce, Pace::InTurns];
}

/// The sessions of one pace, and how far they have been served.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// The first number that whoever comes may be served from. What is before has been given to those who were there, or
    /// is being given to them.
    pub(crate) next: Sequence,
    /// Live subscriptions here.
    pub(crate) live: usize,
    /// Ranges, by session.
    pub(crate) ranges: BTreeMap<SessionKey, Range>,
    /// Subscriptions that go live when `next` gets to their number.
    pub(crate) waiting: BTreeSet<(Sequence, BehindKey)>,
    /// Subscriptions that go live with the first batch behind which nothing from before their time can come.
    pub(crate) timed: BTreeSet<(AppendTime, BehindKey)>,
}

/// The live end of a log, and who is there.
#[derive(Debug, Default)]
pub(crate) struct TailLane {
    /// The tower gives the log from `next` on: somebody is there.
    pub(crate) is_attached: bool,
    /// Number of the attachment, counting all so far.
    pub(crate) generation: u64,
    /// The first number that the tower has not given. Means nothing while not attached.
    pub(crate) next: Sequence,
    paces: [Served; Pace::ALL.len()],
    /// Batches and gaps that those who are served in turns are still to be given.
    pub(super) turns: MatchingTurns,
    /// Subscriptions that began at a position of the log's present life, live or not, until it
    /// begins another: only looked up, never walked.
    pub(crate) returned: HashSet<SubKey>,
    /// Topics on their way to be wanted of the tower, and from it.
    pub(crate) wants: TailWants,
}

impl TailLane {
    /// Whether nobody needs what the tower gives.
    pub(crate) fn is_idle(&self) -> bool {
        self.wants.holds == 0 && self.paces.iter().all(Served::is_idle)
    }

    /// Those of one pace.
    pub(crate) fn of(&self, pace: Pace) -> &Served {
        &self.paces[pace as usize]
    }

    /// Those of one pace.
    pub(crate) fn of_mut(&mut self, pace: Pace) -> &mut Served {
        &mut self.paces[pace as usize]
    }

    /// A session of a pace is to be read for from `at` on; or from where it stands, if it is served in turns and has not
    /// been given all before.
    pub(crate) fn cut(&self, pace: Pace, session: SessionKey, at: Sequence) -> Sequence {
        if pace == Pace::AtOnce {
            return at;
        }
        let from = self.told_to(pace);
        let range = self.of(pace).ranges.get(&session);
        at.min(range.map_or(from, |range| range.next.max(from)))
    }

    /// The first number of which those of a pace may not be told yet that there is nothing for them.
    pub(crate) fn told_to(&self, pace: Pace) -> Sequence {
        let next = self.of(pace).next;
        match pace {
            Pace::AtOnce => next,
            Pace::InTurns => self.turns.begun().unwrap_or(next),
        }
    }

    /// Live subscriptions.
    pub(crate) fn live(&self) -> usize {
        self.paces.iter().map(|served| served.live).sum()
    }

    /// The tower gives from `from` on: for the first who comes, or where it stands.
    pub(crate) fn attach(&mut self, from: Sequence) {
        self.generation += 1;
        self.next = from;
        if !std::mem::replace(&mut self.is_attached, true) {
            for served in &mut self.paces {
                served.next = from;
            }
        }
    }
}

impl Served {
    /// Whether nobody needs what the tower gives.
    pub(crate) fn is_idle(&self) -> bool {
        self.live == 0 && self.waiting.is_empty() && self.timed.is_empty()
    }

    /// Puts one more live subscription on its session's range; `true` if the session had none here before.
    pub(crate) fn join(&mut self, session: SessionKey) -> bool {
        self.live += 1;
        match self.ranges.entry(session) {
            Entry::Occupied(mut range) => {
                range.get_mut().live += 1;
                false
            }
            Entry::Vacant(place) => {
                let next = self.next;
                place.insert(Range { next, live: 1 });
                true
            }
        }
    }

    /// Takes a subscription off its session's range.
    pub(crate) fn leave(&mut self, session: SessionKey) {
        if let Some(range) = self.ranges.get_mut(&session) {
            range.live -= 1;
        }
        self.live -= 1;
    }

    /// Those who wait for a number up to `last`, off the tail.
    pub(crate) fn wake(&mut self, last: Sequence) -> Option<BehindKey> {
        let (at, behind) = *self.waiting.first()?;
        if at > last {
            return None;
        }
        self.waiting.pop_first();
        Some(behind)
    }

    /// Those who wait for a time before which nothing can come behind a batch of `appended`, off the tail.
    pub(crate) fn wake_by_time(
        &mut self,
        clock: AppendClock,
        appended: AppendTime,
    ) -> Option<BehindKey> {
        let (time, behind) = *self.timed.first()?;
        if clock.proof(time) > appended {
            return None;
        }
        self.timed.pop_first();
        Some(behind)
    }

    /// Those who wait for a time that `appended` is not before, and stay at the tail.
    pub(crate) fn timed_up_to(&self, appended: AppendTime) -> Vec<BehindKey> {
        let first = self.timed.first();
        if first.is_none_or(|(time, _)| *time > appended) {
            return Vec::new();
        }
        let timed = self.timed.iter();
        let past = timed.take_while(|(time, _)| *time <= appended);
        past.map(|(_, behind)| *behind).collect()
    }
}
