//! One window of a limiter, and the running counters beside it.
//!
//! A window is what a limiter measured and what it decided upon that: so the messages in flight always
//! stand beside the bound under which they were. The counters leave nothing out, also not what a limiter
//! does: they are what a run is judged by.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One window of a limiter and its decision, of a publisher's gate or of the node's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Number of the decision, from 1 on; one that is missing was not seen.
    pub number: u64,
    /// When it ended, in seconds since the run began.
    pub seconds: f64,
    /// The bound under which it was measured, in messages.
    pub bound: u64,
    /// The bound from then on.
    pub bound_after: u64,
    /// L under `bound`, in messages.
    pub in_flight: f64,
    /// W, in seconds.
    pub latency_s: f64,
    /// λ, in messages a second.
    pub rate_per_s: f64,
    /// The rule that fired.
    pub rule: Cow<'static, str>,
}

/// All that was acknowledged until a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// The moment, in seconds since the run began.
    pub seconds: f64,
    /// Messages.
    pub messages: f64,
    /// Times that they took, added up, in seconds.
    pub message_seconds: f64,
}

impl Window {
    /// Whether the limiter said that the system is another than before.
    #[must_use]
    pub fn tells_a_change(&self) -> bool {
        self.rule.ends_with("changed")
    }
}

impl Counter {
    /// The counter at a moment between two, as if all between them had come evenly.
    #[must_use]
    pub(super) fn between(from: Counter, to: Counter, seconds: f64) -> Counter {
        let span_s = to.seconds - from.seconds;
        let part = if span_s > 0.0 {
            ((seconds - from.seconds) / span_s).clamp(0.0, 1.0)
        } else {
            1.0
        };
        let at = |from: f64, to: f64| from + (to - from) * part;
        Counter {
            seconds,
            messages: at(from.messages, to.messages),
            message_seconds: at(from.message_seconds, to.message_seconds),
        }
    }

    /// The counter at a moment, of counters in the order of time.
    #[must_use]
    pub(super) fn at(counters: &[Counter], seconds: f64) -> Counter {
        let past = counters.partition_point(|counter| counter.seconds <= seconds);
        let from = past.checked_sub(1).map(|last| counters[last]);
        let from = from.unwrap_or_default();
        let to = counters.get(past).copied().unwrap_or(from);
        Counter::between(from, to, seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_rises_evenly_between_two_and_rests_behind_the_last() {
        let counter = |seconds, messages| Counter {
            seconds,
            messages,
            message_seconds: messages / 10.0,
        };
        let counters = [counter(1.0, 100.0), counter(3.0, 500.0)];
        for (seconds, messages) in [(0.5, 50.0), (1.0, 100.0), (2.0, 300.0), (9.0, 500.0)] {
            let at = Counter::at(&counters, seconds);
            assert_eq!(
                (at.messages, at.message_seconds),
                (messages, messages / 10.0)
            );
        }
        assert_eq!(Counter::at(&[], 1.0).messages, 0.0);
    }
}
