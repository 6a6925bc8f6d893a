//! Dispatch of a catch-up reader's batches to its members: each batch is cut once for all members
//! that want the same of it.

use super::member::Member;
use crate::keys::{MemberKey, ReaderKey};
use crate::link::{FromTower, Part};
use crate::records_by_topic::RecordsByTopic;
use crate::tower::{Tower, TowerEffects};
use airmail_log::{GapWhy, Stored};
use airmail_model::frame::Delivered;
use airmail_model::{Extent, Sequence};
use smallvec::SmallVec;

/// Cost of a batch besides its bytes, in bytes: to find and check it, or to find nothing.
const BATCH_COST: u64 = 1 << 10;
/// Cost of each of its topics, in bytes: to look up the members that want it.
const TOPIC_COST: u64 = 64;

/// Slices of one batch, by topic: made once for all who want the whole of it.
#[derive(Default)]
struct Slices {
    by_topic: Option<RecordsByTopic>,
    made: SmallVec<[(u16, Delivered); 4]>,
}

impl Tower {
    /// A batch for a reader's members.
    pub(in crate::tower) fn reader_batch(
        &mut self,
        key: ReaderKey,
        stored: &Stored,
        out: &mut TowerEffects,
    ) {
        let bytes = stored.batch.bytes().len();
        self.stats.given_bytes += bytes as u64;
        self.stats.read_bytes += bytes as u64;
        self.heard(key);
        let reader = &mut self.readers[key];
        let log = &mut self.logs[reader.log];
        log.end = log.end.max(stored.extent.next());
        let next = stored.extent.next();
        reader
            .passed
            .add(reader.position, next, stored.extent.numbers());
        // Before anybody can join: who does has this batch behind.
        reader.position = next;
        let cost = bytes as u64 + BATCH_COST + TOPIC_COST * stored.batch.topics().len() as u64;
        reader.used += cost;
        self.allowance.spend(cost);
        reader.granted -= i64::try_from(bytes).unwrap_or(i64::MAX);
        self.end_by_time(key, stored, out);
        let mut slices = Slices::default();
        let of_all = (None, None);
        let topics = (0u16..).zip(stored.batch.topic_hashes());
        let topics = topics.map(|(place, topic)| (Some(place), Some(topic)));
        for (place, topic) in topics.chain([of_all]) {
            let those: SmallVec<[MemberKey; 8]> = self.readers[key].of_topic(topic).collect();
            for member in those {
                self.give(member, place, stored, &mut slices, out);
            }
        }
        self.advance(key, out);
    }

    /// Gives a member its part of a batch: the records of its topic, or all.
    fn give(
        &mut self,
        key: MemberKey,
        topic: Option<u16>,
        stored: &Stored,
        slices: &mut Slices,
        out: &mut TowerEffects,
    ) {
        let member = &mut self.members[key];
        let first = member.at.max(stored.extent.first);
        let until = member.until.unwrap_or(Sequence::MAX);
        let end = until.min(stored.extent.next());
        let is_early = member.not_before.is_some_and(|time| stored.appended < time);
        // It may come before the batch that ends the member.
        let is_late = member.not_after.is_some_and(|time| stored.appended >= time);
        if first >= end || is_early || is_late {
            return;
        }
        let Some(body) = part(stored, topic, first, end, slices) else {
            // Input: a batch that holds none of the topic's records between the two.
            return;
        };
        member.at = end;
        let clock = self.capabilities.clock;
        (member.not_before).take_if(|time| clock.proof(*time) <= stored.appended);
        out.tell(FromTower::Part {
            member: member.id,
            part: Part {
                first,
                end,
                base: stored.base,
                appended: stored.appended,
                body,
            },
        });
    }

    /// Ends members that wanted nothing as new as this batch, once nothing older can come.
    fn end_by_time(&mut self, reader: ReaderKey, stored: &Stored, out: &mut TowerEffects) {
        let clock = self.capabilities.clock;
        #[cfg(feature = "sabotage")]
        let clock = match self.config.bug {
            Some(crate::sabotage::Bug::FirstTimeEnds) => airmail_log::AppendClock::Monotone,
            _ => clock,
        };
        while let Some((time, key)) = self.readers[reader].times.first().copied() {
            if clock.proof(time) > stored.appended {
                return;
            }
            let next = self.members[key].at.max(stored.extent.first);
            self.end(key, next, out);
        }
    }

