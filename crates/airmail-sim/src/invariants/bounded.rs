//! G5: a session is never sent more than its credit and one delivery, with word of what has expired beside it. From the first
//! delivery of lane high on it has an account for each lane, each of which may be overdrawn by one delivery, and lane high has a
//! reserve of an eighth of what was granted at most.

use super::{Checked, Violation};
use airmail_model::Lane;

/// Part of what was granted that lane high has on top.
const RESERVE_PART: i64 = 8;

/// A session's credit, counted from outside.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    left: i64,
    /// Bytes that go with the next delivery.
    beside: i64,
    /// The most that was left at once.
    window: i64,
    /// The largest delivery so far, with what went beside it.
    largest: i64,
    /// Something of lane high was sent.
    has_high: bool,
}

impl Budget {
    /// A budget with the credit that the session was opened with.
    #[must_use]
    pub fn new(bytes: u32) -> Budget {
        Budget {
            left: bytes.into(),
            window: bytes.into(),
            ..Budget::default()
        }
    }

    /// More was granted.
    pub fn grant(&mut self, bytes: u32) {
        self.left += i64::from(bytes);
        self.window = self.window.max(self.left);
    }

    /// Word of what has expired was sent, which goes with a delivery.
    pub fn go_beside(&mut self, bytes: u64) {
        self.beside += i64::try_from(bytes).unwrap_or(i64::MAX);
    }

    /// A delivery was sent in a lane.
    ///
    /// # Errors
    /// There was nothing left.
    pub fn spend(&mut self, lane: Lane, bytes: u64, who: &str) -> Checked {
        self.has_high |= lane == Lane::High;
        self.spend_alone(bytes, who)
    }

    /// A delivery was sent, where whose budget it is reads one log alone, of whichever lane.
    ///
    /// # Errors
    /// There was nothing left.
    pub fn spend_alone(&mut self, bytes: u64, who: &str) -> Checked {
        // The other lane's account may be overdrawn.
        let floor = if self.has_high {
            -(self.window / RESERVE_PART) - self.largest
        } else {
            0
        };
        if self.left <= floor {
            return Err(Violation::new(
                "G5 credit bounds what is sent",
                format!("{who} was sent {bytes} bytes with {} left", self.left),
            ));
        }
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let cost = bytes.saturating_add(std::mem::take(&mut self.beside));
        self.largest = self.largest.max(cost);
        self.left -= cost;
        Ok(())
    }
}
