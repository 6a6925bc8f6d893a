//! The state of a node's flow control: how much may be in flight, how much is, and the last
//! decisions.

use airmail_proto::v1;
use std::time::Duration;

/// State of one gate of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGate {
    /// Name: `publish` (messages that the storage has not answered) or `delivery` (bytes of
    /// deliveries that connections have not taken).
    pub name: String,
    /// Unit in which it counts: `messages` or `bytes`.
    pub unit: String,
    /// Name of the limiter: `fixed`, `last-three-points`, `adaptive`, `gradient`, `ladder` or
    /// `latency-target`.
    pub limiter: String,
    /// Number of units that may be in flight.
    pub bound: u64,
    /// Number of units that are in flight.
    pub in_flight: u64,
    /// Number of units that wait to be admitted.
    pub waiting: u64,
    /// Number of publishes that waited, or deliveries that were put off, since the node began.
    pub waited: u64,
    /// Number of refusals since the node began, by reason.
    pub refused: Vec<(String, u64)>,
    /// Number of decisions since the node began, by rule.
    pub rules: Vec<(String, u64)>,
    /// Last decisions, oldest first.
    pub recent: Vec<FlowDecision>,
}

/// Decision of a limiter upon one window.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowDecision {
    /// Number of the decision: from 1 on, without gaps, as long as the node runs.
    pub number: u64,
    /// Time since the decision.
    pub age: Duration,
    /// Bound that held while the window was measured.
    pub bound_before: u64,
    /// Bound that holds from then on.
    pub bound: u64,
    /// Mean number of units in flight, L.
    pub in_flight: f64,
    /// Mean time in flight, W.
    pub latency: Duration,
    /// Rate λ, in units a second.
    pub rate_per_s: f64,
    /// Rule by which it was made.
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
        // A node may send a number that is no time.
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
