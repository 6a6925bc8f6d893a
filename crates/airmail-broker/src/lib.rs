//! The broker's core: one [`Shard`] is everything a node does, as a state machine without I/O.
//!
//! `step(now, input, out)` is total and deterministic; [`Node`] couples a shard with its storage
//! for the async shell and for the simulator alike.

#![forbid(unsafe_code)]

pub mod access;
pub mod input;

pub use access::{Action, Admission, Admit, AllowAll, Authorizer, Cost, Principal};
pub use input::{Command, CommandId, Effects, Input, Outcome, SessionId, StorageCall};
