//! The journal under test: over memory, over a disk, and over memory that outlives it.

#![allow(dead_code, reason = "each test file uses some of it")]

use airmail_log::conformance::{End, Subject, Watch};
use airmail_log::disk::{DiskFiles, DiskOptions};
use airmail_log::files::{FileDone, FileName, FileOp, FileToken, Files};
use airmail_log::journal::{JournalConfig, JournalStorage};
use airmail_log::memory::MemoryFiles;
use airmail_log::{LogStorage, Waker};
use airmail_model::{Mono, Now};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Segments, blocks and bounds so small that everything that happens between them happens.
pub(crate) fn tiny(config: JournalConfig) -> JournalConfig {
    JournalConfig {
        segment_bytes: 32 << 10,
        meta_segment_bytes: 4 << 10,
        fill_bytes: config.fill_bytes.min(8 << 10),
        block_bytes: 4 << 10,
        checkpoint_bytes: 16 << 10,
        commit_bytes: 8 << 10,
        cache_bytes: 8 << 10,
        read_bytes: 4 << 10,
        reads_max: 2,
        reserve_numbers: 16,
        unsynced_bytes: config.unsynced_bytes.min(4 << 10),
        ..config
    }
}

/// Each open has a seed of its own, as a shell's has.
fn seeded(config: &JournalConfig, opens: &mut u64) -> JournalConfig {
    *opens += 1;
    JournalConfig {
        seed: *opens,
        ..config.clone()
    }
}

/// Finishes what is under way and closes, as a shell does when told to stop.
fn close<F: Files>(storage: &mut JournalStorage<F>, now: Now, mut wait: impl FnMut()) {
    let mut now = now;
    storage.close(now);
    for _ in 0..1_000_000 {
        if storage.is_closed() {
            return;
        }
        let deadline = storage.poll(now, &mut Vec::new());
        wait();
        if let Some(at) = deadline {
            now.mono = now.mono.max(at);
        }
        now.mono = Mono(now.mono.0 + 1000);
    }
    panic!("the journal does not close");
}

/// Closes a storage that lies before a subject's, however far away, and tells when it is done.
pub(crate) fn close_before<S: Subject>(
    storage: &mut impl LogStorage,
    subject: &mut S,
    mut now: Now,
) -> Now {
    storage.close(now);
    while !storage.is_closed() {
        now.mono = Mono(now.mono.0 + 1000);
        storage.poll(now, &mut Vec::new());
        if subject.busy() {
            subject.wait();
        }
    }
    now
}

/// The `memory` storage: nothing outlives it.
pub(crate) struct InMemory {
    pub(crate) config: JournalConfig,
    opens: u64,
    under_way: Arc<AtomicUsize>,
}

impl InMemory {
    pub(crate) fn new(config: JournalConfig) -> InMemory {
        InMemory {
            config,
            opens: 0,
            under_way: Arc::default(),
        }
    }

    /// The same, its seeds after this one.
    pub(crate) fn after(self, opens: u64) -> InMemory {
        InMemory { opens, ..self }
    }
}

impl Subject for InMemory {
    type Storage = JournalStorage<Watch<MemoryFiles>>;

    fn fresh(&mut self, now: Now) -> Self::Storage {
        let files = Watch::new(MemoryFiles::new(), &self.under_way);
        JournalStorage::open(files, seeded(&self.config, &mut self.opens), now).unwrap()
    }

    fn reopen(&mut self, mut storage: Self::Storage, end: End, now: Now) -> Self::Storage {
        if end == End::Clean {
            close(&mut storage, now, || {});
        }
        self.fresh(now)
    }

    fn outlives(&self) -> bool {
        false
    }

    fn busy(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
    }

    fn wait(&mut self) {}
}

/// A directory in memory that outlives the journal on it.
#[derive(Clone, Default)]
pub(crate) struct Kept(pub(crate) Arc<Mutex<MemoryFiles>>);

impl Files for Kept {
    fn list(&mut self) -> io::Result<Vec<(FileName, u64)>> {
        self.0.lock().list()
    }

