//! The locks that keep a second node out, and looking at the things that are locked.
//!
//! Three things are locked. The directory itself and its identity cannot be taken away from under
//! their names without the locks going along. `LOCK` gives the process's id to another one that is
//! refused, and keeps out versions of Airmail that know no other lock. The system releases all
//! locks with the process.

use super::data_dir::{DataDirError, failed};
use super::modes::FILE_MODE;
use super::shard_mark::{MARK, begun_mark};
use super::watch::{Seen, Sight, Thing};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub(super) const LOCK: &str = "LOCK";
/// Attempts at a lock that another process has: a look whether there is a lock takes it for a
/// moment.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// Locks that are held until this is dropped.
#[derive(Debug)]
pub(super) struct Locks {
    path: PathBuf,
    directory: File,
    lock: Mutex<File>,
    identity: Option<File>,
}

/// Whether a lock could be had.
enum Held {
    Yes,
    /// Another process has the lock.
    No,
    /// The file system does not lock this.
    Unsupported(io::Error),
}

impl Locks {
    /// Locks the directory at `path` and its `LOCK`, which is made if need be. The identity may have
    /// to be made first, so that it is locked afterwards.
    pub(super) fn take(path: &Path) -> Result<Locks, DataDirError> {
        let directory = File::open(path).map_err(failed("open", path))?;
        match hold(&directory).map_err(failed("lock", path))? {
            // Some network file systems lock files and no directories: `identity` and `LOCK` remain.
            Held::Yes | Held::Unsupported(_) => {}
            Held::No => return Err(in_use(path)),
        }
        let at = path.join(LOCK);
        let file = lock_file(&directory).map_err(failed("open", &at))?;
        match hold(&file).map_err(failed("lock", &at))? {
            Held::Yes => {}
            Held::No => return Err(in_use(path)),
            Held::Unsupported(error) => return Err(no_locks(&at, error)),
        }
        write_process(&file).map_err(failed("write", &at))?;
        Ok(Locks {
            path: path.to_owned(),
            directory,
            lock: Mutex::new(file),
            identity: None,
        })
    }

    /// Locks the identity, which from here on stays the file that it is.
    pub(super) fn hold_identity(&mut self, name: &str) -> Result<(), DataDirError> {
        let at = self.path.join(name);
        // Some file systems lock only what is open to be written.
        let file = OpenOptions::new().read(true).write(true).open(&at);
        let file = file.or_else(|_| File::open(&at));
        let file = file.map_err(failed("open", &at))?;
        match hold(&file).map_err(failed("lock", &at))? {
            Held::Yes => {}
            Held::No => return Err(in_use(&self.path)),
            Held::Unsupported(error) => return Err(no_locks(&at, error)),
        }
        self.identity = Some(file);
        Ok(())
    }
}

/// Whether a process has locked one of these files of the directory at `path`, or the directory.
pub(super) fn are_held(path: &Path, names: &[&str]) -> bool {
    let files = names.iter().map(|name| path.join(name));
    let mut all = files.chain([path.to_owned()]);
    all.any(|path| {
        // A shared lock that is let go at once: it changes nothing.
        let lock = File::open(path).map(|file| file.try_lock_shared());
        matches!(lock, Ok(Err(TryLockError::WouldBlock)))
    })
}

fn hold(file: &File) -> io::Result<Held> {
    for attempt in 1..=ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(Held::Yes),
            Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => thread::sleep(BETWEEN_ATTEMPTS),
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(error)) if is_unsupported(&error) => {
                return Ok(Held::Unsupported(error));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(Held::No)
}

fn is_unsupported(error: &io::Error) -> bool {
    let kinds = [
        Errno::BADF,
        Errno::NOLCK,
        Errno::OPNOTSUPP,
        Errno::NOSYS,
        Errno::INVAL,
    ];
    Errno::from_io_error(error).is_some_and(|errno| kinds.contains(&errno))
}

/// The lock file of a directory, opened, and made if it is not there.
fn lock_file(directory: &File) -> io::Result<File> {
    let how = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(FILE_MODE);
    Ok(File::from(rustix::fs::openat(directory, LOCK, how, mode)?))
}

fn write_process(mut file: &File) -> io::Result<()> {
    let id = format!("{}\n", std::process::id());
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(id.as_bytes())
}

