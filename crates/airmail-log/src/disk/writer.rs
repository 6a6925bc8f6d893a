//! The threads that change a shard's files: each has the files of its lane, in order of submission,
//! so an index or a checkpoint on its way delays no commit.
//!
//! Commits go past the page cache where they can ([`Direct`]).
//!
//! Writes that wait together and follow one another in a file are joined: one system call, one
//! sync. A write also follows another if it begins inside of it and goes on behind it, like a
//! commit that takes the place of the zeros which fill the last page of the one before.
//!
//! Creating, renaming and removing sync the directory; shortening does not. After a failed sync of
//! a file there is never another: its contents since the last good one are unknown.

use super::direct::{Direct, Done};
use super::folder::Folder;
use super::handles::Handles;
use super::queue::{Lane, Order, Queue, failed};
use super::shard_mark::Begun;
use crate::files::{FileName, FileOp, FileToken, Note};
use crate::journal::is_segment;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IoSlice};
use std::sync::Arc;

/// Files that are kept open to be written.
const HANDLES: usize = 32;
/// Smallest unsynced write that goes past the page cache: below it, the disk takes longer than the
/// cache, and somebody may wait for that.
const DIRECT_BYTES: u64 = 64 * 1024;
/// Parts that one system call may take (IOV_MAX).
const PARTS_MAX: usize = 1024;

/// See the module's documentation.
pub(super) struct Writer {
    folder: Arc<Folder>,
    begun: Arc<Begun>,
    handles: Handles,
    direct: Direct,
    /// Files that readers have open, to be forgotten when a name changes its meaning.
    readers: Arc<Mutex<Handles>>,
    unsyncable: BTreeSet<FileName>,
    /// Files that were written and have not been synced since.
    unsynced: BTreeSet<FileName>,
    /// Results that are not given yet: the shard is not woken for each.
    done: Vec<(FileToken, io::Result<Bytes>)>,
    /// Syncs of all writers until the one that fails; for tests.
    syncs_left: SyncsLeft,
}

/// Number of syncs that go well before one fails. `None`: all.
pub(super) type SyncsLeft = Arc<Mutex<Option<u64>>>;

/// Writes that follow one another in one file.
struct Run {
    name: FileName,
    at: u64,
    end: u64,
    parts: Vec<Bytes>,
    sync: bool,
    tokens: Vec<FileToken>,
    /// The newest.
    note: Option<Note>,
}

