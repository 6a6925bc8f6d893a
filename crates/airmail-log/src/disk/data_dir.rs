//! A node's data directory: `identity`, `LOCK`, and a directory of files for each shard.
//!
//! The identity is there twice, so that damage to one does not keep the node from starting: the
//! sound one is believed, and the other is written again when the directory is taken.
//!
//! It may get more shards when it is taken, and never has fewer afterwards ([`growing`]).
//!
//! Only one process at a time has the directory ([`locks`](super::locks)). A directory that has
//! other files and no identity is somebody else's, and is refused before anything is written. One
//! with an identity and a changed shard has lost a volume, and is refused too
//! ([`shard_mark`](super::shard_mark)): a node that began anew there would give the numbers of the
//! lost records again.

mod growing;
mod needs;
mod new_life;

pub use new_life::Repair;

use super::files::{DiskFiles, DiskOptions};
use super::folder::Folder;
use super::identity::{Identity, IdentityError};
use super::locks::{Guard, LOCK, Locks, are_held};
use super::modes::{self, Exposed};
use super::read_only::ReadOnlyFiles;
use super::shard_mark::{self, Begun, MARK, ShardLoss, ShardMark};
use crate::contract::Waker;
use crate::journal::{Problem, Reason};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const IDENTITY: &str = "identity";
/// The same once more. Directories made before there was one get it when they are taken.
const IDENTITY_COPY: &str = "identity.copy";
/// The identity while it is written.
const IDENTITY_NEW: &str = "identity.new";
/// Names that an empty directory may hold: leftovers of an attempt that was broken off, and the
/// contents of a file system's root.
const AS_GOOD_AS_EMPTY: [&str; 3] = [LOCK, IDENTITY_NEW, "lost+found"];

/// Advice for a shard that was lost.
const LOST_ADVICE: &str = "mount it, or restore the directory from a copy; only if what it held is \
     really gone, begin anew in another directory, or move this one away first";

/// See the module's documentation. The locks are held until this, and every [`Guard`] of it, is
/// dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    identity: Identity,
    locks: Option<Arc<Locks>>,
    /// Shards whose journals have begun.
    begun: Vec<bool>,
    /// Damage that was found, and mended, when it was taken.
    mended: Vec<Problem>,
    made: bool,
}