    fn end(&mut self, key: MemberKey, next: Sequence, out: &mut TowerEffects) {
        let member = self.members[key].id;
        self.remove_member(key);
        out.tell(FromTower::Ended { member, next });
    }

    /// Numbers that a reader will not give.
    pub(in crate::tower) fn reader_gap(
        &mut self,
        key: ReaderKey,
        extent: Extent,
        why: GapWhy,
        out: &mut TowerEffects,
    ) {
        self.heard(key);
        if why != GapWhy::Unused {
            for member in self.readers[key].everyone() {
                self.give_gap(member, extent, why, out);
            }
        }
        let reader = &mut self.readers[key];
        let log = &mut self.logs[reader.log];
        log.end = log.end.max(extent.next());
        reader.passed.add(reader.position, extent.next(), 0);
        reader.position = extent.next();
        reader.used += BATCH_COST;
        self.allowance.spend(BATCH_COST);
        self.advance(key, out);
    }

    fn give_gap(&mut self, key: MemberKey, extent: Extent, why: GapWhy, out: &mut TowerEffects) {
        let member = &mut self.members[key];
        let first = member.at.max(extent.first);
        let until = member.until.unwrap_or(Sequence::MAX);
        let last = extent.last.min(until.before());
        if first <= last {
            member.at = last.plus(1);
            out.tell(FromTower::PartGap {
                member: member.id,
                extent: Extent { first, last },
                why,
            });
        }
    }

    /// A reader has given everything before `next`.
    pub(in crate::tower) fn reader_tail(
        &mut self,
        key: ReaderKey,
        next: Sequence,
        out: &mut TowerEffects,
    ) {
        self.heard(key);
        let reader = &mut self.readers[key];
        let log = &mut self.logs[reader.log];
        log.end = log.end.max(next);
        reader.passed.add(reader.position, next, 0);
        reader.position = next.max(reader.position);
        self.advance(key, out);
    }

    /// Ends the members whose end a reader has got to, and at the tail all that want to get there.
    fn advance(&mut self, key: ReaderKey, out: &mut TowerEffects) {
        let (log, position) = (self.readers[key].log, self.readers[key].position);
        while let Some((until, member)) = self.readers[key].ends.first().copied() {
            if until > position {
                break;
            }
            self.end(member, until, out);
        }
        if position >= self.logs[log].here() {
            for member in self.readers[key].everyone() {
                if self.members[member].until.is_none() {
                    self.arrive(member, position, out);
                }
            }
        }
        self.rest_reader(key, out);
        self.mark_later();
    }

    /// Hands a member over to the gateway's tail.
    fn arrive(&mut self, key: MemberKey, next: Sequence, out: &mut TowerEffects) {
        let Member { id, log, .. } = self.members[key];
        self.remove_member(key);
        let end = self.logs[log].end;
        out.tell(FromTower::Reached {
            member: id,
            next,
            end,
        });
    }

    /// Tells members, now and then, how far they have got without a message.
    pub(in crate::tower) fn mark(&mut self, out: &mut TowerEffects) {
        for reader in self.readers.keys() {
            let next = self.readers[reader].position;
            for key in self.readers[reader].everyone() {
                let member = &mut self.members[key];
                if member.at < next {
                    member.at = next;
                    let member = member.id;
                    out.tell(FromTower::Progress { member, next });
                }
            }
        }
    }
}

/// The records of one topic, or all, with numbers in `first..end`.
fn part(
    stored: &Stored,
    topic: Option<u16>,
    first: Sequence,
    end: Sequence,
    slices: &mut Slices,
) -> Option<Delivered> {
    let batch = &stored.batch;
    if first <= stored.extent.first && end > stored.extent.last {
        let Some(topic) = topic.filter(|_| batch.topics().len() > 1) else {
            // Input: a batch all of which is wanted.
            return Some(Delivered::Whole(batch.clone()));
        };
        if let Some((_, body)) = slices.made.iter().find(|(of, _)| *of == topic) {
            return Some(body.clone());
        }
        let by_topic = slices
            .by_topic
            .get_or_insert_with(|| RecordsByTopic::of(batch));
        let body = Delivered::Slice(by_topic.slice(batch, &[topic], &[], false)?);
        slices.made.push((topic, body.clone()));
        return Some(body);
    }
    let range = first..end;
    let keep = |index: u16, of: u16| {
        topic.is_none_or(|topic| of == topic) && range.contains(&stored.base.plus(index.into()))
    };
    batch.slice(keep).map(Delivered::Slice)
}
