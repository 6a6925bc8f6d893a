//! Calls of the owner that the journal has not taken up yet, and whether it is to stop.
//!
//! Calls wait only until the next step, or until the journal has opened; the bytes of the batches in them
//! are bounded all the same.
//!
//! Invariant, held by [`Calls::check`]: while no call waits, `bytes` is 0, and no lane is refused.

use super::append::memory_bytes;
use crate::contract::{Call, Tag};
use airmail_model::{Lane, LaneBytes, LogId};
use std::collections::VecDeque;

/// A call that is taken up at the next step.
#[derive(Debug)]
pub(super) enum Waiting {
    Call(Call),
    /// An append for which there was no room; refused in its turn.
    Busy {
        t: Tag,
        log: LogId,
    },
}

/// The owner's calls. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Calls {
    waiting: VecDeque<Waiting>,
    /// Total size of the batches in the waiting calls, in bytes.
    bytes: LaneBytes,
    /// Whether a batch of a lane was refused since all were taken up.
    refused: [bool; 2],
    closing: bool,
}

impl Calls {
    /// Has a call wait; or, in place of an append for which `bytes_max` leave no room, its refusal.
    pub(super) fn submit(&mut self, call: Call, bytes_max: u64) {
        let waiting = match call {
            Call::Append {
                t, log, ref batch, ..
            } if !self.admit(log.lane, batch.bytes().len(), memory_bytes(bytes_max)) => {
                Waiting::Busy { t, log }
            }
            call => Waiting::Call(call),
        };
        self.waiting.push_back(waiting);
    }

    /// The next call, in order.
    pub(super) fn next(&mut self) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a batch of this lane and size may wait, where `max` bytes may. Batches of a lane behind a refused
    /// one are refused too, until all waiting calls were taken up: so a producer's retries keep their
    /// order.
    fn admit(&mut self, lane: Lane, bytes: usize, max: usize) -> bool {
        let refused = &mut self.refused[lane as usize];
        *refused |= !self.bytes.fits(lane, bytes, max);
        if *refused {
            return false;
        }
        self.bytes.add(lane, bytes);
        true
    }

    /// All were taken up: there is room again.
    pub(super) fn taken_up(&mut self) {
        self.bytes = LaneBytes::default();
        self.refused = [false; 2];
    }

    /// A clean stop has begun.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Whether a clean stop has begun.
    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Asserts the invariant of the module's documentation.
    pub(super) fn check(&self) {
        assert!(
            !self.waiting.is_empty() || (self.bytes.total() == 0 && self.refused == [false; 2]),
            "{:?} bytes wait in no call",
            self.bytes
        );
    }
}
