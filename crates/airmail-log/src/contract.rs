//! What every log storage promises: `memory`, `disk`, and later `tree`, `raft` and `kafka`.
//!
//! A storage is owned by one shard and polled. Nothing blocks or awaits: a [`Call`] is submitted as a
//! value, and answered by a [`Completion`] that [`LogStorage::poll`] gives, under its tag, once.
//! Appends to one log are answered in call order. A reader sees the log's numbers tiled by batches
//! and gaps, in order, without holes or overlaps, and only what has reached the log's durability.
//! What a storage cannot do it says by its [`Capabilities`], and refuses as
//! [`Refusal::Unsupported`], never by surprise.
//!
//! Calls are one closed enum so that they are spelt once: whoever makes one, whatever hands it on and
//! the storage that takes it apart all mean the same value. Completions have the same shape, and one
//! without a tag or a reader is how a storage will tell what nobody asked.
//!
//! - [`call`]: what is asked. [`completion`]: what is told. [`capabilities`]: what can be asked.

pub mod call;
pub mod capabilities;
pub mod completion;

pub use call::{Call, Direction, LogSpec, ReaderId, Scope, ScopeFilter, Tag, TopicPage};
pub use capabilities::{Capabilities, Dedup};
pub use completion::{Bounds, Completion, GapWhy, Refusal, Stored, TopicSeen};

use airmail_model::{Mono, Now};

/// Owned by one shard. See the module's documentation for what holds of every call.
pub trait LogStorage: Send {
    /// What this storage can do. Constant for its life.
    fn capabilities(&self) -> Capabilities;

    /// Takes a call, to be done and answered by [`LogStorage::poll`].
    fn submit(&mut self, call: Call);

    /// Does what is ready, starts the next commit if none is under way, and tells what has become
    /// of earlier calls. Returns when to poll again if nothing else happens before.
    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono>;
}
