//! The log: the one storage contract, and the journal under `memory` and `disk`.
//!
//! - [`contract`]: [`LogStorage`], the promises of every storage. [`mod@conformance`] checks each
//!   for them.
//! - [`files`]: the journal's view of a file system; memory, disk and the simulator implement it.
//! - [`journal`]: the state machine with file effects, and [`journal::JournalStorage`] around it.
//! - [`memory`], [`disk`]: the storages of these names: that journal over files of theirs.
//! - [`routed`]: several storages as one.
//! - [`many_writers`]: logs in memory that several storages share, for tests.

#![forbid(unsafe_code)]

pub mod conformance;
pub mod contract;
pub mod disk;
pub mod files;
pub mod journal;
pub mod many_writers;
pub mod memory;
pub mod routed;
#[cfg(feature = "sabotage")]
pub mod sabotage;

pub use contract::{
    AppendClock, Bounds, Call, Capabilities, ClockState, Completion, Dedup, Direction, GapWhy,
    HeldJump, Kept, KeptMap, LogLoss, LogSpec, LogStorage, Numbering, Origin, ReaderId, Refusal,
    Scope, ScopeFilter, Soundness, StorageTraits, Stored, Tag, TopicPage, TopicSeen, Trouble,
    Waker, WantEdit,
};
pub use disk::Needs;
