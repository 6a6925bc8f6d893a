//! Crashes: the possible fates of a file's unsynced operations.

use super::disk::{Disk, name_of};
use super::effect::joined;
use super::file::{SimFile, Unsynced, overlay};
use crate::census::{Census, Kind};
use crate::entropy::Entropy;
use crate::message::scan;
use airmail_log::files::FileOp;
use bytes::Bytes;
use std::io;

const SECTOR_BYTES: usize = 512;

impl Disk {
    /// The process is gone. What it had asked for is done, or half done, or not; what the operating
    /// system had taken stays, but for what a failed sync left in the cache.
    pub fn kill(&mut self) {
        // A second time for the notes of what is done now.
        for _ in 0..2 {
            for one in std::mem::take(&mut self.pending) {
                if self.chance.coin() {
                    // Nobody is left to be told whether it failed.
                    let _: io::Result<Bytes> = self.half(one.op);
                }
            }
        }
        self.done.clear();
        for file in self.files.values_mut().chain(self.ghosts.values_mut()) {
            if file.unsynced.iter().any(|write| write.stranded) {
                file.unsynced.retain(|write| !write.stranded);
                file.seen.clone_from(&file.durable);
                for write in &file.unsynced {
                    overlay(&mut file.seen, write.at, &write.bytes);
                }
            }
            file.failed = false;
            file.failure_told = false;
        }
    }

    /// The power is gone: as [`Disk::kill`], and each unsynced write is kept, lost or torn.
    pub fn cut_power(&mut self) {
        self.kill();
        let mut chance = self.chance.fork();
        for (name, file) in std::mem::take(&mut self.ghosts) {
            if chance.coin() {
                self.census.count(Kind::FileBack);
                self.files.entry(name).or_insert(file);
            }
        }
        for file in self.files.values_mut() {
            for write in std::mem::take(&mut file.unsynced) {
                survive(&mut chance, &mut self.census, file, &write);
            }
            file.forget();
        }
        self.recount();
    }

    fn half(&mut self, op: FileOp) -> io::Result<Bytes> {
        let whole = self.chance.coin();
        match op {
            FileOp::Write {
                name, at, parts, ..
            } if !whole => {
                let bytes = joined(&parts);
                let taken = bytes.slice(..self.chance.index(bytes.len() + 1));
                let file = self.files.get_mut(&name).ok_or(io::ErrorKind::NotFound)?;
                file.write(at, &taken);
                self.note_written(&taken);
                Ok(Bytes::new())
            }
            FileOp::Read { .. } => Ok(Bytes::new()),
            op if self.files.get(name_of(&op)).is_some_and(|file| file.failed) => Ok(Bytes::new()),
            op => self.effect(op),
        }
    }

    /// Takes note of the messages that are there.
    pub(super) fn recount(&mut self) {
        let mut found = Vec::new();
        for file in self.files.values() {
            scan(&file.durable, |id, _| found.push(id));
        }
        self.durable.extend(found);
    }
}

fn survive(chance: &mut Entropy, census: &mut Census, file: &mut SimFile, write: &Unsynced) {
    let length = write.bytes.len();
    match chance.below(5) {
        _ if write.stranded => {}
        0 => census.count(Kind::WriteLost),
        1 | 2 => overlay(&mut file.durable, write.at, &write.bytes),
        3 => {
            census.count(Kind::WriteTorn);
            let kept = chance.index(length + 1);
            overlay(&mut file.durable, write.at, &write.bytes[..kept]);
        }
        _ => {
            census.count(Kind::WriteTorn);
            for (index, sector) in write.bytes.chunks(SECTOR_BYTES).enumerate() {
                if chance.coin() {
                    let at = write.at + (index * SECTOR_BYTES) as u64;
                    overlay(&mut file.durable, at, sector);
                }
            }
        }
    }
}
