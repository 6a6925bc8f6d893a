//! Copies of a disk: the durable part of all its files at one moment, and setting it back to that.

use super::disk::Disk;
use super::file::SimFile;
use crate::message::MessageId;
use airmail_log::files::FileName;
use std::collections::{BTreeMap, BTreeSet};

/// Least contents of the files after a power cut at one moment.
#[derive(Clone, Debug)]
pub struct DiskCopy {
    files: BTreeMap<FileName, Vec<u8>>,
    /// Messages that had been on the disk by then. Retention may have removed some: a retry of one is answered as
    /// stored all the same.
    durable: BTreeSet<MessageId>,
}

impl Disk {
    /// A copy of all files, as far as they are durable.
    #[must_use]
    pub fn copy(&self) -> DiskCopy {
        let files = self.files.iter();
        let files = files.map(|(name, file)| (name.clone(), file.durable.clone()));
        DiskCopy {
            files: files.collect(),
            durable: self.durable.clone(),
        }
    }

    /// Puts a copy in the place of all files. No process may run.
    pub fn set_back(&mut self, copy: &DiskCopy) {
        self.ghosts.clear();
        self.failed_reads.clear();
        let file = |durable: &Vec<u8>| SimFile {
            durable: durable.clone(),
            seen: durable.clone(),
            ..SimFile::default()
        };
        let files = copy.files.iter();
        self.files = files
            .map(|(name, durable)| (name.clone(), file(durable)))
            .collect();
        self.durable.clone_from(&copy.durable);
        self.recount();
        self.written.clone_from(&self.durable);
    }
}
