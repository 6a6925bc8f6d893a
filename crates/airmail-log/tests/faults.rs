//! A disk that is full, and one whose sync fails: a refused batch is not stored, a stored one is
//! served, and the journal heals by itself.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod subjects;

use airmail_log::conformance::{Driver, End, Maker, Subject, log, spec};
use airmail_log::disk::DiskOptions;
use airmail_log::journal::JournalConfig;
use airmail_log::{Call, Completion, Refusal};
use airmail_model::{Durability, Sequence};
use std::time::Duration;
use subjects::{Kept, OnDisk, OnKept, tiny};

/// Appends until the disk is full; how many were stored, and what the last was told.
fn fill<S: Subject>(d: &mut Driver<'_, S>) -> (u64, Refusal) {
    let batch = Maker::new(log(0)).batch(&[("a", &"x".repeat(1000))]);
    for stored in 0..10_000 {
        match d.offer(&batch) {
            Completion::Appended { .. } => {}
            Completion::Refused { why, .. } => return (stored, why),
            other => panic!("an append was answered with {other:?}"),
        }
    }
    panic!("the disk is never full");
}

fn set_room(files: &Kept, more_bytes: Option<u64>) {
    let mut files = files.0.lock();
    let room = more_bytes.map(|more| files.used() + more);
    files.set_room(room);
}

/// A driver's subject, and a handle on the files that it will have.
fn full_disk(test: impl FnOnce(&mut Driver<'_, OnKept>, &Kept)) {
    let mut subject = OnKept::new(tiny(JournalConfig::default()));
    let files = subject.files.clone();
    let mut d = Driver::new(&mut subject);
    d.open(log(0));
    d.append(log(0), &[("a", "before")]);
    d.settle();
    test(&mut d, &files);
}

#[test]
fn a_full_disk_refuses_appends_and_serves_reads() {
    full_disk(|d, files| {
        set_room(files, Some(50_000));
        let (stored, why) = fill(d);
        assert!(matches!(why, Refusal::Full { .. }), "{why:?}");
        assert!(stored > 5, "{stored}");
        for _ in 0..5 {
            let why = d.refused(&Maker::new(log(0)).batch(&[("a", "x")]));
            assert!(matches!(why, Refusal::Full { .. }), "{why:?}");
        }
        let bounds = d.bounds(log(0));
        assert_eq!(bounds.next, Sequence(stored + 2));
        let reader = d.read_all(log(0), 1);
        assert_eq!(d.records(reader).len() as u64, stored + 1);
    });
}

#[test]
fn a_full_disk_heals_when_space_returns() {
    full_disk(|d, files| {
        let reader = d.read_all(log(0), 1);
        let mut stored = 1;
        for _ in 0..3 {
            set_room(files, Some(40_000));
            stored += fill(d).0;
            set_room(files, None);
            d.sleep(Duration::from_secs(10));
            d.append(log(0), &[("a", "after")]);
            stored += 1;
        }
        assert_eq!(d.records(reader).len() as u64, stored);
        assert_eq!(d.next_of(reader), Sequence(stored + 1));
        d.reopen(End::Crash);
        assert_eq!(d.open(log(0)).next, Sequence(stored + 1));
        let reader = d.read_all(log(0), 1);
        assert_eq!(d.records(reader).len() as u64, stored);
    });
}

#[test]
fn a_trim_makes_room_on_a_full_disk() {
    full_disk(|d, files| {
        set_room(files, Some(200_000));
        let (stored, _) = fill(d);
        let answer = d.ask(|t| Call::Trim {
            t,
            log: log(0),
            before: Sequence(stored),
        });
        assert!(matches!(answer, Completion::Done { .. }), "{answer:?}");
        d.sleep(Duration::from_secs(60));
        for _ in 0..10 {
            d.append(log(0), &[("a", &"x".repeat(1000))]);
        }
        assert_eq!(d.bounds(log(0)).first, Sequence(stored));
    });
}

#[test]
fn a_producer_goes_on_where_it_was_refused_for_space() {
    full_disk(|d, files| {
        let maker = Maker::of(log(0), 3, 1);
        let batch = |n: u64| maker.at(n).batch(&[("p", &n.to_string())]);
        d.store(&batch(0));
        set_room(files, Some(0));
        fill(d);
        let mut next = 1;
        while let Completion::Appended { .. } = d.offer(&batch(next)) {
            next += 1;
        }
        set_room(files, None);
        d.sleep(Duration::from_secs(10));
        for n in next..next + 10 {
            d.store(&batch(n));
        }
        d.duplicate(&batch(next));
    });
}

/// Every sync fails once, one run for each.
#[test]
fn what_a_failed_sync_leaves_is_never_acknowledged_and_never_served() {
    let mut failures = 0;
    for fail_after in 0..30 {
        let mut subject = OnDisk::new(tiny(JournalConfig::default()));
        subject.options = DiskOptions {
            fail_sync_after: Some(fail_after),
            ..DiskOptions::default()
        };
        let mut d = Driver::new(&mut subject);
        let spec = spec(Durability::FSYNC);
        // The first of all that fails may be what makes the log.
        while let Completion::Refused { .. } = d.try_open(log(0), &spec) {
            failures += 1;
            d.sleep(Duration::from_secs(10));
        }
        let mut stored = Vec::new();
        for n in 0..40 {
            let payload = format!("{n} {}", "x".repeat(900));
            match d.offer(&Maker::new(log(0)).batch(&[("a", &payload)])) {
                Completion::Appended { extent, .. } => stored.push((extent.first.0, payload)),
                Completion::Refused { why, .. } => {
                    assert!(
                        matches!(why, Refusal::Io(_) | Refusal::OutcomeUnknown),
                        "{why:?}"
                    );
                    failures += 1;
                    d.sleep(Duration::from_secs(10));
                }
                other => panic!("an append was answered with {other:?}"),
            }
        }
        for end in [None, Some(End::Crash), Some(End::Clean)] {
            if let Some(end) = end {
                d.reopen(end);
                d.open_with(log(0), &spec);
            }
            let reader = d.read_all(log(0), 1);
            let records = d.records(reader);
            let got: Vec<_> = records
                .into_iter()
                .map(|(number, _, payload)| (number, String::from_utf8(payload).unwrap()))
                .collect();
            assert_eq!(got, stored, "sync {fail_after} failed, then {end:?}");
        }
    }
    assert!(failures > 5, "{failures}");
}
