//! At the tail: what the tower gives of a log goes to its live subscriptions.
//!
//! A session gets one delivery for each batch that holds something for it: the batch itself where
//! it wants every topic in it and may have all of it, else a slice, shared by all sessions that want and may have the
//! same ([`fanout`](super::fanout)). If it has no credit, the subscriptions that the batch concerns are detached where the batch begins. A
//! session that wants no payloads gets slices that have none.

use super::behind::{Behind, BehindState};
use super::change::WaitingChanges;
use super::fanout::{Fanout, Topics, Wanted};
use super::matching_turns::Turn;
use super::selected::Selecting;
use super::tail_lane::Pace;
use super::turns::Work;
use super::{Gateway, GatewayEffects};
use crate::keys::{BehindKey, LogKey, SessionKey, SubKey};
use crate::link::ToTower;
use airmail_log::{GapWhy, Stored};
use airmail_model::bug;
use airmail_model::frame::{Channel, Delivered, Delivery, GapReason, Matches, Reply, State};
use airmail_model::verdict::ClockReading;
use airmail_model::{Extent, LogId, Sequence};
use std::sync::Arc;

/// Bytes that live traffic has moved, and buffers that are kept between batches for their memory.
#[derive(Debug, Default)]
pub(super) struct LiveWork {
    /// Bytes that were published and delivered since the tower was last told.
    pub(super) moved_bytes: usize,
    /// The live subscriptions that a batch concerns.
    matches: Vec<(SessionKey, u16, SubKey)>,
    /// Work for those with filters.
    pub(super) work: Work,
    /// Changes of filters that wait.
    pub(super) changes: WaitingChanges,
}

/// Subscriptions of one session that a batch is for.
enum Recipients<'a> {
    /// Those to its topics, with the places of these.
    Subscribed(&'a [(SessionKey, u16, SubKey)]),
    /// A selection, with the places of the topics that it selects.
    Selecting(SubKey, &'a Topics),
}

impl Recipients<'_> {
    /// Each topic's place, with a subscription that it is for.
    fn pairs(&self) -> impl Iterator<Item = (u16, SubKey)> {
        let (subscribed, selection) = match self {
            Recipients::Subscribed(group) => (*group, None),
            Recipients::Selecting(sub, topics) => (&[][..], Some((*sub, *topics))),
        };
        let selected = selection.into_iter().flat_map(|(sub, topics)| {
            let places = topics.iter();
            places.map(move |place| (*place, sub))
        });
        let subscribed = subscribed.iter().map(|(_, place, sub)| (*place, *sub));
        subscribed.chain(selected)
    }

    /// Each subscription once.
    fn subs(&self) -> impl Iterator<Item = SubKey> {
        let (subscribed, selection) = match self {
            Recipients::Subscribed(group) => (*group, None),
            Recipients::Selecting(sub, _) => (&[][..], Some(*sub)),
        };
        let subscribed = subscribed.iter().map(|(_, _, sub)| *sub);
        subscribed.chain(selection)
    }
}

impl Gateway {
    /// Finds the tail that a live message is for, if it is of the present attachment and leaves no
    /// hole. The numbers of a hole are asked of the tower again.
    fn find_tail(
        &mut self,
        log: LogId,
        generation: u64,
        previous: Sequence,
        out: &mut GatewayEffects,
    ) -> Option<LogKey> {
        let key = self.logs.find(log)?;
        let tail = &self.logs[key].tail;
        if !tail.is_attached || tail.generation != generation {
            return None;
        }
        let next = tail.next;
        if previous.plus(1) > next {
            self.attach(key, next, out);
            return None;
        }
        Some(key)
    }

