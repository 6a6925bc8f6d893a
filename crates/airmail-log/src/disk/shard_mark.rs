//! The mark in a shard's directory, in the file `shard`: it names the owner, and says whether the
//! journal in it has begun.
//!
//! A volume that is not mounted looks like an empty directory. Without the mark a node could not
//! tell it from one that it has just made, and would begin again at number 1. So a shard's
//! directory is made, with its mark, before the data directory's identity; where there is an
//! identity, a shard without a mark and without files is a lost one. The mark says that the journal
//! has begun once its first file is there, and before any call is answered: so a mark that says so,
//! and no files, is a loss too.
//!
//! Directories made before there were marks have files of the journal in their shards, and get
//! their marks when they are taken.

use super::folder::Folder;
use super::identity::Identity;
use crate::journal::is_journals_own;
use airmail_model::NodeId;
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// The mark's file.
pub(super) const MARK: &str = "shard";
/// The mark while it is written.
const MARK_NEW: &str = "shard.new";
/// Names that a shard that has not begun may hold: its mark, and the contents of a file system's
/// root.
const AS_GOOD_AS_EMPTY: [&str; 3] = [MARK, MARK_NEW, "lost+found"];
/// First line of the file.
const TITLE: &str = "airmail shard";
const VERSION: u32 = 1;
/// More than there is in one.
const MARK_BYTES_MAX: u64 = 4096;

/// Contents of a shard's mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShardMark {
    cluster: u64,
    node: NodeId,
    shard: u16,
    /// The journal has, or has had, files here.
    pub(super) begun: bool,
}

/// Reason for which a shard's directory cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardLoss {
    /// There is none.
    #[error("is missing: the volume that it is on is probably not mounted")]
    Missing,
    /// There is something else of this name.
    #[error("is not a directory")]
    NotDirectory,
    /// The data stored in it is not there.
    #[error(
        "holds nothing of what was stored in it: the volume that it is on is probably not mounted, or \
         its files were removed"
    )]
    Emptied,
    /// It is another's.
    #[error(
        "belongs to cluster {cluster:016x}, node {node:016x}, shard {shard}: another volume is \
         mounted there"
    )]
    Foreign {
        /// Its cluster.
        cluster: u64,
        /// Its node.
        node: NodeId,
        /// Its shard.
        shard: u16,
    },
}

/// Findings in a usable shard's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The journal has files here.
    pub(super) begun: bool,
    /// The mark says all of it. Otherwise it is to be written.
    pub(super) marked: bool,
    /// There is a mark, and it is damaged.
    pub(super) damaged: bool,
}

impl ShardMark {
    pub(super) fn new(identity: &Identity, shard: u16, begun: bool) -> ShardMark {
        ShardMark {
            cluster: identity.cluster,
            node: identity.node,
            shard,
            begun,
        }
    }

    fn is_of(&self, other: &ShardMark) -> bool {
        (self.cluster, self.node, self.shard) == (other.cluster, other.node, other.shard)
    }

    /// Parses the file's text; `None` if it is damaged.
    fn parse(text: &str) -> Option<ShardMark> {
        let mut lines = text.lines().skip(2);
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let mark = ShardMark {
            cluster: u64::from_str_radix(field("cluster")?, 16).ok()?,
            node: NodeId(u64::from_str_radix(field("node")?, 16).ok()?),
            shard: field("shard")?.parse().ok()?,
            begun: field("begun")? == "yes",
        };
        // Written again it must be the same to the byte, its checksum with it.
        (mark.to_string() == text).then_some(mark)
    }

    /// Writes it so that there is all of it or none, whenever the power fails.
    pub(super) fn write(&self, folder: &Folder) -> io::Result<()> {
        // Of an attempt that was broken off.
        let _: io::Result<()> = folder.remove(MARK_NEW);
        let mut file = folder.create(MARK_NEW)?;
        file.write_all(self.to_string().as_bytes())?;
        file.sync_all()?;
        folder.rename(MARK_NEW, MARK)?;
        folder.sync()
    }
}

/// The text of the file.
impl fmt::Display for ShardMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = format!(
            "{TITLE}\nversion {VERSION}\ncluster {:016x}\nnode {:016x}\nshard {}\nbegun {}\n",
            self.cluster,
            self.node,
            self.shard,
            if self.begun { "yes" } else { "no" }
        );
        let sum = crc32c::crc32c(body.as_bytes());
        writeln!(f, "{body}crc32c {sum:08x}")
    }
}

