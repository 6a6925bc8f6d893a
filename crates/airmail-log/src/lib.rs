//! The log: the one storage contract, and the journal under `memory` and `disk`.
//!
//! - [`contract`]: [`LogStorage`], what every storage promises. [`conformance`] holds each to it.
//! - [`files`]: what the journal needs of a file system; memory, disk and the simulator give it.
//! - [`journal`]: the state machine with file effects, and [`JournalStorage`] around it.

#![forbid(unsafe_code)]

pub mod contract;
pub mod files;

pub use contract::{
    Bounds, Capabilities, Completion, Dedup, Direction, GapWhy, LogSpec, LogStorage, ReaderId,
    Refusal, Scope, ScopeFilter, Stored, Tag, TopicPage, TopicSeen,
};
