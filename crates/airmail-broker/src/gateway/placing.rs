//! Where a subscription begins is told of all its parts together.
//!
//! Each part is located by itself, in its own log. Its client comes back with a position after a lost connection, and one that
//! names a log of one lane alone begins the other with its first: who began with the latest would be given what is older. So a
//! part that is placed waits for the other to be placed, and one status tells of both: that it is live in both lanes, or that
//! it is detached in both, from where each goes on.
//!
//! A part that began alone may be past its place and still not told, while it waits at the tail; one that begins meanwhile,
//! with lane high, waits until that one is told. Where the client came with a position, it knows its place in either lane,
//! and what is lost or retired of one is told before the other is placed.

use super::behind::{Begin, BehindState};
use super::{Gateway, GatewayEffects};
use crate::keys::{BehindKey, SubKey};
use crate::link::Question;
use airmail_model::frame::State;
use airmail_model::position::LogPosition;
use airmail_model::{Sequence, bug};

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
        let BehindState::Locating(begin) = behind.state else {
            bug!("{behind:?} was not sought, and is at {at}");
            return;
        };
        (behind.told, behind.at) = (behind.told.max(at.min(end)), at);
        let tail = &self.logs[behind.log].tail;
        behind.state = BehindState::Placed {
            begin,
            end,
            unattended: (!tail.is_attached).then_some(tail.generation),
        };
        let sub = behind.sub;
        self.begin_together(sub, Some(key), out);
    }

    /// Lets those parts of a subscription go on that are placed, unless they wait. Where the log of `fresh` ends has just
    /// been told.
    fn begin_together(&mut self, sub: SubKey, fresh: Option<BehindKey>, out: &mut GatewayEffects) {
        for part in self.late_parts(sub) {
            if let BehindState::Placed { begin, .. } = self.behind[part].state
                && self.is_done_with_log(part)
            {
                self.pass_ended(part, begin, out);
            }
            if !self.behind.has(part, sub) {
                return;
            }
        }
        let waits = self.waits_for_others(sub);
        #[cfg(feature = "sabotage")]
        let waits = waits && self.config.bug != Some(crate::sabotage::Bug::LanesToldApart);
        if waits {
            return;
        }
        let parts = self.late_parts(sub);
        self.tell_placed(&parts, fresh, out);
        for part in parts {
            if !self.behind.has(part, sub) {
                // It was the last to be complete, or the subscription has failed.
                return;
            }
            if self.behind[part].is_placed() {
                let end = self.known_end(part, fresh);
                self.behind[part].state = BehindState::Moving;
                self.begin_placed(part, end, out);
            }
        }
    }

    /// Whether the placed parts of a subscription wait: its client knows nothing yet of a part that is neither placed nor
    /// complete.
    pub(super) fn waits_for_others(&self, sub: SubKey) -> bool {
        let mut parts = self.late_parts(sub).into_iter();
        parts.any(|part| {
            let behind = &self.behind[part];
            !(behind.shown || behind.is_placed() || behind.is_complete())
        })
    }

    /// Where the log of a placed part ends, which is the tail's word if there is somebody. `None`: it is to be asked once more.
    /// Somebody has been at the tail since it was told, and what was told may be before what they have been given; or the
    /// part begins at a time, and may rely on it that nothing older comes behind the end.
    fn known_end(&self, part: BehindKey, fresh: Option<BehindKey>) -> Option<Sequence> {
        let behind = &self.behind[part];
        let BehindState::Placed {
            end, unattended, ..
        } = behind.state
        else {
            bug!("{behind:?} has gone on");
            return None;
        };
        let tail = &self.logs[behind.log].tail;
        if fresh == Some(part) {
            Some(end)
        } else if behind.not_before.is_some() {
            None
        } else if tail.is_attached {
            Some(tail.next)
        } else {
            (unattended == Some(tail.generation)).then_some(end)
        }
    }

    /// Tells of two parts that begin together, unless they go live at once, which is told then.
    fn tell_placed(
        &mut self,
        parts: &[BehindKey],
        fresh: Option<BehindKey>,
        out: &mut GatewayEffects,
    ) {
        let [one, other] = parts else {
            // Input: a part alone; what its client knows without it is right as it is.
            return;
        };
        let is_untold = |part: &BehindKey| {
            let behind = &self.behind[*part];
            behind.is_placed() && !behind.shown
        };
        let both = [*one, *other];
        if !both.iter().all(is_untold) || both.iter().all(|part| self.goes_live(*part, fresh)) {
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

    /// Whether a part that is placed goes live as soon as it goes on, and is told nothing before.
    fn goes_live(&self, part: BehindKey, fresh: Option<BehindKey>) -> bool {
        let Some(end) = self.known_end(part, fresh) else {
            // Input: a part whose log is to be asked once more where it ends.
            return false;
        };
        let behind = &self.behind[part];
        let tail = &self.logs[behind.log].tail;
        let here = if tail.is_attached {
            tail.of(self.pace_of(part)).next
        } else {
            end
        };
        let is_open = behind.until.is_none() && behind.not_before.is_none();
        let is_there = behind.at == here && here <= end && self.behind.crossing(part).is_none();
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

    /// Lets a part go on from where it is placed. `end` is where its log ends, if that is known.
    fn begin_placed(&mut self, part: BehindKey, end: Option<Sequence>, out: &mut GatewayEffects) {
        let at = self.behind[part].at;
        match (self.until_here(part), end) {
            (Some(until), _) if until <= at => {
                self.tell_detached(part, out);
                self.complete(part, at, out);
            }
            (_, Some(end)) => self.go_on(part, end, out),
            (_, None) => {
                self.tell_detached(part, out);
                self.behind[part].state = BehindState::Locating(Begin::Here);
                self.ask_tower(part, Question::End, out);
            }
        }
    }

    /// Lets the other part of a subscription go on if it is placed: it may have waited for one that is told now, or complete.
    pub(super) fn begin_others(&mut self, sub: SubKey, out: &mut GatewayEffects) {
        let mut parts = self.late_parts(sub).into_iter();
        if parts.any(|part| self.behind[part].is_placed()) {
            self.begin_together(sub, None, out);
        }
    }
}
