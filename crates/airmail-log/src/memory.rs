//! Files in memory: under the `memory` storage, and under the journal's own tests.
//!
//! An operation takes effect when it is submitted, and its completion is there at the next poll, in
//! order of submission. No thread has to be woken: the caller polls again until nothing comes. All
//! is gone with the process, so a sync does nothing, and the strongest durability is `memory`.

use crate::files::{FileDone, FileName, FileOp, FileToken, Files};
use crate::journal::{JournalConfig, JournalStorage, OpenError};
use airmail_model::Now;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// Logs in memory: the journal over [`MemoryFiles`]. Each open gives every log a new incarnation.
pub type MemoryStorage = JournalStorage<MemoryFiles>;

/// An empty storage. Each open must have a seed of its own: incarnations come from it.
///
/// # Errors
/// None that memory can give.
pub fn open(seed: u64, now: Now) -> Result<MemoryStorage, OpenError> {
    JournalStorage::open(MemoryFiles::new(), JournalConfig::memory(seed), now)
}

/// Bytes of a page: a file grows by whole pages, so that growing never copies its contents.
const PAGE_BYTES: usize = 64 * 1024;

/// A directory in memory. A clone is a copy of the files as they are, without completions not polled.
#[derive(Debug, Default)]
pub struct MemoryFiles {
    files: BTreeMap<FileName, Pages>,
    done: VecDeque<FileDone>,
    room_bytes: Option<u64>,
}

impl MemoryFiles {
    /// An empty directory without a bound.
    #[must_use]
    pub fn new() -> MemoryFiles {
        MemoryFiles::default()
    }

    /// Bounds what all files may hold together. What would exceed it fails as
    /// [`io::ErrorKind::StorageFull`] and changes nothing. `None`, the default: no bound.
    pub fn set_room(&mut self, room_bytes: Option<u64>) {
        self.room_bytes = room_bytes;
    }