    /// A batch at the tail of a log.
    pub(super) fn live_batch(
        &mut self,
        log: LogId,
        generation: u64,
        previous: Sequence,
        stored: &Stored,
        out: &mut GatewayEffects,
    ) {
        let Some(key) = self.find_tail(log, generation, previous, out) else {
            // Input: what the tower had sent before it was told that nobody is at the tail any more, or
            // that its log is to be read from elsewhere.
            return;
        };
        if stored.extent.last < self.logs[key].tail.next {
            return;
        }
        let at_once = (key, Pace::AtOnce);
        self.await_turn(key, || Turn::Batch(stored.clone()), out);
        self.wake_timed(at_once, stored, out);
        self.wake(at_once, stored.extent.last, out);
        let mut matches = std::mem::take(&mut self.live.matches);
        let lane = self.logs.lane(key);
        for (place, topic) in (0u16..).zip(stored.batch.topic_hashes()) {
            let found = lane.of_topic(&self.subs, topic);
            matches.extend(found.map(|sub| (self.subs[sub].session, place, sub)));
        }
        matches.sort_unstable();
        let selecting = self.selecting(key, &stored.batch);
        let judged = if matches.is_empty() && selecting.is_empty() {
            Ok(None)
        } else {
            self.judge_live(key, stored)
        };
        let Ok(judged) = judged else {
            // Input: a log whose clock was not asked for lately. Whoever wants something of this is given it when it is
            // known.
            let selections = selecting.iter().flat_map(|of| &of.subs);
            for sub in matches.iter().map(|(_, _, sub)| sub).chain(selections) {
                let behind = self.take_off((*sub, key), stored.extent.first, false, out);
                self.await_clock(behind, out);
            }
            matches.clear();
            self.live.matches = matches;
            return self.tail_at(key, stored.extent.next(), out);
        };
        let mut fanout = Fanout::new(
            (key, log),
            stored,
            judged,
            #[cfg(feature = "sabotage")]
            self.config.bug,
        );
        for group in matches.chunk_by(|one, other| one.0 == other.0) {
            self.deliver(&mut fanout, &Recipients::Subscribed(group), out);
        }
        for Selecting { topics, subs } in &selecting {
            for sub in subs {
                self.deliver(&mut fanout, &Recipients::Selecting(*sub, topics), out);
            }
        }
        matches.clear();
        self.live.matches = matches;
        self.tail_at(key, stored.extent.next(), out);
    }

    /// Gives one session its part of a batch, or detaches those whom it concerns.
    fn deliver(&mut self, fanout: &mut Fanout<'_>, to: &Recipients<'_>, out: &mut GatewayEffects) {
        let Some((_, first)) = to.pairs().next() else {
            bug!("a batch of {} is for a session that wants none", fanout.id);
            return;
        };
        let session = self.subs[first].session;
        if !self.may_deliver(session, fanout.log) {
            for sub in to.subs() {
                self.detach(sub, fanout.log, fanout.stored.extent.first, out);
            }
            return;
        }
        let mut topics: Topics = to.pairs().map(|(place, _)| place).collect();
        topics.dedup();
        let of = &self.sessions[session];
        let (headers_only, roles) = (of.headers_only(), of.roles(fanout.id.namespace));
        let wanted = Wanted {
            topics,
            headers_only,
            roles: fanout.roles_that_count(roles),
        };
        let part = fanout.part(wanted);
        if let Some(left_out) = &part.left_out {
            self.tell_left_out(fanout.log, left_out, to.pairs(), out);
        }
        let Some(body) = part.body else {
            // Input: a batch all of whose records of these topics are left out, or a publisher whose batch names a topic
            // of which it holds no record.
            return;
        };
        let stored = fanout.stored;
        let clock = fanout.judged.as_ref().and_then(|of| of.clock);
        let range = (fanout.log, Pace::AtOnce, stored.extent.last);
        if !self.give_live(session, range, stored, (clock, body, None), out) {
            // Read for from here on, nobody misses anything.
            for sub in to.subs() {
                self.detach(sub, fanout.log, stored.extent.first, out);
            }
        }
    }

