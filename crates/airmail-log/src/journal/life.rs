//! What a log is: what is asked of it, which life it is in, and whether it is sealed. What a command says is
//! told to nobody before the command is durable.
//!
//! Invariant, held by [`Life::check`]: a seal that is durable was made.

use super::id::Slot;
use crate::contract::LogSpec;
use airmail_model::{Incarnation, MapEpoch};

/// What a log is. See the module's documentation.
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
    /// anything behind what is there. Who was told so goes on elsewhere, with what is not here.
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
