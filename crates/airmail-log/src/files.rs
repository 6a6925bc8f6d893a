//! The journal's view of a file system, in a form that can be simulated.
//!
//! One flat directory for each shard. While a journal opens, and for `airmail check`, files are
//! read synchronously. Afterwards everything is submitted and polled: effects go out with a token,
//! completions come back once each. Writes, fills and syncs of one file take effect in the order
//! of submission, and so do notes, behind the sync that they are with; reads may complete in any
//! order.
//!
//! A crash may do anything to bytes that were not synced (lose them, keep them, tear them at any
//! byte, reorder them). After a failed sync everything since the last good one may or may not be
//! there; the journal never syncs that file again.

use crate::journal::Sound;
use bytes::Bytes;
use std::io;

/// A file of the directory, by its name.
pub type FileName = std::sync::Arc<str>;

/// Comes back with an operation's completion. Never reused by a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileToken(pub u64);

/// Operations of the journal on files.
#[derive(Clone, Debug)]
pub enum FileOp {
    /// Creates an empty file, durably (the directory is synced); an existing one is an error.
    Create {
        /// Its name.
        name: FileName,
    },
    /// Writes `parts` one after the other from `at` on; then, if `sync`, fdatasync.
    Write {
        /// The file to write.
        name: FileName,
        /// The first byte to write.
        at: u64,
        /// The bytes, in parts.
        parts: Vec<Bytes>,
        /// Answered only when it is durable, together with all that was written before.
        sync: bool,
        /// Written somewhere else when the sync has gone well.
        note: Option<Note>,
    },
    /// Writes zeros over `[from, to)` and syncs, so that later writes there only change data.
    /// May run beside writes to other ranges of the file. Fails as `StorageFull` only if the writing
    /// found no room: then no sync has failed.
    Fill {
        /// The file to fill.
        name: FileName,
        /// The first byte to fill.
        from: u64,
        /// The end of the bytes to fill, exclusive.
        to: u64,
    },
    /// Reads up to `length` bytes at `at`; fewer at the end of the file.
    Read {
        /// The file to read.
        name: FileName,
        /// The first byte to read.
        at: u64,
        /// Most bytes to read.
        length: u32,
        /// Where records of a segment begin in that, which are looked at where they are read: see
        /// [`FileDone::sound`].
        records: Vec<u32>,
    },
    /// Renames durably (the directory is synced), over an existing file if there is one.
    Rename {
        /// The present name.
        from: FileName,
        /// The new name.
        to: FileName,
    },
    /// Shortens a file to `length` bytes; one that is not longer stays as it is. Not synced: a crash
    /// may undo it.
    Cut {
        /// The file to cut.
        name: FileName,
        /// Length that stays, in bytes.
        length: u64,
    },
    /// Removes a file.
    Remove {
        /// The file to remove.
        name: FileName,
    },
}

/// Bytes for another file that become true once a sync has gone well. A note is not synced, its
/// result is reported to nobody, and the write that it is with may be answered before the note is
/// written.
#[derive(Clone, Debug)]
pub struct Note {
    /// The file to write, which is there.
    pub name: FileName,
    /// The first byte to write.
    pub at: u64,
    /// The bytes.
    pub bytes: Bytes,
}

/// Completion of an operation.
#[derive(Debug)]
pub struct FileDone {
    /// The token that it was submitted with.
    pub token: FileToken,
    /// The bytes read, or empty; or the error.
    pub result: io::Result<Bytes>,
    /// Sound records of a read, among those that were to be looked at. Checking them takes as long
    /// as all else that a reader costs; so the thread that reads does it, if that is another one.
    /// Records that are not listed here the journal checks itself.
    pub sound: Vec<Sound>,
}

impl FileDone {
    /// Completes an operation after which nothing was looked at.
    #[must_use]
    pub const fn new(token: FileToken, result: io::Result<Bytes>) -> FileDone {
        FileDone {
            token,
            result,
            sound: Vec::new(),
        }
    }

    /// Completes a read of these records of a segment.
    #[must_use]
    pub fn of_read(token: FileToken, result: io::Result<Bytes>, records: &[u32]) -> FileDone {
        let sound = result.as_ref().map(|bytes| Sound::among(bytes, records));
        FileDone {
            token,
            sound: sound.unwrap_or_default(),
            result,
        }
    }
}

/// A directory of files. See the module's documentation.
pub trait Files: Send {
    /// Every file's name and length. Blocks.
    ///
    /// # Errors
    /// The error of the file system.
    fn list(&mut self) -> io::Result<Vec<(FileName, u64)>>;

    /// Reads up to `length` bytes at `at`, now. Blocks; only while opening and checking.
    ///
    /// # Errors
    /// The file system's error; a file that is not there is `NotFound`.
    fn load(&mut self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes>;

    /// Starts an operation. Its completion comes through [`Files::poll`], once.
    fn submit(&mut self, token: FileToken, op: FileOp);

    /// Takes the completions that have come.
    fn poll(&mut self, out: &mut Vec<FileDone>);
}
