//! Invariants of the tower, asserted whatever the storage and the gateway tell. Each line names its
//! invariant, as the documentation of the module above does.

use super::Tower;
use super::catchup::member::{Member, Place};
use super::catchup::queue::HeldFor;
use super::catchup::reader::CatchUpReader;
use super::log::Openness;
use super::storage_calls::Owner;
use crate::keys::{MemberKey, ReaderKey};

/// Members of readers, and the ends that they have in numbers and in time.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reading {
    members: usize,
    ends: usize,
    times: usize,
}

impl Reading {
    fn count(&mut self, member: &Member) {
        self.members += 1;
        self.ends += usize::from(member.until.is_some());
        self.times += usize::from(member.not_after.is_some());
    }
}

impl Tower {
    /// Number of members, which is also about the amount there is to look at.
    pub(crate) fn member_count(&self) -> usize {
        self.members.known()
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    /// If one does not hold; the message begins with its name.
    pub(crate) fn check(&self) {
        let mut queued = 0;
        let mut reading = Reading::default();
        for (key, member) in self.members.iter() {
            match member.place {
                Place::Queued => queued += 1,
                Place::Reading(_) => reading.count(member),
            }
            self.check_member(key, member);
        }
        let counts = (self.members.queued(), self.members.known());
        let wanted = (queued, queued + reading.members);
        assert_eq!(counts, wanted, "one_place: who is queued");
        assert!(self.members.is_counted(), "one_place: {:?}", self.members);
        let mut known = Reading::default();
        for (key, reader) in self.readers.iter() {
            known.members += reader.members.len();
            known.ends += reader.ends.len();
            known.times += reader.times.len();
            self.check_reader(key, reader);
        }
        let (members, wanted) = (known.members, reading.members);
        assert_eq!(members, wanted, "one_place: who has a reader");
        assert_eq!(known, reading, "ends: known to readers, of members");
        self.check_readers();
        assert!(self.ends.are_asked(), "asked: {:?}", self.ends);
        let allowance = &self.allowance;
        assert!(allowance.is_bounded(), "allowance: {allowance:?}");
        self.check_owners();
        self.check_logs();
    }

    fn check_readers(&self) {
        let (readers, most) = (self.readers.active(), self.config.catch_up_readers);
        let (all, logs) = (self.readers.len(), self.logs.keys().count());
        assert!(all <= most + logs, "readers: {all}, of {most} and {logs}");
        let ready = self.members.ready();
        let may_start = self.timers.allowance.is_none();
        assert!(
            ready == 0 || readers >= most || !may_start,
            "readers: {ready} wait for one, and there are {readers} of {most}"
        );
        let silent = self.readers.silent();
        let held = self.members.held(HeldFor::Silence);
        let logs: Vec<_> = silent.keys().copied().collect();
        assert_eq!(held, logs, "silent: logs of which nobody begins");
        assert_eq!(readers + silent.len(), all, "silent: {silent:?}");
        let swept: Vec<_> = self.sweeps.logs().collect();
        let held = self.members.held(HeldFor::Sweep);
        assert_eq!(held, swept, "swept: logs of which nobody begins");
        for (log, key) in self.sweeps.readers() {
            let found = self
                .readers
                .get(key)
                .map(|reader| (reader.log, reader.topic));
            assert_eq!(found, Some((log, None)), "swept: {log:?} by {key:?}");
        }
        let failed = self.members.held(HeldFor::Failure);
        assert!(
            failed.is_empty() || self.timers.retry.is_some(),
            "retried: {failed:?} are held"
        );
        for (log, key) in silent {
            let found = self.readers.get(*key).map(|reader| reader.log);
            assert_eq!(found, Some(*log), "silent: {key:?}");
        }
    }

    fn check_member(&self, key: MemberKey, member: &Member) {
        let found = self.members.find(member.id);
        assert_eq!(found, Some(key), "one_place: {member:?}");
        match member.place {
            Place::Queued => assert!(self.members.is_queued(key), "one_place: {member:?}"),
            Place::Reading(reader) => {
                let found = self.readers.get(reader);
                let has = |reader: &CatchUpReader| {
                    reader.members.contains(&(member.topic, key))
                        && reader.log == member.log
                        && reader.topic.is_none_or(|topic| member.topic == Some(topic))
                };
                assert!(found.is_some_and(has), "one_place: {member:?} of {found:?}");
                let knows = |reader: &CatchUpReader| {
                    let end = member.until.map(|until| (until, key));
                    let time = member.not_after.map(|time| (time, key));
                    end.is_none_or(|end| reader.ends.contains(&end))
                        && time.is_none_or(|time| reader.times.contains(&time))
                };
                assert!(found.is_some_and(knows), "ends: {member:?} of {found:?}");
            }
        }
        let openness = self.logs[member.log].openness;
        assert_ne!(openness, Openness::Deleting, "closed: {member:?} is there");
    }

    fn check_reader(&self, key: ReaderKey, reader: &CatchUpReader) {
        assert!(!reader.members.is_empty(), "readers: {key:?} is nobody's");
        let end = reader.ends.first();
        assert!(
            end.is_none_or(|(until, _)| *until > reader.position),
            "ends: {end:?} behind {}",
            reader.position
        );
        let owner = self.calls.owner(reader.reader);
        let mine = Some(Owner::CatchUp(key));
        assert_eq!(owner, mine, "owners: the reader of {key:?}");
    }

    fn check_owners(&self) {
        assert!(self.calls.are_numbered(), "calls: {:?}", self.calls);
        let (mut system, mut catching_up) = (0, 0);
        for (r, owner) in self.calls.readers() {
            match owner {
                Owner::System => system += 1,
                Owner::CatchUp(_) => catching_up += 1,
                Owner::Tail(log) => {
                    let tail = self.logs.get(log).and_then(|log| log.tail);
                    let reader = tail.and_then(|tail| tail.reader);
                    assert_eq!(reader, Some(r), "owners: the tail of {log:?}");
                }
            }
        }
        assert!(system <= 1, "owners: {system} readers of log 0");
        let readers = self.readers.len();
        assert_eq!(catching_up, readers, "owners: catch-up readers");
    }

    fn check_logs(&self) {
        for key in self.logs.keys() {
            let log = &self.logs[key];
            let next = log.tail.map(|tail| tail.next);
            assert!(
                next.is_none_or(|next| next <= log.end),
                "end: {next:?} of {} is given, of {}",
                log.id,
                log.end
            );
            let is_tried_again = !log.is_unkept || self.timers.retry.is_some();
            assert!(
                is_tried_again || log.openness != Openness::Open,
                "kept: nobody tries {} again",
                log.id
            );
            let is_closed = log.openness == Openness::Deleting;
            assert!(!is_closed || next.is_none(), "closed: {} is read", log.id);
            let reader = log.tail.and_then(|tail| tail.reader);
            let owner = reader.map(|reader| self.calls.owner(reader));
            assert!(
                owner.is_none_or(|owner| owner == Some(Owner::Tail(key))),
                "owners: {owner:?} has the tail of {}",
                log.id
            );
        }
    }
}
