//! Whole journals over files in memory.

mod broken;
mod classes;
mod commands;
mod copied;
mod damaged;
mod going_on;
mod lanes;
mod stops;
mod torn;
mod withheld;

use super::effects::Purpose;
use super::format::{ENVELOPE_BYTES, HEADER_BYTES, padded};
use super::id::Slot;
use super::log::Answer;
use super::{JournalConfig, JournalStorage, Reason, check};
use crate::contract::{Call, Completion, LogSpec, LogStorage, ReaderId, Refusal, Tag};
use crate::files::{FileDone, Files};
use crate::memory::MemoryFiles;
use airmail_model::batch::{BatchTarget, ProducerStamp};
use airmail_model::{
    AppendTime, Batch, BatchEncoder, Checked, Durability, Extent, Lane, Limits, LogId, LogIndex,
    MapEpoch, Message, Mono, NamespaceId, Now, ProducerEpoch, ProducerId, ProducerSequence,
    Sequence, TopicName, Wall,
};
use bytes::Bytes;

const LOG: LogId = LogId {
    namespace: NamespaceId(1),
    lane: Lane::Normal,
    index: LogIndex(0),
};

fn tiny() -> JournalConfig {
    JournalConfig {
        segment_bytes: 32 << 10,
        meta_segment_bytes: 4 << 10,
        fill_bytes: 8 << 10,
        block_bytes: 4 << 10,
        checkpoint_bytes: 16 << 10,
        commit_bytes: 8 << 10,
        cache_bytes: 8 << 10,
        read_bytes: 4 << 10,
        ..JournalConfig::default()
    }
}

const OTHER: LogId = LogId {
    index: LogIndex(1),
    ..LOG
};

fn batch(sequence: u64, payload: &str) -> Checked<Batch> {
    batch_to(LOG, sequence, payload)
}

fn batch_to(log: LogId, sequence: u64, payload: &str) -> Checked<Batch> {
    batch_of(log, sequence, payload.to_owned().into())
}

fn batch_of(log: LogId, sequence: u64, payload: Bytes) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(log.namespace);
    let topic = TopicName::new("a", &Limits::DEFAULT).unwrap();
    let message = Message::new(topic, payload);
    encoder.push(&message, 0, &Limits::DEFAULT).unwrap();
    let producer = ProducerStamp {
        id: ProducerId(7),
        epoch: ProducerEpoch(1),
        sequence: ProducerSequence(sequence),
    };
    encoder.finish(&BatchTarget {
        log,
        epoch: MapEpoch(0),
        producer: Some(producer),
        producer_time: 0,
    })
}

struct Bench {
    storage: JournalStorage<MemoryFiles>,
    now: Now,
    out: Vec<Completion>,
}

impl Bench {
    fn open(files: MemoryFiles, seed: u64) -> Bench {
        Bench::open_as(LogSpec::default(), files, seed)
    }

    /// The same by another spec.
    fn open_as(spec: LogSpec, files: MemoryFiles, seed: u64) -> Bench {
        let mut bench = Bench::unopened(files, seed);
        bench.ask_to_open(1, LOG, spec);
        bench.poll();
        assert!(matches!(bench.out.pop(), Some(Completion::Opened { .. })));
        bench
    }

    /// The same, and no log is asked for.
    fn unopened(files: MemoryFiles, seed: u64) -> Bench {
        let now = Now {
            mono: Mono(seed * 1_000_000_000),
            wall: Wall(1_000_000 * seed as i64),
        };
        let config = JournalConfig { seed, ..tiny() };
        let storage = JournalStorage::open(files, config, now).unwrap();
        Bench {
            storage,
            now,
            out: Vec::new(),
        }
    }

    fn poll(&mut self) {
        self.now.mono = Mono(self.now.mono.0 + 1_000_000);
        self.now.wall = Wall(self.now.wall.0 + 1_000);
        self.storage.poll(self.now, &mut self.out);
    }

    /// Asks for a log to be opened, without waiting.
    fn ask_to_open(&mut self, t: u64, log: LogId, spec: LogSpec) {
        let t = Tag(t);
        let spec = Box::new(spec);
        self.storage.submit(Call::Open { t, log, spec });
    }

