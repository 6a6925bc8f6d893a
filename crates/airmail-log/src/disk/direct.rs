//! Writes of whole pages past the page cache.
//!
//! For a commit that goes through the cache, the system takes fresh pages, copies into them, and
//! then writes them out: several times the processor time of the write itself. Readers at the tail
//! find recent batches in the journal's own memory and do not need the cache.
//!
//! Only whole pages can be written in this way. A commit ends with its page (the journal adds
//! zeros), and begins inside the page with which the one before it ended: the bytes of that page
//! are kept here, from one write that went well to the next, and only as long as the name means
//! that file and no other thread writes it. Otherwise they are read.
//!
//! A write that is to be synced is one system call with its sync, if it fits in the buffer: between
//! two calls the system may let others run first, and a whole commit waits for them.
//!
//! All other writes the caller makes through the cache. The system keeps the two coherent: before a
//! direct write it writes out the cache's changes to these pages, and after it drops them from the
//! cache; where it cannot, the next sync of the file fails.

use super::folder::Folder;
use crate::files::FileName;
use bytes::Bytes;
use rustix::fs::OFlags;
use rustix::io::ReadWriteFlags;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Where a write begins and ends, in the file and in memory.
pub(super) const PAGE_BYTES: usize = 4096;
/// Size of the buffer that one write takes its bytes from.
const BUFFER_BYTES: usize = 512 * 1024;
/// Files that are kept open.
const FILES: usize = 8;

/// See the module's documentation.
pub(super) struct Direct {
    folder: Arc<Folder>,
    /// The file system has refused: it is not asked again.
    refused: bool,
    /// The most recently used last.
    files: Vec<Open>,
    /// Its aligned part is [`BUFFER_BYTES`] long.
    buffer: Vec<u8>,
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// The file system does not do it: all of it is to be written otherwise.
    Refused,
    /// It is written, and is to be synced if it should be.
    Written,
    /// It is durable; earlier writes to the file through the cache may not be.
    Synced,
}

struct Open {
    name: FileName,
    file: File,
    /// Where the last write ended, which is a multiple of the page.
    end: u64,
    /// The page before that, as it was written.
    last: Vec<u8>,
}