/// The mark in a shard's directory, if it says that the journal has begun: it stays that file then.
pub(super) fn begun_mark(folder: &File) -> Option<File> {
    let how = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, MARK, how, Mode::empty()).ok()?;
    let file = File::from(file);
    let mut text = String::new();
    (&file)
        .take(MARK_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    let mark = ShardMark::parse(&text)?;
    mark.begun.then_some(file)
}

/// Looks at the directory of a shard that the identity says is there, and changes nothing.
///
/// # Errors
/// It cannot be looked at, or (the inner one) it was lost or exchanged.
pub(super) fn look(path: &Path, wanted: &ShardMark) -> io::Result<Result<Found, ShardLoss>> {
    match fs::metadata(path) {
        Ok(about) if !about.is_dir() => return Ok(Err(ShardLoss::NotDirectory)),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(ShardLoss::Missing));
        }
        Err(error) => return Err(error),
    }
    let has_files = has_files(path)?;
    let mark = match fs::read(path.join(MARK)) {
        Ok(bytes) => Some(ShardMark::parse(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let damaged = mark == Some(None);
    Ok(match mark.flatten() {
        Some(mark) if !mark.is_of(wanted) => Err(ShardLoss::Foreign {
            cluster: mark.cluster,
            node: mark.node,
            shard: mark.shard,
        }),
        Some(mark) if mark.begun && !has_files => Err(ShardLoss::Emptied),
        None if !has_files => Err(ShardLoss::Emptied),
        mark => Ok(Found {
            begun: has_files,
            marked: mark.is_some_and(|mark| mark.begun == has_files),
            damaged,
        }),
    })
}

/// Whether a shard's directory holds something without which a journal never is, once it has begun:
/// a segment or a checkpoint.
fn has_files(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if name.to_str().is_some_and(is_journals_own) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a directory is what an attempt to make a shard leaves, when it is broken off before there
/// is an identity.
pub(super) fn is_new(path: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(path) else {
        return false;
    };
    entries.all(|entry| {
        let name = entry.map(|entry| entry.file_name());
        name.is_ok_and(|name| AS_GOOD_AS_EMPTY.iter().any(|known| name == **known))
    })
}

/// Marks that a journal has begun, when it has.
#[derive(Debug, Default)]
pub(super) struct Begun(Mutex<Option<ShardMark>>);

impl Begun {
    /// There is nothing to be marked, or it is marked already.
    pub(super) fn told() -> Begun {
        Begun::default()
    }

    /// This mark is to be written then.
    pub(super) fn untold(mark: ShardMark) -> Begun {
        let mark = ShardMark {
            begun: true,
            ..mark
        };
        Begun(Mutex::new(Some(mark)))
    }

    /// There is a file in the shard's directory: marks it, unless that has been done.
    pub(super) fn tell(&self, folder: &Folder) -> io::Result<()> {
        let mut untold = self.0.lock();
        if let Some(mark) = &*untold {
            mark.write(folder)?;
            *untold = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::{StorageName, Wall};

    const IDENTITY: Identity = Identity {
        cluster: 1,
        node: NodeId(2),
        shards: 1,
        created: Wall(3),
        storage: StorageName::FIRST,
        needs: crate::Needs::Nothing,
    };

    #[test]
    fn what_was_written_is_read_and_every_changed_bit_is_noticed() {
        let mark = ShardMark::new(&IDENTITY, 7, true);
        let text = mark.to_string();
        assert_eq!(ShardMark::parse(&text), Some(mark));
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(text) = String::from_utf8(bytes) {
                assert_eq!(ShardMark::parse(&text), None, "bit {bit}: {text}");
            }
        }
        for length in 0..text.len() {
            assert_eq!(ShardMark::parse(&text[..length]), None, "length {length}");
        }
    }

    #[test]
    fn that_a_journal_has_begun_is_marked_once() {
        let temp = tempfile::tempdir().unwrap();
        let mark = ShardMark::new(&IDENTITY, 0, false);
        let folder = Folder::open(temp.path()).unwrap();
        mark.write(&folder).unwrap();
        let begun = Begun::untold(mark);
        begun.tell(&folder).unwrap();
        let text = fs::read_to_string(temp.path().join(MARK)).unwrap();
        assert!(ShardMark::parse(&text).unwrap().begun);
        fs::remove_file(temp.path().join(MARK)).unwrap();
        begun.tell(&folder).unwrap();
        Begun::told().tell(&folder).unwrap();
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }
}
