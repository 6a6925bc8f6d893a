//! One shard's files on a disk, with two writer threads and a few workers behind them.

use super::folder::Folder;
use super::handles::Handles;
use super::queue::{Lane, Queue, failed};
use super::shard_mark::Begun;
use super::worker::{Worker, read};
use super::writer::Writer;
use crate::contract::Waker;
use crate::files::{FileDone, FileName, FileOp, FileToken, Files};
use bytes::Bytes;
use parking_lot::Mutex;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Options of [`DiskFiles`].
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// Threads that read and fill. Default 2, at least 1; with 1 a fill delays reads.
    pub workers: usize,
    /// Files that are kept open to be read. Default 64, at least 1.
    pub handles: usize,
    /// Segments are written and filled past the page cache, where the file system lets them.
    /// Default true.
    pub direct: bool,
    /// Number of syncs after which one fails, once; for tests. Default `None`: never.
    pub fail_sync_after: Option<u64>,
}

impl Default for DiskOptions {
    fn default() -> DiskOptions {
        DiskOptions {
            workers: 2,
            handles: 64,
            direct: true,
            fail_sync_after: None,
        }
    }
}

/// A directory of files. Dropping it finishes the submitted operations, and joins its threads.
pub struct DiskFiles {
    path: PathBuf,
    queue: Arc<Queue>,
    handles: Arc<Mutex<Handles>>,
    threads: Vec<JoinHandle<()>>,
}

impl DiskFiles {
    /// Opens the directory at `path`, which must exist, and starts its threads.
    ///
    /// # Errors
    /// The system's error about the directory or a thread.
    pub fn open(path: &Path, options: &DiskOptions, waker: Waker) -> io::Result<DiskFiles> {
        DiskFiles::begin(path, options, waker, Begun::told())
    }

    /// The same for files that may be about to begin.
    pub(super) fn begin(
        path: &Path,
        options: &DiskOptions,
        waker: Waker,
        begun: Begun,
    ) -> io::Result<DiskFiles> {
        let folder = Arc::new(Folder::open(path)?);
        let begun = Arc::new(begun);
        let handles = Handles::new(&folder, false, options.handles.max(1));
        let handles = Arc::new(Mutex::new(handles));
        let syncs_left = Arc::new(Mutex::new(options.fail_sync_after));
        let writer = || {
            let of = (&folder, &begun, Arc::clone(&handles));
            Writer::new(of, options.direct, &syncs_left)
        };
        let (commits, derived) = (writer(), writer());
        let mut files = DiskFiles {
            path: path.to_owned(),
            queue: Arc::new(Queue::new(waker)),
            handles: Arc::clone(&handles),
            threads: Vec::new(),
        };
        files.start("airmail-write", move |queue| {
            commits.run(Lane::Commits, queue)
        })?;
        files.start("airmail-index", move |queue| {
            derived.run(Lane::Derived, queue)
        })?;
        for _ in 0..options.workers.max(1) {
            let worker = Worker::new(&folder, Arc::clone(&files.handles), options.direct);
            files.start("airmail-read", move |queue| worker.run(queue))?;
        }
        Ok(files)
    }

    fn start(&mut self, name: &str, body: impl FnOnce(&Queue) + Send + 'static) -> io::Result<()> {
        let queue = Arc::clone(&self.queue);
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn(move || body(&queue))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Files for DiskFiles {
    fn list(&mut self) -> io::Result<Vec<(FileName, u64)>> {
        list(&self.path)
    }

    fn load(&mut self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes> {
        read(&self.handles, name, at, length)
    }

    fn submit(&mut self, token: FileToken, op: FileOp) {
        self.queue.submit(token, op);
    }

    fn poll(&mut self, out: &mut Vec<FileDone>) {
        self.queue.poll(out);
    }
}

impl Drop for DiskFiles {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; there is nothing to add here.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for DiskFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskFiles")
            .field("path", &self.path)
            .field("open", &self.handles.lock().len())
            .finish_non_exhaustive()
    }
}

/// The regular files of a directory, in order of name. Names that are not UTF-8 are not ours.
pub(super) fn list(path: &Path) -> io::Result<Vec<(FileName, u64)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let name: FileName = name.into();
        let about = match entry.metadata() {
            Ok(about) => about,
            // Gone since: a running node may remove files while `check` reads.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed("look at", &name, &error)),
        };
        if about.is_file() {
            found.push((name, about.len()));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
