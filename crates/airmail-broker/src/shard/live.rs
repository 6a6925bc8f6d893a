//! At the tail: what the rooms' readers give goes to the live subscriptions.
//!
//! A session gets one delivery for each batch that holds something for it: the batch itself where
//! it wants every topic in it, else a slice, shared by all sessions that want the same topics. If
//! it has no credit, the subscriptions that the batch concerns are detached where the batch begins.

use super::Shard;
use crate::calls::Owner;
use crate::input::Effects;
use crate::keys::{LateKey, LogKey, SessionKey, SubKey};
use crate::late::{Late, Stand};
use crate::places::Places;
use airmail_log::{Call, GapWhy, Stored};
use airmail_model::bug;
use airmail_model::frame::{Channel, Delivered, Delivery, GapReason, Reply, State};
use airmail_model::{Extent, LogId, Now, Sequence};
use smallvec::SmallVec;

/// Places in a batch's table of topics.
type Topics = SmallVec<[u16; 8]>;
/// Slices of one batch that are kept for the next session that wants the same.
const SLICES_KEPT: usize = 32;

/// A batch on its way to the sessions of a room.
struct Fanout<'a> {
    log: LogKey,
    id: LogId,
    stored: &'a Stored,
    topics: usize,
    places: Option<Places>,
    slices: SmallVec<[(Topics, Delivered); 4]>,
}

impl Fanout<'_> {
    /// The part of the batch with these topics.
    fn body(&mut self, topics: Topics) -> Option<Delivered> {
        if topics.len() == self.topics {
            return Some(Delivered::Whole(self.stored.batch.clone()));
        }
        if let Some((_, body)) = self.slices.iter().find(|(kept, _)| *kept == topics) {
            return Some(body.clone());
        }
        let batch = &self.stored.batch;
        let places = self.places.get_or_insert_with(|| Places::of(batch));
        let body = Delivered::Slice(places.slice(batch, &topics)?);
        if self.slices.len() < SLICES_KEPT {
            self.slices.push((topics, body.clone()));
        }
        Some(body)
    }
}

impl Shard {
    /// A batch at the tail of a log.
    pub(super) fn room_batch(&mut self, now: Now, log: LogKey, stored: &Stored, out: &mut Effects) {
        self.grant_room(log, stored.batch.bytes().len(), out);
        if stored.extent.last < self.logs[log].room.next {
            return;
        }
        while let Some(late) = self.logs[log].room.wake_by_time(stored.appended) {
            let late_of = &mut self.late[late];
            late_of.not_before = None;
            late_of.at = late_of.at.max(stored.extent.first);
            self.logs[log].room.waiting.insert((late_of.at, late));
        }
        self.wake(log, stored.extent.last, out);
        let mut matches = std::mem::take(&mut self.matches);
        let room = &self.logs[log].room;
        for (place, topic) in (0u16..).zip(stored.batch.topics()) {
            let found = room.subscribers(&self.subs, topic.hash);
            matches.extend(found.map(|key| (self.subs[key].session, place, key)));
        }
        matches.sort_unstable();
        let mut fanout = Fanout {
            log,
            id: self.logs[log].id,
            stored,
            topics: stored.batch.topics().len(),
            places: None,
            slices: SmallVec::new(),
        };
        for group in matches.chunk_by(|one, other| one.0 == other.0) {
            self.deliver(&mut fanout, group, out);
        }
        matches.clear();
        self.matches = matches;
        self.room_at(now, log, stored.extent.next(), out);
    }

    /// Gives one session its part of a batch, or detaches those whom it concerns.
    fn deliver(
        &mut self,
        fanout: &mut Fanout<'_>,
        group: &[(SessionKey, u16, SubKey)],
        out: &mut Effects,
    ) {
        let Some((session, ..)) = group.first().copied() else {
            return;
        };
        if !self.may_deliver(session) {
            for (_, _, sub) in group {
                self.detach(*sub, fanout.stored.extent.first, out);
            }
            return;
        }
        let mut topics: Topics = group.iter().map(|(_, place, _)| *place).collect();
        topics.dedup();
        let Some(body) = fanout.body(topics) else {
            return;
        };
        let (stored, room) = (fanout.stored, &mut self.logs[fanout.log].room);
        let Some(range) = room.ranges.get_mut(&session) else {
            bug!("{session:?} is live on {} and has no range", fanout.id);
            // Read for from here on, nobody misses anything.
            for (_, _, sub) in group {
                self.detach(*sub, stored.extent.first, out);
            }
            return;
        };
        let previous = range.next.before();
        range.next = stored.extent.next();
        self.sessions[session].spend(body.len());
        self.given(session, body.len());
        self.stats.delivered(&body);
        self.allowance.live(body.len());
        let delivery = Delivery {
            channel: Channel::Live,
            log: fanout.id,
            previous,
            last: stored.extent.last,
            base: stored.base,
            appended: stored.appended,
            body,
        };
        let reply = Reply::Delivery(delivery);
        out.replies.push((self.sessions[session].id, reply));
    }

    /// Numbers at the tail that no reader will get.
    pub(super) fn room_gap(
        &mut self,
        now: Now,
        log: LogKey,
        extent: Extent,
        why: GapWhy,
        out: &mut Effects,
    ) {
        let why = reason(why);
        if why != GapReason::Unused {
            self.wake(log, extent.last, out);
            self.tell_room(log, extent, why, out);
            self.tell_timed(log, extent, why, out);
        }
        self.room_at(now, log, extent.next(), out);
    }

