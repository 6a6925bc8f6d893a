//! Succession: where a log ends for ever, because its namespace was moved, its topics go on in the logs of the next map.
//!
//! - A subscription goes on in the successor when it has been given all up to its log's end, and not before: live ones
//!   when the tail has got there, others when they have been read for up to there. Where the successor is not known or
//!   not open here, it waits for that.
//! - What begins with the oldest, at a time or at a position begins in the log that has it, and goes on from there.
//!   What begins with the latest begins in the log that takes publishes, wherever that is by now. A number is counted in
//!   that log, too.
//! - An end that was asked for is an end of the log that took publishes then; a number, of the one that it begins in.
//! - A log of an earlier map that is no more has left where it ended: a position in it is told what retention took, or
//!   what is lost.
//! - Publishes with the present map are taken when every log of the maps before is known to have ended, so that no
//!   message of a topic stands before an earlier one of it.

use super::behind::{Begin, BehindState, End};
use super::log::LogState;
use super::retired::retired_end;
use super::tail_lane::Pace;
use super::{Gateway, GatewayEffects, Namespaces};
use crate::catalog::{EarlierMap, Entry};
use crate::keys::{BehindKey, LogKey};
use crate::link::{Question, ToTower};
use airmail_model::frame::Until;
use airmail_model::{Error, Lane, LogId, NamespaceId, Sequence, TopicHash};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Namespaces with logs that are not known to have ended, though a newer map is there: one such log of each.
#[derive(Debug, Default)]
pub(super) struct Moving(BTreeMap<NamespaceId, LogId>);

impl Moving {
    /// A log of an earlier map of a namespace that may still take publishes.
    pub(super) fn unsealed(&self, namespace: NamespaceId) -> Option<LogId> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&namespace).copied()
    }
}

impl Gateway {
    /// The catalog has told which namespaces there are, and in which logs.
    pub(super) fn namespaces_told(&mut self, told: Namespaces, out: &mut GatewayEffects) {
        let is_same = Arc::ptr_eq(&told.catalog, &self.namespaces.catalog);
        let before = std::mem::replace(&mut self.namespaces, told);
        if is_same {
            return;
        }
        self.logs.moving.0.clear();
        let catalog = Arc::clone(self.catalog());
        for entry in catalog.iter().filter(|entry| !entry.earlier.is_empty()) {
            self.look_for_unsealed(entry, None);
        }
        for entry in catalog.iter().filter(|entry| entry.has_high) {
            let was = before.catalog.get(entry.namespace.id);
            if was.is_some_and(|was| !was.has_high) {
                for log in entry.oldest_kept(Lane::High).logs(Lane::High) {
                    self.begin_high(log, out);
                }
            }
        }
        self.wake_successors(out);
    }

    /// Notes a log of a namespace's earlier maps that is not known to have ended, if there is one, from this log on.
    fn look_for_unsealed(&mut self, entry: &Entry, from: Option<LogId>) {
        let kept = entry.earlier.iter().filter(|earlier| earlier.is_kept());
        let mut logs: Vec<LogId> = kept.flat_map(EarlierMap::all_logs).collect();
        // So none is passed over.
        logs.sort_unstable();
        let mut logs = logs
            .into_iter()
            .filter(|log| from.is_none_or(|from| *log >= from));
        let id = entry.namespace.id;
        match logs.find(|log| !self.has_ended(*log)) {
            Some(log) => _ = self.logs.moving.0.insert(id, log),
            None => _ = self.logs.moving.0.remove(&id),
        }
    }

    fn has_ended(&self, log: LogId) -> bool {
        let key = self.logs.find(log);
        key.is_some_and(|key| self.logs[key].ended.is_some())
    }

    /// The tower has told that a log ends there for ever.
    pub(super) fn log_sealed(&mut self, log: LogId, end: Sequence, out: &mut GatewayEffects) {
        let Some(key) = self.logs.find(log) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        self.logs[key].ended = Some(end);
        if self.logs.moving.unsealed(log.namespace) == Some(log)
            && let Some(entry) = self.catalog().get(log.namespace).cloned()
        {
            self.look_for_unsealed(&entry, Some(log));
        }
        self.leave_ended(key, out);
    }

