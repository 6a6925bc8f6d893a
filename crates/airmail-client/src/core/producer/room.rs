//! How many batches of a log the node has room for, as far as its refusals have told. That no more are
//! sent is asserted as `room` ([`super::Producer::check`]).
//!
//! Until it refuses one as overloaded there is no bound but the window. Then the bound is what it had
//! taken and not yet answered; and so that a node with more room again is found out, it grows: by one
//! batch, or an eighth of what it is, after eight times as many acks as batches are in flight. A refusal
//! costs about a round trip, so this trying costs little.

use super::queue::Window;

/// Acks, in windows, before one more is tried.
const WINDOWS: usize = 8;
/// It grows by this part of itself, or one batch.
const PART: usize = 8;

/// One log's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    /// At most so many batches in flight; `None`: nothing was refused yet.
    batches: Option<usize>,
    acks: usize,
}

impl Room {
    /// The window, as far as there is room.
    pub(super) fn narrow(&self, window: Window) -> Window {
        let batches = self.batches.unwrap_or(usize::MAX);
        Window {
            batches: window.batches.min(batches),
            ..window
        }
    }

    /// The node is overloaded: it has refused one batch behind so many that it has taken.
    pub(super) fn refused(&mut self, taken: usize) {
        self.batches = Some(taken.max(1));
        self.acks = 0;
    }

    /// A batch was acknowledged.
    pub(super) fn acknowledged(&mut self) {
        let Some(batches) = &mut self.batches else {
            // Input: a node that has refused nothing yet.
            return;
        };
        self.acks += 1;
        if self.acks >= batches.saturating_mul(WINDOWS) {
            *batches += (*batches / PART).max(1);
            self.acks = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        batches: 64,
        bytes: 1 << 20,
    };

    #[test]
    fn the_window_holds_until_something_is_refused() {
        let mut room = Room::default();
        (0..1_000).for_each(|_| room.acknowledged());
        assert_eq!(room.narrow(WINDOW).batches, 64);
        room.refused(10);
        let narrowed = room.narrow(WINDOW);
        assert_eq!((narrowed.batches, narrowed.bytes), (10, 1 << 20));
        room.refused(0);
        assert_eq!(room.narrow(WINDOW).batches, 1);
    }

    #[test]
    fn room_that_has_come_back_is_found_little_by_little() {
        let mut room = Room::default();
        room.refused(16);
        (0..16 * 8 - 1).for_each(|_| room.acknowledged());
        assert_eq!(room.narrow(WINDOW).batches, 16);
        room.acknowledged();
        assert_eq!(room.narrow(WINDOW).batches, 18);
        (0..20_000).for_each(|_| room.acknowledged());
        assert_eq!(room.narrow(WINDOW).batches, 64, "all of the window");
    }
}
