//! A log's settings, its incarnation, and whether it is sealed. The facts of a command are reported
//! to nobody before the command is durable.
//!
//! Invariant, held by [`Life::check`]: a seal that is durable was made.

use super::id::Slot;
use crate::contract::LogSpec;
use airmail_model::{Incarnation, MapEpoch};

/// Settings and incarnation of a log. See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) spec: LogSpec,
    /// The command with this spec and incarnation is durable.
    pub(super) spec_told: bool,
    /// Its life, as a durable command says.
    pub(super) incarnation: Incarnation,
    /// Its life, as the newest command says.
    pub(super) incarnation_asked: Incarnation,
    pub(super) sealed: Option<MapEpoch>,
    /// The seal is durable.
    pub(super) seal_told: bool,
    /// Something was given up that a crash could bring back: where the log ends is not known.
    pub(super) unsettled: bool,
}

impl Life {
    pub(super) const fn new(spec: LogSpec, incarnation: Incarnation) -> Life {
        Life {
            spec,
            spec_told: false,
            incarnation,
            incarnation_asked: incarnation,
            sealed: None,
            seal_told: false,
            unsettled: false,
        }
    }

    /// Whether anyone may be told that the log is sealed: no crash can take the seal back, or bring
    /// anything behind its end. A publisher that was told so goes on in another log.
    pub(super) const fn tells_seal(&self) -> bool {
        self.seal_told && !self.unsettled
    }

    /// Asserts the invariant of the module's documentation.
    pub(super) fn check(&self, slot: Slot) {
        assert!(
            !self.seal_told || self.sealed.is_some(),
            "slot {slot}: the seal is durable, and there is none"
        );
    }
}