impl Direct {
    /// Begins without open files. With `wanted` false, it does as if the file system had refused.
    pub(super) fn new(folder: &Arc<Folder>, wanted: bool) -> Direct {
        Direct {
            folder: Arc::clone(folder),
            refused: !wanted,
            files: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Whether a write from `at` to `end` may be tried: there is something to write, and it ends
    /// with a page.
    pub(super) fn can(&self, at: u64, end: u64) -> bool {
        !self.refused && at < end && end.is_multiple_of(PAGE_BYTES as u64)
    }

    /// Whether a write from `at` to `end` is little enough to be one call with its sync.
    pub(super) fn is_one_call(&self, at: u64, end: u64) -> bool {
        end - (at - at % PAGE_BYTES as u64) < BUFFER_BYTES as u64
    }

    /// Writes, and syncs the write if it is `sync` and [one call](Direct::is_one_call).
    /// `cached` is the same file, open to be read through the cache.
    ///
    /// # Errors
    /// The system's error about the write, or about the sync if there is one; then any part may have
    /// been written.
    pub(super) fn write(
        &mut self,
        name: &FileName,
        cached: &File,
        at: u64,
        parts: &[Bytes],
        sync: bool,
    ) -> io::Result<Done> {
        let result = self.try_write(name, cached, at, parts, sync);
        match result {
            Ok(synced) => Ok(if synced { Done::Synced } else { Done::Written }),
            Err(error) if is_refusal(&error) => {
                self.refused = true;
                Ok(Done::Refused)
            }
            Err(error) => Err(error),
        }
    }

    /// The file is written otherwise, or its name means another.
    pub(super) fn forget(&mut self, name: &FileName) {
        self.files.retain(|open| open.name != *name);
    }

    fn try_write(
        &mut self,
        name: &FileName,
        cached: &File,
        at: u64,
        parts: &[Bytes],
        sync: bool,
    ) -> io::Result<bool> {
        let mut open = self.take(name)?;
        let inside = (at % PAGE_BYTES as u64) as usize;
        let begin = at - inside as u64;
        if inside > 0 && open.end != begin + PAGE_BYTES as u64 {
            cached.read_exact_at(&mut open.last[..inside], begin)?;
        }
        let length: usize = parts.iter().map(Bytes::len).sum();
        let sync = sync && self.is_one_call(at, at + length as u64);
        self.buffer.resize(BUFFER_BYTES + PAGE_BYTES, 0);
        let from = self.buffer.as_ptr().align_offset(PAGE_BYTES) % PAGE_BYTES;
        let buffer = &mut self.buffer[from..][..BUFFER_BYTES];
        buffer[..inside].copy_from_slice(&open.last[..inside]);
        let (mut held, mut at) = (inside, begin);
        for part in parts {
            let mut rest = &part[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(BUFFER_BYTES - held));
                buffer[held..held + now.len()].copy_from_slice(now);
                held += now.len();
                rest = later;
                if held == BUFFER_BYTES {
                    open.file.write_all_at(buffer, at)?;
                    at += held as u64;
                    held = 0;
                    open.last
                        .copy_from_slice(&buffer[BUFFER_BYTES - PAGE_BYTES..]);
                }
            }
        }
        if held > 0 {
            if sync {
                write_synced(&open.file, &buffer[..held], at)?;
            } else {
                open.file.write_all_at(&buffer[..held], at)?;
            }
            open.last.copy_from_slice(&buffer[held - PAGE_BYTES..held]);
        }
        open.end = at + held as u64;
        if self.files.len() >= FILES {
            self.files.remove(0);
        }
        self.files.push(open);
        Ok(sync)
    }

    /// The file, opened now if it is not open yet.
    fn take(&mut self, name: &FileName) -> io::Result<Open> {
        if let Some(at) = self.files.iter().position(|open| open.name == *name) {
            return Ok(self.files.remove(at));
        }
        Ok(Open {
            name: name.clone(),
            file: self.folder.writable(name, OFlags::DIRECT)?,
            end: 0,
            last: vec![0; PAGE_BYTES],
        })
    }
}

/// Writes all of `bytes`, which are durable then.
fn write_synced(file: &File, bytes: &[u8], mut at: u64) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::pwritev2(file, &[IoSlice::new(rest)], at, ReadWriteFlags::DSYNC) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                rest = &rest[written..];
                at += written as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether an error says that the file system does not write past the cache.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A part of `length` bytes, none of them zero, and the zeros that a commit ends with.
    fn parts(n: usize, at: u64, length: usize) -> Vec<Bytes> {
        let body = vec![n as u8 | 1; length];
        let end = at + length as u64;
        let behind = end.next_multiple_of(PAGE_BYTES as u64) - end;
        let (one, two) = body.split_at(length / 3);
        vec![
            Bytes::copy_from_slice(one),
            Bytes::copy_from_slice(two),
            Bytes::from(vec![0; behind as usize]),
        ]
    }

    #[test]
    fn writes_that_follow_one_another_inside_pages_are_all_there() {
        let temp = tempfile::tempdir().unwrap();
        let name: FileName = "seg".into();
        let path = temp.path().join("seg");
        fs::write(&path, vec![0; 3 << 20]).unwrap();
        let mut direct = Direct::new(&Arc::new(Folder::at(temp.path())), true);
        let cached = File::open(&path).unwrap();
        let (mut at, mut expected) = (0, Vec::new());
        let lengths = [1, 64, 4031, 4096, 5000, 1, 1_100_000, 524_288, 3, 200_000];
        for (n, length) in lengths.into_iter().enumerate() {
            let parts = parts(n, at, length);
            let end = at + parts.iter().map(|part| part.len() as u64).sum::<u64>();
            assert!(direct.can(at, end), "write {n}");
            let sync = n % 2 == 0;
            let done = direct.write(&name, &cached, at, &parts, sync).unwrap();
            if done == Done::Refused {
                // Not every file system has it; there is nothing to be seen then.
                return;
            }
            let at_once = sync && direct.is_one_call(at, end);
            assert_eq!(done == Done::Synced, at_once, "write {n}");
            expected.resize(at as usize, 0);
            parts
                .iter()
                .for_each(|part| expected.extend_from_slice(part));
            at += length as u64;
            if n % 3 == 1 {
                direct.forget(&name);
            }
            let found = fs::read(&path).unwrap();
            assert!(found[..expected.len()] == expected[..], "write {n}");
        }
    }

    #[test]
    fn what_does_not_end_with_a_page_is_left_to_the_cache() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::at(temp.path()));
        let direct = Direct::new(&folder, true);
        assert!(!direct.can(0, 100));
        assert!(!direct.can(4096, 4096));
        assert!(direct.can(4096, 8192));
        assert!(direct.can(100, 4096));
        assert!(!Direct::new(&folder, false).can(0, 4096));
    }
}
