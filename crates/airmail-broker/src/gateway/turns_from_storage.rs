//! Turns that have fallen behind: what there was no room for is read from the storage, once for all who are served in turns at a
//! log's tail.
//!
//! They stay live meanwhile, and notice nothing but that messages come later. The tower reads for the turns as for one who is
//! behind, until there is no room again, or the turns have got to the tail.
//!
//! What is read may be ahead of what comes at the tail: they come by different ways, and what was trimmed is left out of the one
//! and not of the other. So it is taken up to where the tail stands, and the turns go on with the tail from there.
//!
//! Invariants: nothing is left out or put twice between what waits and what is read (`turns`); where the tower does not read
//! though something was left to the storage, something waits; the turns are never ahead of the tail (`ranges`).

use super::live::reason;
use super::matching_turns::{Source, Turn};
use super::tail_lane::Pace;
use super::{Gateway, GatewayEffects};
use crate::keys::{BehindKey, LogKey};
use crate::link::{Follow, MemberId, Part, ToTower};
use airmail_log::{GapWhy, Stored};
use airmail_model::frame::GapReason;
use airmail_model::{Extent, Sequence};

impl Gateway {
    /// There is no room for what comes after `next`: it is read when there is.
    pub(super) fn leave_to_storage(&mut self, key: LogKey, next: Sequence) {
        self.stats.matching_overruns += 1;
        #[cfg(feature = "sabotage")]
        let next = match self.config.bug {
            Some(crate::sabotage::Bug::TurnsOffByOne) => next.plus(1),
            _ => next,
        };
        self.logs[key].tail.turns.source = Source::Storage { next, ticket: None };
    }

    /// Has what was left to the storage read, if there is room; or goes on with the tail, if nothing is left there any more.
    pub(super) fn read_for_turns(&mut self, key: LogKey, out: &mut GatewayEffects) {
        let tail = &mut self.logs[key].tail;
        let Source::Storage { next, ticket: None } = tail.turns.source else {
            // Input: turns at the tail, or for which the tower reads.
            return;
        };
        if tail.of(Pace::InTurns).is_idle() {
            // Input: nobody is served in turns any more.
            return;
        }
        if next == tail.next {
            tail.turns.source = Source::Tail;
            self.mark_later();
            return self.rest_turns(key, out);
        }
        let has_room = tail.turns.bytes() <= self.config.matching_bytes / 2;
        if next > tail.next || !has_room {
            // Input: the tower has read what it has not given at the tail yet; or it has to wait.
            return;
        }
        let ticket = self.behind.ticket();
        let log = &mut self.logs[key];
        log.tail.turns.source = Source::Storage {
            next,
            ticket: Some(ticket),
        };
        out.tell(ToTower::Follow(Follow {
            member: MemberId {
                behind: BehindKey::of_turns(key),
                ticket,
            },
            log: log.id,
            topic: None,
            from: next,
            until: None,
            not_before: None,
            not_after: None,
        }));
    }

    /// The tower reads for turns no more.
    pub(super) fn stop_reading_for_turns(&mut self, key: LogKey, out: &mut GatewayEffects) {
        let turns = &mut self.logs[key].tail.turns;
        if let Source::Storage { ticket, .. } = &mut turns.source
            && let Some(ticket) = ticket.take()
        {
            let behind = BehindKey::of_turns(key);
            let member = MemberId { behind, ticket };
            out.tell(ToTower::Leave { member });
        }
    }

    /// The first number that has not been read for the turns of a log, if the tower reads for them in this attempt; and where
    /// its tail stands.
    fn find_reading(&mut self, key: LogKey, attempt: u64) -> Option<(&mut Sequence, Sequence)> {
        let tail = &mut self.logs.get_mut(key)?.tail;
        match &mut tail.turns.source {
            Source::Storage { next, ticket } if *ticket == Some(attempt) => Some((next, tail.next)),
            _ => None,
        }
    }

    /// Number of logs for whose turns the tower reads.
    pub(super) fn turns_reading(&self) -> u64 {
        let logs = self.logs.keys();
        let is_reading = |key: &LogKey| {
            let source = self.logs[*key].tail.turns.source;
            matches!(source, Source::Storage { ticket, .. } if ticket.is_some())
        };
        logs.filter(is_reading).count() as u64
    }

    /// A batch has been read.
    pub(super) fn turns_part(
        &mut self,
        key: LogKey,
        attempt: u64,
        part: Part,
        out: &mut GatewayEffects,
    ) {
        let Some((next, at_tail)) = self.find_reading(key, attempt) else {
            // Input: turns that have stopped reading since the tower sent this.
            return;
        };
        if part.first >= at_tail {
            return self.turns_read_to(key, attempt, part.first, out);
        }
        *next = part.end;
        let extent = Extent {
            first: part.first,
            last: part.end.before(),
        };
        let stored = Stored {
            base: part.base,
            extent,
            appended: part.appended,
            batch: part.body.into_batch(),
        };
        self.put_turn(key, Turn::Batch(stored), out);
    }

    /// Numbers have been found that will not come.
    pub(super) fn turns_read_gap(
        &mut self,
        key: LogKey,
        attempt: u64,
        (extent, why): (Extent, GapWhy),
        out: &mut GatewayEffects,
    ) {
        let Some((next, at_tail)) = self.find_reading(key, attempt) else {
            // Input: turns that have stopped reading since the tower sent this.
            return;
        };
        let last = extent.last.min(at_tail.before());
        let why = reason(why);
        if extent.first <= last && why != GapReason::Unused {
            *next = last.plus(1);
            let extent = Extent { last, ..extent };
            self.put_turn(key, Turn::Gap(extent, why), out);
        }
        self.turns_read_to(key, attempt, extent.next(), out);
    }

    /// Puts what was read behind what waits; the tower reads no further where there is no room.
    fn put_turn(&mut self, key: LogKey, turn: Turn, out: &mut GatewayEffects) {
        let turns = &mut self.logs[key].tail.turns;
        turns.push(turn);
        if turns.bytes() > self.config.matching_bytes {
            self.stop_reading_for_turns(key, out);
        }
        self.live.work.logs.insert(key);
    }

    /// There is nothing more before a number. Once that is where the tail stands, nothing is left to the storage.
    pub(super) fn turns_read_to(
        &mut self,
        key: LogKey,
        attempt: u64,
        to: Sequence,
        out: &mut GatewayEffects,
    ) {
        let Some((next, at_tail)) = self.find_reading(key, attempt) else {
            // Input: turns that have stopped reading since the tower sent this.
            return;
        };
        *next = to.min(at_tail).max(*next);
        if *next == at_tail {
            self.stop_reading_for_turns(key, out);
            self.read_for_turns(key, out);
        }
    }

    /// Everything has been read that the tower has.
    pub(super) fn turns_reached(
        &mut self,
        key: LogKey,
        attempt: u64,
        to: Sequence,
        out: &mut GatewayEffects,
    ) {
        let Some((next, at_tail)) = self.find_reading(key, attempt) else {
            // Input: turns that have stopped reading since the tower sent this.
            return;
        };
        let next = to.min(at_tail).max(*next);
        self.logs[key].tail.turns.source = Source::Storage { next, ticket: None };
        self.read_for_turns(key, out);
    }
}
