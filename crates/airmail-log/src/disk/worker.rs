//! The threads that read, and fill segments ahead, beside the writer.

use super::handles::Handles;
use super::queue::{Queue, failed, lock};
use super::writer::write_all;
use crate::files::{FileName, FileOp};
use bytes::{Bytes, BytesMut};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A fill writes and syncs this much at a time: a commit's sync of the same file waits for what is
/// not written yet, so there must never be much of it.
const FILL_BYTES: u64 = 256 * 1024;

/// One of the pool.
pub(super) struct Worker {
    path: PathBuf,
    handles: Arc<Mutex<Handles>>,
}

impl Worker {
    pub(super) fn new(path: &Path, handles: Arc<Mutex<Handles>>) -> Worker {
        Worker {
            path: path.to_owned(),
            handles,
        }
    }

    /// Works until the queue is closed and empty.
    pub(super) fn run(self, queue: &Queue) {
        while let Some((token, op)) = queue.work() {
            match op {
                FileOp::Read { name, at, length } => {
                    queue.finish([(token, read(&self.handles, &name, at, length))]);
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
        // A handle of its own: see `handles`.
        let file = OpenOptions::new()
            .write(true)
            .open(self.path.join(&**name))?;
        let zeros = Bytes::from_static(&[0; FILL_BYTES as usize]);
        let mut at = from;
        while at < to {
            let bytes = FILL_BYTES.min(to - at);
            write_all(&file, at, &[zeros.slice(..bytes as usize)])?;
            file.sync_data()?;
            at += bytes;
        }
        Ok(())
    }
}

/// Up to `length` bytes at `at`; fewer at the end of the file.
pub(super) fn read(
    handles: &Mutex<Handles>,
    name: &FileName,
    at: u64,
    length: u32,
) -> io::Result<Bytes> {
    // Opened under the lock, so that a rename cannot come between opening and keeping.
    let file = lock(handles).get(name);
    let file = file.map_err(|error| failed("open", name, &error))?;
    read_at(&file, at, length).map_err(|error| failed("read", name, &error))
}

fn read_at(file: &File, at: u64, length: u32) -> io::Result<Bytes> {
    let mut bytes = BytesMut::zeroed(length as usize);
    let mut have = 0;
    while have < bytes.len() {
        match file.read_at(&mut bytes[have..], at + have as u64) {
            Ok(0) => break,
            Ok(more) => have += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(have);
    Ok(bytes.freeze())
}
