//! One lane of a tail: the live end of one log. What the tower gives of the log, once, goes to every
//! subscription that is live there, of every session.
//!
//! Ranges are kept for each (session, log) and not for each subscription. A session's range stays
//! when its last live subscription here ends, so that whichever side counts on, `previous` of the
//! next delivery is never beyond what the client has accounted for (`ranges`, and `tiling` in the
//! simulator). Who is live on which topic is known to the [`super::tail_subscriptions::Tail`], for both lanes.

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

/// The live end of a log, and how many are there.
#[derive(Debug, Default)]
pub(crate) struct TailLane {
    /// The tower gives the log from `next` on: somebody is there.
    pub(crate) is_attached: bool,
    /// Number of the attachment, counting all so far.
    pub(crate) generation: u64,
    /// The first number that the tower has not given. Means nothing while not attached.
    pub(crate) next: Sequence,
    /// Live subscriptions here.
    pub(crate) live: usize,
    /// Ranges, by session.
    pub(crate) ranges: BTreeMap<SessionKey, Range>,
    /// Subscriptions that go live when the tail gets to their number.
    pub(crate) waiting: BTreeSet<(Sequence, BehindKey)>,
    /// Subscriptions that go live with the first batch behind which nothing from before their time can come.
    pub(crate) timed: BTreeSet<(AppendTime, BehindKey)>,
    /// Subscriptions that began at a position of the log's present life, live or not, until it
    /// begins another: only looked up, never walked.
    pub(crate) returned: HashSet<SubKey>,
    /// Topics on their way to be wanted of the tower, and from it.
    pub(crate) wants: TailWants,
}

impl TailLane {
    /// Whether nobody needs what the tower gives.
    pub(crate) fn is_idle(&self) -> bool {
        let nobody_waits = self.waiting.is_empty() && self.timed.is_empty();
        self.live == 0 && nobody_waits && self.wants.holds == 0
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