    /// Lets everyone at a tail go on in the logs after it, if it has got to its log's end.
    pub(super) fn leave_ended(&mut self, log: LogKey, out: &mut GatewayEffects) {
        let tail = &self.logs[log].tail;
        let Some(end) = self.logs[log].ended.filter(|_| tail.is_attached) else {
            // Input: a log that goes on, or a tail that nobody is at.
            return;
        };
        for pace in Pace::ALL {
            let tail = &self.logs[log].tail;
            if tail.told_to(pace) >= end {
                self.leave_ended_at(log, pace, end, out);
            }
        }
        self.rest_tail(log, out);
    }

    /// Lets those of a pace go on in the logs after one that has ended, all of which they have been given.
    fn leave_ended_at(&mut self, log: LogKey, pace: Pace, end: Sequence, out: &mut GatewayEffects) {
        for sub in self.logs.lane(log).everyone(&self.subs) {
            if self.pace(sub) == pace {
                let key = self.take_off_quietly(sub, log, end);
                self.go_on_behind(key, out);
            }
        }
        let served = self.logs[log].tail.of(pace);
        let waiting = served.waiting.iter().map(|(_, key)| *key);
        let waiting: Vec<BehindKey> = waiting
            .chain(served.timed.iter().map(|(_, key)| *key))
            .collect();
        for key in waiting {
            self.lift(key);
            self.go_on_behind(key, out);
        }
    }

    /// Has one that has got to its log's end begin in the next one, with what comes first there and is for it.
    pub(super) fn go_on_behind(&mut self, key: BehindKey, out: &mut GatewayEffects) {
        if let Some(crossing) = self.behind.crossing(key) {
            return self.enter_life(key, crossing, out);
        }
        let begin = match self.behind[key].not_before {
            Some(time) => Begin::Time(time),
            None => Begin::At(Sequence::FIRST),
        };
        self.go_to_successor(key, begin, out);
    }

    /// Has one that is done with its log, and waits for nothing, begin so in the log after it.
    pub(super) fn go_to_successor(
        &mut self,
        key: BehindKey,
        begin: Begin,
        out: &mut GatewayEffects,
    ) {
        let behind = &self.behind[key];
        let (log, topic, until) = (behind.log, behind.scope.in_maps(), behind.until);
        let id = self.logs[log].id;
        let end = self.logs[log].ended.unwrap_or(behind.at);
        let entry = self.catalog().get(id.namespace).cloned();
        let next = entry.as_ref().and_then(|entry| entry.successor(id, topic));
        let is_last =
            |until: End| until.log == id || next.is_some_and(|next| next.index > until.log.index);
        if behind.asked_until.is_none() && until.is_some_and(is_last) {
            return self.complete_at_end(key, end, out);
        }
        let Some((entry, next)) = entry.zip(next) else {
            // Input: a log that another shard knows to be sealed; the command that says so comes.
            return self.await_successor(key, begin, out);
        };
        if retired_end(&entry, next).is_some() {
            return self.pass_retired(key, next, (&entry, begin), out);
        }
        match self.find_open(next) {
            Some(next) => self.begin_in(key, next, begin, out),
            None => self.await_successor(key, begin, out),
        }
    }

    /// Has one wait until it is known here which log goes on with its topic, and that is open.
    pub(super) fn await_successor(
        &mut self,
        key: BehindKey,
        begin: Begin,
        out: &mut GatewayEffects,
    ) {
        let (log, sub) = (self.behind[key].log, self.behind[key].sub);
        if self.logs[log].state == LogState::Closed {
            // What is waited for would be forgotten with the log.
            let error = self.busy("log").value(self.logs[log].id);
            return self.end_with(sub, error, out);
        }
        self.release_want(key);
        self.behind[key].state = BehindState::AwaitingSuccessor(begin);
        self.logs[log].waiting.insert(key);
        self.logs.with_waiting.insert(log);
        // It may have been the last to want its topic there.
        self.rest_tail(log, out);
    }

