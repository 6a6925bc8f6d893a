//! The results of messages, as publishers get them.

use airmail_model::{AppendTime, Durability, Error, LogId, Sequence};

/// Result of a message that was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Log that it is in.
    pub log: LogId,
    /// Number that it has there; or, unless `exact`, that of a copy, which may be behind what readers are given.
    pub sequence: Sequence,
    /// Time at which the storage appended it.
    pub appended: AppendTime,
    /// Durability that held when it was acknowledged.
    pub held: Durability,
    /// True if an earlier attempt, whose answer was lost, had stored it: this is that attempt's
    /// result.
    pub duplicate: bool,
    /// True if the storage de-duplicates when it appends: no other attempt of this message was
    /// stored.
    pub exact: bool,
}

/// Results of several messages that were handed over together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of messages that were stored.
    pub stored: u64,
    /// Number of messages that were not stored, or may not have been.
    pub failed: u64,
    /// Error of the first message that failed.
    pub error: Option<Error>,
}
