//! Logs of earlier maps that are no more, because retention has left nothing in them or they are lost: who is there, or comes
//! with a position in them, is told so, and goes on in the log after them.

use super::behind::{Begin, Behind, BehindState};
use super::{Gateway, GatewayEffects};
use crate::catalog::{EarlierMap, Entry};
use crate::keys::{BehindKey, LogKey, SubKey};
use airmail_model::frame::{Channel, GapReason, Reply, State};
use airmail_model::position::LogPosition;
use airmail_model::{Incarnation, LogId, Sequence, TopicHash};

impl Gateway {
    /// Lets one pass a log that is no more, and those after it that are not either, and begin in the one after them; or be
    /// complete, if its end lies in one of them.
    pub(super) fn pass_retired(
        &mut self,
        key: BehindKey,
        log: LogId,
        (entry, begin): (&Entry, Begin),
        out: &mut GatewayEffects,
    ) {
        let behind = &self.behind[key];
        let (sub, topic) = (behind.sub, behind.scope.in_maps());
        let (mut passed, next) = retired_from(entry, log, topic);
        if let Some(until) = behind.until.filter(|_| behind.asked_until.is_none())
            && let Some(last) = (passed.iter()).position(|(place, _)| place.log == until.log)
        {
            passed.truncate(last + 1);
            passed[last].1 = passed[last].1.min(until.before);
            return self.complete_in_passed(key, &passed, begin, out);
        }
        let Some(next) = next.and_then(|log| self.find_open(log)) else {
            // Input: a log that is not open yet. Nothing is told before it is, for all this is looked at again then.
            return self.await_successor(key, begin, out);
        };
        self.tell_passed(sub, &passed, begin, out);
        self.begin_in(key, next, begin, out);
    }

    /// Tells a subscription's client what is gone with the logs that it passes, unless it begins behind them; where it
    /// stands then, if it was told something.
    fn tell_passed(
        &mut self,
        sub: SubKey,
        passed: &[(LogPosition, Sequence)],
        begin: Begin,
        out: &mut GatewayEffects,
    ) -> Option<LogPosition> {
        let is_new = matches!(begin, Begin::Latest | Begin::First { .. });
        let mut stands = None;
        for (place, end) in passed.iter().filter(|_| !is_new) {
            if *end > Sequence::FIRST {
                self.tell_retired(sub, *place, *end, out);
                stands = Some(LogPosition {
                    next: *end,
                    ..*place
                });
            }
        }
        stands
    }

    /// Ends one whose end lies in the last of these logs, none of which is there any more.
    fn complete_in_passed(
        &mut self,
        key: BehindKey,
        passed: &[(LogPosition, Sequence)],
        begin: Begin,
        out: &mut GatewayEffects,
    ) {
        let Behind { sub, log, at, .. } = self.behind[key];
        match self.tell_passed(sub, passed, begin, out) {
            Some(place) => self.complete_at(key, place, out),
            None => {
                let end = self.logs[log].ended.unwrap_or(at);
                self.complete_at_end(key, end, out);
            }
        }
    }

    /// Tells a subscription's client that a log's numbers from a place in it on are gone, up to where it ended.
    pub(super) fn tell_retired(
        &mut self,
        sub: SubKey,
        place: LogPosition,
        end: Sequence,
        out: &mut GatewayEffects,
    ) {
        let LogPosition {
            log,
            incarnation,
            next,
        } = place;
        let state = State::Detached {
            log,
            incarnation,
            next,
            resumed: false,
            lost_before: None,
            beside: None,
        };
        self.tell_status(sub, state, out);
        let earlier = self.catalog().get(log.namespace);
        let earlier = earlier.and_then(|entry| entry.earlier_of(log));
        let why = earlier.map_or(GapReason::Retention, gone);
        let of = &self.subs[sub];
        let gap = Reply::Gap {
            channel: Channel::Detached(of.id, of.generation),
            log,
            previous: next.before(),
            last: end.before(),
            why,
        };
        out.reply(self.sessions[of.session].id, gap);
        self.stats.gap(why);
    }

    /// Lets all who are in a log that is no more, though its namespace is there, go on where it ended; `false` if the
    /// namespace is gone.
    pub(super) fn leave_retired(&mut self, key: LogKey, out: &mut GatewayEffects) -> bool {
        let id = self.logs[key].id;
        let entry = self.catalog().get(id.namespace);
        let earlier = entry.and_then(|entry| entry.earlier_of(id));
        let found = earlier.and_then(|earlier| Some((earlier.retired_end(id)?, gone(earlier))));
        let Some((end, why)) = found else {
            // Input: a log that is deleted with its namespace.
            return false;
        };
        self.logs[key].ended = Some(end);
        self.finish_turns(key, out);
        for sub in self.logs.lane(key).everyone(&self.subs) {
            let next = self.logs[key].tail.next;
            // One whose tower was out of reach may not have been given all that is gone.
            let behind = if next < end {
                let behind = self.take_off((sub, key), next, false, out);
                self.tell_gap(behind, next, end.before(), why, out);
                behind
            } else {
                self.take_off_quietly(sub, key, end)
            };
            self.behind[behind].at = end;
            self.go_on_behind(behind, out);
        }
        for behind in self.behind.of_log(key) {
            let begin = match self.behind[behind].state {
                BehindState::Locating(begin)
                | BehindState::Placed { begin, .. }
                | BehindState::AwaitingSuccessor(begin) => Some(begin),
                _ => None,
            };
            if let BehindState::Locating(_) = self.behind[behind].state {
                // What is asked for it in this log is answered to nobody.
                self.behind[behind].ticket = self.behind.ticket();
            }
            self.leave(behind, out);
            let begin = begin.filter(|_| !self.behind[behind].shown);
            self.behind.cross(behind, None);
            if let Some(begin @ (Begin::Latest | Begin::First { .. } | Begin::Time(_))) = begin {
                self.go_to_successor(behind, begin, out);
                continue;
            }
            if let Some(Begin::At(next) | Begin::Position(next)) = begin {
                self.behind[behind].told = next;
            }
            let told = self.behind[behind].told;
            if told < end {
                self.tell_detached(behind, out);
                self.tell_gap(behind, told, end.before(), why, out);
            }
            self.go_on_behind(behind, out);
        }
        self.logs[key].waiting.clear();
        self.ask_until_again(id, out);
        self.rest_tail(key, out);
        true
    }
}

/// Reason for which the logs of an earlier map are gone.
fn gone(earlier: &EarlierMap) -> GapReason {
    if earlier.is_lost() {
        GapReason::Loss
    } else {
        GapReason::Retention
    }
}

/// Where a log ended, if it is no more.
pub(super) fn retired_end(entry: &Entry, log: LogId) -> Option<Sequence> {
    entry.earlier_of(log)?.retired_end(log)
}

/// The logs of a topic, from one on, that are no more, each from its first number on and with where it ended; and the one
/// after them.
pub(super) fn retired_from(
    entry: &Entry,
    log: LogId,
    topic: TopicHash,
) -> (Vec<(LogPosition, Sequence)>, Option<LogId>) {
    let mut passed = Vec::new();
    let mut next = Some(log);
    while let Some(log) = next {
        let Some(end) = retired_end(entry, log) else {
            // Input: a log that is there.
            break;
        };
        let place = LogPosition {
            log,
            incarnation: Incarnation(0),
            next: Sequence::FIRST,
        };
        passed.push((place, end));
        next = entry.successor(log, topic);
    }
    (passed, next)
}
