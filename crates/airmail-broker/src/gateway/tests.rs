//! The gateway alone: clients, tower and catalog are whatever a test says.

mod invariants;
mod parts;
mod transcripts;
