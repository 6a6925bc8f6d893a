//! Flow control of the nodes that experiments start: on or off. Nothing else here knows the node's
//! settings for it.

use std::fmt;

/// The settings, in a node's environment.
const LIMITERS: [&str; 2] = [
    "AIRMAIL_FLOW_PUBLISH_LIMITER",
    "AIRMAIL_FLOW_DELIVERY_LIMITER",
];

/// Whether a node bounds what is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FlowControl {
    /// As a user gets it.
    On,
    /// Nothing is bounded but what each stream may have unacknowledged.
    Off,
}

impl FlowControl {
    /// Both, in the order of the tables.
    pub(super) const BOTH: [FlowControl; 2] = [FlowControl::On, FlowControl::Off];

    /// In rows and tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            FlowControl::On => "on",
            FlowControl::Off => "off",
        }
    }

    /// What is set in the environment of a node.
    pub(super) fn environment(self) -> Vec<(&'static str, String)> {
        let limiter = match self {
            FlowControl::On => "gradient",
            FlowControl::Off => "off",
        };
        let settings = LIMITERS.map(|setting| (setting, limiter.to_owned()));
        settings.into()
    }
}

impl fmt::Display for FlowControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
