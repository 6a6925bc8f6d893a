//! A position from beyond a log's end: the node's files are older than the position, because they
//! were set back to a copy.
//!
//! In one life of a log its `reach` never goes back (which the simulator holds, as its `numbers`), so no
//! honest position of that life lies beyond it. (Its end may, below `fsync`: after a crash it is told no
//! further than its reservation is known to be durable.)
//! How far the files were set back cannot be known, and some numbers may have been given twice since.
//! So the log begins a new life, durable before anybody is told: every position of the old one is
//! from then on answered by a loss, and by everything that the log holds.
//!
//! Who is subscribed meanwhile:
//! - Whoever began at a position of the old life, on this side of the end, may have missed something
//!   too. It is sent away for a moment, and comes again with a position of the old life.
//! - Whoever began otherwise has been on the log since the gateway began, within which nothing is set
//!   back. It goes on where it is, and is told under which life.
//!
//! Once a log has begun a new life, a position of that life beyond the end is no proof but a mistake,
//! and refused: so whoever makes positions up costs each log one new life for each start of the node.

use super::behind::{Begin, BehindState};
use super::{Gateway, GatewayEffects};
use crate::keys::{BehindKey, LogKey, SubKey};
use crate::link::{MemberId, Question, ToTower};
use airmail_log::{Bounds, Refusal};
use airmail_model::frame::State;
use airmail_model::{Error, ErrorCode, Incarnation, LogId, Sequence};

/// A subscription on a log, with its record if it is behind there.
type Part = (SubKey, Option<BehindKey>);

impl Gateway {
    /// The storage has said how far a log reaches, beyond whose end somebody's position seemed to lie.
    pub(super) fn reach_found(
        &mut self,
        key: BehindKey,
        next: Sequence,
        bounds: &Bounds,
        end: Sequence,
        out: &mut GatewayEffects,
    ) {
        let behind = &self.behind[key];
        let (log, sub, ticket) = (behind.log, behind.sub, behind.ticket);
        if next <= bounds.reach {
            return self.begin_at(key, next, end, out);
        }
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::PositionBeyondEnd) {
            return self.begin_at(key, next, end, out);
        }
        let log = &mut self.logs[log];
        if log.renewed {
            let error = Error::new(ErrorCode::PositionInvalid)
                .field("position.next")
                .value(next)
                .limit(format_args!("{} at most", bounds.reach));
            return self.end_with(sub, error, out);
        }
        if log.renewing.is_empty() {
            out.tell(ToTower::Renew { log: log.id });
        }
        log.renewing.push((key, ticket));
    }

    /// The tower has begun a new life of a log, or could not.
    pub(super) fn renewed(
        &mut self,
        log: LogId,
        result: Result<Incarnation, Refusal>,
        out: &mut GatewayEffects,
    ) {
        let Some(key) = self.logs.find(log) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        match result {
            Ok(incarnation) if self.logs[key].renewing.is_empty() && self.goes_back(log) => {
                if self.logs[key].incarnation != incarnation {
                    self.life_changed(key, incarnation, out);
                }
            }
            Ok(incarnation) => self.begin_life(key, incarnation, out),
            Err(why) => self.not_renewed(key, &why, out),
        }
    }

    /// A log has begun a new life, and no crash can take it back.
    fn begin_life(&mut self, log: LogKey, incarnation: Incarnation, out: &mut GatewayEffects) {
        self.finish_turns(log, out);
        let renewed = &mut self.logs[log];
        renewed.incarnation = incarnation;
        renewed.renewed = true;
        let id = renewed.id;
        let returned = std::mem::take(&mut renewed.tail.returned);
        let waiting = self.take_renewing(log);
        self.stats.renewed += 1;
        let live = self.logs.lane(log).everyone(&self.subs).into_iter();
        let behind = self.behind.of_log(log).into_iter();
        let behind = behind.filter(|key| !waiting.contains(key));
        let behind = behind.map(|key| (self.behind[key].sub, Some(key)));
        let others = live.map(|sub| (sub, None)).chain(behind);
        let (back, here): (Vec<Part>, Vec<Part>) =
            others.partition(|(sub, _)| returned.contains(sub));
        for part in here {
            self.resume(part, log, out);
        }
        for (sub, _) in back {
            let error = self.busy("log").value(id);
            self.end_with(sub, error, out);
        }
        for key in waiting {
            self.behind[key].state = BehindState::Locating(Begin::First { lost: true });
            self.ask_tower(key, Question::Bounds, out);
        }
    }

    /// Those who wait for a log's new life, and are still there.
    fn take_renewing(&mut self, log: LogKey) -> Vec<BehindKey> {
        let waiting = std::mem::take(&mut self.logs[log].renewing).into_iter();
        let there = waiting.filter_map(|(behind, ticket)| {
            let member = MemberId { behind, ticket };
            self.behind.find(member)
        });
        there.collect()
    }

    /// A subscription goes on in its log's new life.
    fn resume(&mut self, (sub, behind): Part, log: LogKey, out: &mut GatewayEffects) {
        let Some(key) = behind else {
            // Input: a subscription that is live. The tail stands at its number, and so it goes live again.
            let at = self.logs[log].tail.next;
            let key = self.take_off((sub, log), at, true, out);
            return self.go_live(key, out);
        };
        let behind = &self.behind[key];
        if behind.shown {
            let log = &self.logs[log];
            let state = State::Detached {
                log: log.id,
                incarnation: log.incarnation,
                next: behind.told,
                resumed: true,
                lost_before: None,
                beside: None,
            };
            self.tell_status(sub, state, out);
        }
    }

    /// A log's new life could not be made durable: whoever waits for it is told, and comes again.
    fn not_renewed(&mut self, log: LogKey, why: &Refusal, out: &mut GatewayEffects) {
        for key in self.take_renewing(log) {
            self.not_found(key, why, out);
        }
    }
}
