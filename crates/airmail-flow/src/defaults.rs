//! Choices that a node comes with, and the promise that they keep.

use crate::settings::LimiterKind;

/// Limiter of a node's publish gate, unless its operator chooses another.
pub const PUBLISH_LIMITER: LimiterKind = LimiterKind::Gradient;

/// Limiter of a node's delivery gate, unless its operator chooses another.
pub const DELIVERY_LIMITER: LimiterKind = LimiterKind::Gradient;

/// Promise of a node that has these limiters, one sentence in lines. `airmail-lab overload --judge` holds it
/// against a node.
pub const PROMISE: [&str; 3] = [
    "Offered ten times what it can do, a node still does at least 0.95 of it; what it takes is acknowledged",
    "within three times the p99 latency of 0.8 of its capacity, what it does not take is refused as OVERLOADED",
    "with a delay, and nobody else is slowed.",
];
