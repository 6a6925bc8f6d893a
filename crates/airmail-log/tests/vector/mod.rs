//! A data directory, opened like a node opens it, and its contents as text.

use airmail_log::conformance::{Driver, End, Seen, Subject, Watch, log, spec};
use airmail_log::disk::{DataDir, DiskFiles, DiskOptions, Identity};
use airmail_log::journal::{JournalConfig, JournalStorage};
use airmail_log::{Call, Completion, LogStorage, Needs, Waker};
use airmail_model::{Durability, Lane, LogId, Mono, NodeId, Now, StorageName, Wall};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Time that a disk may take for the operations under way.
const PATIENCE: Duration = Duration::from_secs(300);

/// A node's logs, over files that say whether anything is under way.
type Storage = JournalStorage<Watch<DiskFiles>>;

/// A data directory, opened as a node opens it.
pub(crate) struct Directory {
    path: PathBuf,
    /// Knowledge that the directory needs, if it is made.
    needs: Needs,
    dir: Option<DataDir>,
    wake: SyncSender<()>,
    woken: Receiver<()>,
    under_way: Arc<AtomicUsize>,
}

impl Directory {
    pub(crate) fn at(path: &Path) -> Directory {
        Directory::needing(Needs::Nothing, path)
    }

    pub(crate) fn needing(needs: Needs, path: &Path) -> Directory {
        let (wake, woken) = sync_channel(1);
        Directory {
            path: path.to_owned(),
            needs,
            dir: None,
            wake,
            woken,
            under_way: Arc::default(),
        }
    }

    fn open(&mut self, seed: u64, now: Now) -> Storage {
        let new = Identity {
            cluster: 0x00a1_12a1_1000_0001,
            node: NodeId(0x00a1_12a1_1000_0002),
            shards: 1,
            created: Wall(1_790_000_000_000_000),
            storage: StorageName::FIRST,
            needs: self.needs,
        };
        self.dir = None;
        let dir = DataDir::open(&self.path, &new).expect("the directory opens");
        let config = JournalConfig {
            cluster: dir.identity().cluster,
            node: dir.identity().node,
            shard: 0,
            seed,
            segment_bytes: 8 << 10,
            meta_segment_bytes: 2 << 10,
            block_bytes: 4 << 10,
            checkpoint_bytes: 8 << 10,
            fill_bytes: 0,
            recycled_max: 0,
            reserve_numbers: 100,
            ..JournalConfig::default()
        };
        let wake = self.wake.clone();
        let waker: Waker = Arc::new(move || _ = wake.try_send(()));
        let files = dir.files(0, &DiskOptions::default(), waker);
        let files = Watch::new(files.expect("the shard's files open"), &self.under_way);
        let storage = JournalStorage::open(files, config, now).expect("the shard opens");
        self.dir = Some(dir);
        storage
    }
}

impl Subject for Directory {
    type Storage = Storage;

    fn fresh(&mut self, now: Now) -> Storage {
        self.open(1, now)
    }

    fn reopen(&mut self, mut storage: Storage, end: End, mut now: Now) -> Storage {
        if end == End::Clean {
            storage.close(now);
            while !storage.is_closed() {
                let deadline = storage.poll(now, &mut Vec::new());
                let _ = self.woken.recv_timeout(Duration::from_millis(20));
                now.mono = deadline.unwrap_or_default().max(Mono(now.mono.0 + 1));
            }
        }
        drop(storage);
        self.open(now.mono.0, now)
    }

    fn outlives(&self) -> bool {
        true
    }

    fn busy(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
    }

    fn wait(&mut self) {
        let came = self.woken.recv_timeout(PATIENCE);
        came.expect("something comes of what is under way");
    }
}

/// The weaker one of the logs.
pub(crate) const WEAK: u16 = 4;

/// Durability that each log was opened with.
pub(crate) fn durability(index: u16) -> Durability {
    if index == WEAK {
        Durability::OS
    } else {
        Durability::FSYNC
    }
}

/// Title of the log of namespaces. There is none in version 1.
pub(crate) const SYSTEM: &str = "log 0 of the system:";
/// Title of the one log of lane high. There is none but where an identity says so.
pub(crate) const HIGH: &str = "log 0 of lane high:";

/// The log of lane high beside the first of lane normal.
pub(crate) fn high() -> LogId {
    LogId {
        lane: Lane::High,
        ..log(0)
    }
}

/// Deliveries to a reader of each log, as text; of those that not every directory has, these by their titles.
pub(crate) fn describe(d: &mut Driver<'_, Directory>, further: &[&str]) -> String {
    let mut text = String::new();
    let mut logs = Vec::new();
    for index in [0, 1, 2, WEAK] {
        logs.push((format!("log {index}:"), log(index), durability(index)));
    }
    for (title, log) in [(SYSTEM, LogId::SYSTEM), (HIGH, high())] {
        if further.contains(&title) {
            logs.push((title.to_owned(), log, Durability::FSYNC));
        }
    }
    for (name, log, durability) in logs {
        let bounds = d.open_with(log, &spec(durability));
        let (first, next) = (bounds.first, bounds.next);
        let _ = writeln!(text, "{name} {first} to {next}");
        let reader = d.read_all(log, 1);
        for tile in d.tiles(reader) {
            if let Seen::Gap(extent, why) = &tile {
                let _ = writeln!(text, "{} to {}: {why:?}", extent.first, extent.last);
            }
            for (number, topic, payload) in tile.records() {
                let payload = String::from_utf8_lossy(&payload);
                let _ = writeln!(text, "{number} {topic}: {payload}");
            }
        }
    }
    assert!(matches!(
        d.ask(|t| Call::Bounds { t, log: log(3) }),
        Completion::Refused { .. }
    ));
    text
}
