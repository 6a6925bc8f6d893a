//! Fan-out: the parts of one batch for the sessions of a tail.
//!
//! Who wants the same of a batch, and may have the same, gets the same part: it is made once. What has to be found for
//! it is found when the first one needs it: which records are of which topic, and what is left out for a set of roles. Where
//! filters have chosen the records, those are cut out in place of topics.

use super::left_out::{JudgedBatch, LeftOut};
use crate::keys::LogKey;
use crate::records_by_topic::RecordsByTopic;
use airmail_log::Stored;
use airmail_model::LogId;
use airmail_model::frame::{Delivered, Matches, SubscriptionId};
use airmail_model::verdict::Roles;
use smallvec::SmallVec;
use std::rc::Rc;
use std::sync::Arc;

/// Places in a batch's table of topics.
pub(super) type Topics = SmallVec<[u16; 8]>;

/// Wishes of a session for its part of a batch. Who has the same gets the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) topics: Topics,
    /// Whether without payloads.
    pub(super) headers_only: bool,
    /// The roles that it has, where they count.
    pub(super) roles: Roles,
}

/// Wishes of a session with filters for its part of a batch.
#[derive(Clone, Debug)]
struct Matched {
    /// Places of records that its filters match, by topic or selection. The same list is the same memory.
    places: Places,
    headers_only: bool,
    roles: Roles,
}

/// Places of records, for each of a session's subscriptions that a batch is for.
pub(super) type Places = SmallVec<[Arc<[u16]>; 2]>;

impl Matched {
    fn is(&self, other: &Matched) -> bool {
        let (mine, others) = (self.places.iter(), other.places.iter());
        self.places.len() == other.places.len()
            && mine.zip(others).all(|(one, other)| Arc::ptr_eq(one, other))
            && (self.headers_only, &self.roles) == (other.headers_only, &other.roles)
    }
}

/// A session's part of a batch.
#[derive(Clone, Debug)]
pub(super) struct SessionPart {
    pub(super) left_out: Option<Rc<LeftOut>>,
    /// `None`: everything is left out.
    pub(super) body: Option<Delivered>,
}

/// Parts of one batch that are kept for the next session that wants the same.
const PARTS_KEPT: usize = 32;

/// A batch on its way to the sessions of a tail.
pub(super) struct Fanout<'a> {
    pub(super) log: LogKey,
    pub(super) id: LogId,
    pub(super) stored: &'a Stored,
    topics: usize,
    /// `None`: it brings nothing along that is to be judged.
    pub(super) judged: Option<JudgedBatch>,
    by_topic: Option<RecordsByTopic>,
    #[cfg(feature = "sabotage")]
    bug: Option<crate::sabotage::Bug>,
    parts: SmallVec<[(Wanted, SessionPart); 4]>,
    matched: SmallVec<[(Matched, SessionPart); 4]>,
}

