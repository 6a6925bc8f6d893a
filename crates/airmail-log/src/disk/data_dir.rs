//! A node's data directory: `identity`, `LOCK`, and a directory of files for each shard.
//!
//! The identity is there twice, so that damage to one does not keep the node from starting: the one
//! that is sound is believed, and the other is written again when the directory is taken.
//!
//! Only one process at a time has it, held by an exclusive lock on `LOCK` that the system lets go
//! with the process. A directory that has something in it and no identity is somebody else's, and
//! is refused before anything is written.

mod new_life;

pub use new_life::Repair;

use super::files::{DiskFiles, DiskOptions, Waker};
use super::identity::{Identity, IdentityError};
use super::read_only::ReadOnlyFiles;
use crate::journal::{Problem, Reason};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const IDENTITY: &str = "identity";
/// The same once more. Directories made before there was one get it when they are taken.
const IDENTITY_COPY: &str = "identity.copy";
/// The identity while it is written.
const IDENTITY_NEW: &str = "identity.new";
const LOCK: &str = "LOCK";
/// What an empty directory may hold: what an attempt that was broken off leaves, and what the
/// root of a file system has.
const AS_GOOD_AS_EMPTY: [&str; 3] = [LOCK, IDENTITY_NEW, "lost+found"];

/// See the module's documentation. The lock is held until this is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    identity: Identity,
    lock: Option<File>,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process has it.
    #[error("data directory {path} is in use by process {process}")]
    InUse {
        /// The directory.
        path: PathBuf,
        /// What that process wrote into the lock file: its id, or `(unknown)`.
        process: String,
    },
    /// It holds something, and no identity.
    #[error("{path} is not an Airmail data directory: it has no identity, and holds {found:?}")]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// A name found in it.
        found: String,
    },
    /// There is no data directory to read.
    #[error("there is no Airmail data directory at {path}")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Its identity cannot be used.
    #[error("identity of data directory {path}: {why}")]
    Identity {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        why: IdentityError,
    },
    /// The system refused something.
    #[error("{what} {path}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl DataDir {
    /// Takes the directory at `path`. One that is empty or missing is made, as `new` says; one that
    /// is there keeps its own identity, whatever `new` says.
    ///
    /// # Errors
    /// See [`DataDirError`].
    pub fn open(path: &Path, new: &Identity) -> Result<DataDir, DataDirError> {
        create_durably(path)?;
        if !has_identity(path) {
            refuse_unless_empty(path)?;
        }
        let lock = take_lock(path)?;
        if !has_identity(path) {
            write_identity(path, IDENTITY, new)?;
        }
        let identity = read_identity(path)?;
        for name in [IDENTITY, IDENTITY_COPY] {
            if read_one(path, name).ok() != Some(identity) {
                write_identity(path, name, &identity)?;
            }
        }
        let dir = DataDir {
            path: path.to_owned(),
            identity,
            lock: Some(lock),
        };
        for shard in 0..identity.shards {
            let shard = dir.shard(shard);
            fs::create_dir_all(&shard).map_err(failed("create", &shard))?;
        }
        sync_directory(path)?;
        Ok(dir)
    }

    /// Looks at the directory at `path` without a lock, and without changing anything. A node may
    /// be running on it, so that files grow, come and go while they are read: see
    /// [`DataDir::in_use`].
    ///
    /// # Errors
    /// See [`DataDirError`].
    pub fn open_read_only(path: &Path) -> Result<DataDir, DataDirError> {
        if !has_identity(path) {
            return Err(DataDirError::Missing {
                path: path.to_owned(),
            });
        }
        Ok(DataDir {
            path: path.to_owned(),
            identity: read_identity(path)?,
            lock: None,
        })
    }

    /// Who it belongs to.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Damage to one of the two identities. One that is missing is none: older directories have
    /// but one.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let both = [IDENTITY, IDENTITY_COPY].into_iter();
        let there = both.filter(|name| self.path.join(name).exists());
        let hit = there.filter(|name| read_one(&self.path, name).ok() != Some(self.identity));
        hit.map(|name| Problem {
            file: name.to_owned(),
            at: 0,
            log: None,
            number: None,
            reason: Reason::Identity,
        })
        .collect()
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the files of a shard are.
    #[must_use]
    pub fn shard(&self, shard: u16) -> PathBuf {
        self.path.join(format!("shard-{shard:04}"))
    }

    /// The files of a shard, with threads to work on them.
    ///
    /// # Errors
    /// `ReadOnlyFilesystem` if this was opened read only, or what the system says.
    pub fn files(&self, shard: u16, options: &DiskOptions, waker: Waker) -> io::Result<DiskFiles> {
        if self.lock.is_none() {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        DiskFiles::open(&self.shard(shard), options, waker)
    }

    /// The files of a shard, to be read only.
    #[must_use]
    pub fn files_read_only(&self, shard: u16) -> ReadOnlyFiles {
        ReadOnlyFiles::new(&self.shard(shard))
    }

    /// Whether another process has the directory now.
    #[must_use]
    pub fn in_use(&self) -> bool {
        // A shared lock that is let go at once: it changes nothing.
        let file = File::open(self.path.join(LOCK));
        let lock = file.map(|file| file.try_lock_shared());
        self.lock.is_none() && matches!(lock, Ok(Err(TryLockError::WouldBlock)))
    }
}