/// Reason for which a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process has it.
    #[error("data directory {path} is in use by process {process}")]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Contents of the lock file: the process's id, or `(unknown)`.
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
    /// One of its shards was lost or exchanged.
    #[error("{shard} of data directory {path} {loss}: {LOST_ADVICE}")]
    Shard {
        /// The directory.
        path: PathBuf,
        /// The shard's directory in it.
        shard: String,
        /// State of the shard's directory.
        loss: ShardLoss,
    },
    /// It has more shards than were asked for.
    #[error("node.shards: {asked}, limit: at least {found}, as many as {path} has")]
    FewerShards {
        /// The directory.
        path: PathBuf,
        /// Number of shards that were asked for.
        asked: u16,
        /// Number of shards that it has.
        found: u16,
    },
    /// Its file system has no locks.
    #[error(
        "{path} cannot be locked: {error}: a data directory has to be on a file system with locks \
         (flock), so that no second node takes it"
    )]
    NoLocks {
        /// The path to be locked.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Its identity cannot be used.
    #[error("identity of data directory {path}: {why}")]
    Identity {
        /// The directory.
        path: PathBuf,
        /// The error in the identity.
        why: IdentityError,
    },
    /// The system refused something.
    #[error("{what} {path}: {error}")]
    Io {
        /// The operation that was tried.
        what: &'static str,
        /// The path that it was tried on.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

impl DataDir {
    /// Takes the directory at `path`. One that is empty or missing is made, as `new` says; one that
    /// is there keeps its own identity, whatever `new` says, but for the number of shards: it gets more
    /// if `new` has more, and is refused if `new` has fewer.
    ///
    /// # Errors
    /// See [`DataDirError`].
    pub fn open(path: &Path, new: &Identity) -> Result<DataDir, DataDirError> {
        create_durably(path)?;
        if !has_identity(path) {
            refuse_unless_empty(path)?;
        }
        let mut locks = Locks::take(path)?;
        let made = !has_identity(path);
        if made {
            // Before the identity: where that is, a shard that is missing was lost.
            make_shards(path, new)?;
            write_identity(path, IDENTITY, new)?;
        }
        let mut identity = growing::read_identity(path)?;
        let mut mended = identity_problems(path, &identity);
        growing::to_shards(path, &mut identity, new.shards)?;
        let (begun, marks) = take_shards(path, &identity)?;
        mended.splice(0..0, marks);
        for name in [IDENTITY, IDENTITY_COPY] {
            if read_one(path, name).ok() != Some(identity) {
                write_identity(path, name, &identity)?;
            }
        }
        locks.hold_identity(IDENTITY)?;
        sync_directory(path)?;
        Ok(DataDir {
            path: path.to_owned(),
            identity,
            locks: Some(Arc::new(locks)),
            begun,
            mended,
            made,
        })
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
        let identity = growing::read_identity(path)?;
        let mut begun = Vec::new();
        for shard in 0..identity.shards {
            begun.push(look_at_shard(path, &identity, shard)?.begun);
        }
        Ok(DataDir {
            path: path.to_owned(),
            identity,
            locks: None,
            begun,
            mended: Vec::new(),
            made: false,
        })
    }

    /// Identity of the directory.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether it was not there before, and has been made.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.made
    }

    /// Damage found in the directory, but for its shards' journals: to one of the two identities,
    /// or to a shard's mark. A missing one is no damage: older directories do not have all of them.
    /// For a directory that was taken, the damage mended since.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        if self.locks.is_some() {
            return self.mended.clone();
        }
        let marks = (0..self.identity.shards).filter(|&shard| {
            let found = look_at_shard(&self.path, &self.identity, shard);
            found.is_ok_and(|found| found.damaged)
        });
        let marks = marks.map(mark_problem);
        let identities = identity_problems(&self.path, &self.identity);
        identities.into_iter().chain(marks).collect()
    }

    /// Finds the first path that other users may open: the directory or, if that is closed to them,
    /// one of its shards, which may lie elsewhere. Nobody else can open anything inside a closed
    /// directory.
    ///
    /// # Errors
    /// The system's error about one of these.
    pub fn exposed(&self) -> io::Result<Option<Exposed>> {
        let shards = (0..self.identity.shards).map(|shard| self.shard(shard));
        let mut all = [self.path.clone()].into_iter().chain(shards);
        all.find_map(|path| Exposed::look(&path).transpose())
            .transpose()
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the files of a shard are.
    #[must_use]
    pub fn shard(&self, shard: u16) -> PathBuf {
        self.path.join(shard_name(shard))
    }

    /// The files of a shard, with threads to work on them.
    ///
    /// # Errors
    /// `ReadOnlyFilesystem` if this was opened read only, or the system's error.
    pub fn files(&self, shard: u16, options: &DiskOptions, waker: Waker) -> io::Result<DiskFiles> {
        if self.locks.is_none() {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        let has_begun = self.begun.get(usize::from(shard)).copied();
        let begun = if has_begun.unwrap_or(true) {
            Begun::told()
        } else {
            Begun::untold(ShardMark::new(&self.identity, shard, false))
        };
        DiskFiles::begin(&self.shard(shard), options, waker, begun)
    }

    /// Makes a guard, which looks whether the directory is still the one that its names mean.
    /// `None` if this was opened read only.
    ///
    /// # Errors
    /// The system's error about a shard's directory.
    pub fn guard(&self) -> io::Result<Option<Guard>> {
        let shards: Vec<PathBuf> = (0..self.identity.shards).map(|n| self.shard(n)).collect();
        let locks = self.locks.as_ref();
        locks
            .map(|locks| Guard::new(locks, IDENTITY, &shards))
            .transpose()
    }

    /// The files of a shard, to be read only.
    #[must_use]
    pub fn files_read_only(&self, shard: u16) -> ReadOnlyFiles {
        ReadOnlyFiles::new(&self.shard(shard))
    }

    /// Whether another process has the directory now.
    #[must_use]
    pub fn in_use(&self) -> bool {
        self.locks.is_none() && are_held(&self.path, &[LOCK, IDENTITY])
    }
}

/// The name of a shard's directory.
pub(super) fn shard_name(shard: u16) -> String {
    format!("shard-{shard:04}")
}

/// Makes a new directory's shards, each with its mark.
fn make_shards(path: &Path, new: &Identity) -> Result<(), DataDirError> {
    for shard in 0..new.shards {
        let at = path.join(shard_name(shard));
        modes::create_directory(&at).map_err(failed("create", &at))?;
        mark_shard(&at, &ShardMark::new(new, shard, false))?;
    }
    sync_directory(path)
}

/// Looks at every shard, and writes its mark where that is out of date. Gives the shards that have
/// begun, and the marks that were damaged.
fn take_shards(
    path: &Path,
    identity: &Identity,
) -> Result<(Vec<bool>, Vec<Problem>), DataDirError> {
    let mut all = Vec::new();
    for shard in 0..identity.shards {
        all.push(look_at_shard(path, identity, shard)?);
    }
    let mut problems = Vec::new();
    for (shard, found) in (0..).zip(&all) {
        if !found.marked {
            let mark = ShardMark::new(identity, shard, found.begun);
            mark_shard(&path.join(shard_name(shard)), &mark)?;
        }
        problems.extend(found.damaged.then(|| mark_problem(shard)));
    }
    let begun = all.iter().map(|found| found.begun);
    Ok((begun.collect(), problems))
}

fn mark_shard(at: &Path, mark: &ShardMark) -> Result<(), DataDirError> {
    let result = Folder::open(at).and_then(|folder| mark.write(&folder));
    result.map_err(failed("mark", at))
}

fn look_at_shard(
    path: &Path,
    identity: &Identity,
    shard: u16,
) -> Result<shard_mark::Found, DataDirError> {
    let at = path.join(shard_name(shard));
    let wanted = ShardMark::new(identity, shard, true);
    let found = shard_mark::look(&at, &wanted).map_err(failed("look at", &at))?;
    found.map_err(|loss| DataDirError::Shard {
        path: path.to_owned(),
        shard: shard_name(shard),
        loss,
    })
}

fn mark_problem(shard: u16) -> Problem {
    damaged(format!("{}/{MARK}", shard_name(shard)))
}

fn identity_problems(path: &Path, identity: &Identity) -> Vec<Problem> {
    let both = [IDENTITY, IDENTITY_COPY].into_iter();
    let there = both.filter(|name| path.join(name).exists());
    // One that tells of fewer shards was not written yet when a start was broken off.
    let is_sound = |name| read_one(path, name).is_ok_and(|one| one.grows_to(identity));
    let hit = there.filter(|name| !is_sound(name));
    hit.map(|name| damaged(name.to_owned())).collect()
}

fn damaged(file: String) -> Problem {
    Problem {
        file,
        at: 0,
        log: None,
        number: None,
        reason: Reason::Identity,
    }
}

/// Makes a directory and those above it, so that a power cut does not take them back.
fn create_durably(path: &Path) -> Result<(), DataDirError> {
    let missing = path.ancestors().take_while(|path| !path.exists());
    let above: Vec<_> = missing.filter_map(Path::parent).collect();
    modes::create_directory(path).map_err(failed("create", path))?;
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
        // Of an attempt that was broken off before there was an identity.
        let new_shard = name.starts_with("shard-") && shard_mark::is_new(&entry.path());
        if !AS_GOOD_AS_EMPTY.contains(&&*name) && !new_shard {
            return Err(DataDirError::NotOurs {
                path: path.to_owned(),
                found: name,
            });
        }
    }
    Ok(())
}

/// Whether it is a data directory, sound or not.
fn has_identity(path: &Path) -> bool {
    path.join(IDENTITY).exists() || path.join(IDENTITY_COPY).exists()
}

/// Writes an identity so that there is all of it or none, whenever the power fails.
fn write_identity(path: &Path, name: &str, identity: &Identity) -> Result<(), DataDirError> {
    let new = path.join(IDENTITY_NEW);
    modes::write_anew(&new, &identity.to_string()).map_err(failed("write", &new))?;
    fs::rename(&new, path.join(name)).map_err(failed("rename", &new))?;
    sync_directory(path)
}

/// The first identity that is sound; if none is, the error of the first.
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

pub(super) fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataDirError {
    let path = path.to_owned();
    move |error| DataDirError::Io { what, path, error }
}

#[cfg(test)]
mod tests;
