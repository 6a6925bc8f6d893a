//! Where lines begin. Under an old snapshot the rows of messages long gone still stand in the
//! index before those that are there; a read that begins behind them is as quick as ever.
//!
//! A head is a proof, not a guess: all ids up to a settled one are decided (every sender of them
//! has ended), and a plain snapshot taken afterwards saw nothing of the line below the head. What
//! comes back from `later` gets a place before 0, so nothing appears below a head any more. A lost
//! connection may mean another database, or an older state of this one: then all is forgotten.

use crate::message::Inbox;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Lines that are remembered at most: more, and those not asked for lately go.
const LINES_MAX: usize = 100_000;
/// A line that is not asked for is forgotten after so many times of learning.
const IDLE_MAX: u32 = 100;

#[derive(Debug, Default)]
struct Head {
    low: i64,
    /// Times of learning since it was asked for.
    idle: u32,
}

/// The heads of the lines that this node reads.
#[derive(Debug, Default)]
pub(super) struct Heads {
    lines: Mutex<(u64, BTreeMap<Inbox, Head>)>,
}

impl Heads {
    /// Below this place, down to 0, the line has nothing.
    pub(super) fn low(&self, line: Inbox) -> i64 {
        let mut lines = self.lines.lock();
        let full = lines.1.len() >= LINES_MAX;
        if full && !lines.1.contains_key(&line) {
            return 0;
        }
        let head = lines.1.entry(line).or_default();
        head.idle = 0;
        head.low
    }

    /// The lines that were asked for since the last time, with what is known; and the generation
    /// to learn under.
    pub(super) fn asked(&self) -> (u64, Vec<(Inbox, i64)>) {
        let mut lines = self.lines.lock();
        let mut asked = Vec::new();
        lines.1.retain(|line, head| {
            if head.idle == 0 {
                asked.push((*line, head.low));
            }
            head.idle += 1;
            head.idle <= IDLE_MAX
        });
        (lines.0, asked)
    }

    /// Notes what was found, unless all was forgotten since.
    pub(super) fn learn(&self, generation: u64, found: impl Iterator<Item = (Inbox, i64)>) {
        let mut lines = self.lines.lock();
        if lines.0 != generation {
            return;
        }
        for (line, low) in found {
            if let Some(head) = lines.1.get_mut(&line) {
                head.low = head.low.max(low);
            }
        }
    }

    /// Forgets everything.
    pub(super) fn forget(&self) {
        let mut lines = self.lines.lock();
        lines.0 += 1;
        lines.1.clear();
    }
}
