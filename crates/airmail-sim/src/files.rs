//! Simulated files: a page cache over a disk, with delays, faults and crashes.
//!
//! [`SimFiles`] is a journal's view; [`Disk`] is what outlives it. A [`Machine`] has a disk for each journal
//! that runs on it. A file has a durable
//! image and the writes since; a sync moves the second into the first. A crash of the power keeps,
//! loses or tears each unsynced write on its own; a crash of the process keeps the writes that it
//! handed over. After a failed sync the unsynced writes are in one of two states, and no later sync
//! changes that: on the disk, or only in the cache until the next crash of either kind.

mod copy;
mod corrupt;
mod crash;
mod damage;
mod disk;
mod effect;
mod file;
#[cfg(test)]
mod tests;

pub use copy::DiskCopy;
pub use corrupt::Corruption;
pub use disk::Disk;
pub(crate) use disk::a_while;
pub use file::SimFile;

use crate::entropy::Entropy;
use crate::message::MessageId;
use airmail_log::files::{FileDone, FileName, FileOp, FileToken, Files};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::sync::Arc;

/// One journal's view of its disk. After a crash it is dead: nothing it asks for happens.
#[derive(Debug)]
pub struct SimFiles {
    disk: Arc<Mutex<Disk>>,
    life: u64,
}

/// The disks, shared by the process's files and the simulator. One thread uses them.
#[derive(Clone, Debug)]
pub struct Machine(Vec<Arc<Mutex<Disk>>>);

impl Machine {
    /// A machine with these disks, one for each journal that runs on it; at least one.
    #[must_use]
    pub fn new(disks: Vec<Disk>) -> Machine {
        assert!(!disks.is_empty(), "a machine without a disk");
        let disks = disks.into_iter().map(|disk| Arc::new(Mutex::new(disk)));
        Machine(disks.collect())
    }

    /// The first disk: the only one, where there is one journal.
    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk_of(0)
    }

    /// The disk of a shard's journal.
    pub fn disk_of(&self, shard: usize) -> MutexGuard<'_, Disk> {
        self.0[shard].lock()
    }

    /// All of them, in order of shards.
    pub fn disks(&self) -> impl Iterator<Item = MutexGuard<'_, Disk>> {
        self.0.iter().map(|disk| disk.lock())
    }

    /// One of them.
    pub fn any_disk(&self, chance: &mut Entropy) -> MutexGuard<'_, Disk> {
        match self.0.len() {
            1 => self.disk(),
            disks => self.disk_of(chance.index(disks)),
        }
    }

    /// Files for a shard's journal that starts now. Those of its earlier processes are dead.
    #[must_use]
    pub fn boot(&self, shard: usize) -> SimFiles {
        let life = self.disk_of(shard).boot();
        SimFiles {
            disk: Arc::clone(&self.0[shard]),
            life,
        }
    }

    /// Whether a message has been on a disk, whole and synced.
    #[must_use]
    pub fn is_durable(&self, id: MessageId) -> bool {
        self.disks().any(|disk| disk.is_durable(id))
    }

    /// Whether a message has been handed to the operating system, whole.
    #[must_use]
    pub fn is_written(&self, id: MessageId) -> bool {
        self.disks().any(|disk| disk.is_written(id))
    }

    /// Whether the process's files have failed it.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.disks().any(|disk| disk.failures() > 0)
    }
}

impl Files for SimFiles {
    fn list(&mut self) -> io::Result<Vec<(FileName, u64)>> {
        Ok(self.disk.lock().list())
    }

    fn load(&mut self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes> {
        self.disk.lock().load(name, at, length)
    }

    fn submit(&mut self, token: FileToken, op: FileOp) {
        let mut disk = self.disk.lock();
        if disk.life() == self.life {
            disk.submit(token, op);
        }
    }

    fn poll(&mut self, out: &mut Vec<FileDone>) {
        let mut disk = self.disk.lock();
        if disk.life() == self.life {
            disk.poll(out);
        }
    }
}
