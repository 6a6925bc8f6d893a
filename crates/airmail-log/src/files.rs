//! What the journal needs of a file system, in a form that can be simulated.
//!
//! One flat directory for each shard. While a journal opens, and for `airmail check`, files are
//! read synchronously. Afterwards everything is submitted and polled: effects go out with a token,
//! completions come back once each. Writes, fills and syncs of one file take effect in the order
//! of submission, and so do notes, behind the sync that they are with; reads may complete in any
//! order.
//!
//! What a crash may do to what was not synced: anything (lost, kept, torn at any byte, reordered).
//! A failed sync says that everything since the last good one may or may not be there; the journal
//! never syncs that file again.

use crate::journal::Sound;
use bytes::Bytes;
use std::io;

/// A file of the directory, by its name.
pub type FileName = std::sync::Arc<str>;

/// Comes back with an operation's completion. Never reused by a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileToken(pub u64);

/// What the journal asks for.
#[derive(Clone, Debug)]
pub enum FileOp {
    /// Creates an empty file, durably (the directory is synced); an existing one is an error.
    Create {
        /// Its name.
        name: FileName,
    },
    /// Writes `parts` one after the other from `at` on; then, if `sync`, fdatasync.
    Write {
        /// Into which file.
        name: FileName,
        /// From which byte.
        at: u64,
        /// What.
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
        /// Of which file.
        name: FileName,
        /// From which byte.
        from: u64,
        /// To which byte, exclusive.
        to: u64,
    },
    /// Reads up to `length` bytes at `at`; fewer at the end of the file.
    Read {
        /// From which file.
        name: FileName,
        /// From which byte.
        at: u64,
        /// How many.
        length: u32,
        /// Where records of a segment begin in that, which are looked at where they are read: see
        /// [`FileDone::sound`].
        records: Vec<u32>,
    },
    /// Renames durably (the directory is synced), over an existing file if there is one.
    Rename {
        /// From.
        from: FileName,
        /// To.
        to: FileName,
    },
    /// Shortens a file to `length` bytes; one that is not longer stays as it is. Not synced: a crash
    /// may undo it.
    Cut {
        /// Which.
        name: FileName,
        /// What stays, in bytes.
        length: u64,
    },
    /// Removes a file.
    Remove {
        /// Which.
        name: FileName,
    },
}

/// What is true once a sync has gone well, for another file. It is not synced, nobody is told what
/// became of it, and the write that it is with may be answered before it is written.
#[derive(Clone, Debug)]
pub struct Note {
    /// Into which file, which is there.
    pub name: FileName,
    /// From which byte.
    pub at: u64,
    /// What.
    pub bytes: Bytes,
}

/// What became of an operation.
#[derive(Debug)]
pub struct FileDone {
    /// The token that it was submitted with.
    pub token: FileToken,
    /// The bytes read, or empty; or what failed.
    pub result: io::Result<Bytes>,
    /// Of a read, what was sound of the records that were to be looked at. Checking them takes as
    /// long as all else that a reader costs; so it is done by whoever reads, if that is another
    /// thread. What is not here the journal checks itself.
    pub sound: Vec<Sound>,
}

impl FileDone {
    /// Of an operation after which nothing was looked at.
    #[must_use]
    pub const fn new(token: FileToken, result: io::Result<Bytes>) -> FileDone {
        FileDone {
            token,
            result,
            sound: Vec::new(),
        }
    }

    /// Of a read of these records of a segment.
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
    /// What the file system says.
    fn list(&mut self) -> io::Result<Vec<(FileName, u64)>>;

    /// Up to `length` bytes at `at`, now. Blocks; only while opening and checking.
    ///
    /// # Errors
    /// What the file system says; a file that is not there is `NotFound`.
    fn load(&mut self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes>;

    /// Starts an operation. Its completion comes through [`Files::poll`], once.
    fn submit(&mut self, token: FileToken, op: FileOp);

    /// Takes the completions that have come.
    fn poll(&mut self, out: &mut Vec<FileDone>);
}
