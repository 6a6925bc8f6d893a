//! A whole data directory with damage: it opens, serves nothing that was never stored, tiles every
//! log's numbers, and goes on taking messages.

#![no_main]

use airmail_log::files::Files;
use airmail_log::journal::{JournalConfig, JournalStorage};
use airmail_log::memory::MemoryFiles;
use airmail_log::{Completion, LogSpec, LogStorage, ReaderId, Scope, Tag};
use airmail_model::batch::BatchTarget;
use airmail_model::{
    Batch, BatchEncoder, Checked, Durability, Limits, LogId, LogIndex, MapEpoch, Message, Mono,
    NamespaceId, Now, Sequence, TopicName, Wall,
};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

/// Logs that were once there; the last is weaker than the others.
const LOGS: u16 = 5;

/// The directory of the first version, which holds what `v1.txt` beside it says.
static FILES: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/data/v1/shard-0000");
    let entries = std::fs::read_dir(path).expect("the vectors are there");
    let mut files: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("it can be listed");
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).expect("it can be read"))
        })
        .collect();
    files.sort();
    files
});

/// Every message that was ever stored there, those of trimmed and deleted logs too.
static STORED: LazyLock<BTreeSet<(String, String)>> = LazyLock::new(|| {
    let fixed = [("every", "second"), ("after", "the crash")];
    let fixed = fixed.map(|(topic, payload)| (topic.to_owned(), payload.to_owned()));
    let first = |n: u16, log: u16| {
        (
            format!("topic/{}", n % 5),
            format!("first of batch {n} in log {log}"),
        )
    };
    let firsts = (0..24).flat_map(|n| (0..LOGS).map(move |log| first(n, log)));
    firsts.chain(fixed).collect()
});

/// One change: which file, where, and the new byte; 0 cuts the file there.
fn damage(data: &[u8]) -> MemoryFiles {
    let mut files = FILES.clone();
    for change in data.chunks_exact(4) {
        let n = usize::from(change[0]) % files.len();
        let bytes = &mut files[n].1;
        let at = usize::from(u16::from_le_bytes([change[1], change[2]]));
        match change[3] {
            0 => bytes.truncate(at),
            byte => {
                if let Some(place) = bytes.get_mut(at) {
                    *place ^= byte;
                }
            }
        }
    }
    let mut out = MemoryFiles::new();
    for (name, bytes) in files {
        out.put(&name, &bytes);
    }
    out
}

fn config() -> JournalConfig {
    JournalConfig {
        cluster: 0x00a1_12a1_1000_0001,
        node: 0x00a1_12a1_1000_0002,
        seed: 9,
        segment_bytes: 8 << 10,
        meta_segment_bytes: 2 << 10,
        block_bytes: 4 << 10,
        checkpoint_bytes: 8 << 10,
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

fn batch(log: LogId) -> Checked<Batch> {
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
struct World<F> {
    storage: JournalStorage<F>,
    now: Now,
    next: [Sequence; LOGS as usize],
    new: bool,
    answered: u16,
}

impl<F: Files> World<F> {
    fn run(&mut self) {
        let mut completions = Vec::new();
        for _ in 0..64 {
            self.now.mono = Mono(self.now.mono.0 + 1_000_000);
            self.storage.poll(self.now, &mut completions);
            if completions.is_empty() {
                break;
            }
            for completion in std::mem::take(&mut completions) {
                self.take(completion);
            }
        }
    }

    fn take(&mut self, completion: Completion) {
        match completion {
            Completion::Batch { r, stored } => {
                let n = r.0 as usize;
                let bytes = u32::try_from(stored.batch.bytes().len()).expect("small");
                self.storage.credit(r, bytes);
                self.cover(n, stored.extent.first, stored.extent.last);
                for record in stored.batch.iter().filter(|_| !self.new) {
                    let payload = String::from_utf8_lossy(record.payload).into_owned();
                    let message = (record.topic_name.to_owned(), payload);
                    assert!(STORED.contains(&message), "never stored: {message:?}");
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
        assert!(
            first == self.next[n],
            "{first} where {} is next",
            self.next[n]
        );
        self.next[n] = last.plus(1);
    }
}

fuzz_target!(|data: &[u8]| {
    let now = Now {
        mono: Mono(1),
        wall: Wall(1_800_000_000_000_000),
    };
    let Ok(storage) = JournalStorage::open(damage(data), config(), now) else {
        return;
    };
    let mut world = World {
        storage,
        now,
        next: [Sequence(1); LOGS as usize],
        new: false,
        answered: 0,
    };
    for n in 0..LOGS {
        let durability = if n + 1 == LOGS {
            Durability::Os
        } else {
            Durability::Fsync
        };
        let spec = LogSpec {
            durability,
            epoch: MapEpoch(1),
            ..LogSpec::default()
        };
        world.storage.open(Tag(n.into()), log(n), &spec);
        let r = ReaderId(n.into());
        world
            .storage
            .read(r, log(n), Sequence(1), Scope::default(), 1 << 20);
    }
    world.run();
    world.answered = 0;
    world.new = true;
    for n in 0..LOGS {
        world
            .storage
            .append(Tag(100 + u64::from(n)), log(n), MapEpoch(1), batch(log(n)));
    }
    world.run();
    assert_eq!(world.answered, LOGS, "an append is always answered");
});