    /// Gives a session that is live there its part of a batch, up to `last`; `false`: a bug.
    pub(super) fn give_live(
        &mut self,
        session: SessionKey,
        (log, pace, last): (LogKey, Pace, Sequence),
        stored: &Stored,
        (clock, body, matches): (Option<ClockReading>, Delivered, Option<Matches>),
        out: &mut GatewayEffects,
    ) -> bool {
        let of = &mut self.logs[log];
        let Some(range) = of.tail.of_mut(pace).ranges.get_mut(&session) else {
            bug!("{session:?} is live on {} and has no range", of.id);
            return false;
        };
        let previous = range.next.before();
        range.next = last.plus(1);
        let id = of.id;
        let delivery = Delivery {
            channel: Channel::Live,
            log: id,
            previous,
            last,
            base: stored.base,
            appended: stored.appended,
            clock,
            body,
            matches: matches.map(Arc::new),
        };
        let body = &delivery.body;
        self.sessions[session].charge(id.lane, delivery.cost());
        self.given(session, body.len());
        self.stats.delivered(id.lane, body);
        self.live.moved_bytes += body.len();
        out.reply(self.sessions[session].id, Reply::Delivery(delivery));
        true
    }

    /// Numbers at the tail that no reader will get.
    pub(super) fn live_gap(
        &mut self,
        log: LogId,
        generation: u64,
        extent: Extent,
        why: GapWhy,
        out: &mut GatewayEffects,
    ) {
        let Some(key) = self.find_tail(log, generation, extent.first.before(), out) else {
            // Input: as with a batch, what the tower had sent before it was told better.
            return;
        };
        if extent.last < self.logs[key].tail.next {
            return;
        }
        let why = reason(why);
        if why != GapReason::Unused {
            let at_once = (key, Pace::AtOnce);
            self.await_turn(key, || Turn::Gap(extent, why), out);
            self.wake(at_once, extent.last, out);
            self.tell_live(at_once, extent, why, out);
            self.tell_timed(at_once, extent, why, out);
        }
        self.tail_at(key, extent.next(), out);
    }

    /// Tells a gap to every session of a pace with somebody live at the tail.
    pub(super) fn tell_live(
        &mut self,
        (key, pace): (LogKey, Pace),
        extent: Extent,
        why: GapReason,
        out: &mut GatewayEffects,
    ) {
        let log = &mut self.logs[key];
        for (session, range) in &mut log.tail.of_mut(pace).ranges {
            if range.live == 0 {
                continue;
            }
            let gap = |previous: Sequence, last: Sequence, why: GapReason| Reply::Gap {
                channel: Channel::Live,
                log: log.id,
                previous,
                last,
                why,
            };
            let id = self.sessions[*session].id;
            let quiet = range.next.before();
            if range.next < extent.first {
                let last = extent.first.before();
                out.reply(id, gap(quiet, last, GapReason::Unused));
            }
            let previous = quiet.max(extent.first.before());
            out.reply(id, gap(previous, extent.last, why));
            range.next = extent.next();
            self.stats.gap(why);
        }
    }

    /// Tells a gap to those who wait for a time: it may have come within.
    pub(super) fn tell_timed(
        &mut self,
        (log, pace): (LogKey, Pace),
        extent: Extent,
        why: GapReason,
        out: &mut GatewayEffects,
    ) {
        let timed = self.logs[log].tail.of(pace).timed.iter();
        for key in timed.map(|(_, key)| *key).collect::<Vec<_>>() {
            let first = self.behind[key].at.max(extent.first);
            if first <= extent.last {
                self.tell_gap(key, first, extent.last, why, out);
            }
        }
    }

    /// Moves the tail on to `next`.
    fn tail_at(&mut self, log: LogKey, next: Sequence, out: &mut GatewayEffects) {
        let tail = &mut self.logs[log].tail;
        tail.next = tail.next.max(next);
        let next = tail.next;
        tail.of_mut(Pace::AtOnce).next = next;
        self.wake((log, Pace::AtOnce), next, out);
        self.rest_turns(log, out);
        if self.logs[log].tail.turns.are_behind() {
            self.live.work.logs.insert(log);
        }
        self.mark_later();
        if self.logs[log].ended.is_some() {
            self.leave_ended(log, out);
        }
        self.rest_tail(log, out);
    }

