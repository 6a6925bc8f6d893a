//! Return of unneeded space to the disk, also where nothing happens any more.
//!
//! The bound: the data that retention asks for, and two segments for each class. Commands,
//! checkpoints and indexes come beside it; these do not grow with the removed data.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod subjects;

use airmail_log::conformance::{Driver, End, Subject, log, run, spec};
use airmail_log::files::Files;
use airmail_log::journal::{JournalConfig, check};
use airmail_log::{Call, Completion, LogSpec};
use airmail_model::{Durability, LogId, Retention, Sequence};
use std::time::Duration;
use subjects::{InMemory, Kept, OnKept};

const SEGMENT_BYTES: u64 = 32 << 10;

fn config() -> JournalConfig {
    JournalConfig {
        checkpoint_bytes: 64 << 10,
        ..subjects::tiny(JournalConfig::default())
    }
}

/// A namespace's log, not log 0: that is of another class.
fn named(index: u16) -> LogId {
    log(index)
}

fn keeping(time: Option<Duration>, bytes: Option<u64>) -> LogSpec {
    let time_ms = time.map(|time| time.as_millis() as u64);
    LogSpec {
        retention: Retention { time_ms, bytes },
        ..spec(Durability::FSYNC)
    }
}

/// Publishes about `bytes` bytes.
fn publish<S: Subject>(d: &mut Driver<'_, S>, log: LogId, bytes: u64) {
    let payload = "x".repeat(1_000);
    for _ in 0..bytes / 1_000 {
        d.append(log, &[("a", &payload)]);
    }
}

/// A minute in which nobody does anything.
fn an_idle_minute<S: Subject>(d: &mut Driver<'_, S>) {
    for _ in 0..60 {
        d.sleep(Duration::from_secs(1));
    }
}

fn delete<S: Subject>(d: &mut Driver<'_, S>, log: LogId) {
    let answer = d.ask(|t| Call::Delete {
        t,
        log,
        as_of: Sequence(0),
        origin: Box::default(),
    });
    assert!(matches!(answer, Completion::Done { .. }), "{answer:?}");
}

/// Total size of the segments, with the files kept for new ones.
fn held(files: &Kept) -> u64 {
    let all = files.clone().list().unwrap();
    let segment = |name: &str| name.starts_with("seg-") || name.starts_with("free-");
    let segments = all.iter().filter(|(name, _)| segment(name));
    segments.map(|(_, length)| length).sum()
}

/// Space beside the messages: commands, in at most three segments of their own.
const COMMANDS_BYTES: u64 = 3 * (4 << 10);

#[test]
fn a_deleted_log_leaves_no_byte_of_it_on_an_idle_disk() {
    for end in [None, Some(End::Clean), Some(End::Crash)] {
        let mut subject = OnKept::new(config());
        let files = subject.files.clone();
        run(&mut subject, |d| {
            d.open_with(named(0), &keeping(None, None));
            publish(d, named(0), 20 * SEGMENT_BYTES);
            delete(d, named(0));
            assert!(held(&files) > 2 * SEGMENT_BYTES, "nothing is tested");
            if let Some(end) = end {
                d.reopen(end);
            }
            an_idle_minute(d);
            assert!(held(&files) <= COMMANDS_BYTES, "{end:?}: {}", held(&files));
        });
    }
}

#[test]
fn on_an_idle_disk_bytes_of_retention_and_two_segments_are_all_there_is() {
    for end in [None, Some(End::Clean), Some(End::Crash)] {
        for kept in [2_000, 10_000, 3 * SEGMENT_BYTES] {
            let mut subject = OnKept::new(config());
            let files = subject.files.clone();
            run(&mut subject, |d| {
                d.open_with(named(0), &keeping(None, Some(kept)));
                publish(d, named(0), 20 * SEGMENT_BYTES + SEGMENT_BYTES / 5 * 4);
                if let Some(end) = end {
                    d.reopen(end);
                    d.open_with(named(0), &keeping(None, Some(kept)));
                }
                an_idle_minute(d);
                let bound = kept + 2 * SEGMENT_BYTES + COMMANDS_BYTES;
                assert!(held(&files) <= bound, "{end:?} {kept}: {}", held(&files));
                let bounds = d.bounds(named(0));
                assert!(bounds.bytes > 0 && bounds.bytes <= kept, "{bounds:?}");
            });
        }
    }
}

#[test]
fn the_last_segment_goes_when_its_time_is_over_though_nothing_is_published() {
    let mut subject = OnKept::new(config());
    let files = subject.files.clone();
    run(&mut subject, |d| {
        let hour = Duration::from_secs(1800);
        d.open_with(named(0), &keeping(Some(hour), None));
        publish(d, named(0), SEGMENT_BYTES / 2);
        an_idle_minute(d);
        assert!(held(&files) > SEGMENT_BYTES / 2, "what is wanted stays");
        for _ in 0..60 {
            an_idle_minute(d);
        }
        assert!(held(&files) <= COMMANDS_BYTES, "{}", held(&files));
        // The log goes on in another one.
        publish(d, named(0), 2_000);
        let reader = d.read_all(named(0), 1);
        assert_eq!(d.records(reader).len(), 2);
    });
}