    /// Looks again for those who wait for a successor: a map is known, or a log open, that was not.
    pub(super) fn wake_successors(&mut self, out: &mut GatewayEffects) {
        for log in std::mem::take(&mut self.logs.with_waiting) {
            let Some(of) = self.logs.get_mut(log) else {
                // Input: a log that was deleted meanwhile, with its subscriptions.
                continue;
            };
            for key in std::mem::take(&mut of.waiting) {
                let BehindState::AwaitingSuccessor(begin) = self.behind[key].state else {
                    airmail_model::bug!("{:?} waits for no successor", self.behind[key]);
                    continue;
                };
                self.behind[key].state = BehindState::Moving;
                if self.behind[key].asked_until.is_some() {
                    self.ask_until(key, begin, out);
                } else {
                    self.go_to_successor(key, begin, out);
                }
            }
        }
    }

    /// Puts a subscription at the beginning of another log, where it is to be located.
    pub(super) fn begin_in(
        &mut self,
        key: BehindKey,
        log: LogKey,
        begin: Begin,
        out: &mut GatewayEffects,
    ) {
        self.release_want(key);
        let ticket = self.behind.ticket();
        let behind = &mut self.behind[key];
        let (sub, left) = (behind.sub, behind.log);
        behind.ticket = ticket;
        behind.log = log;
        behind.is_latest = false;
        behind.state = BehindState::Locating(begin);
        // A client that was told where it stands is told where it goes on; all before is accounted for. Where a time has
        // to be found first, that is not known yet.
        let was_told = std::mem::take(&mut behind.shown) && !matches!(begin, Begin::Time(_));
        let at = if was_told {
            Sequence::FIRST
        } else {
            Sequence(0)
        };
        (behind.told, behind.at) = (at, at);
        if !self.subs[sub].is_live() {
            self.subs[sub].set_tail(self.logs[log].at);
        }
        self.logs[left].tail.returned.remove(&sub);
        if was_told {
            self.tell_detached(key, out);
        }
        if self.behind[key].asked_until.is_some() {
            self.ask_until(key, begin, out);
        } else {
            self.ask_tower(key, Question::End, out);
        }
        self.rest_tail(left, out);
    }

    /// The key of a log that is known and can be used.
    pub(super) fn find_open(&self, log: LogId) -> Option<LogKey> {
        let key = self.logs.find(log)?;
        (self.logs[key].state == LogState::Open).then_some(key)
    }

    /// The log that takes a topic's publishes to a lane, as far as is known here: of the present map, or of one
    /// before as long as that log is not known to have ended.
    pub(super) fn live_log(&self, entry: &Entry, topic: TopicHash, lane: Lane) -> LogId {
        let mut log = entry.map.log(topic, lane);
        if self.logs.moving.unsealed(entry.namespace.id).is_none() {
            return log;
        }
        while let Some(before) = entry.predecessor(log, topic) {
            let is_kept = entry.earlier_of(before).is_some_and(|of| of.is_kept());
            if !is_kept || self.has_ended(before) {
                break;
            }
            log = before;
        }
        log
    }

    /// The log in which a subscription's end is to be asked for, as far as is known here.
    fn log_of_end(&self, key: BehindKey) -> LogId {
        let behind = &self.behind[key];
        let here = self.logs[behind.log].id;
        let entry = self.catalog().get(here.namespace);
        let (Some(Until::Now | Until::Time(_)), Some(entry)) = (behind.asked_until, entry) else {
            // Input: a number, which is of the log in which it begins; or a namespace that is being deleted.
            return here;
        };
        // Where that log is not open here, the last before it that is: so each answer leads further on.
        let topic = behind.scope.in_maps();
        let mut last = self.live_log(entry, topic, here.lane);
        while last != here && self.find_open(last).is_none() {
            last = entry.predecessor(last, topic).unwrap_or(here);
        }
        last
    }

