//! A shard's files for `airmail check`: nothing is ever changed, no thread is started.

use super::files::list;
use super::folder::Folder;
use super::handles::Handles;
use super::worker::read;
use crate::files::{FileDone, FileName, FileOp, FileToken, Files};
use bytes::Bytes;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files that are kept open.
const HANDLES: usize = 16;

/// A directory of files that can only be read. An operation that would change something fails as
/// `ReadOnlyFilesystem`; a submitted read is done at once.
pub struct ReadOnlyFiles {
    path: PathBuf,
    handles: Mutex<Handles>,
    done: Vec<FileDone>,
}

impl ReadOnlyFiles {
    /// The files of the directory at `path`.
    #[must_use]
    pub fn new(path: &Path) -> ReadOnlyFiles {
        ReadOnlyFiles {
            path: path.to_owned(),
            handles: Mutex::new(Handles::new(&Arc::new(Folder::at(path)), false, HANDLES)),
            done: Vec::new(),
        }
    }
}

impl Files for ReadOnlyFiles {
    fn list(&mut self) -> io::Result<Vec<(FileName, u64)>> {
        list(&self.path)
    }

    fn load(&mut self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes> {
        read(&self.handles, name, at, length)
    }

    fn submit(&mut self, token: FileToken, op: FileOp) {
        let result = match op {
            FileOp::Read {
                name, at, length, ..
            } => self.load(&name, at, length),
            _ => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
        };
        self.done.push(FileDone::new(token, result));
    }

    fn poll(&mut self, out: &mut Vec<FileDone>) {
        out.append(&mut self.done);
    }
}

impl std::fmt::Debug for ReadOnlyFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadOnlyFiles")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