#[test]
fn a_log_that_keeps_a_little_beside_one_that_is_deleted_keeps_two_segments_at_most() {
    let mut subject = OnKept::new(config());
    let files = subject.files.clone();
    run(&mut subject, |d| {
        d.open_with(named(0), &keeping(None, None));
        d.open_with(named(1), &keeping(None, None));
        publish(d, named(0), 5_000);
        publish(d, named(1), 10 * SEGMENT_BYTES);
        publish(d, named(0), 5_000);
        delete(d, named(1));
        an_idle_minute(d);
        let bound = 2 * SEGMENT_BYTES + COMMANDS_BYTES;
        assert!(held(&files) <= bound, "{}", held(&files));
        let reader = d.read_all(named(0), 1);
        assert_eq!(d.records(reader).len(), 10);
    });
}

#[test]
fn restarts_leave_no_files_that_are_filled_ahead_and_hold_a_message_each() {
    let mut subject = OnKept::new(config());
    let files = subject.files.clone();
    run(&mut subject, |d| {
        for round in 0..20 {
            d.open_with(named(0), &keeping(None, None));
            publish(d, named(0), 1_000);
            d.reopen([End::Clean, End::Crash][round % 2]);
        }
        d.open_with(named(0), &keeping(None, None));
        an_idle_minute(d);
        // A page each is the least.
        let bound = 20 * 4096 + COMMANDS_BYTES;
        assert!(held(&files) <= bound, "{}", held(&files));
        let reader = d.read_all(named(0), 1);
        assert_eq!(d.records(reader).len(), 20);
    });
}

#[test]
fn a_reader_of_a_deleted_log_does_not_keep_its_segments() {
    let mut subject = OnKept::new(config());
    let files = subject.files.clone();
    run(&mut subject, |d| {
        d.open_with(named(0), &keeping(None, None));
        publish(d, named(0), 10 * SEGMENT_BYTES);
        let reader = d.read(named(0), 1, airmail_log::Scope::default(), 2_000);
        assert!(!d.records(reader).is_empty());
        delete(d, named(0));
        an_idle_minute(d);
        assert!(held(&files) <= COMMANDS_BYTES, "{}", held(&files));
    });
}

#[test]
fn memory_is_given_back_as_a_disk_is() {
    let mut subject = InMemory::new(subjects::tiny(JournalConfig::memory(0)));
    run(&mut subject, |d| {
        let spec = LogSpec {
            durability: Durability::MEMORY,
            ..keeping(None, None)
        };
        d.open_with(named(0), &spec);
        publish(d, named(0), 10 * SEGMENT_BYTES);
        delete(d, named(0));
        an_idle_minute(d);
        d.open_with(named(0), &spec);
        assert_eq!(d.bounds(named(0)).bytes, 0);
    });
}

#[test]
fn what_is_wanted_between_what_is_not_is_moved_together() {
    for end in [None, Some(End::Clean), Some(End::Crash)] {
        let mut subject = OnKept::new(config());
        let files = subject.files.clone();
        run(&mut subject, |d| {
            d.open_with(named(0), &keeping(None, None));
            d.open_with(named(1), &keeping(None, None));
            for _ in 0..20 {
                publish(d, named(0), 2_000);
                publish(d, named(1), SEGMENT_BYTES);
            }
            let reader = d.read(named(0), 1, airmail_log::Scope::default(), 5_000);
            let mut seen = d.records(reader);
            delete(d, named(1));
            an_idle_minute(d);
            let bound = 40_000 + 2 * SEGMENT_BYTES + COMMANDS_BYTES;
            assert!(held(&files) <= bound, "{end:?} {}", held(&files));
            d.credit(reader, u32::MAX);
            seen.extend(d.records(reader));
            let numbers: Vec<u64> = seen.iter().map(|(number, ..)| *number).collect();
            assert_eq!(numbers, (1..=40).collect::<Vec<_>>(), "{end:?}");
            if let Some(end) = end {
                d.reopen(end);
                d.open_with(named(0), &keeping(None, None));
                an_idle_minute(d);
            }
            publish(d, named(0), 1_000);
            let reader = d.read_all(named(0), 1);
            let all = d.records(reader).into_iter().map(|(number, ..)| number);
            assert_eq!(
                all.collect::<Vec<_>>(),
                (1..=41).collect::<Vec<_>>(),
                "{end:?}"
            );
            assert!(held(&files) <= bound, "{end:?} {}", held(&files));
            assert!(d.bounds(named(0)).bytes < 60_000);
            let report = check(&mut files.clone()).unwrap();
            assert_eq!(report.problems, []);
            let counted: Vec<u64> = report.logs.iter().map(|log| log.batches).collect();
            assert_eq!(counted, [41], "{end:?}");
        });
    }
}