impl Writer {
    pub(super) fn new(
        (folder, begun, readers): (&Arc<Folder>, &Arc<Begun>, Arc<Mutex<Handles>>),
        direct: bool,
        syncs_left: &SyncsLeft,
    ) -> Writer {
        Writer {
            folder: Arc::clone(folder),
            begun: Arc::clone(begun),
            handles: Handles::new(folder, true, HANDLES),
            direct: Direct::new(folder, direct),
            readers,
            unsyncable: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            done: Vec::new(),
            syncs_left: Arc::clone(syncs_left),
        }
    }

    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self, lane: Lane, queue: &Queue) {
        let mut orders = Vec::new();
        while queue.writes(lane, &mut orders) {
            let mut run: Option<Run> = None;
            for (token, op) in orders.drain(..) {
                if let Some(rest) = join(&mut run, token, op) {
                    self.end(run.take(), true, queue);
                    let (token, op) = rest;
                    if let Some((token, op)) = join(&mut run, token, op) {
                        let result = self.rename_or_so(op).map(|()| Bytes::new());
                        self.done.push((token, result));
                        queue.finish(self.done.drain(..));
                    }
                }
            }
            self.end(run, false, queue);
        }
    }

    /// Writes a run and answers each of its operations; the operations of an unsynced run are
    /// answered together with those that follow, so it is told by `more` whether any do.
    fn end(&mut self, run: Option<Run>, more: bool, queue: &Queue) {
        let Some(run) = run else { return };
        let result = self.write(&run);
        self.done.extend(run.tokens.iter().map(|&token| {
            let result = match &result {
                Ok(()) => Ok(Bytes::new()),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            (token, result)
        }));
        if run.sync || !more {
            queue.finish(self.done.drain(..));
        }
        if let Some(note) = run.note.filter(|_| run.sync && result.is_ok()) {
            self.note(&note);
        }
    }

    /// Writes a note after the answer, for which somebody waits.
    fn note(&mut self, note: &Note) {
        if let Ok(file) = self.handles.get(&note.name) {
            // It is only ever a help: the next one tries again.
            let _: io::Result<()> = write_all(&file, note.at, std::slice::from_ref(&note.bytes));
        }
    }

    fn write(&mut self, run: &Run) -> io::Result<()> {
        let file = self.handles.get(&run.name);
        let file = file.map_err(|error| failed("open", &run.name, &error))?;
        let wanted = run.sync || run.end - run.at >= DIRECT_BYTES;
        let direct = wanted && is_segment(&run.name) && self.direct.can(run.at, run.end);
        let done = if direct {
            self.write_directly(run, &file)?
        } else {
            Done::Refused
        };
        if done == Done::Synced {
            return Ok(());
        }
        if done == Done::Refused {
            self.direct.forget(&run.name);
            write_all(&file, run.at, &run.parts).map_err(|e| failed("write", &run.name, &e))?;
        }
        if !run.sync {
            self.unsynced.insert(run.name.clone());
            return Ok(());
        }
        let result = self.may_sync(&run.name).and_then(|()| file.sync_data());
        result.map_err(|error| self.sync_failed(&run.name, &error))?;
        self.unsynced.remove(&run.name);
        Ok(())
    }

    /// Past the page cache; together with the sync, if there is nothing else to be synced.
    fn write_directly(&mut self, run: &Run, file: &File) -> io::Result<Done> {
        let one_call = self.direct.is_one_call(run.at, run.end);
        let sync = run.sync && one_call && !self.unsynced.contains(&run.name);
        if sync {
            let allowed = self.may_sync(&run.name);
            allowed.map_err(|error| self.sync_failed(&run.name, &error))?;
        }
        let done = (self.direct).write(&run.name, file, run.at, &run.parts, sync);
        done.map_err(|error| {
            if sync {
                // Whether it was the write or the sync is not told.
                self.sync_failed(&run.name, &error)
            } else {
                failed("write", &run.name, &error)
            }
        })
    }

    fn may_sync(&mut self, name: &FileName) -> io::Result<()> {
        if self.unsyncable.contains(name) {
            return Err(io::Error::other("an earlier sync of the file has failed"));
        }
        let mut syncs_left = self.syncs_left.lock();
        match &mut *syncs_left {
            Some(0) => {
                *syncs_left = None;
                return Err(io::Error::other("made to fail"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    fn sync_failed(&mut self, name: &FileName, error: &io::Error) -> io::Error {
        self.unsyncable.insert(name.clone());
        failed("sync", name, error)
    }

    fn rename_or_so(&mut self, op: FileOp) -> io::Result<()> {
        match op {
            FileOp::Create { name } => {
                let file = self.folder.create(&name);
                let file = file.map_err(|error| failed("create", &name, &error))?;
                self.sync_directory(&name)?;
                // Before anyone is told that there is a file, and so before anything is answered.
                let told = self.begun.tell(&self.folder);
                told.map_err(|error| failed("tell of the first file,", &name, &error))?;
                self.unsyncable.remove(&name);
                self.handles.put(name, Arc::new(file));
                Ok(())
            }
            FileOp::Rename { from, to } => {
                let result = self.folder.rename(&from, &to);
                self.forget(&from);
                self.forget(&to);
                result.map_err(|error| failed("rename", &from, &error))?;
                for names in [&mut self.unsyncable, &mut self.unsynced] {
                    if names.remove(&from) {
                        names.insert(to.clone());
                    } else {
                        names.remove(&to);
                    }
                }
                self.sync_directory(&to)
            }
            FileOp::Remove { name } => {
                let result = self.folder.remove(&name);
                self.forget(&name);
                result.map_err(|error| failed("remove", &name, &error))?;
                self.unsyncable.remove(&name);
                self.unsynced.remove(&name);
                self.sync_directory(&name)
            }
            FileOp::Cut { name, length } => {
                let file = self.handles.get(&name);
                let file = file.map_err(|error| failed("open", &name, &error))?;
                let cut = file.metadata().and_then(|found| {
                    if found.len() > length {
                        file.set_len(length)
                    } else {
                        Ok(())
                    }
                });
                cut.map_err(|error| failed("shorten", &name, &error))
            }
            FileOp::Write { name, .. } | FileOp::Fill { name, .. } | FileOp::Read { name, .. } => {
                Err(io::Error::other(format!(
                    "{name}: not an operation of the writer"
                )))
            }
        }
    }

    fn sync_directory(&self, name: &FileName) -> io::Result<()> {
        let result = self.folder.sync();
        result.map_err(|error| failed("sync the directory of", name, &error))
    }

    fn forget(&mut self, name: &FileName) {
        self.direct.forget(name);
        self.handles.forget(name);
        self.readers.lock().forget(name);
    }
}

/// Adds a write to the run if it can follow there; gives it back if it cannot.
fn join(run: &mut Option<Run>, token: FileToken, op: FileOp) -> Option<Order> {
    let follows = |run: &Run| match &op {
        FileOp::Write {
            name, at, parts, ..
        } => run.name == *name && (run.at..=run.end).contains(at) && at + length(parts) >= run.end,
        _ => false,
    };
    if run.as_ref().is_some_and(|run| !follows(run)) {
        return Some((token, op));
    }
    let FileOp::Write {
        name,
        at,
        mut parts,
        sync,
        note,
    } = op
    else {
        return Some((token, op));
    };
    let run = run.get_or_insert_with(|| Run {
        name,
        at,
        end: at,
        parts: Vec::new(),
        sync: false,
        tokens: Vec::new(),
        note: None,
    });
    run.cut(at);
    run.end = at + length(&parts);
    run.parts.append(&mut parts);
    run.sync |= sync;
    run.tokens.push(token);
    run.note = note.or(run.note.take());
    None
}

impl Run {
    /// Ends it at `at`: its bytes behind that are written otherwise.
    fn cut(&mut self, at: u64) {
        while self.end > at
            && let Some(last) = self.parts.last_mut()
        {
            let behind = (self.end - at).min(last.len() as u64);
            self.end -= behind;
            last.truncate(last.len() - behind as usize);
            if last.is_empty() {
                self.parts.pop();
            }
        }
    }
}

fn length(parts: &[Bytes]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
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
