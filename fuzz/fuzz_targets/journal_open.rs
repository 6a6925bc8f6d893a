//! A whole data directory with damage: it opens, serves nothing that was never stored, tiles every
//! log's numbers, and goes on taking messages.

#![no_main]

use airmail_fuzz::directory::Directory;
use airmail_fuzz::fuzz_target;
use airmail_log::files::FileName;
use airmail_log::journal::{JournalConfig, JournalStorage};
use airmail_log::{Call, Completion, LogSpec, LogStorage, ReaderId, Tag};
use airmail_model::batch::{BatchTarget, ProducerStamp, Record};
use airmail_model::{
    Batch, BatchEncoder, Checked, Durability, Limits, LogId, LogIndex, MapEpoch, Message, Mono,
    NamespaceId, Now, ProducerEpoch, ProducerId, ProducerSequence, Provisions, Retention, Sequence,
    StorageName, TopicName, Wall,
};
use bytes::{Bytes, BytesMut};
use std::ops::Range;
use std::sync::LazyLock;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Logs that are there; the last is weaker than the others.
const LOGS: u16 = 3;
/// Batches that each of them was given before the first stop, and after it.
const BATCHES: [u16; 2] = [6, 2];
/// Messages that are no more, of one of them.
const TRIMMED: u16 = 3;
const NOW: Now = Now {
    mono: Mono(1),
    wall: Wall(1_800_000_000_000_000),
};

/// Files in byte order of name.
type Contents = Vec<(FileName, Bytes)>;

/// A directory that was closed in good order, and one of a process that was killed: segments that
/// are full, indexed, and begun, of two classes; two checkpoints; a log that was trimmed.
static DIRECTORIES: LazyLock<[Contents; 2]> = LazyLock::new(|| {
    let mut world = World::open(Directory::new(Vec::new())).expect("an empty one opens");
    world.open_logs();
    world.append(0..BATCHES[0]);
    world.storage.submit(Call::Trim {
        t: Tag(1),
        log: log(1),
        before: Sequence(u64::from(TRIMMED) + 1),
    });
    world.run();
    world.storage.close(world.now);
    while !world.storage.is_closed() {
        world.run();
    }
    let closed = world.storage.into_files();
    let mut world = World::open(closed.clone()).expect("it opens again");
    world.open_logs();
    world.append(BATCHES[0]..BATCHES[0] + BATCHES[1]);
    [closed, world.storage.into_files()].map(Directory::into_files)
});

/// Every message that was ever stored there, by its fingerprint; sorted.
static STORED: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let rounds = 0..BATCHES.iter().sum();
    let batches = rounds.flat_map(|round| (0..LOGS).map(move |index| batch(log(index), round)));
    let mut all = Vec::new();
    for batch in batches {
        all.extend(batch.iter().map(|record| fingerprint(&record)));
    }
    all.sort_unstable();
    all
});

fn fingerprint(record: &Record<'_>) -> u64 {
    let topic = xxh3_64(record.topic_name.as_bytes());
    xxh3_64_with_seed(record.payload, topic)
}

/// One change: which file, where, and the new byte; 0 cuts the file there.
fn damage(files: &Contents, changes: &[u8]) -> Directory {
    let mut files = files.clone();
    for change in changes.chunks_exact(4) {
        let n = usize::from(change[0]) % files.len();
        let bytes = &mut files[n].1;
        let at = usize::from(u16::from_le_bytes([change[1], change[2]]));
        match change[3] {
            0 => bytes.truncate(at),
            byte if at < bytes.len() => {
                let mut own = BytesMut::from(std::mem::take(bytes));
                own[at] ^= byte;
                *bytes = own.freeze();
            }
            _ => {}
        }
    }
    Directory::new(files)
}

fn config() -> JournalConfig {
    JournalConfig {
        seed: 9,
        segment_bytes: 4 << 10,
        meta_segment_bytes: 2 << 10,
        block_bytes: 1 << 10,
        checkpoint_bytes: 2 << 10,
        fill_bytes: 0,
        recycled_max: 0,
        reserve_numbers: 100,
        ..JournalConfig::default()
    }
}

fn log(index: u16) -> LogId {
    LogId {
        namespace: NamespaceId(7),
        index: LogIndex(index),
        ..LogId::default()
    }
}

/// A log's batch of a round: two messages, of a producer of its own.
fn batch(log: LogId, round: u16) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(log.namespace);
    let first = format!("first of batch {round} in {log}");
    for (topic, payload) in [
        (format!("topic/{}", round % 3), first),
        ("every".into(), "x".into()),
    ] {
        let topic = TopicName::new(&topic, &Limits::DEFAULT).expect("a name");
        let pushed = encoder.push(&Message::new(topic, payload), 0, &Limits::DEFAULT);
        pushed.expect("it fits");
    }
    let producer = ProducerStamp {
        id: ProducerId(100 + u64::from(log.index.0)),
        epoch: ProducerEpoch(1),
        sequence: ProducerSequence(u64::from(round) * 2),
    };
    encoder.finish(&BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: Some(producer),
        producer_time: 0,
    })
}

