//! Records left out of a batch at the tail, for each of the sets of roles that its subscribers have.
//!
//! Very many subscribers may have roles of their own, and each is to be given what is for it. So the audiences of the
//! batch's records are read once, into lists by role; what one set of roles may have is then a matter of its lists. It is
//! the same as [`verdict::judge`](airmail_model::verdict::judge) says record by record, for who wants all of them.

use airmail_model::verdict::{ClockReading, Roles, expired};
use airmail_model::{AppendTime, Batch, RoleId, Sequence};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Sets of roles for which the findings about one batch are kept.
const KEPT: usize = 32;

/// Findings about a batch, for whoever has the same roles, by the time of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Whether each record is left out, by place in its table; empty if none is.
    pub(super) places: Vec<bool>,
    /// Those that have expired: places in the table, ascending, and numbers.
    expired: Vec<(u16, Sequence)>,
    /// Those that are, by their topics' places.
    by_topic: BTreeMap<u16, LeftOutOfTopic>,
}

/// Records of one topic that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOutOfTopic {
    /// Numbers of those that have expired.
    pub(super) expired: Vec<Sequence>,
    /// Number of those that are for others.
    pub(super) forbidden: u64,
}

impl LeftOut {
    /// Whether nothing is.
    pub(super) fn is_nothing(&self) -> bool {
        self.places.is_empty()
    }

    /// Those of a topic, by its place.
    pub(super) fn of_topic(&self, topic: u16) -> Option<&LeftOutOfTopic> {
        self.by_topic.get(&topic)
    }

    /// Those of some records, whose places ascend: how many are for others, and the numbers of those that have expired.
    pub(super) fn among(&self, places: &[u16]) -> (u64, Vec<Sequence>) {
        let is_out = |place: &&u16| self.places.get(usize::from(**place)) == Some(&true);
        let (mut forbidden, mut expired) = (0, Vec::new());
        for place in places.iter().filter(is_out) {
            match self
                .expired
                .binary_search_by_key(place, |(place, _)| *place)
            {
                Ok(at) => expired.push(self.expired[at].1),
                Err(_) => forbidden += 1,
            }
        }
        (forbidden, expired)
    }

    /// Leaves a record out, of a batch of so many.
    fn leave_out(&mut self, record: RecordPlace, records: u16) -> &mut LeftOutOfTopic {
        self.places.resize(records.into(), false);
        self.places[usize::from(record.place)] = true;
        self.by_topic.entry(record.topic).or_default()
    }
}

/// Places of a record: in the table of records, and of its topic in the table of topics.
#[derive(Clone, Copy, Debug)]
struct RecordPlace {
    place: u16,
    topic: u16,
}

/// A batch some of whose records expire, or are for some roles only.
#[derive(Debug)]
pub(super) struct JudgedBatch {
    /// The time by which it was judged. `None`: none of its records expires.
    pub(super) clock: Option<ClockReading>,
    records: u16,
    expired: Vec<(RecordPlace, Sequence)>,
    restricted: Vec<RecordPlace>,
    /// Places of those that are for a role.
    by_role: BTreeMap<RoleId, Vec<u16>>,
    found: SmallVec<[(Roles, Rc<LeftOut>); 1]>,
}

impl JudgedBatch {
    /// Reads what the records of a batch bring along. `clock` is the time to judge them by; there is one if any of them
    /// expires.
    pub(super) fn of(
        (batch, base): (&Batch, Sequence),
        appended: AppendTime,
        clock: Option<ClockReading>,
    ) -> JudgedBatch {
        let mut judged = JudgedBatch {
            clock,
            records: batch.records(),
            expired: Vec::new(),
            restricted: Vec::new(),
            by_role: BTreeMap::new(),
            found: SmallVec::new(),
        };
        let too_old = |ttl_ms| clock.is_some_and(|of| expired(of.clock, appended, ttl_ms));
        for (record, place) in batch.iter().zip(0..) {
            let of = RecordPlace {
                place,
                topic: record.topic,
            };
            if record.ttl_ms.is_some_and(too_old) {
                let number = base.plus(record.index.into());
                judged.expired.push((of, number));
            }
            if !record.audience.is_empty() {
                judged.restricted.push(of);
                for role in record.audience {
                    judged.by_role.entry(role).or_default().push(place);
                }
            }
        }
        judged
    }

    /// The roles that make a difference to what is left out: those, or none where nothing is for some only.
    pub(super) fn roles_that_count<'a>(&self, roles: &'a Roles) -> &'a Roles {
        if self.restricted.is_empty() {
            &Roles::NONE
        } else {
            roles
        }
    }

    /// Finds what is left out for whoever has these roles. Where only those that count are named, it is found once for more.
    pub(super) fn for_roles(&mut self, roles: &Roles) -> Rc<LeftOut> {
        if let Some((_, found)) = self.found.iter().find(|(of, _)| of == roles) {
            return Rc::clone(found);
        }
        let found = Rc::new(self.find(roles));
        if self.found.len() < KEPT {
            self.found.push((roles.clone(), Rc::clone(&found)));
        }
        found
    }

    fn find(&self, roles: &Roles) -> LeftOut {
        let mut left_out = LeftOut::default();
        let mut forbidden = vec![false; self.records.into()];
        if let Some(held) = roles.each() {
            for record in &self.restricted {
                forbidden[usize::from(record.place)] = true;
            }
            for place in held
                .iter()
                .filter_map(|role| self.by_role.get(role))
                .flatten()
            {
                forbidden[usize::from(*place)] = false;
            }
        }
        for record in &self.restricted {
            if forbidden[usize::from(record.place)] {
                left_out.leave_out(*record, self.records).forbidden += 1;
            }
        }
        for (record, number) in &self.expired {
            // Nobody learns of the expiry of what it may not know of.
            if !forbidden[usize::from(record.place)] {
                let of_topic = left_out.leave_out(*record, self.records);
                of_topic.expired.push(*number);
                left_out.expired.push((record.place, *number));
            }
        }
        left_out
    }
}

#[cfg(test)]
mod tests;
