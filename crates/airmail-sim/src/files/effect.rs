//! Effects of operations when their time has come, and the ways in which they fail.

use super::disk::Disk;
use super::file::SimFile;
use crate::census::Kind;
use airmail_log::files::{FileName, FileOp};
use bytes::{Bytes, BytesMut};
use std::io;

impl Disk {
    pub(super) fn effect(&mut self, op: FileOp) -> io::Result<Bytes> {
        match op {
            FileOp::Create { name } => self.create(name),
            FileOp::Write {
                name,
                at,
                parts,
                sync,
                note,
            } => {
                self.write(&name, at, &joined(&parts))?;
                if !sync {
                    return Ok(Bytes::new());
                }
                let synced = self.sync(&name)?;
                if let Some(note) = note {
                    self.follow(note);
                }
                Ok(synced)
            }
            FileOp::Fill { name, from, to } => {
                let zeros = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
                self.write(&name, from, &Bytes::from(vec![0; zeros]))?;
                self.sync(&name)
            }
            FileOp::Read {
                name, at, length, ..
            } => {
                // What fails and fails again is damage, which is simulated apart.
                let fails = self.chance.chance(self.faults.read_fails);
                let failures = self.failed_reads.entry((name.clone(), at)).or_default();
                if fails && *failures < 2 {
                    *failures += 1;
                    self.census.count(Kind::ReadFailed);
                    return Err(failure("read"));
                }
                *failures = 0;
                self.load(&name, at, length)
            }
            FileOp::Cut { name, length } => {
                let file = self.files.get_mut(&name).ok_or(io::ErrorKind::NotFound)?;
                file.cut(usize::try_from(length).unwrap_or(usize::MAX));
                Ok(Bytes::new())
            }
            FileOp::Rename { from, to } => {
                let file = self.files.remove(&from).ok_or(io::ErrorKind::NotFound)?;
                self.files.insert(to, file);
                self.ghosts.clear();
                Ok(Bytes::new())
            }
            FileOp::Remove { name } => {
                let file = self.files.remove(&name).ok_or(io::ErrorKind::NotFound)?;
                self.ghosts.insert(name, file);
                Ok(Bytes::new())
            }
        }
    }

    fn create(&mut self, name: FileName) -> io::Result<Bytes> {
        if self.files.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.used() >= self.capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.files.insert(name, SimFile::default());
        self.ghosts.clear();
        Ok(Bytes::new())
    }

    fn write(&mut self, name: &FileName, at: u64, bytes: &Bytes) -> io::Result<()> {
        let used = self.used();
        let file = self.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        let growth = (at + bytes.len() as u64).saturating_sub(file.length());
        let full = growth > 0 && used + growth > self.capacity;
        let fails = self.chance.chance(self.faults.write_fails);
        let taken = if full || fails {
            let room = self.capacity.saturating_sub(used);
            let bound = if full { room } else { bytes.len() as u64 };
            self.chance
                .index(usize::try_from(bound).unwrap_or(0).min(bytes.len()) + 1)
        } else {
            bytes.len()
        };
        let taken = bytes.slice(..taken);
        self.note_written(&taken);
        if let Some(file) = self.files.get_mut(name) {
            file.write(at, &taken);
        }
        if full {
            self.census.count(Kind::DiskFull);
            Err(io::ErrorKind::StorageFull.into())
        } else if fails {
            self.census.count(Kind::WriteFailed);
            Err(failure("write"))
        } else {
            Ok(())
        }
    }

    fn sync(&mut self, name: &FileName) -> io::Result<Bytes> {
        let fails = self.ailing || self.chance.chance(self.faults.sync_fails);
        let mut chance = self.chance.fork();
        let file = self.files.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        if fails || file.failed {
            file.failed = true;
            for write in &mut file.unsynced {
                write.stranded |= chance.coin();
            }
            let arrived = file.sync();
            arrived.iter().for_each(|bytes| self.note_durable(bytes));
            self.census.count(Kind::SyncFailed);
            return Err(failure("fdatasync"));
        }
        if self.lies {
            return Ok(Bytes::new());
        }
        let arrived = file.sync();
        arrived.iter().for_each(|bytes| self.note_durable(bytes));
        Ok(Bytes::new())
    }
}

pub(super) fn failure(what: &str) -> io::Error {
    io::Error::other(format!("simulated failure of {what}"))
}

pub(super) fn joined(parts: &[Bytes]) -> Bytes {
    if let [one] = parts {
        return one.clone();
    }
    let mut all = BytesMut::new();
    for part in parts {
        all.extend_from_slice(part);
    }
    all.freeze()
}
