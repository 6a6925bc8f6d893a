//! Congestion window: how many batches of a log the node has room for, as far as its refusals have
//! shown.
//!
//! Until the node refuses a batch as overloaded, only the configured window bounds what is in
//! flight. Then the bound is the number of batches that the node had accepted and not yet answered.
//! It grows again, so that a node with more room is found out: by one batch, or an eighth of
//! itself, after eight times as many acks as it has batches. A refusal costs about a round trip, so
//! this probing costs little. [`super::Producer::check`] asserts that no more is in flight
//! (`congestion`).

use super::config::InFlightWindow;

/// Number of acks, in windows, after which the bound grows.
const ACKED_WINDOWS: usize = 8;
/// Part of itself by which the bound grows, but by one batch at least.
const GROWTH_PART: usize = 8;

/// Congestion window of one log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CongestionWindow {
    /// Number of batches that may be in flight; `None` while nothing was refused.
    batches: Option<usize>,
    /// Number of acks since the bound was set.
    acks: usize,
}

impl CongestionWindow {
    /// Narrows the configured window to what the node has room for.
    pub(super) fn narrow(&self, window: InFlightWindow) -> InFlightWindow {
        let batches = self.batches.unwrap_or(usize::MAX);
        InFlightWindow {
            batches: window.batches.min(batches),
            ..window
        }
    }

    /// Sets the bound: the node has refused a batch as overloaded, behind `accepted` ones.
    pub(super) fn overloaded(&mut self, accepted: usize) {
        self.batches = Some(accepted.max(1));
        self.acks = 0;
    }

    /// Counts the ack of a batch.
    pub(super) fn acknowledged(&mut self) {
        let Some(batches) = &mut self.batches else {
            // Input: a node that has refused nothing yet.
            return;
        };
        self.acks += 1;
        if self.acks >= batches.saturating_mul(ACKED_WINDOWS) {
            *batches += (*batches / GROWTH_PART).max(1);
            self.acks = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: InFlightWindow = InFlightWindow {
        batches: 64,
        bytes: 1 << 20,
    };

    #[test]
    fn the_window_holds_until_something_is_refused() {
        let mut congestion = CongestionWindow::default();
        (0..1_000).for_each(|_| congestion.acknowledged());
        assert_eq!(congestion.narrow(WINDOW).batches, 64);
        congestion.overloaded(10);
        let narrowed = congestion.narrow(WINDOW);
        assert_eq!((narrowed.batches, narrowed.bytes), (10, 1 << 20));
        congestion.overloaded(0);
        assert_eq!(congestion.narrow(WINDOW).batches, 1);
    }

    #[test]
    fn room_that_has_come_back_is_found_little_by_little() {
        let mut congestion = CongestionWindow::default();
        congestion.overloaded(16);
        (0..16 * 8 - 1).for_each(|_| congestion.acknowledged());
        assert_eq!(congestion.narrow(WINDOW).batches, 16);
        congestion.acknowledged();
        assert_eq!(congestion.narrow(WINDOW).batches, 18);
        (0..20_000).for_each(|_| congestion.acknowledged());
        assert_eq!(congestion.narrow(WINDOW).batches, 64, "all of the window");
    }
}
