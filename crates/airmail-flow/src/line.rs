//! Time that a queue has been non-empty: it tells a burst from overload, and a window that the
//! bound limited from one with little to do.
//!
//! A burst is an allowance of time: it is spent while somebody waits and refills, at the same pace,
//! while nobody does. So a queue that is non-empty for more than half of the time is overload in
//! the end; and one that is empty for a moment under overload, because clients are slow to ask
//! again, gets that moment back and not a whole burst.

use airmail_model::Mono;
use std::time::Duration;

/// The time a line has stood. It knows of the line what [`Line::pass`] is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    burst: Duration,
    /// The part of the burst that is spent.
    stood: Duration,
    /// Time for which somebody has waited since the window began.
    waited: Duration,
    window_began: Mono,
    looked: Mono,
}

impl Line {
    /// An empty one that may stand for so long.
    pub(crate) fn new(burst: Duration) -> Line {
        Line {
            burst,
            stood: Duration::ZERO,
            waited: Duration::ZERO,
            window_began: Mono(0),
            looked: Mono(0),
        }
    }

    /// Counts the time since the last call, in all of which somebody waited or nobody did: to be called
    /// before that changes.
    pub(crate) fn pass(&mut self, now: Mono, waiting: bool) {
        let passed = now.since(self.looked);
        self.looked = now;
        if waiting {
            self.stood = self.stood.saturating_add(passed).min(self.burst);
            self.waited += passed;
        } else {
            self.stood = self.stood.saturating_sub(passed);
        }
    }

    /// When its burst is spent, if somebody waits from the last look on.
    pub(crate) fn stands_from(&self) -> Mono {
        self.looked.plus(self.burst - self.stood)
    }

    /// Share of the window in which somebody has waited; a window begins anew.
    pub(crate) fn end_window(&mut self, now: Mono) -> f64 {
        let window_s = now.since(self.window_began).as_secs_f64();
        let share = self.waited.as_secs_f64() / window_s.max(f64::MIN_POSITIVE);
        self.window_began = now;
        self.waited = Duration::ZERO;
        share
    }
}
