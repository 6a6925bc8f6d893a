//! Fan-out: the parts of one batch for the sessions of a tail.
//!
//! Who wants the same of a batch, and may have the same, gets the same part: it is made once. What has to be found for
//! it is found when the first one needs it: which records are of which topic, what is left out for a set of roles, what a
//! filter does not match.

use super::filters::{FilterKey, Filters};
use super::left_out::{JudgedBatch, LeftOut};
use crate::keys::LogKey;
use crate::records_by_topic::RecordsByTopic;
use airmail_log::Stored;
use airmail_model::LogId;
use airmail_model::filter::Filter;
use airmail_model::frame::Delivered;
use airmail_model::verdict::Roles;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::rc::Rc;

/// Places in a batch's table of topics.
pub(super) type Topics = SmallVec<[u16; 8]>;
/// A topic's place, and a filter.
type OfTopic = (u16, FilterKey);

/// Wishes of a session for its part of a batch. Who has the same gets the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) topics: Topics,
    /// Whether without payloads.
    pub(super) headers_only: bool,
    /// The roles that it has, where they count.
    pub(super) roles: Roles,
    /// The filter for each of the topics; none if it has none.
    pub(super) filters: SmallVec<[FilterKey; 2]>,
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
    /// Places of a topic's records that a filter does not match, by topic and filter; never walked.
    unmatched: HashMap<OfTopic, Rc<[u16]>>,
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
            unmatched: HashMap::new(),
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
    pub(super) fn part(&mut self, wanted: Wanted, filters: &Filters) -> SessionPart {
        let is_all = wanted.topics.len() == self.topics && !wanted.headers_only;
        let stored = self.stored;
        let whole = || Some(Delivered::Whole(stored.batch.clone()));
        if is_all && self.judged.is_none() && wanted.filters.is_empty() {
            let (left_out, body) = (None, whole());
            return SessionPart { left_out, body };
        }
        if let Some(part) = self.kept(&wanted) {
            return part;
        }
        let left_out = self.left_out(&wanted.roles);
        let left_out = self.leave_out_unmatched(left_out, &wanted, filters);
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

    /// Leaves out what the filters do not match, besides.
    fn leave_out_unmatched(
        &mut self,
        left_out: Option<Rc<LeftOut>>,
        wanted: &Wanted,
        filters: &Filters,
    ) -> Option<Rc<LeftOut>> {
        if wanted.filters.is_empty() {
            return left_out;
        }
        let mut all = left_out.map_or_else(LeftOut::default, |of| LeftOut::clone(&of));
        let records = self.stored.batch.records();
        for (topic, key) in wanted.topics.iter().zip(&wanted.filters) {
            let unmatched = self.unmatched(*topic, *key, filters.get(*key));
            all.leave_out_unmatched(*topic, &unmatched, records);
        }
        (!all.is_nothing()).then(|| Rc::new(all))
    }

    /// Places of the records of a topic that a filter does not match. All are kept: a topic has few filters, but a batch may
    /// have many topics.
    fn unmatched(&mut self, topic: u16, key: FilterKey, filter: &Filter) -> Rc<[u16]> {
        let of = (topic, key);
        #[cfg(feature = "sabotage")]
        let of = match self.bug {
            Some(crate::sabotage::Bug::UnmatchedOfTopic) => (topic, FilterKey::default()),
            _ => of,
        };
        if let Some(unmatched) = self.unmatched.get(&of) {
            return Rc::clone(unmatched);
        }
        let batch = &self.stored.batch;
        let by_topic = self
            .by_topic
            .get_or_insert_with(|| RecordsByTopic::of(batch));
        let places = by_topic.places(topic).iter().copied();
        let unmatched = places.filter(|place| !filter.matches(&batch.record(*place)));
        let unmatched: Rc<[u16]> = unmatched.collect();
        self.unmatched.insert(of, Rc::clone(&unmatched));
        unmatched
    }
}
