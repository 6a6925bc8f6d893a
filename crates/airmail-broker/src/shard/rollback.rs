//! A position from beyond a log's end: the node's files are older than the position, because they
//! were set back to a copy.
//!
//! In one life of a log its end never goes back, so no honest position of that life lies beyond it.
//! How far the files were set back cannot be known, and some numbers may have been given twice since.
//! So the log begins a new life, durable before anybody is told: every position of the old one is
//! from then on answered by a loss, and by everything that the log holds.
//!
//! Who is subscribed meanwhile:
//! - Whoever began at a position of the old life, on this side of the end, may have missed something
//!   too. It is sent away for a moment, and comes again with a position of the old life.
//! - Whoever began otherwise has been on the log since the shard began, within which nothing is set
//!   back. It goes on where it is, and is told under which life.
//!
//! Once a log has begun a new life, a position of that life beyond the end is no proof but a mistake,
//! and refused: so whoever makes positions up costs each log one new life for each start of the node.

use super::Shard;
use crate::calls::Purpose;
use crate::input::Effects;
use crate::keys::{LateKey, LogKey, SubKey};
use airmail_log::{Bounds, Call, Refusal};
use airmail_model::frame::State;
use airmail_model::{Error, ErrorCode, Sequence};

impl Shard {
    /// The storage has said where a log ends, beyond which somebody's position seemed to lie.
    pub(super) fn end_found(
        &mut self,
        late: LateKey,
        ticket: u64,
        next: Sequence,
        bounds: Bounds,
        out: &mut Effects,
    ) {
        let Some(found) = self.late.of_ticket(late, ticket) else {
            return;
        };
        let (log, sub) = (found.log, found.sub);
        if next <= bounds.reach {
            return self.begin_at(late, next, out);
        }
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::PositionBeyondEnd) {
            return self.begin_at(late, next, out);
        }
        let head = &mut self.logs[log];
        if head.renewed {
            let error = Error::new(ErrorCode::PositionInvalid)
                .field("position.next")
                .value(next)
                .limit(format_args!("{} at most", bounds.reach));
            return self.end_with(sub, error, out);
        }
        let first = head.renewing.is_empty();
        head.renewing.push((late, ticket));
        let log_id = head.id;
        if first {
            let t = self.calls.tag(Purpose::Renew(log));
            out.storage.push(Call::Renew { t, log: log_id });
        }
    }

    /// A log has begun a new life, and no crash can take it back.
    pub(super) fn renewed(&mut self, log: LogKey, bounds: Bounds, out: &mut Effects) {
        let Some(head) = self.logs.get_mut(log) else {
            return;
        };
        head.incarnation = bounds.incarnation;
        head.renewed = true;
        let id = head.id;
        let returned = std::mem::take(&mut head.room.returned);
        let mut waiting = std::mem::take(&mut head.renewing);
        self.stats.renewed += 1;
        waiting.retain(|(late, ticket)| self.late.of_ticket(*late, *ticket).is_some());
        let mut others = self.logs[log].room.everyone(&self.subs);
        let late = self.late.of_log(log).into_iter();
        let late = late.filter(|key| !waiting.iter().any(|(waits, _)| waits == key));
        others.extend(late.map(|key| self.late[key].sub));
        let (back, here): (Vec<SubKey>, Vec<SubKey>) =
            others.into_iter().partition(|sub| returned.contains(sub));
        for sub in here {
            self.resume(sub, out);
        }
        for sub in back {
            let error = self.busy("log").value(id);
            self.end_with(sub, error, out);
        }
        for (late, ticket) in waiting {
            let lost = true;
            let t = self.calls.tag(Purpose::First { late, ticket, lost });
            out.storage.push(Call::Bounds { t, log: id });
        }
    }

    /// A subscription goes on in its log's new life.
    fn resume(&mut self, sub: SubKey, out: &mut Effects) {
        let log = self.subs[sub].log;
        let Some(key) = self.subs[sub].late() else {
            let at = self.logs[log].room.next;
            let key = self.take_off(sub, at, true, out);
            return self.go_on(key, out);
        };
        let late = &self.late[key];
        if late.shown {
            let head = &self.logs[log];
            let state = State::Detached {
                log: head.id,
                incarnation: head.incarnation,
                next: late.told,
                resumed: true,
            };
            self.tell_status(sub, state, out);
        }
    }

    /// A log's new life could not be made durable: whoever waits for it is told, and comes again.
    pub(super) fn not_renewed(&mut self, log: LogKey, why: &Refusal, out: &mut Effects) {
        let Some(head) = self.logs.get_mut(log) else {
            return;
        };
        for (late, ticket) in std::mem::take(&mut head.renewing) {
            self.not_found(late, ticket, why, out);
        }
    }

    /// Ends a subscription with an error.
    fn end_with(&mut self, sub: SubKey, error: Error, out: &mut Effects) {
        self.stats.refuse(error.code());
        self.tell_status(sub, State::Failed(error), out);
        self.forget(sub, out);
    }
}