impl<'a> Fanout<'a> {
    /// Begins with a batch of a log; `judged`: what its records bring along, if anything.
    pub(super) fn new(
        (log, id): (LogKey, LogId),
        stored: &'a Stored,
        judged: Option<JudgedBatch>,
        #[cfg(feature = "sabotage")] bug: Option<crate::sabotage::Bug>,
    ) -> Fanout<'a> {
        Fanout {
            log,
            id,
            stored,
            topics: stored.batch.topic_hashes().len(),
            judged,
            by_topic: None,
            #[cfg(feature = "sabotage")]
            bug,
            parts: SmallVec::new(),
            matched: SmallVec::new(),
        }
    }

    /// Finds what is left out for whoever has these roles; `None`: nothing.
    fn left_out(&mut self, roles: &Roles) -> Option<Rc<LeftOut>> {
        let left_out = self.judged.as_mut()?.for_roles(roles);
        (!left_out.is_nothing()).then_some(left_out)
    }

    /// Those of these roles that make a difference to what is left out.
    pub(super) fn roles_that_count(&self, roles: &Roles) -> Roles {
        let judged = self.judged.as_ref();
        judged.map_or(Roles::NONE, |of| of.roles_that_count(roles).clone())
    }

    /// The part of the batch that is wanted, but for what is left out.
    pub(super) fn part(&mut self, wanted: Wanted) -> SessionPart {
        let is_all = wanted.topics.len() == self.topics && !wanted.headers_only;
        let stored = self.stored;
        let whole = || Some(Delivered::Whole(stored.batch.clone()));
        if is_all && self.judged.is_none() {
            let (left_out, body) = (None, whole());
            return SessionPart { left_out, body };
        }
        if let Some(part) = self.kept(&wanted) {
            return part;
        }
        let left_out = self.left_out(&wanted.roles);
        let body = if is_all && left_out.is_none() {
            whole()
        } else {
            let left_out = left_out.as_ref().map_or(&[][..], |of| &of.places);
            let batch = &self.stored.batch;
            let by_topic = self
                .by_topic
                .get_or_insert_with(|| RecordsByTopic::of(batch));
            let slice = by_topic.slice(batch, &wanted.topics, left_out, wanted.headers_only);
            slice.map(Delivered::Slice)
        };
        let part = SessionPart { left_out, body };
        if self.parts.len() < PARTS_KEPT {
            self.parts.push((wanted, part.clone()));
        }
        part
    }

    /// The part that somebody else got who wants the same.
    fn kept(&self, wanted: &Wanted) -> Option<SessionPart> {
        #[cfg(feature = "sabotage")]
        if self.bug == Some(crate::sabotage::Bug::PartForOtherRoles) {
            let is_like_it = |of: &Wanted| {
                let roles = wanted.roles.clone();
                Wanted {
                    roles,
                    ..of.clone()
                } == *wanted
            };
            let part = self.parts.iter().find(|(of, _)| is_like_it(of));
            return part.map(|(_, part)| part.clone());
        }
        let part = self.parts.iter().find(|(of, _)| of == wanted);
        part.map(|(_, part)| part.clone())
    }

    /// The records that a session's filters match, but for what is left out; without payloads, or with.
    pub(super) fn matched_part(
        &mut self,
        places: Places,
        (headers_only, roles): (bool, Roles),
    ) -> SessionPart {
        let matched = Matched {
            places,
            headers_only,
            roles,
        };
        if let Some((_, part)) = self.matched.iter().find(|(of, _)| of.is(&matched)) {
            return part.clone();
        }
        let left_out = self.left_out(&matched.roles);
        let is_out = |place: &u16| {
            let left_out = left_out.as_ref();
            left_out.is_some_and(|of| of.places.get(usize::from(*place)) == Some(&true))
        };
        let places = matched
            .places
            .iter()
            .flat_map(|places| places.iter().copied());
        let mut kept: SmallVec<[u16; 64]> = places.filter(|place| !is_out(place)).collect();
        if matched.places.len() > 1 {
            kept.sort_unstable();
        }
        let body = self.body_of(&kept, headers_only);
        let part = SessionPart { left_out, body };
        if self.matched.len() < PARTS_KEPT {
            self.matched.push((matched, part.clone()));
        }
        part
    }

    /// The records at these places, ascending; without payloads, or with. `None`: there are none.
    fn body_of(&self, places: &[u16], headers_only: bool) -> Option<Delivered> {
        let batch = &self.stored.batch;
        let is_all = places.len() == usize::from(batch.records()) && !headers_only;
        if is_all {
            Some(Delivered::Whole(batch.clone()))
        } else if headers_only {
            batch.headers_of(places).map(Delivered::Slice)
        } else {
            batch.slice_of(places).map(Delivered::Slice)
        }
    }

    /// The records that match filters of a session's subscriptions, but for what is left out, and which of these each is
    /// for.
    pub(super) fn named_part<'r>(
        &mut self,
        those: impl Iterator<Item = (SubscriptionId, &'r [u16])>,
        (headers_only, roles): (bool, &Roles),
    ) -> (SessionPart, Option<Matches>) {
        let left_out = self.left_out(roles);
        let is_out = |place: u16| {
            let left_out = left_out.as_ref();
            left_out.is_some_and(|of| of.places.get(usize::from(place)) == Some(&true))
        };
        let mut entries: Vec<(u16, SubscriptionId)> = Vec::new();
        for (id, places) in those {
            let kept = places.iter().filter(|place| !is_out(**place));
            entries.extend(kept.map(|place| (*place, id)));
        }
        entries.sort_unstable();
        let (mut kept, mut counts): (Vec<u16>, Vec<u32>) = (Vec::new(), Vec::new());
        for of_record in entries.chunk_by(|one, other| one.0 == other.0) {
            kept.extend(of_record.first().map(|(place, _)| *place));
            counts.push(u32::try_from(of_record.len()).unwrap_or(u32::MAX));
        }
        let body = self.body_of(&kept, headers_only);
        let subscriptions = entries.into_iter().map(|(_, id)| id).collect();
        (
            SessionPart { left_out, body },
            Matches::new(&counts, subscriptions),
        )
    }
}
