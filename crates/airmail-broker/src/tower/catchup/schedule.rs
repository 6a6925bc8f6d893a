//! Schedule of catch-up readers: members that want numbers ahead of one join it, others wait their
//! turn.
//!
//! A reader of one topic gets whole batches for the sake of a few of their records. Where topics share
//! batches, one such reader for each of them reads the same again and again; so it reads everything, for all
//! who are near, once that is less.

use super::member::{Member, Place};
use super::reader::{CatchUpReader, Passed};
use super::sweep::Beginning;
use crate::keys::{MemberKey, ReaderKey};
use crate::link::{Follow, FromTower, MemberId};
use crate::tower::storage_calls::Owner;
use crate::tower::{Tower, TowerEffects};
use airmail_log::{Call, ReaderId, Scope, ScopeFilter};
use airmail_model::TopicHash;
use airmail_model::bug;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Number of members that have to wait near a reader of one topic before it reads everything, whatever that
/// costs: they would wait for turns of their own.
const SHARE: usize = 16;

impl Tower {
    /// Reads for a member from now on, or tells that there is nothing to read.
    pub(in crate::tower) fn follow(&mut self, wanted: &Follow, out: &mut TowerEffects) {
        let (member, from) = (wanted.member, wanted.from);
        let Some(log) = self.logs.find_open(wanted.log) else {
            // Input: a log that was deleted before the gateway was told.
            return;
        };
        let (here, end) = (self.logs[log].here(), self.logs[log].end);
        match wanted.until {
            None if from >= here => {
                let next = from;
                return out.tell(FromTower::Reached { member, next, end });
            }
            Some(until) if from >= until => {
                return out.tell(FromTower::Ended { member, next: from });
            }
            _ => {}
        }
        let key = self.members.insert(Member {
            id: member,
            log,
            topic: wanted.topic,
            at: from,
            until: wanted.until,
            not_before: wanted.not_before,
            not_after: wanted.not_after,
            ticket: 0,
            place: Place::Queued,
        });
        if !self.join_passing(key) {
            self.members.enqueue(key);
            self.has_come(log);
        }
    }

    /// Nothing more is wanted for a member.
    pub(in crate::tower) fn leave(&mut self, member: MemberId, out: &mut TowerEffects) {
        let Some(key) = self.members.find(member) else {
            // Input: a member that came to its end, or to the tail, before the gateway was told.
            return;
        };
        if let Place::Reading(reader) = self.remove_member(key) {
            self.rest_reader(reader, out);
        }
    }

