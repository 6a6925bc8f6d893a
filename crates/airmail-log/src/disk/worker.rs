//! The threads that read, and fill segments ahead, beside the writer.
//!
//! A fill goes past the page cache where the file system lets it: filling through the cache costs
//! the processor more than all else that a saturated node does, and leaves dirty pages that a
//! commit's sync of the same file has to wait for.

use super::direct::{PAGE_BYTES, is_refusal};
use super::folder::Folder;
use super::handles::Handles;
use super::queue::{Queue, failed};
use super::writer::write_all;
use crate::files::{FileDone, FileName, FileOp};
use bytes::Bytes;
use parking_lot::Mutex;
use rustix::buffer::spare_capacity;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A fill past the cache writes this much at a time; a commit waits for no more than one of these.
/// With a quarter of it a fill costs the processor twice as much.
const FILL_BYTES: u64 = 1024 * 1024;
/// Bytes that a fill through the cache writes and syncs at a time: a commit's sync of the same file
/// waits for those not written yet.
const CACHED_BYTES: u64 = 256 * 1024;
#[repr(align(4096))]
struct Aligned([u8; FILL_BYTES as usize]);

static ZEROS: Aligned = Aligned([0; FILL_BYTES as usize]);

/// One of the pool.
pub(super) struct Worker {
    folder: Arc<Folder>,
    handles: Arc<Mutex<Handles>>,
    /// Fills go past the page cache.
    direct: bool,
}

impl Worker {
    pub(super) fn new(folder: &Arc<Folder>, handles: Arc<Mutex<Handles>>, direct: bool) -> Worker {
        Worker {
            folder: Arc::clone(folder),
            handles,
            direct,
        }
    }

    /// Works until the queue is closed and empty.
    pub(super) fn run(self, queue: &Queue) {
        while let Some((token, op)) = queue.work() {
            match op {
                FileOp::Read {
                    name,
                    at,
                    length,
                    records,
                } => {
                    let result = read(&self.handles, &name, at, length);
                    queue.finish_read(FileDone::of_read(token, result, &records));
                }
                FileOp::Fill { name, from, to } => {
                    let result = self.fill(&name, from, to);
                    queue.filled();
                    let result = result.map_err(|error| failed("fill", &name, &error));
                    queue.finish([(token, result.map(|()| Bytes::new()))]);
                }
                _ => {
                    let error = io::Error::other("not an operation of a worker");
                    queue.finish([(token, Err(error))]);
                }
            }
        }
    }

    fn fill(&self, name: &FileName, from: u64, to: u64) -> io::Result<()> {
        let first = from.next_multiple_of(PAGE_BYTES as u64).min(to);
        let last = (to - to % (PAGE_BYTES as u64)).max(first);
        // A handle of its own: see `handles`.
        let cached = self.folder.writable(name, OFlags::empty())?;
        if !self.direct {
            return fill_cached(&cached, from, to);
        }
        fill_cached(&cached, from, first)?;
        match self.fill_directly(name, first, last) {
            // Not every file system has it.
            Err(error) if is_refusal(&error) => {
                fill_cached(&cached, first, last)?;
            }
            done => done?,
        }
        fill_cached(&cached, last, to)
    }

    fn fill_directly(&self, name: &FileName, from: u64, to: u64) -> io::Result<()> {
        let file = self.folder.writable(name, OFlags::DIRECT)?;
        let mut at = from;
        while at < to {
            let bytes = FILL_BYTES.min(to - at);
            file.write_all_at(&ZEROS.0[..bytes as usize], at)?;
            at += bytes;
        }
        sync(&file)
    }
}

/// Syncs a file. Any failure becomes `Other`: it must not be taken for want of room, after which
/// the file might be synced again.
fn sync(file: &File) -> io::Result<()> {
    file.sync_data().map_err(io::Error::other)
}

/// Fills through the page cache.
fn fill_cached(file: &File, from: u64, to: u64) -> io::Result<()> {
    let zeros = Bytes::from_static(&ZEROS.0);
    let mut at = from;
    while at < to {
        let bytes = CACHED_BYTES.min(to - at);
        write_all(file, at, &[zeros.slice(..bytes as usize)])?;
        sync(file)?;
        at += bytes;
    }
    Ok(())
}

/// Reads up to `length` bytes at `at`; fewer at the end of the file.
pub(super) fn read(
    handles: &Mutex<Handles>,
    name: &FileName,
    at: u64,
    length: u32,
) -> io::Result<Bytes> {
    // Opened under the lock, so that a rename cannot come between opening and keeping.
    let file = handles.lock().get(name);
    let file = file.map_err(|error| failed("open", name, &error))?;
    read_at(&file, at, length).map_err(|error| failed("read", name, &error))
}

fn read_at(file: &File, at: u64, length: u32) -> io::Result<Bytes> {
    let mut bytes: Vec<u8> = Vec::with_capacity(length as usize);
    // It may have got more room than was asked for.
    while bytes.len() < length as usize {
        let from = at + bytes.len() as u64;
        match rustix::io::pread(file, spare_capacity(&mut bytes), from) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(length as usize);
    Ok(bytes.into())
}
