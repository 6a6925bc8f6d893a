//! A storage on a disk, driven as a shard's thread does: append, poll, sleep until woken.

use airmail_log::conformance::{Maker, log, spec};
use airmail_log::disk::{DataDir, DiskOptions, DiskStorage, Identity};
use airmail_log::journal::{JournalConfig, JournalStorage};
use airmail_log::{Call, Completion, LogStorage, ReaderId, Scope, Tag};
use airmail_model::{
    Batch, Checked, Durability, MapEpoch, Mono, NodeId, Now, Sequence, StorageName, Wall,
};
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// See the module's documentation.
pub(crate) struct Store {
    storage: Option<DiskStorage>,
    /// Behind the storage: its lock goes last.
    _directory: DataDir,
    woken: Arc<(Mutex<bool>, Condvar)>,
    begun: Instant,
    waiting: usize,
    tag: u64,
    pub(crate) out: Vec<Completion>,
    /// Batches that readers were given.
    pub(crate) given: u64,
    /// Time that reading the files took.
    pub(crate) open_ms: f64,
}

impl Store {
    /// Opens it, and waits until a log can be read and appended to.
    pub(crate) fn open(dir: &Path) -> Store {
        Store::open_with(dir, Durability::FSYNC)
    }

    /// The same, its log of this durability.
    pub(crate) fn open_with(dir: &Path, durability: Durability) -> Store {
        let begun = Instant::now();
        let woken: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let waker = Arc::clone(&woken);
        let wake = move || {
            *waker.0.lock() = true;
            waker.1.notify_one();
        };
        let wall = Wall(1_790_000_000_000_000);
        let new = Identity {
            cluster: 1,
            node: NodeId(1),
            shards: 1,
            created: wall,
            storage: StorageName::FIRST,
            needs: airmail_log::Needs::Nothing,
        };
        let directory = DataDir::open(dir, &new).unwrap();
        let files = directory.files(0, &DiskOptions::default(), Arc::new(wake));
        let config = JournalConfig {
            cluster: directory.identity().cluster,
            node: directory.identity().node,
            seed: now(begun).wall.0.cast_unsigned(),
            ..JournalConfig::default()
        };
        let storage = JournalStorage::open(files.unwrap(), config, now(begun)).unwrap();
        let open_ms = begun.elapsed().as_secs_f64() * 1e3;
        let mut store = Store {
            storage: Some(storage),
            _directory: directory,
            woken,
            begun,
            waiting: 1,
            tag: 0,
            out: Vec::new(),
            given: 0,
            open_ms,
        };
        let (t, log, spec) = (Tag(0), log(0), Box::new(spec(durability)));
        store.storage().submit(Call::Open { t, log, spec });
        store.settle(0);
        store
    }

    pub(crate) fn storage(&mut self) -> &mut DiskStorage {
        self.storage.as_mut().unwrap()
    }

    /// Appends when fewer than `window` appends are under way.
    pub(crate) fn append(&mut self, batch: &Checked<Batch>, window: usize) {
        self.settle(window.saturating_sub(1));
        self.send(batch);
        self.poll(false);
    }

    pub(crate) fn send(&mut self, batch: &Checked<Batch>) {
        self.tag += 1;
        self.waiting += 1;
        let (t, map) = (Tag(self.tag), MapEpoch(1));
        let (log, batch) = (log(0), batch.clone());
        self.storage().submit(Call::Append {
            t,
            log,
            map,
            batch,
            sole: false,
        });
    }

    /// Takes what has come; waits for something, if told to. How many answers there were.
    pub(crate) fn poll(&mut self, wait: bool) -> usize {
        if wait {
            self.sleep(Duration::from_millis(100));
        }
        let at = now(self.begun);
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.storage().poll(at, &mut out);
        let answers = out.iter().filter(|one| match one {
            Completion::Appended { .. } | Completion::Opened { .. } => true,
            Completion::Refused { why, .. } => panic!("refused: {why}"),
            _ => false,
        });
        let answers = answers.count();
        self.waiting -= answers;
        for one in &out {
            if let Completion::Batch { r, stored } = one {
                self.given += 1;
                let bytes = stored.batch.bytes().len() as u32;
                self.storage().submit(Call::Credit { r: *r, bytes });
            }
        }
        self.out = out;
        answers
    }

    /// Sleeps until the files have something, for so long at most.
    pub(crate) fn sleep(&self, time: Duration) {
        let mut woken = self.woken.0.lock();
        let condition = &self.woken.1;
        condition.wait_while_for(&mut woken, |woken| !*woken, time);
        *woken = false;
    }

    /// Waits until at most `left` appends are under way.
    pub(crate) fn settle(&mut self, left: usize) {
        while self.waiting > left {
            self.poll(false);
            if self.waiting > left {
                self.poll(true);
            }
        }
    }

    /// Reads what is in scope, and gives how many batches that was.
    pub(crate) fn read(&mut self, scope: Scope) -> usize {
        let r = ReaderId(1);
        self.storage().submit(Call::Read {
            r,
            log: log(0),
            from: Sequence(1),
            scope: Box::new(scope),
            credit: u32::MAX,
        });
        let mut batches = 0;
        loop {
            self.poll(false);
            for one in &self.out {
                match one {
                    Completion::Batch { .. } => batches += 1,
                    Completion::Tail { .. } => return batches,
                    _ => {}
                }
            }
            if self.out.is_empty() {
                self.sleep(Duration::from_millis(10));
            }
        }
    }

    /// Stops: in order, or by letting everything fall.
    pub(crate) fn stop(mut self, clean: bool) {
        if clean {
            let at = now(self.begun);
            self.storage().close(at);
            while !self.storage().is_closed() {
                self.poll(false);
                self.sleep(Duration::from_millis(1));
            }
        }
    }
}

fn now(begun: Instant) -> Now {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Now {
        mono: Mono(begun.elapsed().as_nanos() as u64),
        wall: Wall(since.unwrap().as_micros() as i64),
    }
}

/// A batch of messages of 100 bytes, of one producer's none, to these topics.
pub(crate) fn batch(topics: impl Iterator<Item = String>) -> Checked<Batch> {
    let payload = "x".repeat(100);
    let topics: Vec<String> = topics.collect();
    let records: Vec<_> = topics
        .iter()
        .map(|topic| (topic.as_str(), payload.as_str()))
        .collect();
    Maker::new(log(0)).batch(&records)
}
