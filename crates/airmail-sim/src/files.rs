//! Simulated files: a page cache over a disk, with delays, faults and crashes.
//!
//! [`SimFiles`] is a journal's view; [`Disk`] is the machine that outlives it. A file has a durable
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

use airmail_log::files::{FileDone, FileName, FileOp, FileToken, Files};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::sync::Arc;

/// One process's view of the disk. After a crash it is dead: nothing it asks for happens.
#[derive(Debug)]
pub struct SimFiles {
    machine: Machine,
    life: u64,
}

/// The disk, shared by the process's files and the simulator. One thread uses it.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Mutex<Disk>>);

impl Machine {
    /// A machine with this disk.
    #[must_use]
    pub fn new(disk: Disk) -> Machine {
        Machine(Arc::new(Mutex::new(disk)))
    }

    /// The disk.
    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock()
    }

    /// Files for a process that starts now. Those of earlier processes are dead.
    #[must_use]
    pub fn boot(&self) -> SimFiles {
        let life = self.disk().boot();
        SimFiles {
            machine: self.clone(),
            life,
        }
    }
}

impl Files for SimFiles {
    fn list(&mut self) -> io::Result<Vec<(FileName, u64)>> {
        Ok(self.machine.disk().list())
    }

    fn load(&mut self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes> {
        self.machine.disk().load(name, at, length)
    }

    fn submit(&mut self, token: FileToken, op: FileOp) {
        let mut disk = self.machine.disk();
        if disk.life() == self.life {
            disk.submit(token, op);
        }
    }

    fn poll(&mut self, out: &mut Vec<FileDone>) {
        let mut disk = self.machine.disk();
        if disk.life() == self.life {
            disk.poll(out);
        }
    }
}
