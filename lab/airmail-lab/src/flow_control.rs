//! Flow control of the nodes that experiments measure: on, off, or as a running node has it.
//! Nothing else here knows the node's settings for it.

use airmail_flow::{DELIVERY_LIMITER, LimiterKind, PUBLISH_LIMITER};
use std::fmt;

/// The settings, in a node's environment, each with what it is by default.
const LIMITERS: [(&str, LimiterKind); 2] = [
    ("AIRMAIL_FLOW_PUBLISH_LIMITER", PUBLISH_LIMITER),
    ("AIRMAIL_FLOW_DELIVERY_LIMITER", DELIVERY_LIMITER),
];

/// Kinds of flow control of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FlowControl {
    /// Flow control with the settings that a user gets.
    On,
    /// Nothing is bounded but what each stream may have unacknowledged.
    Off,
    /// Flow control of a node that was there before.
    AsItIs,
}

impl FlowControl {
    /// Those of a node that is started for it, in the order of the tables.
    pub(super) const BOTH: [FlowControl; 2] = [FlowControl::On, FlowControl::Off];
    /// All, in the order of the tables.
    pub(super) const ALL: [FlowControl; 3] =
        [FlowControl::On, FlowControl::Off, FlowControl::AsItIs];

    /// Name in rows and tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            FlowControl::On => "on",
            FlowControl::Off => "off",
            FlowControl::AsItIs => "as it is",
        }
    }

    /// Settings in the environment of a node.
    pub(super) fn environment(self) -> Vec<(&'static str, String)> {
        match self {
            // Said, so that the caller's own environment does not turn it off.
            FlowControl::On => LIMITERS
                .map(|(setting, limiter)| (setting, limiter.name().to_owned()))
                .into(),
            FlowControl::Off => LIMITERS
                .map(|(setting, _)| (setting, "off".to_owned()))
                .into(),
            FlowControl::AsItIs => Vec::new(),
        }
    }
}

impl fmt::Display for FlowControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