    /// Asks where the log ends in which a subscription's end lies.
    pub(super) fn ask_until(&mut self, key: BehindKey, begin: Begin, out: &mut GatewayEffects) {
        let log = self.log_of_end(key);
        let behind = &mut self.behind[key];
        behind.until = Some(End {
            log,
            before: Sequence::MAX,
        });
        behind.state = BehindState::Locating(begin);
        out.tell(ToTower::Ask {
            member: self.behind.member(key),
            log,
            question: Question::End,
        });
    }

    /// Asks anew for those, in whatever log, whose end was asked for in a log that is no more: that is not answered.
    pub(super) fn ask_until_again(&mut self, gone: LogId, out: &mut GatewayEffects) {
        let asked = self.behind.iter().filter_map(|(key, behind)| {
            let is_in_it = behind.until.is_some_and(|until| until.log == gone);
            match behind.state {
                BehindState::Locating(begin) if is_in_it && behind.asked_until.is_some() => {
                    Some((key, begin))
                }
                _ => None,
            }
        });
        for (key, begin) in asked.collect::<Vec<_>>() {
            // An answer may be on its way yet.
            self.behind[key].ticket = self.behind.ticket();
            self.ask_until(key, begin, out);
        }
    }

    /// Where the log ends is known in which a subscription's end lies; whether its end is known with that. If that log
    /// has been sealed, and the ones after it took publishes before this was asked, the end is sought there.
    pub(super) fn until_told(
        &mut self,
        key: BehindKey,
        begin: Begin,
        end: Sequence,
        out: &mut GatewayEffects,
    ) -> bool {
        let behind = &self.behind[key];
        let (Some(asked), Some(until)) = (behind.asked_until, behind.until) else {
            // Input: a subscription without an end, or one whose end is known.
            return true;
        };
        let is_number = matches!(asked, Until::Sequence(_));
        if self.has_ended(until.log) && !is_number {
            if self.log_of_end(key).index > until.log.index {
                self.ask_until(key, begin, out);
            } else {
                self.await_successor(key, begin, out);
            }
            return false;
        }
        let behind = &mut self.behind[key];
        behind.asked_until = None;
        let before = match asked {
            Until::Now => end,
            Until::Sequence(before) => before.min(end),
            Until::Time(time) => {
                behind.not_after = Some(time);
                end
            }
        };
        behind.until = Some(End { before, ..until });
        true
    }

    /// Where what is read for one in its present log ends: where it is complete, or at the log's end if that is in a
    /// later one.
    pub(super) fn until_here(&self, key: BehindKey) -> Option<Sequence> {
        let behind = &self.behind[key];
        let log = &self.logs[behind.log];
        let until = behind.until.and_then(|until| {
            if until.log == log.id {
                Some(until.before)
            } else {
                log.ended
            }
        });
        let cut = self.behind.crossing(key).map(|of| of.at);
        until.into_iter().chain(cut).min()
    }

    /// Whether one has been given all of its log that there will ever be, or of the life in which it stands, and does not
    /// end before.
    pub(super) fn is_done_with_log(&self, key: BehindKey) -> bool {
        let behind = &self.behind[key];
        if let Some(crossing) = self.behind.crossing(key) {
            return behind.at >= crossing.at;
        }
        let log = &self.logs[behind.log];
        let ends_here = behind.until.is_some_and(|until| until.log == log.id);
        !ends_here && log.ended.is_some_and(|end| behind.at >= end)
    }

    /// The logs of a namespace that are kept, of all its maps.
    pub(super) fn kept_logs(entry: &Entry) -> Vec<LogId> {
        let kept = entry.earlier.iter().filter(|earlier| earlier.is_kept());
        let earlier = kept.flat_map(EarlierMap::all_logs);
        earlier.chain(entry.all_logs()).collect()
    }

    /// Refusal of a publish with the present map, as long as a log of an earlier one may take publishes.
    pub(super) fn not_sealed(&mut self, unsealed: LogId) -> Error {
        if self.logs.elsewhere(unsealed).is_some() {
            return self.not_open(unsealed);
        }
        self.busy("namespace.storage").value(unsealed)
    }
}
