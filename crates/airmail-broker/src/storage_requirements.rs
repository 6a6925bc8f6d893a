//! Requirements of a shard on its storage, checked once, before it begins.
//!
//! A storage lists its promises in its [`Capabilities`]. A shard honours each of them, whatever it is; if two contradict
//! each other, one is not so, and it refuses the storage at its start and names them, rather than break a guarantee
//! later. [`check`] takes the capabilities apart by name: a new one does not compile before it is decided here.

use airmail_log::{Capabilities, Dedup, Numbering};
use std::fmt;

/// Reason for which a shard does not begin on a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitStorage {
    /// Retries are left out when they are read, and yet no number is to be without a record.
    Numbering {
        /// When the storage recognises retries.
        dedup: Dedup,
    },
}

impl fmt::Display for UnfitStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitStorage::Numbering { dedup } => write!(
                f,
                "the log storage's capabilities contradict each other: dedup is {dedup:?}, and numbering {:?}, where \
                 {:?} is needed",
                Numbering::Dense,
                Numbering::Sparse
            ),
        }
    }
}

impl std::error::Error for UnfitStorage {}

/// Whether a shard can honour what a storage says.
pub(crate) fn check(capabilities: &Capabilities) -> Result<(), UnfitStorage> {
    let Capabilities {
        dedup,
        // Taken as they come: ranges account for holes, too.
        numbering,
        // Read where they matter: where a time ends or begins what is read, whether retries are found at once and
        // whose they may be, what a namespace may ask for, and how late subscribers are read for.
        clock: _,
        many_writers: _,
        // The catalog has it provision before it makes a namespace.
        provisions: _,
        // Sole publishes have an order of their own, and go on while a log is lost.
        appends_apart: _,
        strongest: _,
        topic_index: _,
        // The catalog moves no namespace away from where logs cannot be sealed.
        seal: _,
        // Never relied on: no reader begins beyond its log's end, nothing is healed.
        past_end: _,
        heal: _,
    } = *capabilities;
    if dedup == Dedup::AtRead && numbering == Numbering::Dense {
        return Err(UnfitStorage::Numbering { dedup });
    }
    Ok(())
}
