//! Stops, clean ones and crashes: what a journal has after them.

use super::{Bench, LOG};
use crate::contract::{LogSpec, LogStorage};
use crate::memory::MemoryFiles;
use airmail_model::{Durability, Sequence};

#[test]
fn what_was_appended_before_and_after_a_clean_stop_outlives_a_crash() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 13);
    let mut bench = Bench::open(bench.close(), 2);
    assert_eq!(bench.count(), 13);
    bench.append(13, 13);
    assert_eq!(bench.count(), 26);
    let mut bench = Bench::open(bench.storage.into_files(), 3);
    assert_eq!(bench.count(), 26);
}

#[test]
fn a_command_behind_the_last_checkpoint_of_a_clean_stop_is_in_another_one() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 5);
    bench.storage.close(bench.now);
    for _ in 0..10 {
        bench.poll();
    }
    assert!(bench.storage.is_closed());
    // Whoever else has the log says what it is now, and does not know of the stop.
    let spec = LogSpec {
        durability: Durability::OS,
        as_of: Sequence(2),
        ..LogSpec::default()
    };
    bench.ask_to_open(9, LOG, spec);
    let mut bench = Bench::open(bench.close(), 2);
    assert_eq!(bench.next(), Sequence(6), "no numbers are skipped");
}

#[test]
fn many_segments_and_blocks_are_read_back_after_every_kind_of_stop() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    for round in 0..6 {
        bench.append(round * 200, 200);
        assert_eq!(bench.count(), (round + 1) * 200);
        let files = if round % 2 == 0 {
            bench.close()
        } else {
            bench.storage.into_files()
        };
        bench = Bench::open(files, round + 2);
        assert_eq!(bench.count(), (round + 1) * 200);
    }
}
