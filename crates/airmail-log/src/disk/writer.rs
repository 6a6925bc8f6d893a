//! The one thread that changes a shard's files, in order of submission.
//!
//! Writes that wait together and follow one another in a file are joined: one system call, one
//! sync. Creating, renaming and removing sync the directory. After a failed sync of a file there
//! is never another: what it holds since the last good one is unknown.

use super::handles::Handles;
use super::queue::{Order, Queue, failed, lock};
use crate::files::{FileName, FileOp, FileToken};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Files that are kept open to be written.
const HANDLES: usize = 32;
/// Parts that one system call may take (IOV_MAX).
const PARTS_MAX: usize = 1024;

/// See the module's documentation.
pub(super) struct Writer {
    path: PathBuf,
    directory: File,
    handles: Handles,
    /// What readers have open, to be forgotten when a name changes its meaning.
    readers: Arc<Mutex<Handles>>,
    unsyncable: BTreeSet<FileName>,
    /// Syncs until the one that fails; for tests.
    syncs_left: Option<u64>,
}

/// Writes that follow one another in one file.
struct Run {
    name: FileName,
    at: u64,
    end: u64,
    parts: Vec<Bytes>,
    sync: bool,
    tokens: Vec<FileToken>,
}

impl Writer {
    pub(super) fn new(
        path: &Path,
        readers: Arc<Mutex<Handles>>,
        fail_sync_after: Option<u64>,
    ) -> io::Result<Writer> {
        Ok(Writer {
            path: path.to_owned(),
            directory: File::open(path)?,
            handles: Handles::new(path, true, HANDLES),
            readers,
            unsyncable: BTreeSet::new(),
            syncs_left: fail_sync_after,
        })
    }

    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self, queue: &Queue) {
        let mut orders = Vec::new();
        while queue.writes(&mut orders) {
            let mut run: Option<Run> = None;
            for (token, op) in orders.drain(..) {
                if let Some(rest) = join(&mut run, token, op) {
                    self.end(run.take(), queue);
                    let (token, op) = rest;
                    if let Some((token, op)) = join(&mut run, token, op) {
                        queue.finish([(token, self.rename_or_so(op).map(|()| Bytes::new()))]);
                    }
                }
            }
            self.end(run, queue);
        }
    }

    /// Writes a run and answers each of its operations.
    fn end(&mut self, run: Option<Run>, queue: &Queue) {
        let Some(run) = run else { return };
        let result = self.write(&run);
        queue.finish(run.tokens.iter().map(|&token| {
            let result = match &result {
                Ok(()) => Ok(Bytes::new()),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            (token, result)
        }));
    }

    fn write(&mut self, run: &Run) -> io::Result<()> {
        let file = self.handles.get(&run.name);
        let file = file.map_err(|error| failed("open", &run.name, &error))?;
        write_all(&file, run.at, &run.parts).map_err(|e| failed("write", &run.name, &e))?;
        if !run.sync {
            return Ok(());
        }
        let result = self.sync(&run.name, &file);
        result.map_err(|error| {
            self.unsyncable.insert(run.name.clone());
            failed("fdatasync", &run.name, &error)
        })
    }

    fn sync(&mut self, name: &FileName, file: &File) -> io::Result<()> {
        if self.unsyncable.contains(name) {
            return Err(io::Error::other("an earlier sync of the file has failed"));
        }
        match &mut self.syncs_left {
            Some(0) => {
                self.syncs_left = None;
                return Err(io::Error::other("made to fail"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        file.sync_data()
    }

    fn rename_or_so(&mut self, op: FileOp) -> io::Result<()> {
        match op {
            FileOp::Create { name } => {
                let mut options = OpenOptions::new();
                options.read(true).write(true).create_new(true);
                let file = options.open(self.path.join(&*name));
                let file = file.map_err(|error| failed("create", &name, &error))?;
                self.sync_directory(&name)?;
                self.unsyncable.remove(&name);
                self.handles.put(name, Arc::new(file));
                Ok(())
            }
            FileOp::Rename { from, to } => {
                let result = fs::rename(self.path.join(&*from), self.path.join(&*to));
                self.forget(&from);
                self.forget(&to);
                result.map_err(|error| failed("rename", &from, &error))?;
                if self.unsyncable.remove(&from) {
                    self.unsyncable.insert(to.clone());
                } else {
                    self.unsyncable.remove(&to);
                }
                self.sync_directory(&to)
            }
            FileOp::Remove { name } => {
                let result = fs::remove_file(self.path.join(&*name));
                self.forget(&name);
                result.map_err(|error| failed("remove", &name, &error))?;
                self.unsyncable.remove(&name);
                self.sync_directory(&name)
            }
            FileOp::Write { name, .. } | FileOp::Fill { name, .. } | FileOp::Read { name, .. } => {
                Err(io::Error::other(format!(
                    "{name}: not an operation of the writer"
                )))
            }
        }
    }

    fn sync_directory(&self, name: &FileName) -> io::Result<()> {
        let result = self.directory.sync_all();
        result.map_err(|error| failed("sync the directory of", name, &error))
    }

    fn forget(&mut self, name: &FileName) {
        self.handles.forget(name);
        lock(&self.readers).forget(name);
    }
}

/// Adds a write to the run if it can follow there; gives back what cannot.
fn join(run: &mut Option<Run>, token: FileToken, op: FileOp) -> Option<Order> {
    let FileOp::Write {
        name,
        at,
        mut parts,
        sync,
    } = op
    else {
        return Some((token, op));
    };
    let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
    match run {
        Some(run) if run.name == name && run.end == at => {
            run.end += bytes;
            run.parts.append(&mut parts);
            run.sync |= sync;
            run.tokens.push(token);
        }
        Some(_) => {
            return Some((
                token,
                FileOp::Write {
                    name,
                    at,
                    parts,
                    sync,
                },
            ));
        }
        None => {
            *run = Some(Run {
                name,
                at,
                end: at + bytes,
                parts,
                sync,
                tokens: vec![token],
            });
        }
    }
    None
}

/// Writes every byte of `parts` from `at` on.
pub(super) fn write_all(file: &File, mut at: u64, parts: &[Bytes]) -> io::Result<()> {
    for parts in parts.chunks(PARTS_MAX) {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut slices = &mut slices[..];
        // Advancing by nothing passes over empty parts at the front.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match rustix::io::pwritev(file, slices, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    at += bytes as u64;
                    IoSlice::advance_slices(&mut slices, bytes);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
