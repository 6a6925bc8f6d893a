//! Requirements of a shard on its storage, checked once, before it begins.
//!
//! A storage lists its promises in its [`Capabilities`]. If a shard needs another promise, it
//! refuses the storage at its start and names the capability, rather than break a guarantee later.
//! [`check`] takes the capabilities apart by name: a new one does not compile before it is decided
//! here.

use airmail_log::{AppendClock, Capabilities, Dedup};
use std::fmt;

/// Reason for which a shard does not begin on a storage: a capability that it cannot honour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitStorage {
    /// Retries are recognised only when they are read. A shard delivers every batch that it reads,
    /// and acknowledges each as stored once.
    Dedup {
        /// When the storage recognises them.
        found: Dedup,
    },
    /// Append times may go back. A shard takes the first batch at a time, or after it, for the end of what
    /// was appended before.
    Clock {
        /// The order that the storage promises.
        found: AppendClock,
    },
    /// Others may append, too. A shard takes the acks that it gave for the log's end.
    ManyWriters,
    /// It has to make something before a namespace is there. A shard makes namespaces without.
    Provisions,
}

impl fmt::Display for UnfitStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitStorage::Dedup { found } => write!(
                f,
                "the log storage's capability dedup is {found:?}, a shard needs {:?} or {:?}",
                Dedup::AtAppend,
                Dedup::AtApply
            ),
            UnfitStorage::Clock { found } => write!(
                f,
                "the log storage's capability clock is {found:?}, a shard needs {:?}",
                AppendClock::Monotone
            ),
            UnfitStorage::ManyWriters => f.write_str(
                "the log storage's capability many_writers is true, a shard needs false",
            ),
            UnfitStorage::Provisions => {
                f.write_str("the log storage's capability provisions is true, a shard needs false")
            }
        }
    }
}

impl std::error::Error for UnfitStorage {}

/// Whether a shard can honour what a storage says.
pub(crate) fn check(capabilities: &Capabilities) -> Result<(), UnfitStorage> {
    let Capabilities {
        dedup,
        clock,
        many_writers,
        provisions,
        // Read where they matter: what a namespace may ask for, and how late subscribers are read for.
        strongest: _,
        topic_index: _,
        // Taken as they come: ranges account for holes, too.
        numbering: _,
        // Never relied on: no reader begins beyond its log's end, nothing is sealed or healed.
        past_end: _,
        seal: _,
        heal: _,
    } = *capabilities;
    if !dedup.is_exact() {
        return Err(UnfitStorage::Dedup { found: dedup });
    }
    match clock {
        AppendClock::Monotone => {}
        found @ AppendClock::Within(_) => return Err(UnfitStorage::Clock { found }),
    }
    if many_writers {
        return Err(UnfitStorage::ManyWriters);
    }
    if provisions {
        return Err(UnfitStorage::Provisions);
    }
    Ok(())
}