    /// Lets those of a pace go live who wait for a number up to `last`.
    pub(super) fn wake(
        &mut self,
        (log, pace): (LogKey, Pace),
        last: Sequence,
        out: &mut GatewayEffects,
    ) {
        while let Some(behind) = self.logs[log].tail.of_mut(pace).wake(last) {
            self.behind[behind].state = BehindState::Moving;
            self.go_live(behind, out);
        }
    }

    /// Takes a live subscription off a log's tail, at `at`, to be read for.
    pub(super) fn detach(
        &mut self,
        key: SubKey,
        log: LogKey,
        at: Sequence,
        out: &mut GatewayEffects,
    ) {
        let behind = self.take_off((key, log), at, false, out);
        self.stats.detached += 1;
        self.follow(behind, out);
    }

    /// Takes a live subscription off a log's tail, at `at`, and tells its client so. It waits for nothing yet.
    pub(super) fn take_off(
        &mut self,
        (key, log): (SubKey, LogKey),
        at: Sequence,
        resumed: bool,
        out: &mut GatewayEffects,
    ) -> BehindKey {
        #[cfg(feature = "sabotage")]
        let further = u64::from(self.config.bug == Some(crate::sabotage::Bug::DetachOffByOne));
        #[cfg(feature = "sabotage")]
        let at = at.plus(further);
        let behind = self.take_off_quietly(key, log, at);
        #[cfg(feature = "sabotage")]
        if further > 0 {
            self.behind[behind].told = at;
        }
        let log = &self.logs[log];
        let state = State::Detached {
            log: log.id,
            incarnation: log.incarnation,
            next: self.behind[behind].told,
            resumed,
            lost_before: None,
            beside: None,
        };
        self.tell_status(key, state, out);
        behind
    }

    /// Takes a live subscription off a log's tail, at `at`. It waits for nothing yet, and its client is told nothing.
    pub(super) fn take_off_quietly(&mut self, key: SubKey, log: LogKey, at: Sequence) -> BehindKey {
        let sub = self.subs[key];
        let (tail, pace) = (&self.logs[log].tail, self.pace(key));
        let at = tail.cut(pace, sub.session, at);
        let range = tail.of(pace).ranges.get(&sub.session);
        let told = range.map_or(at, |range| range.next);
        self.leave_tail(key, log);
        self.settle_want(log, sub.scope());
        let ticket = self.behind.ticket();
        let behind = self.behind.insert(Behind {
            sub: key,
            session: sub.session,
            log,
            scope: sub.scope(),
            told: told.min(at),
            at,
            asked_until: None,
            until: None,
            not_before: None,
            not_after: None,
            shown: true,
            is_latest: false,
            holds_want: false,
            ticket,
            state: BehindState::Moving,
        });
        self.put_late(key, behind);
        behind
    }

    /// Has the tower give a log's tail from `from` on: for the first who comes, or after a hole.
    pub(super) fn attach(&mut self, key: LogKey, from: Sequence, out: &mut GatewayEffects) {
        let interest = self.interest(key);
        let log = &mut self.logs[key];
        let tail = &mut log.tail;
        self.stats.tails += u64::from(!tail.is_attached);
        tail.attach(from);
        tail.wants.interest = interest;
        out.tell(ToTower::Attach {
            log: log.id,
            generation: tail.generation,
            from,
            interest,
        });
        self.want_all(key, out);
    }

    /// Gives a log's tail up if nobody is there any more.
    pub(super) fn rest_tail(&mut self, key: LogKey, out: &mut GatewayEffects) {
        self.rest_turns(key, out);
        let log = &mut self.logs[key];
        if log.tail.is_attached && log.tail.is_idle() {
            log.tail.is_attached = false;
            log.tail.wants.clear();
            self.stats.tails -= 1;
            out.tell(ToTower::Detach {
                log: log.id,
                generation: log.tail.generation,
            });
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