/// The process that has written its id into a lock file, as far as that can be read.
fn process_in(file: io::Result<File>) -> String {
    let mut process = String::new();
    let read = file.and_then(|file| file.take(32).read_to_string(&mut process));
    match (read, process.trim()) {
        (Ok(_), id) if !id.is_empty() => id.to_owned(),
        _ => "(unknown)".to_owned(),
    }
}

fn in_use(path: &Path) -> DataDirError {
    DataDirError::InUse {
        path: path.to_owned(),
        process: process_in(File::open(path.join(LOCK))),
    }
}

fn no_locks(path: &Path, error: io::Error) -> DataDirError {
    DataDirError::NoLocks {
        path: path.to_owned(),
        error,
    }
}

/// Looks whether a directory that is held is still what its names mean. It holds the locks too.
#[derive(Debug)]
pub struct Guard {
    locks: Arc<Locks>,
    identity: &'static str,
    shards: Vec<Shard>,
}

/// A shard's directory, and its mark as soon as that says that the journal has begun.
#[derive(Debug)]
struct Shard {
    folder: File,
    mark: Mutex<Option<File>>,
}

impl Shard {
    fn open(path: &PathBuf) -> io::Result<Shard> {
        let folder = File::open(path)?;
        let mark = Mutex::default();
        Ok(Shard { folder, mark })
    }

    /// Whether its files were taken out of it. The mark goes with them; another one may have come
    /// with copies of them, which are not those that are open.
    fn files(&self) -> Sight {
        let mut mark = self.mark.lock();
        if mark.is_none() {
            *mark = begun_mark(&self.folder);
        }
        let there = rustix::fs::statat(&self.folder, MARK, AtFlags::empty());
        mark.as_ref().map_or(Sight::Same, |mark| sight(mark, there))
    }
}

/// Reason for which no lock file could be made anew.
#[derive(Debug)]
pub enum NoLock {
    /// Another process has the one that is there.
    Taken {
        /// Contents of that file: the process's id, or `(unknown)`.
        process: String,
    },
    /// The error of the system.
    Failed(io::Error),
}

impl Guard {
    pub(super) fn new(
        locks: &Arc<Locks>,
        identity: &'static str,
        shards: &[PathBuf],
    ) -> io::Result<Guard> {
        let shards = shards.iter().map(Shard::open);
        Ok(Guard {
            locks: Arc::clone(locks),
            identity,
            shards: shards.collect::<io::Result<_>>()?,
        })
    }

    /// Where the directory is, or was.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.locks.path
    }

    /// Looks at the names now.
    #[must_use]
    pub fn look(&self) -> Seen {
        let directory = &self.locks.directory;
        let inside = |name: &str| rustix::fs::statat(directory, name, AtFlags::empty());
        let path = rustix::fs::statat(CWD, &self.locks.path, AtFlags::empty());
        let mut things = vec![(Thing::Directory, sight(directory, path))];
        if let Some(identity) = &self.locks.identity {
            things.push((Thing::Identity, sight(identity, inside(self.identity))));
        }
        for (number, shard) in (0..).zip(&self.shards) {
            let there = inside(&super::data_dir::shard_name(number));
            things.push((Thing::Shard(number), sight(&shard.folder, there)));
            things.push((Thing::Files(number), shard.files()));
        }
        let lock = sight(&self.locks.lock.lock(), inside(LOCK));
        Seen { lock, things }
    }

    /// Makes the lock file anew in the directory that is held, and locks it.
    ///
    /// # Errors
    /// See [`NoLock`].
    pub fn make_lock(&self) -> Result<(), NoLock> {
        let file = lock_file(&self.locks.directory).map_err(NoLock::Failed)?;
        match hold(&file).map_err(NoLock::Failed)? {
            Held::Yes => {}
            Held::No => {
                let process = process_in(Ok(file));
                return Err(NoLock::Taken { process });
            }
            Held::Unsupported(error) => return Err(NoLock::Failed(error)),
        }
        write_process(&file).map_err(NoLock::Failed)?;
        *self.locks.lock.lock() = file;
        Ok(())
    }
}

fn sight(held: &File, there: rustix::io::Result<Stat>) -> Sight {
    let held = rustix::fs::fstat(held);
    match (held, there) {
        (Ok(held), Ok(there)) if (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino) => {
            Sight::Same
        }
        (Ok(_), Ok(_)) => Sight::Other,
        (_, Err(Errno::NOENT | Errno::NOTDIR)) => Sight::Missing,
        (Err(error), _) | (_, Err(error)) => Sight::Unclear(io::Error::from(error).to_string()),
    }
}

#[cfg(test)]
mod tests;
