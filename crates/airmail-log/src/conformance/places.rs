//! Places in log 0: an owner that has slept opens and deletes logs by what log 0 said then, and the later
//! place counts.

use super::batches::{Maker, log, spec};
use super::reading::fill;
use super::trimming::{delete_as_of, try_delete};
use super::{Driver, End, Subject};
use crate::contract::{Call, Completion, LogSpec, Refusal};
use airmail_model::{Durability, Retention, Sequence, StorageName};
use std::time::Duration;

/// Longer than any storage leaves retention undone, by default.
const A_WHILE: Duration = Duration::from_secs(60);
/// Bytes for one batch, and not for a few.
const LITTLE: u64 = 1_000;

/// A spec of a place, as durable as there is, that keeps this many bytes.
fn keeping<S: Subject>(d: &mut Driver<'_, S>, as_of: u64, bytes: Option<u64>) -> LogSpec {
    LogSpec {
        retention: Retention {
            time_ms: None,
            bytes,
        },
        as_of: Sequence(as_of),
        ..spec(d.capabilities().strongest)
    }
}

/// Whether a log keeps everything that is appended now.
fn keeps_all<S: Subject>(d: &mut Driver<'_, S>) -> bool {
    let filler = "x".repeat(500);
    let first = d.bounds(log(0)).next;
    for _ in 0..20 {
        d.append(log(0), &[("a", &filler)]);
    }
    d.sleep(A_WHILE);
    d.bounds(log(0)).first <= first
}

/// Expects retention and durability to stay as the later place says.
pub fn a_spec_of_an_earlier_place_changes_nothing<S: Subject>(d: &mut Driver<'_, S>) {
    let (newer, mut older) = (keeping(d, 7, None), keeping(d, 6, Some(LITTLE)));
    older.durability = Durability::MEMORY;
    d.open_with(log(0), &newer);
    let bounds = d.bounds(log(0));
    assert_eq!(d.open_with(log(0), &older), bounds, "it is open, as it was");
    assert!(keeps_all(d));
    match d.offer(&Maker::new(log(0)).batch(&[("a", "x")])) {
        Completion::Appended { held, .. } => {
            assert!(held.satisfies(newer.durability), "{held}");
        }
        other => panic!("an append was answered with {other:?}"),
    }
    // Two that are asked for together.
    let newest = keeping(d, 9, None);
    let (one, other) = (d.begin_open(log(0), &newest), d.begin_open(log(0), &older));
    for tag in [one, other] {
        let answer = d.answer(tag);
        assert!(matches!(answer, Completion::Opened { .. }), "{answer:?}");
    }
    assert!(keeps_all(d));
}

/// One of the same place as well: it may have been said again.
pub fn a_spec_of_a_later_place_is_taken_over<S: Subject>(d: &mut Driver<'_, S>) {
    let first = keeping(d, 7, None);
    d.open_with(log(0), &first);
    assert!(keeps_all(d));
    for (as_of, bytes) in [(8, Some(LITTLE)), (9, None), (9, Some(LITTLE))] {
        let next = keeping(d, as_of, bytes);
        d.open_with(log(0), &next);
        assert_eq!(keeps_all(d), bytes.is_none(), "as of {as_of}");
    }
}

/// It was kept, or made anew, by a later command.
pub fn a_deletion_of_an_earlier_place_changes_nothing<S: Subject>(d: &mut Driver<'_, S>) {
    let newer = keeping(d, 7, None);
    d.open_with(log(0), &newer);
    fill(d, 0, 3);
    let bounds = d.bounds(log(0));
    delete_as_of(d, log(0), Sequence(6));
    assert_eq!(d.bounds(log(0)), bounds);
    delete_as_of(d, log(0), Sequence(8));
    let refused = d.refused(&Maker::new(log(0)).batch(&[("a", "x")]));
    assert_eq!(refused, Refusal::NoLog);
}

/// A log that does not come back: not once, and not to another spec of the time before.
fn stays_deleted<S: Subject>(d: &mut Driver<'_, S>, before: u64) {
    for as_of in 0..before {
        let older = keeping(d, as_of, None);
        match d.try_open(log(0), &older) {
            Completion::Refused { why, .. } => assert_eq!(why, Refusal::NoLog),
            other => panic!("deleted as of {before}, opened as of {as_of}: {other:?}"),
        }
        let why = d.refused(&Maker::new(log(0)).batch(&[("a", "x")]));
        assert_eq!(why, Refusal::NoLog);
    }
}

