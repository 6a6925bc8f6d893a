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
    let mut bench = Bench::unopened(MemoryFiles::new(), 1);
    bench.ask_to_open(1, LOG, spec);
    bench.poll();
    bench.out.clear();
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