/// A batch that no directory has.
fn new_batch(log: LogId) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(log.namespace);
    let topic = TopicName::new("new", &Limits::DEFAULT).expect("a name");
    let pushed = encoder.push(&Message::new(topic, "one"), 0, &Limits::DEFAULT);
    pushed.expect("it fits");
    encoder.finish(&BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    })
}

/// The storage, and what its readers have been told.
struct World {
    storage: JournalStorage<Directory>,
    now: Now,
    next: [Sequence; LOGS as usize],
    /// Messages that they were given.
    told: u16,
    new: bool,
    answered: u16,
}

impl World {
    fn open(files: Directory) -> Option<World> {
        let storage = JournalStorage::open(files, config(), NOW).ok()?;
        Some(World {
            storage,
            now: NOW,
            next: [Sequence(1); LOGS as usize],
            told: 0,
            new: false,
            answered: 0,
        })
    }

    fn open_logs(&mut self) {
        for n in 0..LOGS {
            let spec = LogSpec {
                durability: match n + 1 {
                    LOGS => Durability::OS,
                    _ => Durability::FSYNC,
                },
                retention: Retention {
                    bytes: (n == 0).then_some(1 << 20),
                    time_ms: None,
                },
                epoch: MapEpoch(1),
                as_of: Sequence::MAX,
                storage: StorageName::FIRST,
                provisions: Provisions::NONE,
                soundness: Default::default(),
            };
            self.storage.submit(Call::Open {
                t: Tag(n.into()),
                log: log(n),
                spec: Box::new(spec),
            });
        }
        self.run();
    }

    fn append(&mut self, rounds: Range<u16>) {
        for round in rounds {
            for n in 0..LOGS {
                let batch = batch(log(n), round);
                self.storage.submit(Call::Append {
                    t: Tag(9),
                    log: log(n),
                    map: MapEpoch(1),
                    batch,
                    sole: false,
                });
            }
            self.run();
        }
    }

    fn run(&mut self) {
        let mut completions = Vec::new();
        for _ in 0..64 {
            self.now.mono = Mono(self.now.mono.0 + 1_000_000);
            self.storage.poll(self.now, &mut completions);
            if completions.is_empty() {
                break;
            }
            for completion in completions.drain(..) {
                self.take(completion);
            }
        }
    }

    fn take(&mut self, completion: Completion) {
        match completion {
            Completion::Batch { r, stored } => {
                let n = r.0 as usize;
                let bytes = u32::try_from(stored.batch.bytes().len()).expect("small");
                self.storage.submit(Call::Credit { r, bytes });
                self.cover(n, stored.extent.first, stored.extent.last);
                for record in stored.batch.iter().filter(|_| !self.new) {
                    self.told += 1;
                    let known = STORED.binary_search(&fingerprint(&record));
                    assert!(known.is_ok(), "never stored: {record:?}");
                }
            }
            Completion::Gap { r, extent, .. } => {
                self.cover(r.0 as usize, extent.first, extent.last);
            }
            Completion::Appended { .. } | Completion::Refused { .. } => self.answered += 1,
            _ => {}
        }
    }

    fn cover(&mut self, n: usize, first: Sequence, last: Sequence) {
        assert!(first <= last);
        let next = &mut self.next[n];
        assert!(first == *next, "{first} where {next} is next");
        *next = last.plus(1);
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((which, changes)) = data.split_first() else {
        return;
    };
    let files = &DIRECTORIES[usize::from(which % 2)];
    let Some(mut world) = World::open(damage(files, changes)) else {
        return;
    };
    world.open_logs();
    for n in 0..LOGS {
        let r = ReaderId(n.into());
        world.storage.submit(Call::Read {
            r,
            log: log(n),
            from: Sequence(1),
            scope: Box::default(),
            credit: 1 << 20,
        });
    }
    world.run();
    let whole = BATCHES[0] * 2 * LOGS - TRIMMED;
    assert!(
        !changes.is_empty() || world.told >= whole,
        "{} told",
        world.told
    );
    world.answered = 0;
    world.new = true;
    for n in 0..LOGS {
        let batch = new_batch(log(n));
        world.storage.submit(Call::Append {
            t: Tag(100),
            log: log(n),
            map: MapEpoch(1),
            batch,
            sole: false,
        });
    }
    world.run();
    assert_eq!(world.answered, LOGS, "an append is always answered");
});
