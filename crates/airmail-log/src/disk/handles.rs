//! Open files by name, a bounded number of them.
//!
//! Each user of a file has a handle of its own: the kernel reports a failed write-back once to each
//! open file, so if several threads synced one handle, the thread that must know could miss it.

use super::folder::Folder;
use crate::files::FileName;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Open files, the most recently used last.
pub(super) struct Handles {
    folder: Arc<Folder>,
    write: bool,
    bound: usize,
    open: Vec<(FileName, Arc<File>)>,
}

impl Handles {
    /// Keeps at most `bound` files of `folder` open, to be written too if `write`.
    pub(super) fn new(folder: &Arc<Folder>, write: bool, bound: usize) -> Handles {
        Handles {
            folder: Arc::clone(folder),
            write,
            bound,
            open: Vec::with_capacity(bound),
        }
    }

    /// The file, opened now if it is not open yet.
    pub(super) fn get(&mut self, name: &FileName) -> io::Result<Arc<File>> {
        if let Some(at) = self.open.iter().position(|(other, _)| other == name) {
            self.open[at..].rotate_left(1);
        } else {
            let file = self.folder.file(name, self.write)?;
            self.put(name.clone(), Arc::new(file));
        }
        let (_, file) = &self.open[self.open.len() - 1];
        Ok(Arc::clone(file))
    }

    /// Keeps an open file; the one used longest ago makes room for it.
    pub(super) fn put(&mut self, name: FileName, file: Arc<File>) {
        if self.open.len() >= self.bound {
            self.open.remove(0);
        }
        self.open.push((name, file));
    }

    /// The name means another file now, or none.
    pub(super) fn forget(&mut self, name: &FileName) {
        self.open.retain(|(other, _)| other != name);
    }

    /// Number of open files.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}
