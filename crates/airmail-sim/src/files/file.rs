//! One file: its contents on the disk, its contents for a reader, and the difference.

use bytes::Bytes;

/// A write that is not known to be on the disk.
#[derive(Clone, Debug)]
pub struct Unsynced {
    /// The first byte.
    pub at: u64,
    /// The bytes.
    pub bytes: Bytes,
    /// A sync of it has failed, and it is not on the disk: later syncs leave it there.
    pub stranded: bool,
}

/// A file of the simulated disk.
#[derive(Clone, Debug, Default)]
pub struct SimFile {
    /// Least contents after a power cut.
    pub durable: Vec<u8>,
    /// Contents that a read gives.
    pub seen: Vec<u8>,
    /// Writes, in order, that make `seen` of `durable`.
    pub unsynced: Vec<Unsynced>,
    /// A sync of it has failed.
    pub failed: bool,
    /// The journal has been told so.
    pub failure_told: bool,
}

impl SimFile {
    /// Puts a write in the cache.
    pub fn write(&mut self, at: u64, bytes: &Bytes) {
        if bytes.is_empty() {
            return;
        }
        overlay(&mut self.seen, at, bytes);
        self.unsynced.push(Unsynced {
            at,
            bytes: bytes.clone(),
            stranded: false,
        });
    }

    /// Puts the unsynced writes on the disk, but for stranded ones, and gives each.
    pub fn sync(&mut self) -> Vec<Bytes> {
        let mut arrived = Vec::new();
        let durable = &mut self.durable;
        self.unsynced.retain(|write| {
            if !write.stranded {
                overlay(durable, write.at, &write.bytes);
                arrived.push(write.bytes.clone());
            }
            write.stranded
        });
        arrived
    }

    /// Shortens it. What was written behind its new end reaches the disk or not: then the file is
    /// longer again, as after a crash that has undone the cut.
    pub fn cut(&mut self, length: usize) {
        self.seen.truncate(length);
        self.durable.truncate(length);
    }

    /// Sets the cache back to the disk's contents.
    pub fn forget(&mut self) {
        self.unsynced.clear();
        self.seen.clone_from(&self.durable);
    }

    /// Length of the file for a reader.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.seen.len() as u64
    }
}

/// Writes `bytes` at `at`, over zeros where nothing was.
pub(super) fn overlay(image: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let from = usize::try_from(at).unwrap_or(usize::MAX);
    let to = from.saturating_add(bytes.len());
    if image.len() < to {
        image.resize(to, 0);
    }
    image[from..to].copy_from_slice(bytes);
}
