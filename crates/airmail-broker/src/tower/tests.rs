//! The tower alone: storage, gateway and catalog are whatever a test says.

mod invariants;
mod transcripts;