    /// Tells a gap to every session with somebody live in the room.
    fn tell_room(&mut self, log: LogKey, extent: Extent, why: GapReason, out: &mut Effects) {
        let head = &mut self.logs[log];
        for (session, range) in &mut head.room.ranges {
            if range.live == 0 {
                continue;
            }
            let gap = |previous: Sequence, last: Sequence, why: GapReason| Reply::Gap {
                channel: Channel::Live,
                log: head.id,
                previous,
                last,
                why,
            };
            let id = self.sessions[*session].id;
            let quiet = range.next.before();
            if range.next < extent.first {
                let last = extent.first.before();
                out.replies.push((id, gap(quiet, last, GapReason::Unused)));
            }
            let previous = quiet.max(extent.first.before());
            out.replies.push((id, gap(previous, extent.last, why)));
            range.next = extent.next();
            self.stats.gap(why);
        }
    }

    /// Tells a gap to those who wait for a time: it may have come within.
    fn tell_timed(&mut self, log: LogKey, extent: Extent, why: GapReason, out: &mut Effects) {
        let timed = self.logs[log].room.timed.iter();
        for key in timed.map(|(_, key)| *key).collect::<Vec<_>>() {
            let first = self.late[key].at.max(extent.first);
            if first <= extent.last {
                self.tell_gap(key, first, extent.last, why, out);
            }
        }
    }

    /// The room has got to `next`.
    fn room_at(&mut self, now: Now, log: LogKey, next: Sequence, out: &mut Effects) {
        let head = &mut self.logs[log];
        head.room.next = head.room.next.max(next);
        head.end = head.end.max(next);
        self.wake(log, next, out);
        self.mark_later(now);
        self.rest_room(log, out);
    }

    /// Those who wait for a number up to `last` go live.
    fn wake(&mut self, log: LogKey, last: Sequence, out: &mut Effects) {
        while let Some(late) = self.logs[log].room.wake(last) {
            self.activate(late, out);
        }
    }

    /// Takes a live subscription off the tail, at `at`, to be read for.
    fn detach(&mut self, key: SubKey, at: Sequence, out: &mut Effects) {
        let late = self.take_off(key, at, false, out);
        self.stats.detached += 1;
        self.set_out(late);
    }

    /// Takes a live subscription off the tail, at `at`, and tells its client so. It stands nowhere.
    pub(super) fn take_off(
        &mut self,
        key: SubKey,
        at: Sequence,
        resumed: bool,
        out: &mut Effects,
    ) -> LateKey {
        let sub = self.subs[key];
        let head = &mut self.logs[sub.log];
        let told = head.room.ranges.get(&sub.session).map_or(at, |r| r.next);
        head.room.unlink(&mut self.subs, key);
        #[cfg(feature = "sabotage")]
        let further = u64::from(self.config.bug == Some(crate::sabotage::Bug::DetachOffByOne));
        #[cfg(feature = "sabotage")]
        let (told, at) = (told.plus(further), at.plus(further));
        let state = State::Detached {
            log: head.id,
            incarnation: head.incarnation,
            next: told.min(at),
            resumed,
        };
        let ticket = self.late.ticket();
        let late = self.late.insert(Late {
            sub: key,
            session: sub.session,
            log: sub.log,
            topic: sub.topic(),
            told: told.min(at),
            at,
            until: None,
            not_before: None,
            not_after: None,
            shown: true,
            ticket,
            stand: Stand::Locating,
        });
        self.subs[key].set_late(Some(late));
        self.tell_status(key, state, out);
        late
    }

    /// Starts a room's tail reader, for the first who comes.
    pub(super) fn open_room(&mut self, log: LogKey, out: &mut Effects) {
        let head = &mut self.logs[log];
        head.room.next = head.end;
        self.stats.rooms += 1;
        self.read_room(log, out);
    }

    /// Reads on from where the room has got.
    pub(super) fn read_room(&mut self, log: LogKey, out: &mut Effects) {
        let reader = self.calls.reader(Owner::Room(log));
        let head = &mut self.logs[log];
        head.room.reader = Some(reader);
        head.room.failed = false;
        head.room.given = 0;
        out.storage.push(Call::Read {
            r: reader,
            log: head.id,
            from: head.room.next,
            scope: Box::default(),
            credit: self.config.room_window_bytes,
        });
    }

    /// Stops a room's reader if nobody is there any more.
    pub(super) fn rest_room(&mut self, log: LogKey, out: &mut Effects) {
        let room = &mut self.logs[log].room;
        if !room.is_idle() {
            return;
        }
        if let Some(r) = room.reader.take() {
            if !std::mem::take(&mut room.failed) {
                out.storage.push(Call::Stop { r });
            }
            self.calls.give_up(r);
            self.stats.rooms -= 1;
        }
    }

    /// Lets a room's reader give as much again as it has given.
    fn grant_room(&mut self, log: LogKey, bytes: usize, out: &mut Effects) {
        let window = self.config.room_window_bytes;
        let room = &mut self.logs[log].room;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        room.given = room.given.saturating_add(bytes);
        if room.given < window / 4 {
            return;
        }
        if let Some(r) = room.reader {
            let bytes = std::mem::take(&mut room.given);
            out.storage.push(Call::Credit { r, bytes });
        }
    }
}

/// A storage's reason, as a client is told.
pub(super) fn reason(why: GapWhy) -> GapReason {
    match why {
        GapWhy::Unused => GapReason::Unused,
        GapWhy::Retention => GapReason::Retention,
        GapWhy::Loss => GapReason::Loss,
    }
}
