//! Levels of all processes of a run, where each can read them: the messages that its publishers
//! have sent, and those that the slowest of its subscribers has had.
//!
//! A file of memory, with a place for each process. Each writes its own place and reads the others'
//! every millisecond, so the levels are that old, and no process waits for another.

use super::Share;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a place: two numbers.
const PLACE_BYTES: u64 = 16;

/// Level of one process, or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Messages sent.
    pub(super) sent: u64,
    /// Messages that the slowest subscriber has had; `u64::MAX` where there is none.
    pub(super) least: u64,
}

/// The file, as the process that made it holds it.
#[derive(Debug)]
pub struct LevelFile(File);

impl LevelFile {
    /// An empty one: nobody has sent or had anything.
    ///
    /// # Errors
    /// The error of the system.
    pub fn make() -> io::Result<LevelFile> {
        let file = memfd_create("airmail-bench", MemfdFlags::CLOEXEC)?;
        Ok(LevelFile(file.into()))
    }

    /// Where other processes find it as long as this one holds it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let (process, file) = (std::process::id(), self.0.as_raw_fd());
        format!("/proc/{process}/fd/{file}").into()
    }
}

/// The file, as a process of the run uses it.
#[derive(Debug)]
pub(super) struct Levels {
    file: File,
    share: Share,
}

impl Levels {
    pub(super) fn open(path: &Path, share: Share) -> io::Result<Levels> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(Levels { file, share })
    }

    /// Tells how far this process is; how far the others are together.
    pub(super) fn exchange(&self, own: Level) -> io::Result<Level> {
        let mut place = [0; PLACE_BYTES as usize];
        place[..8].copy_from_slice(&own.sent.to_le_bytes());
        place[8..].copy_from_slice(&own.least.to_le_bytes());
        let at = u64::from(self.share.part) * PLACE_BYTES;
        self.file.write_all_at(&place, at)?;
        // Who has not written yet has sent and had nothing.
        let mut all = vec![0; self.share.parts as usize * PLACE_BYTES as usize];
        let mut filled = 0;
        while filled < all.len() {
            match self.file.read_at(&mut all[filled..], filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        let mut others = Level {
            sent: 0,
            least: u64::MAX,
        };
        let (places, _) = all.as_chunks::<8>();
        let levels = places.chunks_exact(2).zip(0..);
        for (level, _) in levels.filter(|(_, part)| *part != self.share.part) {
            others.sent += u64::from_le_bytes(level[0]);
            others.least = others.least.min(u64::from_le_bytes(level[1]));
        }
        Ok(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_learns_how_far_the_others_are_together() {
        let file = LevelFile::make().unwrap();
        let open = |part| Levels::open(&file.path(), Share { part, parts: 3 }).unwrap();
        let level = |sent, least| Level { sent, least };
        let (first, second, third) = (open(0), open(1), open(2));
        assert_eq!(first.exchange(level(5, 3)).unwrap(), level(0, 0));
        assert_eq!(second.exchange(level(7, u64::MAX)).unwrap(), level(5, 0));
        assert_eq!(third.exchange(level(0, 2)).unwrap(), level(12, 3));
        assert_eq!(first.exchange(level(6, 4)).unwrap(), level(7, 2));
    }
}
