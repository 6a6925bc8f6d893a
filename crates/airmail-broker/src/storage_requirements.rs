//! Requirements of a shard on its storage, checked once, before it begins.
//!
//! A storage lists its promises in its [`Capabilities`]. If a shard needs another promise, it
//! refuses the storage at its start and names the capability, rather than break a guarantee later.
//! [`check`] takes the capabilities apart by name: a new one does not compile before it is decided
//! here.

use airmail_log::{Capabilities, Dedup};
use std::fmt;

/// Reason for which a shard does not begin on a storage: a capability that it cannot honour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitStorage {
    /// Retries are recognised elsewhere than on append. A shard delivers every batch that it reads,
    /// and acknowledges each as stored once.
    Dedup {
        /// When the storage recognises them.
        found: Dedup,
    },
    /// Others may append, too. A shard takes the acks that it gave for the log's end.
    ManyWriters,
}

impl fmt::Display for UnfitStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitStorage::Dedup { found } => write!(
                f,
                "the log storage's capability dedup is {found:?}, a shard needs {:?}",
                Dedup::AtAppend
            ),
            UnfitStorage::ManyWriters => f.write_str(
                "the log storage's capability many_writers is true, a shard needs false",
            ),
        }
    }
}

impl std::error::Error for UnfitStorage {}

/// Whether a shard can honour what a storage says.
pub(crate) fn check(capabilities: &Capabilities) -> Result<(), UnfitStorage> {
    let Capabilities {
        dedup,
        many_writers,
        // Read where they matter: what a namespace may ask for, and how late subscribers are read for.
        strongest: _,
        topic_index: _,
        // Never relied on: no reader begins beyond its log's end, nothing is sealed or healed.
        past_end: _,
        seal: _,
        heal: _,
    } = *capabilities;
    match dedup {
        Dedup::AtAppend => {}
        found @ Dedup::AtRead => return Err(UnfitStorage::Dedup { found }),
    }
    if many_writers {
        return Err(UnfitStorage::ManyWriters);
    }
    Ok(())
}
