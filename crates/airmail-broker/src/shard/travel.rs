//! On the way: what a caravan's reader gives is dealt out to those aboard.

use super::Shard;
use super::live::reason;
use crate::calls::Owner;
use crate::catalog::CatalogInput;
use crate::input::Effects;
use crate::keys::{CaravanKey, LateKey};
use crate::places::Places;
use airmail_log::{Call, GapWhy, ReaderId, Stored};
use airmail_model::frame::{Channel, Delivered, Delivery, GapReason, Reply};
use airmail_model::{Extent, Now, Sequence};
use smallvec::SmallVec;

/// What a batch costs besides its bytes, in bytes: to find and check it, or to find nothing.
const BATCH_COST: u64 = 1 << 10;
/// What each of its topics costs: to look up who wants it.
const TOPIC_COST: u64 = 64;

/// Slices of one batch, by topic: made once for all who want the whole of it.
#[derive(Default)]
struct Slices {
    places: Option<Places>,
    made: SmallVec<[(u16, Delivered); 4]>,
}

impl Shard {
    /// A batch for a caravan.
    pub(super) fn caravan_batch(
        &mut self,
        now: Now,
        caravan: CaravanKey,
        stored: &Stored,
        out: &mut Effects,
    ) {
        let bytes = stored.batch.bytes().len();
        self.stats.caravan_bytes += bytes as u64;
        let aboard = &mut self.caravans[caravan];
        let head = &mut self.logs[aboard.log];
        head.end = head.end.max(stored.extent.next());
        // Before anybody can come aboard: who does has this batch behind.
        aboard.position = stored.extent.next();
        let cost = bytes as u64 + BATCH_COST + TOPIC_COST * stored.batch.topics().len() as u64;
        aboard.used += cost;
        self.allowance.spend(cost);
        aboard.granted -= i64::try_from(bytes).unwrap_or(i64::MAX);
        self.end_by_time(caravan, stored, out);
        let mut slices = Slices::default();
        for (place, topic) in (0u16..).zip(stored.batch.topics()) {
            let those: SmallVec<[LateKey; 8]> = self.caravans[caravan].aboard(topic.hash).collect();
            for key in those {
                self.hand(key, place, stored, &mut slices, out);
            }
        }
        self.advance(now, caravan, out);
    }

    /// Gives one who is aboard its part of a batch; whoever has no credit gets off before it.
    fn hand(
        &mut self,
        key: LateKey,
        topic: u16,
        stored: &Stored,
        slices: &mut Slices,
        out: &mut Effects,
    ) {
        let late = &self.late[key];
        let first = late.at.max(stored.extent.first);
        let end = late
            .until
            .unwrap_or(Sequence::MAX)
            .min(stored.extent.next());
        let early = late.not_before.is_some_and(|time| stored.appended < time);
        if first >= end || early {
            return;
        }
        let Some(body) = part(stored, topic, first, end, slices) else {
            return;
        };
        let session = late.session;
        let cost = body.len();
        #[cfg(feature = "sabotage")]
        let cost = match self.config.bug {
            Some(crate::sabotage::Bug::LateNotCharged) => 0,
            _ => cost,
        };
        if !self.may_deliver(session) || !self.sessions[session].spend(cost) {
            self.lift(key);
            self.late[key].at = first;
            self.go_on(key, out);
            return;
        }
        self.stats.delivered(&body);
        self.given(session, body.len());
        let late = &mut self.late[key];
        let sub = &self.subs[late.sub];
        let delivery = Delivery {
            channel: Channel::Detached(sub.id, sub.generation),
            log: self.logs[late.log].id,
            previous: late.told.before(),
            last: end.before(),
            base: stored.base,
            appended: stored.appended,
            body,
        };
        let reply = Reply::Delivery(delivery);
        out.replies.push((self.sessions[session].id, reply));
        (late.told, late.at, late.not_before) = (end, end, None);
    }

    /// Those aboard who wanted nothing as new as this batch are complete.
    fn end_by_time(&mut self, caravan: CaravanKey, stored: &Stored, out: &mut Effects) {
        while let Some((time, key)) = self.caravans[caravan].times.first().copied() {
            if time > stored.appended {
                return;
            }
            let next = self.late[key].at.max(stored.extent.first);
            self.complete(key, next, out);
        }
    }

