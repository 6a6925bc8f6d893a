//! Where a subscription begins is told of all its parts together.
//!
//! Each part is located by itself, in its own log. Its client comes back with a position after a lost connection, and one that
//! names a log of one lane alone begins the other with its first: who began with the latest would be given what is older. So a
//! part that is placed waits for the other to be, and one status tells of both: that it is live in both lanes, or that it is
//! detached in both, from where each goes on.
//!
//! Where the client came with a position, it knows its place in either lane, and what is lost or retired of one is told
//! before the other is placed.

use super::behind::{Begin, BehindState};
use super::{Gateway, GatewayEffects};
use crate::keys::{BehindKey, SubKey};
use crate::link::Question;
use airmail_model::Sequence;
use airmail_model::frame::State;
use airmail_model::position::LogPosition;

/// Where a log ends that is to be asked for once more.
const UNKNOWN_END: Sequence = Sequence::MAX;

impl Gateway {
    /// It is known where a part begins. To one that waits beyond the end no more is told
    /// than there is: what it is told may come back as a position.
    pub(super) fn begin_at(
        &mut self,
        key: BehindKey,
        at: Sequence,
        end: Sequence,
        out: &mut GatewayEffects,
    ) {
        let behind = &mut self.behind[key];
        let begin = match behind.state {
            BehindState::Locating(begin) => begin,
            _ => Begin::At(at),
        };
        (behind.told, behind.at) = (behind.told.max(at.min(end)), at);
        let tail = &self.logs[behind.log].tail;
        let told = (!tail.is_attached).then_some(tail.generation);
        behind.state = BehindState::Placed(begin, end, told);
        let sub = behind.sub;
        self.begin_together(sub, Some(key), out);
    }

    /// Lets those parts of a subscription go on that are placed, unless its client knows none of them and one is not placed.
    /// Where the log of `fresh` ends has just been told.
    fn begin_together(&mut self, sub: SubKey, fresh: Option<BehindKey>, out: &mut GatewayEffects) {
        for part in self.late_parts(sub) {
            if let BehindState::Placed(begin, ..) = self.behind[part].state
                && self.is_done_with_log(part)
            {
                self.pass_ended(part, begin, out);
            }
            if !self.behind.has(part, sub) {
                return;
            }
        }
        let parts = self.late_parts(sub);
        let is_sought = |part: &BehindKey| {
            let behind = &self.behind[*part];
            let is_placed = !matches!(
                behind.state,
                BehindState::Locating(_) | BehindState::AwaitingSuccessor(_)
            );
            !is_placed && !behind.shown
        };
        let waits = parts.iter().any(is_sought);
        #[cfg(feature = "sabotage")]
        let waits = waits && self.config.bug != Some(crate::sabotage::Bug::LanesToldApart);
        if waits {
            return;
        }
        for part in parts.iter().filter(|part| fresh != Some(**part)) {
            self.renew_end(*part);
        }
        self.tell_placed(&parts, out);
        for part in parts {
            if !self.behind.has(part, sub) {
                // It was the last to be complete, or the subscription has failed.
                return;
            }
            if let BehindState::Placed(_, end, _) = self.behind[part].state {
                self.behind[part].state = BehindState::Moving;
                self.begin_placed(part, end, out);
            }
        }
    }

    /// Takes the tail's word for where the log of a part ends, since that was told. If somebody has been at the tail meanwhile,
    /// and nobody is, it is to be asked once more: what was told then may be before what they have been given.
    fn renew_end(&mut self, part: BehindKey) {
        let behind = &mut self.behind[part];
        if let BehindState::Placed(begin, end, told) = behind.state {
            let tail = &self.logs[behind.log].tail;
            let end = match tail.is_attached {
                // Who begins at a time may rely on it that nothing older comes behind the end.
                _ if behind.not_before.is_some() => UNKNOWN_END,
                true => tail.next,
                false if told == Some(tail.generation) => end,
                false => UNKNOWN_END,
            };
            behind.state = BehindState::Placed(begin, end, told);
        }
    }

    /// Tells of two parts that begin together, unless they go live at once, which is told then.
    fn tell_placed(&mut self, parts: &[BehindKey], out: &mut GatewayEffects) {
        let [one, other] = parts else {
            // Input: a part alone; what its client knows without it is right as it is.
            return;
        };
        let is_untold = |part: &BehindKey| {
            let behind = &self.behind[*part];
            matches!(behind.state, BehindState::Placed(..)) && !behind.shown
        };
        let both = [*one, *other];
        if !both.iter().all(is_untold) || both.iter().all(|part| self.goes_live(*part)) {
            return;
        }
        let [place, beside] = both.map(|part| {
            let behind = &self.behind[part];
            let log = &self.logs[behind.log];
            LogPosition {
                log: log.id,
                incarnation: log.incarnation,
                next: behind.told,
            }
        });
        for part in both {
            self.behind[part].shown = true;
        }
        let state = State::Detached {
            log: place.log,
            incarnation: place.incarnation,
            next: place.next,
            resumed: false,
            lost_before: None,
            beside: Some(beside),
        };
        self.tell_status(self.behind[*one].sub, state, out);
    }

    /// Whether a part that is placed goes live as soon as it goes on.
    fn goes_live(&self, part: BehindKey) -> bool {
        let behind = &self.behind[part];
        let BehindState::Placed(_, end, _) = behind.state else {
            // Input: a part that has gone on.
            return false;
        };
        let tail = &self.logs[behind.log].tail;
        let here = if tail.is_attached {
            tail.of(self.pace_of(part)).next
        } else {
            end
        };
        let is_open = behind.until.is_none() && behind.not_before.is_none();
        let is_there = behind.at == here && self.behind.crossing(part).is_none();
        is_open && is_there && self.is_given(part)
    }

    /// Lets a part that begins where its log has ended begin in the one after it.
    fn pass_ended(&mut self, part: BehindKey, begin: Begin, out: &mut GatewayEffects) {
        self.behind[part].state = BehindState::Moving;
        match begin {
            Begin::First { lost: false } => self.go_to_successor(part, begin, out),
            _ => self.go_on_behind(part, out),
        }
    }

    /// Lets a part go on from where it is placed. `end` is where its log ended when that was asked.
    fn begin_placed(&mut self, part: BehindKey, end: Sequence, out: &mut GatewayEffects) {
        let at = self.behind[part].at;
        match self.until_here(part) {
            Some(until) if until <= at => {
                self.tell_detached(part, out);
                self.complete(part, at, out);
            }
            _ if end == UNKNOWN_END => {
                self.tell_detached(part, out);
                self.behind[part].state = BehindState::Locating(Begin::Here);
                self.ask_tower(part, Question::End, out);
            }
            _ => self.go_on(part, end, out),
        }
    }

    /// Lets the other part of a subscription go on, if it waits for one that is told.
    pub(super) fn begin_others(&mut self, sub: SubKey, out: &mut GatewayEffects) {
        let state = |part: &BehindKey| self.behind[*part].state;
        let mut states = self.late_parts(sub).into_iter().map(|part| state(&part));
        if states.any(|state| matches!(state, BehindState::Placed(..))) {
            self.begin_together(sub, None, out);
        }
    }
}
