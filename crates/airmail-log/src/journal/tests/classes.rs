//! A log that changes its class of segments, by another retention.

use super::super::entry::Entry;
use super::super::format::Envelope;
use super::*;
use airmail_model::Retention;

/// Batches in the old class's segments may be in the system's hands alone, and go on being counted as that: the
/// journal's own invariants look at each poll.
#[test]
fn a_batch_that_is_written_once_more_does_not_take_its_log_to_another_class() {
    let spec = LogSpec {
        durability: Durability::OS,
        ..LogSpec::default()
    };
    let mut bench = Bench::open_as(spec, MemoryFiles::new(), 1);
    bench.append(0, 3);
    for _ in 0..5 {
        bench.now.mono = bench.now.mono.plus(tiny().unsynced_time);
        bench.poll();
    }
    // The new class has a segment already: another log's.
    let moved = LogSpec {
        retention: Retention {
            time_ms: Some(1_000_000),
            bytes: None,
        },
        ..spec
    };
    let synced = LogSpec {
        durability: Durability::FSYNC,
        ..moved
    };
    bench.ask_to_open(2, OTHER, synced);
    bench.send(0, batch_to(OTHER, 0, "x"));
    bench.poll();
    // Not on the disk yet.
    bench.append(3, 2);
    bench.ask_to_open(3, LOG, moved);
    bench.poll();
    bench.out.clear();
    let journal = &mut bench.storage.journal;
    let log = journal.logs.iter().find(|log| log.id == LOG);
    let (slot, recent) = log.map(|log| (log.slot, log.recent[0].clone())).unwrap();
    let length = recent.batch.bytes().len() as u32;
    let envelope = Envelope::of_batch(slot, recent.first, recent.numbers, recent.time, length);
    journal.commits.add(Entry::again(&envelope, recent.batch));
    bench.poll();
    for n in 5..10 {
        bench.send(n, batch(n, &"x".repeat(100)));
        bench.poll();
    }
    // It syncs the new class's segment, and not the old one's.
    bench.send(1, batch_to(OTHER, 1, "x"));
    for _ in 0..5 {
        bench.poll();
    }
    let appended = |completion: &&Completion| matches!(completion, Completion::Appended { .. });
    assert_eq!(bench.out.iter().filter(appended).count(), 6);
    bench.out.clear();
    assert_eq!(bench.count(), 10);
}

/// A log that answers from memory has told of what waits; it is written once the files may be written again, behind
/// what is written already in the old class's segments: the journal's own invariants look at each poll.
#[test]
fn what_has_waited_for_the_files_is_written_behind_what_the_old_class_has() {
    let spec = LogSpec {
        durability: Durability::OS,
        ..LogSpec::default()
    };
    let mut bench = Bench::open_as(spec, MemoryFiles::new(), 1);
    bench.append(0, 3);
    let moved = LogSpec {
        durability: Durability::MEMORY,
        retention: Retention {
            time_ms: Some(1_000_000),
            bytes: None,
        },
        ..spec
    };
    let synced = LogSpec {
        durability: Durability::FSYNC,
        ..moved
    };
    bench.ask_to_open(2, OTHER, synced);
    bench.send(0, batch_to(OTHER, 0, "x"));
    for _ in 0..5 {
        bench.now.mono = bench.now.mono.plus(tiny().unsynced_time);
        bench.poll();
    }
    // Not on the disk yet.
    bench.append(3, 2);
    bench.ask_to_open(3, LOG, moved);
    bench.poll();
    bench.out.clear();
    // Behind a commit that is under way, this one waits, and is told.
    bench.send(1, batch_to(OTHER, 1, "x"));
    bench.storage.journal.advance(bench.now);
    assert_eq!(bench.storage.journal.commits.len(), 1);
    bench.send(5, batch(5, "x"));
    bench.storage.journal.advance(bench.now);
    let told = bench.storage.journal.effects.completions().clone();
    let is_told = |told: &Completion| matches!(told, Completion::Appended { t: Tag(5), .. });
    assert!(told.iter().any(is_told), "{told:?}");
    bench.storage.withhold("moved");
    bench.poll();
    bench.storage.release();
    for _ in 0..10 {
        bench.poll();
    }
    bench.out.clear();
    assert_eq!(bench.count(), 6);
    let mut bench = Bench::open(bench.storage.into_files(), 2);
    assert_eq!(bench.count(), 6);
}