/// A later one makes it, empty.
pub fn a_spec_of_before_the_deletion_makes_no_log<S: Subject>(d: &mut Driver<'_, S>) {
    let first = keeping(d, 3, None);
    d.open_with(log(0), &first);
    fill(d, 0, 3);
    delete_as_of(d, log(0), Sequence(5));
    stays_deleted(d, 5);
    let later = keeping(d, 6, None);
    let bounds = d.open_with(log(0), &later);
    assert_eq!((bounds.first, bounds.bytes), (bounds.next, 0));
    // The mark is of the last deletion.
    delete_as_of(d, log(0), Sequence(8));
    stays_deleted(d, 8);
}

/// One that a deletion overtakes is opened, or is told that there is no such log.
pub fn an_open_that_a_deletion_overtakes_is_answered_as_one<S: Subject>(d: &mut Driver<'_, S>) {
    let spec = keeping(d, 3, None);
    let opens = [0, 1].map(|_| d.begin_open(log(0), &spec));
    let delete = d.call(|t| Call::Delete {
        t,
        log: log(0),
        as_of: Sequence(5),
        origin: Box::default(),
    });
    for open in opens {
        match d.answer(open) {
            Completion::Opened { .. } => {}
            Completion::Refused { why, .. } => assert_eq!(why, Refusal::NoLog),
            other => panic!("opened: {other:?}"),
        }
    }
    assert!(matches!(d.answer(delete), Completion::Done { .. }));
    stays_deleted(d, 5);
}

/// Deletes a log that somebody else may be about to make, as of an earlier place; and once more.
pub fn a_log_that_is_not_there_can_be_deleted<S: Subject>(d: &mut Driver<'_, S>) {
    for _ in 0..2 {
        delete_as_of(d, log(0), Sequence(5));
        stays_deleted(d, 5);
    }
    // Of no place at all: it is not there, and nothing is to keep it away.
    delete_as_of(d, log(1), Sequence(0));
    d.open(log(1));
    let later = keeping(d, 5, None);
    let bounds = d.open_with(log(0), &later);
    assert_eq!((bounds.first, bounds.bytes), (bounds.next, 0));
}

/// Neither made nor deleted by one that has it not; and what is asked of it is refused.
pub fn a_log_in_a_storage_that_it_has_not_is_elsewhere<S: Subject>(d: &mut Driver<'_, S>) {
    let Some(storage) = StorageName::new("a-storage-that-nobody-has") else {
        panic!("a name is none");
    };
    let there = LogSpec {
        storage,
        ..keeping(d, 3, None)
    };
    for _ in 0..2 {
        let opened = d.try_open(log(0), &there);
        let deleted = try_delete(d, log(0), Sequence(5), storage);
        for answer in [opened, deleted] {
            let why = match answer {
                Completion::Refused { why, .. } => why,
                other => panic!("a call for storage {storage} was answered with {other:?}"),
            };
            assert!(matches!(why, Refusal::Elsewhere(_)), "{why}");
        }
        let why = d.refused(&Maker::new(log(0)).batch(&[("a", "x")]));
        let told = matches!(why, Refusal::Elsewhere(_) | Refusal::NoLog);
        assert!(told, "{why}");
    }
    // Nothing of it is here, not even the mark of its deletion.
    let here = keeping(d, 4, None);
    let bounds = d.open_with(log(0), &here);
    assert_eq!((bounds.first, bounds.bytes), (bounds.next, 0));
}

/// Stops in every way, with and without anything else to write down.
pub fn a_spec_of_an_earlier_place_changes_nothing_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    let (newer, older) = (keeping(d, 7, None), keeping(d, 6, Some(LITTLE)));
    d.open_with(log(0), &newer);
    for end in [End::Crash, End::Clean, End::Crash, End::Crash] {
        d.reopen(end);
        d.open_with(log(0), &older);
        assert!(keeps_all(d), "after {end:?}");
    }
}

/// Stops in every way, with and without anything else to write down.
pub fn a_spec_of_before_the_deletion_makes_no_log_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    let first = keeping(d, 3, None);
    d.open_with(log(0), &first);
    d.open(log(1));
    fill(d, 0, 3);
    delete_as_of(d, log(0), Sequence(5));
    for end in [End::Crash, End::Clean, End::Clean, End::Crash] {
        d.reopen(end);
        d.open(log(1));
        stays_deleted(d, 5);
        fill(d, 1, 60);
    }
}

/// Stops in every way, with and without anything else to write down.
pub fn a_log_that_was_not_there_stays_deleted_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    d.open(log(1));
    delete_as_of(d, log(0), Sequence(5));
    for end in [End::Crash, End::Clean, End::Clean, End::Crash] {
        d.reopen(end);
        d.open(log(1));
        stays_deleted(d, 5);
        fill(d, 1, 60);
    }
}
