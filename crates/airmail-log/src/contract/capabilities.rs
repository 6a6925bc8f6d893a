//! Capabilities of a storage: its owner reads them before it makes a call.
//!
//! A shard refuses at its start what it cannot honour (`dedup`, `many_writers`), offers no durability
//! above `strongest`, and reads by topic only with `topic_index`. It never reads from beyond an
//! end, seals or heals; the conformance suite checks that a storage's word on these holds too.

use airmail_model::Durability;

/// Capabilities of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// When a producer's retry is recognised.
    pub dedup: Dedup,
    /// The strongest durability that it can give.
    pub strongest: Durability,
    /// It finds a topic's records without reading the log ([`ScopeFilter::Topic`]).
    ///
    /// [`ScopeFilter::Topic`]: super::ScopeFilter::Topic
    pub topic_index: bool,
    /// It takes reads from beyond the end.
    pub past_end: bool,
    /// It can seal a log.
    pub seal: bool,
    /// It can take a replica's copy in place of a loss.
    pub heal: bool,
    /// More than one node may append to a log.
    pub many_writers: bool,
}

/// When a producer's retry is recognised (G3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dedup {
    /// When appended: acks are exact.
    AtAppend,
    /// When read, by log order.
    AtRead,
}