/// Makes a directory and those above it, so that a power cut does not take them back.
fn create_durably(path: &Path) -> Result<(), DataDirError> {
    let missing = path.ancestors().take_while(|path| !path.exists());
    let above: Vec<_> = missing.filter_map(Path::parent).collect();
    fs::create_dir_all(path).map_err(failed("create", path))?;
    for path in above {
        let here = path.as_os_str().is_empty();
        sync_directory(if here { Path::new(".") } else { path })?;
    }
    Ok(())
}

fn refuse_unless_empty(path: &Path) -> Result<(), DataDirError> {
    for entry in fs::read_dir(path).map_err(failed("list", path))? {
        let entry = entry.map_err(failed("list", path))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !AS_GOOD_AS_EMPTY.contains(&&*name) {
            return Err(DataDirError::NotOurs {
                path: path.to_owned(),
                found: name,
            });
        }
    }
    Ok(())
}

/// Locks `LOCK` and writes this process's id into it, for whoever is refused.
fn take_lock(path: &Path) -> Result<File, DataDirError> {
    let at = path.join(LOCK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&at).map_err(failed("open", &at))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            let read = file.take(32).read_to_string(&mut process);
            let process = match (read, process.trim()) {
                (Ok(_), id) if !id.is_empty() => id.to_owned(),
                _ => "(unknown)".to_owned(),
            };
            return Err(DataDirError::InUse {
                path: path.to_owned(),
                process,
            });
        }
        Err(TryLockError::Error(error)) => return Err(failed("lock", &at)(error)),
    }
    let id = format!("{}\n", std::process::id());
    file.set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(id.as_bytes()))
        .map_err(failed("write", &at))?;
    Ok(file)
}

/// Whether it is a data directory, sound or not.
fn has_identity(path: &Path) -> bool {
    path.join(IDENTITY).exists() || path.join(IDENTITY_COPY).exists()
}

/// Writes an identity so that there is all of it or none, whenever the power fails.
fn write_identity(path: &Path, name: &str, identity: &Identity) -> Result<(), DataDirError> {
    let new = path.join(IDENTITY_NEW);
    File::create(&new)
        .and_then(|mut file| {
            file.write_all(identity.to_string().as_bytes())?;
            file.sync_all()
        })
        .map_err(failed("write", &new))?;
    fs::rename(&new, path.join(name)).map_err(failed("rename", &new))?;
    sync_directory(path)
}

/// The first that is sound; if none is, what is wrong with the first.
fn read_identity(path: &Path) -> Result<Identity, DataDirError> {
    read_one(path, IDENTITY).or_else(|error| read_one(path, IDENTITY_COPY).map_err(|_| error))
}

fn read_one(path: &Path, name: &str) -> Result<Identity, DataDirError> {
    let at = path.join(name);
    let bytes = fs::read(&at).map_err(failed("read", &at))?;
    Identity::parse(&String::from_utf8_lossy(&bytes)).map_err(|why| DataDirError::Identity {
        path: path.to_owned(),
        why,
    })
}

fn sync_directory(path: &Path) -> Result<(), DataDirError> {
    let result = File::open(path).and_then(|directory| directory.sync_all());
    result.map_err(failed("sync", path))
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataDirError {
    let path = path.to_owned();
    move |error| DataDirError::Io { what, path, error }
}

#[cfg(test)]
mod tests;