    /// Sends a batch to its log, without waiting.
    fn send(&mut self, t: u64, batch: Checked<Batch>) {
        self.storage.submit(Call::Append {
            t: Tag(t),
            log: batch.log(),
            map: batch.map_epoch(),
            batch,
            sole: false,
        });
    }

    /// Starts a reader of everything.
    fn read_all(&mut self, r: u64, log: LogId) {
        self.storage.submit(Call::Read {
            r: ReaderId(r),
            log,
            from: Sequence(1),
            scope: Box::default(),
            credit: u32::MAX,
        });
    }

    fn append(&mut self, from: u64, count: u64) {
        for n in from..from + count {
            self.send(n, batch(n, &"x".repeat(100)));
            self.poll();
            let answer = self.out.drain(..).next_back();
            let Some(Completion::Appended { extent, .. }) = answer else {
                panic!("{answer:?}")
            };
            assert_eq!(extent.first, Sequence(n + 1));
        }
    }

    /// Number of batches that a reader from the first number gets; none may be missing before one.
    fn count(&mut self) -> u64 {
        self.read_all(9, LOG);
        for _ in 0..20 {
            self.poll();
        }
        self.storage.submit(Call::Stop { r: ReaderId(9) });
        self.poll();
        let (mut batches, mut gap) = (0, None);
        for completion in self.out.drain(..) {
            match completion {
                Completion::Batch { .. } if gap.is_none() => batches += 1,
                Completion::Batch { .. } => panic!("{completion:?} behind {gap:?}"),
                Completion::Gap { .. } => gap = Some(completion),
                _ => {}
            }
        }
        batches
    }

    /// The number that the log gives next.
    fn next(&mut self) -> Sequence {
        self.ask_to_open(2, LOG, LogSpec::default());
        self.poll();
        match self.out.drain(..).next_back() {
            Some(Completion::Opened { bounds, .. }) => bounds.next,
            other => panic!("{other:?}"),
        }
    }

    fn close(mut self) -> MemoryFiles {
        self.storage.close(self.now);
        for _ in 0..10 {
            self.poll();
        }
        assert!(self.storage.is_closed());
        self.storage.into_files()
    }
}

/// A file of a journal with a bit changed.
fn flipped(files: &MemoryFiles, prefix: &str, at: usize) -> MemoryFiles {
    let mut out = MemoryFiles::new();
    let mut copy = files.clone();
    for (name, _) in copy.list().unwrap() {
        let mut contents = files.contents(&name).unwrap().to_vec();
        if name.starts_with(prefix) && at < contents.len() {
            contents[at] ^= 4;
        }
        out.put(&name, &contents);
    }
    out
}

#[test]
fn a_check_finds_nothing_where_nothing_is_and_each_kind_of_damage_where_it_is() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 100);
    let files = bench.close();
    let report = check(&mut files.clone()).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(
        (
            report.logs.len(),
            report.logs[0].batches,
            report.logs[0].records
        ),
        (1, 100, 100)
    );
    assert_eq!(report.logs[0].lost, []);
    for (prefix, at, reason) in [
        ("seg-0000000000000002", 20, Reason::Header),
        (
            "seg-0000000000000002",
            HEADER_BYTES + 270,
            Reason::Record(256),
        ),
        ("idx-", 5000, Reason::Index),
        ("checkpoint-", 50, Reason::Checkpoint),
    ] {
        let report = check(&mut flipped(&files, prefix, at)).unwrap();
        assert!(!report.is_sound());
        let reasons = report.problems.iter().map(|problem| problem.reason);
        let same =
            |found: Reason| std::mem::discriminant(&found) == std::mem::discriminant(&reason);
        let lost = |found: Reason| matches!(found, Reason::Lost(_));
        let told = reasons.clone().all(|found| same(found) || lost(found));
        assert!(told, "{:?}", report.problems);
    }
}