    /// Numbers that the caravan's reader will not give.
    pub(super) fn caravan_gap(
        &mut self,
        now: Now,
        caravan: CaravanKey,
        extent: Extent,
        why: GapWhy,
        out: &mut Effects,
    ) {
        let why = reason(why);
        if why != GapReason::Unused {
            let members = self.caravans[caravan].members.iter();
            let members: Vec<LateKey> = members.map(|(_, key)| *key).collect();
            for key in members {
                let late = &self.late[key];
                let first = late.at.max(extent.first);
                let until = late.until.unwrap_or(Sequence::MAX);
                let last = extent.last.min(until.before());
                if first <= last {
                    self.tell_gap(key, first, last, why, out);
                }
            }
        }
        let aboard = &mut self.caravans[caravan];
        aboard.position = extent.next();
        aboard.used += BATCH_COST;
        self.allowance.spend(BATCH_COST);
        self.advance(now, caravan, out);
    }

    /// The caravan's reader has given everything before `next`.
    pub(super) fn caravan_tail(
        &mut self,
        now: Now,
        caravan: CaravanKey,
        next: Sequence,
        out: &mut Effects,
    ) {
        let position = &mut self.caravans[caravan].position;
        *position = next.max(*position);
        self.advance(now, caravan, out);
    }

    /// A caravan has got further: whoever is at its end completes, and at the tail all go live.
    fn advance(&mut self, now: Now, caravan: CaravanKey, out: &mut Effects) {
        let (log, position) = (self.caravans[caravan].log, self.caravans[caravan].position);
        while let Some((until, key)) = self.caravans[caravan].ends.first().copied() {
            if until > position {
                break;
            }
            self.complete(key, until, out);
        }
        let aboard = &self.caravans[caravan];
        let head = &self.logs[log];
        let active = head.room.reader.is_some();
        let here = if active { head.room.next } else { head.end };
        if position >= here {
            let members: Vec<LateKey> = aboard.members.iter().map(|(_, key)| *key).collect();
            for key in members {
                if self.late[key].until.is_none() {
                    self.arrive(key, position, out);
                }
            }
        }
        self.rest_caravan(caravan, out);
        self.mark_later(now);
    }

    /// One who was aboard is at the tail.
    fn arrive(&mut self, key: LateKey, position: Sequence, out: &mut Effects) {
        let session = self.late[key].session;
        self.lift(key);
        let late = &mut self.late[key];
        late.at = late.at.max(position);
        self.go_on(key, out);
        self.unpark(session, out);
    }

    /// Lets the caravans' readers give another step, if they have given most of the last.
    pub(super) fn grant_caravans(&mut self, out: &mut Effects) {
        let step = i64::from(self.config.caravan_step_bytes);
        for caravan in self.caravans.keys() {
            let caravan = &mut self.caravans[caravan];
            if caravan.granted <= step / 2 {
                let bytes = u32::try_from(step - caravan.granted).unwrap_or(u32::MAX);
                caravan.granted = step;
                let r = caravan.reader;
                out.storage.push(Call::Credit { r, bytes });
            }
        }
    }

    /// Tells those aboard, now and then, how far they have got without a message.
    pub(super) fn mark_caravans(&mut self, out: &mut Effects) {
        for caravan in self.caravans.keys() {
            let position = self.caravans[caravan].position;
            let members = self.caravans[caravan].members.iter();
            let members: Vec<LateKey> = members.map(|(_, key)| *key).collect();
            for key in members {
                if self.sessions[self.late[key].session].has_credit() {
                    self.tell_progress(key, position, out);
                }
            }
        }
    }

    /// A reader has ended, which the shard did not ask for: the storage has failed it.
    pub(super) fn reader_ended(&mut self, now: Now, r: ReaderId, out: &mut Effects) {
        let Some(owner) = self.calls.owner(r) else {
            return;
        };
        self.calls.give_up(r);
        match owner {
            Owner::System => self.step_catalog(now, CatalogInput::ReaderEnded, out),
            Owner::Room(log) => self.logs[log].room.failed = true,
            Owner::Caravan(caravan) => {
                self.disband(caravan, false, out);
                self.timers.hold = Some(now.mono.plus(self.config.retry_delay));
            }
        }
        self.retry_later(now);
    }
}

/// The records of one topic with numbers in `first..end`.
fn part(
    stored: &Stored,
    topic: u16,
    first: Sequence,
    end: Sequence,
    slices: &mut Slices,
) -> Option<Delivered> {
    let batch = &stored.batch;
    if first <= stored.extent.first && end > stored.extent.last {
        if batch.topics().len() == 1 {
            return Some(Delivered::Whole(batch.clone()));
        }
        if let Some((_, body)) = slices.made.iter().find(|(of, _)| *of == topic) {
            return Some(body.clone());
        }
        let places = slices.places.get_or_insert_with(|| Places::of(batch));
        let body = Delivered::Slice(places.slice(batch, &[topic])?);
        slices.made.push((topic, body.clone()));
        return Some(body);
    }
    let range = first..end;
    let keep = |index: u16, of: u16| of == topic && range.contains(&stored.base.plus(index.into()));
    batch.slice(keep).map(Delivered::Slice)
}