    fn load(&mut self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes> {
        self.0.lock().load(name, at, length)
    }

    fn submit(&mut self, token: FileToken, op: FileOp) {
        self.0.lock().submit(token, op);
    }

    fn poll(&mut self, out: &mut Vec<FileDone>) {
        self.0.lock().poll(out);
    }
}

/// The journal with all that `disk` has, on files that are quick.
pub(crate) struct OnKept {
    pub(crate) config: JournalConfig,
    pub(crate) files: Kept,
    opens: u64,
    under_way: Arc<AtomicUsize>,
}

impl OnKept {
    pub(crate) fn new(config: JournalConfig) -> OnKept {
        OnKept {
            config,
            files: Kept::default(),
            opens: 0,
            under_way: Arc::default(),
        }
    }

    /// Opens a storage on the files as they are now.
    pub(crate) fn open(&mut self, now: Now) -> JournalStorage<Watch<Kept>> {
        let files = Watch::new(self.files.clone(), &self.under_way);
        JournalStorage::open(files, seeded(&self.config, &mut self.opens), now).unwrap()
    }
}

impl Subject for OnKept {
    type Storage = JournalStorage<Watch<Kept>>;

    fn fresh(&mut self, now: Now) -> Self::Storage {
        *self.files.0.lock() = MemoryFiles::new();
        self.open(now)
    }

    fn reopen(&mut self, mut storage: Self::Storage, end: End, now: Now) -> Self::Storage {
        if end == End::Clean {
            close(&mut storage, now, || {});
        }
        drop(storage);
        // Completions that nobody polled are nobody's.
        self.files.poll(&mut Vec::new());
        self.open(now)
    }

    fn outlives(&self) -> bool {
        true
    }

    fn busy(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
    }

    fn wait(&mut self) {}
}

/// The `disk` storage, in a directory that goes with it.
pub(crate) struct OnDisk {
    pub(crate) config: JournalConfig,
    pub(crate) options: DiskOptions,
    pub(crate) directory: tempfile::TempDir,
    opens: u64,
    under_way: Arc<AtomicUsize>,
    woken: Arc<(Mutex<bool>, Condvar)>,
}

impl OnDisk {
    pub(crate) fn new(config: JournalConfig) -> OnDisk {
        OnDisk {
            config,
            options: DiskOptions::default(),
            directory: tempfile::tempdir().unwrap(),
            opens: 0,
            under_way: Arc::default(),
            woken: Arc::default(),
        }
    }

    fn open(&mut self, now: Now) -> JournalStorage<Watch<DiskFiles>> {
        let woken = Arc::clone(&self.woken);
        let waker: Waker = Arc::new(move || {
            *woken.0.lock() = true;
            woken.1.notify_all();
        });
        let files = DiskFiles::open(self.directory.path(), &self.options, waker).unwrap();
        let files = Watch::new(files, &self.under_way);
        JournalStorage::open(files, seeded(&self.config, &mut self.opens), now).unwrap()
    }
}

/// Waits until a file thread has said something; a lost wake-up shows as a failure, not as a hang.
fn wait((woken, condition): &(Mutex<bool>, Condvar)) {
    let mut woken = woken.lock();
    let patience = Duration::from_secs(60);
    condition.wait_while_for(&mut woken, |woken| !*woken, patience);
    assert!(*woken, "nothing came of what is under way");
    *woken = false;
}

impl Subject for OnDisk {
    type Storage = JournalStorage<Watch<DiskFiles>>;

    fn fresh(&mut self, now: Now) -> Self::Storage {
        self.directory = tempfile::tempdir().unwrap();
        self.open(now)
    }

    fn reopen(&mut self, mut storage: Self::Storage, end: End, now: Now) -> Self::Storage {
        if end == End::Clean {
            let (woken, under_way) = (Arc::clone(&self.woken), Arc::clone(&self.under_way));
            close(&mut storage, now, || {
                if under_way.load(Ordering::Acquire) > 0 {
                    wait(&woken);
                }
            });
        }
        drop(storage);
        self.open(now)
    }

    fn outlives(&self) -> bool {
        true
    }

    fn busy(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
    }

    fn wait(&mut self) {
        let woken = Arc::clone(&self.woken);
        wait(&woken);
    }
}
