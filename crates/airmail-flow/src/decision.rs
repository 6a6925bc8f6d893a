//! Decisions of a limiter: data for metrics and for people who watch a run.

use crate::rule::Rule;
use airmail_model::Mono;

/// One answer of a limiter to one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// When.
    pub at: Mono,
    /// The bound from now on, in messages.
    pub bound: u64,
    /// The bound under which the sample was measured.
    pub bound_before: u64,
    /// L: messages in flight, as measured.
    pub in_flight: f64,
    /// W in seconds.
    pub latency_s: f64,
    /// λ in messages a second.
    pub rate_per_s: f64,
    /// The rule that fired.
    pub rule: Rule,
}
