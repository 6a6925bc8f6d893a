//! An invariant that is broken is found at the step that breaks it.

use super::*;
use crate::journal::entry::Entry;
use crate::journal::format::Envelope;
use crate::journal::meta::Meta;
use crate::journal::segments::seal;

/// A bench that has stored something, and a log's place in a block.
fn stored() -> Bench {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 3);
    bench
}

#[test]
#[should_panic(expected = "logs that keep part of block")]
fn a_block_that_forgets_a_log_is_found_at_the_next_step() {
    let mut bench = stored();
    let slot = bench.storage.journal.logs.slot_of(LOG).unwrap();
    let log = bench.storage.journal.logs.get(slot).unwrap();
    let block = log.kept.iter().next().unwrap().block;
    bench.storage.journal.segments.let_go(block);
    bench.poll();
}

#[test]
#[should_panic(expected = "slot 1: Numbers")]
fn numbers_that_are_seen_before_they_are_given_are_found_at_the_next_step() {
    let mut bench = stored();
    let slot = bench.storage.journal.logs.slot_of(LOG).unwrap();
    let log = bench.storage.journal.logs.get_mut(slot).unwrap();
    log.numbers.visible = log.numbers.next.plus(1);
    bench.poll();
}

#[test]
#[should_panic(expected = "reads of readers")]
fn a_read_that_nobody_asked_for_is_found_at_the_next_step() {
    let mut bench = stored();
    bench.storage.journal.readers.read_begun(ReaderId(1));
    bench.poll();
}

#[test]
#[should_panic(expected = "is to be sealed and is gone")]
fn a_segment_that_is_not_there_is_a_bug_where_it_is_to_be_sealed() {
    let mut bench = stored();
    let class = bench.storage.journal.segments.classes().next().unwrap().0;
    let active = bench.storage.journal.segments.class(class).active.unwrap();
    bench.storage.journal.segments.remove(active);
    let journal = &mut bench.storage.journal;
    seal(
        &mut journal.segments,
        &mut journal.indexer,
        &mut journal.commands,
        active,
    );
}

#[test]
#[should_panic(expected = "bytes that nobody wants than a segment")]
fn segments_that_nobody_looks_at_though_little_of_them_is_wanted_are_found_at_the_next_step() {
    let mut bench = stored();
    bench.ask_to_open(2, OTHER, LogSpec::default());
    for n in 0..8 {
        bench.send(100 + n, batch_to(OTHER, n, "kept"));
        bench.poll();
        bench.out.clear();
        bench.append(3 + 100 * n, 100);
    }
    bench.storage.submit(Call::Trim {
        t: Tag(3),
        log: LOG,
        before: Sequence(800),
    });
    for _ in 0..5 {
        bench.poll();
    }
    let segments = &mut bench.storage.journal.segments;
    assert!(
        segments.is_move_due(),
        "the trim has left a move to be made"
    );
    segments.settled();
    bench.poll();
}

#[test]
#[should_panic(expected = "batches are written before Reserve")]
fn a_batch_that_is_written_before_a_command_that_it_relies_on_is_found_at_that_write() {
    let mut bench = stored();
    let journal = &mut bench.storage.journal;
    let slot = journal.logs.slot_of(LOG).unwrap();
    let class = journal.segments.classes().next().unwrap().0;
    let active = journal.segments.class(class).active.unwrap();
    let until = Sequence(1_000);
    journal.commands.give(Meta::Reserve { slot, until }, None);
    let batch = batch(3, "x");
    let envelope = Envelope::of_batch(slot, Sequence(4), 1, AppendTime(0), 0);
    let entry = Entry {
        copy: false,
        ..Entry::again(&envelope, batch)
    };
    journal.write_batches(active, vec![entry], true);
}