#[test]
fn what_nobody_waits_for_gathers_and_what_somebody_waits_for_does_not() {
    let weak = |durability| LogSpec {
        durability,
        ..LogSpec::default()
    };
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.ask_to_open(1, LOG, weak(Durability::MEMORY));
    // Until the numbers that it needs are reserved.
    for _ in 0..5 {
        bench.poll();
    }
    bench.out.clear();
    bench.append(0, 3);
    assert_eq!(bench.storage.journal.commits.waiting().iter().count(), 3);
    for _ in 0..20 {
        bench.poll();
    }
    assert_eq!(bench.storage.journal.commits.waiting().iter().count(), 0);
    bench.ask_to_open(1, LOG, weak(Durability::FSYNC));
    bench.poll();
    bench.out.clear();
    bench.append(3, 1);
    assert_eq!(bench.storage.journal.commits.waiting().iter().count(), 0);
}

#[test]
fn with_a_backlog_memory_is_answered_when_it_is_written() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    let spec = LogSpec {
        durability: Durability::MEMORY,
        ..LogSpec::default()
    };
    bench.ask_to_open(1, LOG, spec);
    for _ in 0..5 {
        bench.poll();
    }
    bench.out.clear();
    let large = "x".repeat(1000);
    bench.storage.journal.config.pending_bytes = 20_000;
    for n in 0..18 {
        let batch = batch(n, &large);
        bench.send(n, batch);
    }
    // One step of the journal, before any file has answered.
    bench.storage.journal.advance(bench.now);
    let answered = std::mem::take(bench.storage.journal.effects.completions()).len();
    assert!((1..18).contains(&answered), "{answered}");
    for _ in 0..9 {
        bench.poll();
    }
    assert_eq!(answered + bench.out.len(), 18, "{:?}", bench.out);
}

#[test]
fn a_seal_refuses_nobody_before_it_is_durable() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 1);
    let next = MapEpoch(2);
    bench.storage.submit(Call::Seal {
        t: Tag(50),
        log: LOG,
        next,
    });
    bench.send(51, batch(1, "late"));
    bench.storage.journal.advance(bench.now);
    assert!(bench.storage.journal.effects.completions().is_empty());
    bench.poll();
    let why = crate::contract::Refusal::Sealed { next };
    let sealed = Completion::Done { t: Tag(50) };
    let refused = Completion::Refused { t: Tag(51), why };
    assert_eq!(
        format!("{:?}", bench.out),
        format!("{:?}", [sealed, refused])
    );
}

/// Fills a full disk ahead: the fill takes no place from earlier writes.
#[test]
fn what_os_has_answered_survives_a_kill_while_the_disk_is_full() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    let spec = LogSpec {
        durability: Durability::OS,
        ..LogSpec::default()
    };
    bench.ask_to_open(1, LOG, spec);
    bench.poll();
    bench.out.clear();
    bench.append(0, 5);
    let used = bench.storage.files().used();
    bench.storage.files_mut().set_room(Some(used));
    let mut answered = 5;
    for n in 5..200 {
        let one = batch(n, &"x".repeat(100));
        bench.send(n, one);
        bench.poll();
        let good = |one: &Completion| matches!(one, Completion::Appended { .. });
        answered += bench.out.drain(..).filter(good).count() as u64;
    }
    assert!(bench.storage.trouble().is_some_and(|trouble| trouble.full));
    assert!((10..200).contains(&answered), "{answered}");
    let mut files = bench.storage.into_files();
    files.set_room(None);
    assert_eq!(Bench::open(files, 2).count(), answered);
}

/// Found by the simulator: the second run knew it from the file of durable ends, wrote that anew
/// without it, and had no room for a checkpoint.
#[test]
fn a_number_behind_a_damaged_batch_is_not_given_again_however_little_room_there_is() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 3);
    let record = padded(ENVELOPE_BYTES as u64 + batch(1, &"x".repeat(100)).bytes().len() as u64);
    let third = HEADER_BYTES + 2 * record as usize + 8;
    let killed = flipped(&bench.storage.into_files(), "seg-0000000000000002", third);
    let (mut refused, mut stored) = (0, 0);
    for room in (0..32 << 10).step_by(128) {
        let mut files = killed.clone();
        files.set_room(Some(files.used() + room));
        let mut bench = Bench::open(files, 2);
        assert_eq!(bench.next(), Sequence(4));
        bench.ask_to_open(3, OTHER, LogSpec::default());
        for n in 0..3 {
            let one = batch_to(OTHER, n, "x");
            bench.send(4, one);
            bench.poll();
        }
        for completion in bench.out.drain(..) {
            match completion {
                Completion::Appended { .. } => stored += 1,
                _ => refused += 1,
            }
        }
        let mut files = bench.storage.into_files();
        files.set_room(None);
        let next = Bench::open(files, 3).next();
        assert_eq!(next, Sequence(4), "with room for {room} bytes");
    }
    assert!(refused > 0 && stored > 0, "{refused} {stored}");
}

