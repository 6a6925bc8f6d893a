//! What the journal needs of a file system, in a form that can be simulated.
//!
//! One flat directory for each shard. While a journal opens, and for `airmail check`, files are
//! read synchronously. Afterwards everything is submitted and polled: effects go out with a token,
//! completions come back once each. Writes, fills and syncs of one file take effect in the order
//! of submission; reads may complete in any order.
//!
//! What a crash may do to what was not synced: anything (lost, kept, torn at any byte, reordered).
//! A failed sync says that everything since the last good one may or may not be there; the journal
//! never syncs that file again.

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
    },
    /// Writes zeros over `[from, to)` and syncs, so that later writes there only change data.
    /// May run beside writes to other ranges of the file.
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
    },
    /// Renames durably (the directory is synced), over an existing file if there is one.
    Rename {
        /// From.
        from: FileName,
        /// To.
        to: FileName,
    },
    /// Removes a file.
    Remove {
        /// Which.
        name: FileName,
    },
}

/// What became of an operation.
#[derive(Debug)]
pub struct FileDone {
    /// The token that it was submitted with.
    pub token: FileToken,
    /// The bytes read, or empty; or what failed.
    pub result: io::Result<Bytes>,
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