    /// Takes a member out of wherever it is; gives where that was.
    pub(super) fn remove_member(&mut self, key: MemberKey) -> Place {
        let member = self.members[key];
        match member.place {
            Place::Queued => self.members.dequeue(key),
            Place::Reading(reader) => self.readers[reader].remove(key, &member),
        }
        self.members.remove(key);
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::MemberKept) {
            self.members.keep_id(member.id, key);
        }
        member.place
    }

    /// Gives readers to those who wait, and lets readers read on. Runs at the end of each step, or of several
    /// that were taken at once.
    pub(in crate::tower) fn schedule(&mut self, out: &mut TowerEffects) {
        let now = self.now.mono;
        (self.timers.silence, self.timers.sweep) = (None, None);
        self.gather();
        if !self.has_members() {
            return;
        }
        if !self.allowance.is_open(now) {
            self.timers.allowance = Some(self.allowance.again());
            return;
        }
        self.timers.allowance = None;
        if self.members.queued() > 0 {
            for reader in self.readers.active_keys() {
                self.pick_up(reader);
            }
        }
        self.widen_readers(out);
        self.take_turns(out);
        self.grant_readers(out);
        self.pass_over_silent(out);
        while self.readers.active() < self.config.catch_up_readers {
            // A sweep may have made place for others just now.
            self.gather();
            match self.next_to_begin() {
                Some(Beginning::Member(key)) => self.begin_reader(key, out),
                Some(Beginning::Sweep(log)) => self.begin_next_sweep(log, out),
                None => break,
            }
        }
        self.timers.silence = self.next_silence();
        self.timers.sweep = self.next_sweep();
    }

    /// Joins a reader that is under way, if one suits; `true` if so.
    fn join_passing(&mut self, key: MemberKey) -> bool {
        let member = self.members[key];
        let suits = |key: ReaderKey, reader: &CatchUpReader| {
            reader.log == member.log
                && (reader.position..=self.reach(key)).contains(&member.at)
                && reader.topic.is_none_or(|topic| member.topic == Some(topic))
        };
        let found = self.readers.iter();
        let found = found
            .filter(|(key, reader)| suits(*key, reader))
            .min_by_key(|(key, _)| *key);
        let found = found.map(|(reader, _)| reader);
        if let Some(reader) = found {
            self.join(key, reader);
        }
        found.is_some()
    }

    fn join(&mut self, key: MemberKey, reader: ReaderKey) {
        let member = &mut self.members[key];
        member.place = Place::Reading(reader);
        let reader = &mut self.readers[reader];
        let (at, position) = (member.at, reader.position);
        assert!(
            !bug::is_checking() || at >= position,
            "ahead: {member:?} joins at {position}"
        );
        reader.insert(key, member);
    }

    /// Takes in those who wait a little ahead: a reader of one topic takes its own.
    pub(super) fn pick_up(&mut self, key: ReaderKey) {
        loop {
            let reader = &self.readers[key];
            let (log, position, topic) = (reader.log, reader.position, reader.topic);
            let to = self.reach(key);
            let most = if topic.is_some() { SHARE } else { usize::MAX };
            let near = self.members.near(log, position, to, most);
            let mine: Vec<MemberKey> = near
                .filter(|member| {
                    topic.is_none_or(|topic| self.members[*member].topic == Some(topic))
                })
                .collect();
            for member in &mine {
                self.members.dequeue(*member);
                self.join(*member, key);
            }
            if topic.is_none() || mine.is_empty() {
                return;
            }
        }
    }

    /// Has readers of one topic read everything, for all who are near, where that is less to read. The rearmost
    /// first: those ahead of it are taken in.
    fn widen_readers(&mut self, out: &mut TowerEffects) {
        if self.readers.active() < 2 && self.members.queued() == 0 {
            return;
        }
        let mut keys = self.readers.active_keys();
        keys.sort_by_key(|key| (self.readers[*key].position, *key));
        for key in keys {
            // It may have been taken in by one behind it.
            if self.readers.get(key).is_some() {
                self.widen(key, out);
            }
        }
    }

    fn widen(&mut self, key: ReaderKey, out: &mut TowerEffects) {
        let is_narrow = self.readers[key].topic.is_some();
        if is_narrow && !self.will_be_passed(key) && self.is_wide_cheaper(key) {
            self.exchange(key, None, out);
            self.pick_up(key);
            self.take_in(key, out);
        }
    }

    /// Whether reading everything is less than a reader for each topic that is wanted near this one.
    fn is_wide_cheaper(&self, key: ReaderKey) -> bool {
        let reader = &self.readers[key];
        let to = reader.position.plus(self.config.catch_up_span);
        let waiting = self.members.near(reader.log, reader.position, to, SHARE);
        let waiting: SmallVec<[MemberKey; SHARE]> = waiting.collect();
        if waiting.len() >= SHARE {
            return true;
        }
        let waiting = waiting.iter().map(|member| self.members[*member].topic);
        let Some(waiting) = waiting.collect::<Option<Vec<_>>>() else {
            // Input: one who waits for all topics. It is read for in any case.
            return true;
        };
        let read_for = self
            .narrow_ahead(key)
            .filter_map(|ahead| self.readers[ahead].topic);
        let others: BTreeSet<TopicHash> = waiting.into_iter().chain(read_for).collect();
        let readers = others.len() as u64 + 1;
        let times_as_much = reader.passed.times_as_much();
        readers > 1 && times_as_much.is_some_and(|times| times <= readers)
    }

    /// Other readers of one topic that are a little ahead of one.
    fn narrow_ahead(&self, key: ReaderKey) -> impl Iterator<Item = ReaderKey> + '_ {
        let reader = &self.readers[key];
        let (log, position) = (reader.log, reader.position);
        let to = position.plus(self.config.catch_up_span);
        let ahead = self.readers.active_readers().filter(move |(other, ahead)| {
            *other != key
                && ahead.log == log
                && ahead.topic.is_some()
                && (position..=to).contains(&ahead.position)
        });
        ahead.map(|(other, _)| other)
    }

    /// Ends readers of one topic that are a little ahead of one of all topics, which takes their members in.
    fn take_in(&mut self, key: ReaderKey, out: &mut TowerEffects) {
        for ahead in self.narrow_ahead(key).collect::<Vec<_>>() {
            self.stop_reading(ahead, out);
            let ended = self.remove_reader(ahead);
            for (_, member) in ended.members {
                let at = &mut self.members[member].at;
                *at = ended.position.max(*at);
                self.join(member, key);
            }
        }
    }

    /// Ends readers that have had their turn, for the sake of those who wait.
    fn take_turns(&mut self, out: &mut TowerEffects) {
        let mut waiting = self.waiting_for_turn();
        for reader in self.readers.active_keys() {
            if self.readers[reader].used < self.config.catch_up_quantum_bytes {
                continue;
            }
            let has_room = waiting == 0 || self.readers.active() < self.config.catch_up_readers;
            if has_room && !self.will_be_passed(reader) {
                self.readers[reader].used = 0;
                self.readers[reader].passed.age();
                self.narrow(reader, out);
                self.look_back(reader, out);
                continue;
            }
            waiting = waiting.saturating_sub(1);
            self.stop_reading(reader, out);
            self.disband(reader);
        }
    }

    /// Lets a reader whose members want one topic read only that.
    fn narrow(&mut self, reader: ReaderKey, out: &mut TowerEffects) {
        let one = self.readers[reader].only_topic();
        let is_wide = self.readers[reader].topic.is_none() && !self.sweeps(reader);
        if let Some(topic) =
            one.filter(|_| is_wide && self.has_topic_index(self.readers[reader].log))
        {
            self.exchange(reader, Some(topic), out);
        }
    }

    /// Begins to read for one who waits, and for who is near.
    fn begin_reader(&mut self, key: MemberKey, out: &mut TowerEffects) {
        let member = &self.members[key];
        let topic = member.topic.filter(|_| self.has_topic_index(member.log));
        let reader = self.start_reader(key, topic, out);
        self.pick_up(reader);
        self.widen(reader, out);
    }

    /// Starts a reader for one who waits: of one topic, or of everything.
    pub(super) fn start_reader(
        &mut self,
        key: MemberKey,
        topic: Option<TopicHash>,
        out: &mut TowerEffects,
    ) -> ReaderKey {
        self.members.dequeue(key);
        let member = &self.members[key];
        let reader = self.readers.insert(CatchUpReader {
            log: member.log,
            reader: ReaderId(0),
            position: member.at,
            topic,
            members: BTreeSet::new(),
            ends: BTreeSet::new(),
            times: BTreeSet::new(),
            granted: 0,
            heard_at: self.now.mono,
            used: 0,
            passed: Passed::default(),
        });
        self.join(key, reader);
        self.stats.readers_started += 1;
        self.read(reader, topic, out);
        reader
    }

    /// Exchanges the storage's reader for one of other topics.
    pub(super) fn exchange(
        &mut self,
        reader: ReaderKey,
        topic: Option<TopicHash>,
        out: &mut TowerEffects,
    ) {
        self.stop_reading(reader, out);
        self.read(reader, topic, out);
    }

    fn read(&mut self, key: ReaderKey, topic: Option<TopicHash>, out: &mut TowerEffects) {
        let r = self.calls.reader(Owner::CatchUp(key));
        let credit = self.config.catch_up_step_bytes;
        let reader = &mut self.readers[key];
        reader.reader = r;
        reader.topic = topic;
        reader.granted = credit.into();
        reader.heard_at = self.now.mono;
        out.call(Call::Read {
            r,
            log: self.logs[reader.log].id,
            from: reader.position,
            scope: Box::new(Scope {
                filter: topic.map_or(ScopeFilter::All, ScopeFilter::Topic),
                ..Scope::default()
            }),
            credit,
        });
    }

    /// Lets readers give another step, if they have given most of the last.
    fn grant_readers(&mut self, out: &mut TowerEffects) {
        let step = i64::from(self.config.catch_up_step_bytes);
        for key in self.readers.active_keys() {
            let reader = &mut self.readers[key];
            if reader.granted <= step / 2 {
                let bytes = u32::try_from(step - reader.granted).unwrap_or(u32::MAX);
                reader.granted = step;
                reader.heard_at = self.now.mono;
                let r = reader.reader;
                out.call(Call::Credit { r, bytes });
            }
        }
    }

    pub(super) fn stop_reading(&mut self, reader: ReaderKey, out: &mut TowerEffects) {
        let r = self.readers[reader].reader;
        self.calls.give_up(r);
        out.call(Call::Stop { r });
    }

    /// Ends a reader without members.
    pub(super) fn rest_reader(&mut self, key: ReaderKey, out: &mut TowerEffects) {
        let found = self.readers.get(key);
        if found.is_some_and(|reader| reader.members.is_empty()) {
            self.stop_reading(key, out);
            self.remove_reader(key);
        }
    }

    /// Ends a reader; its members wait again, where they have got, behind all others.
    pub(in crate::tower) fn disband(&mut self, key: ReaderKey) {
        let ended = self.remove_reader(key);
        for (_, key) in ended.members {
            let member = &mut self.members[key];
            member.at = member.at.max(ended.position);
            self.members.enqueue(key);
        }
    }
}
