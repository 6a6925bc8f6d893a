//! How a node's flow control stands: what may be in flight, what is, and what was decided about it.

use airmail_proto::v1;
use std::time::Duration;

/// One gate of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGate {
    /// `publish`: messages that the storage has not answered; `delivery`: bytes of deliveries that
    /// connections have not taken.
    pub name: String,
    /// What is counted: `messages` or `bytes`.
    pub unit: String,
    /// `fixed`, `last-three-points`, `adaptive` or `gradient`.
    pub limiter: String,
    /// What may be in flight.
    pub bound: u64,
    /// What is.
    pub in_flight: u64,
    /// What waits to be.
    pub waiting: u64,
    /// Publishes that waited, or deliveries that were put off, since the node began.
    pub waited: u64,
    /// Refusals since the node began, by reason.
    pub refused: Vec<(String, u64)>,
    /// Decisions since the node began, by rule.
    pub rules: Vec<(String, u64)>,
    /// The last decisions, oldest first.
    pub recent: Vec<FlowDecision>,
}

/// What a limiter made of one window.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowDecision {
    /// From 1 on, without gaps, as long as the node runs.
    pub number: u64,
    /// How long ago.
    pub age: Duration,
    /// Under which it was measured.
    pub bound_before: u64,
    /// From then on.
    pub bound: u64,
    /// L: the mean in flight.
    pub in_flight: f64,
    /// W: the mean time in flight.
    pub latency: Duration,
    /// What was done, in units a second.
    pub rate_per_s: f64,
    /// What fired.
    pub rule: String,
}

impl From<v1::FlowGate> for FlowGate {
    fn from(gate: v1::FlowGate) -> FlowGate {
        let counts = |counts: Vec<v1::FlowCount>| {
            let counts = counts.into_iter();
            counts.map(|count| (count.name, count.count)).collect()
        };
        FlowGate {
            name: gate.name,
            unit: gate.unit,
            limiter: gate.limiter,
            bound: gate.bound,
            in_flight: gate.in_flight,
            waiting: gate.waiting,
            waited: gate.waited,
            refused: counts(gate.refused),
            rules: counts(gate.rules),
            recent: gate.recent.into_iter().map(FlowDecision::from).collect(),
        }
    }
}

impl From<v1::FlowDecision> for FlowDecision {
    fn from(decision: v1::FlowDecision) -> FlowDecision {
        // What a node says may be no time at all.
        let time = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        FlowDecision {
            number: decision.number,
            age: time(decision.age_s),
            bound_before: decision.bound_before,
            bound: decision.bound,
            in_flight: decision.in_flight,
            latency: time(decision.latency_s),
            rate_per_s: decision.rate_per_s,
            rule: decision.rule,
        }
    }
}