#[test]
fn a_time_behind_a_lost_batch_begins_with_the_loss() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 3);
    let files = bench.close();
    let record = padded(ENVELOPE_BYTES as u64 + batch(1, &"x".repeat(100)).bytes().len() as u64);
    let second = HEADER_BYTES + record as usize + 8;
    let mut bench = Bench::open(flipped(&files, "seg-0000000000000002", second), 2);
    bench.storage.submit(Call::FindTime {
        t: Tag(7),
        log: LOG,
        at: AppendTime(1_000_000 + 3_000),
    });
    bench.poll();
    assert_eq!(
        format!("{:?}", bench.out),
        format!(
            "{:?}",
            [Completion::Found {
                t: Tag(7),
                at: Sequence(2)
            }]
        )
    );
}

/// A bench whose journal has this many commits under way, none of which a file has answered.
fn under_way(commits: u64) -> Bench {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 1);
    for n in 1..=commits {
        bench.send(n, batch(n, "x"));
        bench.storage.journal.advance(bench.now);
    }
    bench
}

#[test]
fn small_commits_follow_one_another_before_the_first_has_ended() {
    let mut bench = under_way(3);
    assert_eq!(bench.storage.journal.commits.len(), 3);
    assert!(bench.storage.journal.effects.completions().is_empty());
    bench.poll();
    bench.poll();
    let numbers = bench.out.iter().map(|one| match one {
        Completion::Appended { extent, .. } => extent.first.0,
        other => panic!("{other:?}"),
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(Bench::open(bench.storage.into_files(), 2).count(), 4);
}

#[test]
fn a_large_commit_is_followed_by_none_before_it_has_ended() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.storage.journal.config.segment_bytes = 1 << 20;
    bench.storage.journal.config.commit_bytes = 1 << 20;
    bench.append(0, 1);
    for (n, length) in [(1, 70_000), (2, 1)] {
        let one = batch(n, &"x".repeat(length));
        bench.send(n, one);
        bench.storage.journal.advance(bench.now);
    }
    assert_eq!(bench.storage.journal.commits.len(), 1);
}

/// Holds whatever becomes of the writes behind the failed one: here they go well, and end first.
#[test]
fn what_follows_a_commit_that_fails_is_given_up_with_it() {
    let mut bench = under_way(3);
    let journal = &mut bench.storage.journal;
    let ops = journal.effects.take();
    let writes = ops.into_iter().map(|(token, _)| token);
    let mut commits: Vec<_> = writes
        .filter(|token| matches!(journal.effects.purpose(*token), Some(Purpose::Commit(_))))
        .collect();
    commits.reverse();
    for (n, token) in commits.into_iter().enumerate() {
        let result = match n {
            2 => Err(std::io::Error::other("made to fail")),
            _ => Ok(Bytes::new()),
        };
        journal.complete(FileDone::new(token, result));
    }
    assert_eq!(journal.commits.len(), 0);
    for _ in 0..4 {
        bench.poll();
    }
    let refused = |one: &Completion| matches!(one, Completion::Refused { .. });
    assert_eq!(bench.out.len(), 3, "{:?}", bench.out);
    assert!(bench.out.iter().all(refused), "{:?}", bench.out);
    bench.out.clear();
    bench.append(1, 2);
    assert_eq!(bench.count(), 3);
    assert_eq!(Bench::open(bench.storage.into_files(), 2).count(), 3);
}

/// Answers to the calls since the last time, by tag.
fn answers(bench: &mut Bench) -> Vec<(Tag, Option<Refusal>)> {
    let answer = |completion| match completion {
        Completion::Appended { t, .. } => Some((t, None)),
        Completion::Refused { t, why } => Some((t, Some(why))),
        _ => None,
    };
    bench.out.drain(..).filter_map(answer).collect()
}