    /// Total size of the files, in bytes.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.files.values().map(|file| file.length).sum()
    }

    /// Everything in a file. `None` if it is not there.
    #[must_use]
    pub fn contents(&self, name: &str) -> Option<Bytes> {
        let file = self.files.get(name)?;
        Some(file.read(0, file.length))
    }

    /// Puts a file there as it is, over an existing one: a copied directory, or damage in a test.
    pub fn put(&mut self, name: &str, contents: &[u8]) {
        let mut file = Pages::default();
        file.write(0, contents);
        self.files.insert(name.into(), file);
    }

    fn apply(&mut self, op: FileOp) -> io::Result<Bytes> {
        match op {
            FileOp::Create { name } => {
                if self.files.contains_key(&name) {
                    return Err(failed(io::ErrorKind::AlreadyExists, &name));
                }
                self.files.insert(name, Pages::default());
            }
            FileOp::Write {
                name,
                at,
                parts,
                sync,
                note,
            } => {
                self.write(&name, at, &parts)?;
                if let Some(note) = note.filter(|_| sync) {
                    // Nobody is told what becomes of it.
                    let _: io::Result<()> = self.write(&note.name, note.at, &[note.bytes]);
                }
            }
            FileOp::Fill { name, from, to } => {
                self.grow(&name, to)?;
                self.existing(&name)?.fill(from, to);
            }
            FileOp::Read {
                name, at, length, ..
            } => {
                return Ok(self.existing(&name)?.read(at, length.into()));
            }
            FileOp::Cut { name, length } => self.existing(&name)?.cut(length),
            FileOp::Rename { from, to } => {
                let Some(file) = self.files.remove(&from) else {
                    return Err(failed(io::ErrorKind::NotFound, &from));
                };
                self.files.insert(to, file);
            }
            FileOp::Remove { name } => {
                if self.files.remove(&name).is_none() {
                    return Err(failed(io::ErrorKind::NotFound, &name));
                }
            }
        }
        Ok(Bytes::new())
    }

    fn write(&mut self, name: &FileName, at: u64, parts: &[Bytes]) -> io::Result<()> {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        self.grow(name, at + bytes)?;
        let file = self.existing(name)?;
        let mut at = at;
        for part in parts {
            file.write(at, part);
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Refuses what would not fit, before anything of it is done.
    fn grow(&mut self, name: &FileName, length: u64) -> io::Result<()> {
        let used = self.used();
        let more = length.saturating_sub(self.existing(name)?.length);
        match self.room_bytes {
            Some(room) if more > 0 && used + more > room => {
                Err(failed(io::ErrorKind::StorageFull, name))
            }
            _ => Ok(()),
        }
    }

    fn existing(&mut self, name: &FileName) -> io::Result<&mut Pages> {
        let file = self.files.get_mut(name);
        file.ok_or_else(|| failed(io::ErrorKind::NotFound, name))
    }
}

impl Clone for MemoryFiles {
    fn clone(&self) -> MemoryFiles {
        MemoryFiles {
            files: self.files.clone(),
            done: VecDeque::new(),
            room_bytes: self.room_bytes,
        }
    }
}

impl Files for MemoryFiles {
    fn list(&mut self) -> io::Result<Vec<(FileName, u64)>> {
        let files = self.files.iter();
        Ok(files.map(|(name, f)| (name.clone(), f.length)).collect())
    }

    fn load(&mut self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes> {
        Ok(self.existing(name)?.read(at, length.into()))
    }

    fn submit(&mut self, token: FileToken, op: FileOp) {
        let result = self.apply(op);
        self.done.push_back(FileDone::new(token, result));
    }

    fn poll(&mut self, out: &mut Vec<FileDone>) {
        out.extend(self.done.drain(..));
    }
}

fn failed(kind: io::ErrorKind, name: &FileName) -> io::Error {
    io::Error::new(kind, format!("{name}: {kind}"))
}

/// A file's contents. A page that was never written is `None` and reads as zeros.
#[derive(Clone, Debug, Default)]
struct Pages {
    pages: Vec<Option<Box<[u8]>>>,
    length: u64,
}

impl Pages {
    fn read(&self, at: u64, length: u64) -> Bytes {
        let end = at.saturating_add(length).min(self.length);
        let mut out = BytesMut::with_capacity(end.saturating_sub(at) as usize);
        for (page, from, to) in spans(at, end) {
            match self.pages.get(page) {
                Some(Some(bytes)) => out.extend_from_slice(&bytes[from..to]),
                _ => out.resize(out.len() + (to - from), 0),
            }
        }
        out.freeze()
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let mut rest = bytes;
        for (page, from, to) in spans(at, at + bytes.len() as u64) {
            let (now, later) = rest.split_at(to - from);
            self.page(page)[from..to].copy_from_slice(now);
            rest = later;
        }
        self.length = self.length.max(at + bytes.len() as u64);
    }

    fn fill(&mut self, from: u64, to: u64) {
        for (page, from, to) in spans(from, to) {
            if let Some(Some(bytes)) = self.pages.get_mut(page) {
                bytes[from..to].fill(0);
            }
        }
        self.length = self.length.max(to);
    }

    fn cut(&mut self, length: u64) {
        let end = self.length;
        if length < end {
            self.fill(length, end);
            self.pages
                .truncate(length.div_ceil(PAGE_BYTES as u64) as usize);
            self.length = length;
        }
    }

    fn page(&mut self, page: usize) -> &mut [u8] {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        self.pages[page].get_or_insert_with(|| vec![0; PAGE_BYTES].into_boxed_slice())
    }
}

/// The pages under `[at, end)`, each with the range of it that is meant.
fn spans(at: u64, end: u64) -> impl Iterator<Item = (usize, usize, usize)> {
    let size = PAGE_BYTES as u64;
    let mut at = at;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let page = at / size;
        let to = end.min((page + 1) * size);
        let span = (
            page as usize,
            (at - page * size) as usize,
            (to - page * size) as usize,
        );
        at = to;
        Some(span)
    })
}

#[cfg(test)]
mod tests;
