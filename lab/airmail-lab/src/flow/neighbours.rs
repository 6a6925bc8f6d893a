//! Neighbours on a node's disk: files that are written and synced without a pause, so that a real disk
//! becomes slower while a node runs.
//!
//! Each is a thread of this process, which does little but wait for the disk, and a file of its own without a
//! name, so nothing of it is left. How much slower the disk becomes is the disk's affair: a sweep beside the
//! same neighbours says what there is to be had of it.

use airmail_bench::clock::now_us;
use anyhow::Context as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of a write, each of which is synced.
const WRITE_BYTES: usize = 1 << 20;
/// Writes until a file is written over from its beginning.
const WRITES: u64 = 64;
/// Time between looks for whether it is to begin.
const LOOK: Duration = Duration::from_millis(1);

/// Time in which they work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shift {
    /// Time from now until they begin.
    pub(super) after: Duration,
    /// Their working time; absent: until they are told to end.
    pub(super) length: Option<Duration>,
}

/// Moments of the clock of all measuring, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Worked {
    pub(super) from_us: u64,
    pub(super) to_us: u64,
}

/// Some at work. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Neighbours {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<Worked>>>,
}

impl Neighbours {
    /// Lets so many work on the disk of this directory.
    ///
    /// # Errors
    /// No file can be made there.
    pub(super) fn start(directory: &Path, count: u32, shift: Shift) -> io::Result<Neighbours> {
        let mut neighbours = Neighbours {
            ended: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        let from_us = now_us() + shift.after.as_micros() as u64;
        let to_us = shift
            .length
            .map_or(u64::MAX, |length| from_us + length.as_micros() as u64);
        for _ in 0..count {
            let file = tempfile::tempfile_in(directory)?;
            let ended = Arc::clone(&neighbours.ended);
            let work = move || work(&file, Worked { from_us, to_us }, &ended);
            let thread = thread::Builder::new().name("neighbour".into());
            neighbours.threads.push(thread.spawn(work)?);
        }
        Ok(neighbours)
    }

    /// Ends them. When they worked, from the first who did to the last; nothing if none of them did.
    ///
    /// # Errors
    /// The disk failed one of them.
    pub(super) fn end(mut self) -> anyhow::Result<Option<Worked>> {
        self.ended.store(true, Ordering::Relaxed);
        let mut all: Option<Worked> = None;
        for thread in self.threads.drain(..) {
            let worked = thread.join().map_err(|_| {
                anyhow::anyhow!("a thread that was to keep the disk busy has panicked")
            })?;
            let worked = worked.context("cannot keep the disk busy")?;
            if worked.from_us < worked.to_us {
                let all = all.get_or_insert(worked);
                all.from_us = all.from_us.min(worked.from_us);
                all.to_us = all.to_us.max(worked.to_us);
            }
        }
        Ok(all)
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Writes and syncs from one moment to the other, or until it is to end; when it did.
fn work(file: &File, due: Worked, ended: &AtomicBool) -> io::Result<Worked> {
    let bytes = vec![0x5a; WRITE_BYTES];
    let ended = || ended.load(Ordering::Relaxed);
    while now_us() < due.from_us && !ended() {
        thread::sleep(LOOK);
    }
    let from_us = now_us();
    let mut writes = 0;
    while now_us() < due.to_us && !ended() {
        file.write_all_at(&bytes, writes % WRITES * WRITE_BYTES as u64)?;
        file.sync_data()?;
        writes += 1;
    }
    let to_us = if writes == 0 { from_us } else { now_us() };
    Ok(Worked { from_us, to_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_work_in_their_time_and_leave_nothing() {
        let directory = tempfile::tempdir().unwrap();
        // A busy machine may let a short time pass without a turn for anybody: then a longer one is tried.
        let mut length = Duration::from_millis(2);
        let (before_us, worked) = loop {
            let before_us = now_us();
            let shift = Shift {
                after: Duration::from_millis(2),
                length: Some(length),
            };
            let neighbours = Neighbours::start(directory.path(), 2, shift).unwrap();
            while !neighbours.threads.iter().all(JoinHandle::is_finished) {
                thread::sleep(LOOK);
            }
            if let Some(worked) = neighbours.end().unwrap() {
                break (before_us, worked);
            }
            length *= 2;
        };
        assert!(worked.from_us >= before_us + 2_000 && worked.to_us > worked.from_us);
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn who_is_ended_before_has_not_worked() {
        let directory = tempfile::tempdir().unwrap();
        let shift = Shift {
            after: Duration::from_secs(3_600),
            length: None,
        };
        let neighbours = Neighbours::start(directory.path(), 1, shift).unwrap();
        assert_eq!(neighbours.end().unwrap(), None);
    }
}
