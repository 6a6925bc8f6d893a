//! Removal of records: trim, retention, deletion; and exact reports of it to readers.

use super::batches::{Maker, log, spec};
use super::reading::{assert_all, fill};
use super::{Driver, Seen, Subject};
use crate::contract::{Call, Completion, GapWhy, LogSpec, Origin, Refusal, Scope};
use airmail_model::{Extent, LogId, Retention, Sequence, StorageName};
use std::time::Duration;

/// Longer than any storage leaves retention undone, by default.
const A_WHILE: Duration = Duration::from_secs(60);

pub(super) fn trim<S: Subject>(d: &mut Driver<'_, S>, log: LogId, before: u64) {
    match d.ask(|t| Call::Trim {
        t,
        log,
        before: Sequence(before),
    }) {
        Completion::Done { .. } => {}
        other => panic!("a trim was answered with {other:?}"),
    }
}

pub(super) fn delete<S: Subject>(d: &mut Driver<'_, S>, log: LogId) {
    delete_as_of(d, log, Sequence(0));
}

/// Deletes a log by a command of log 0 at this place.
pub(super) fn delete_as_of<S: Subject>(d: &mut Driver<'_, S>, log: LogId, as_of: Sequence) {
    match try_delete(d, log, as_of, StorageName::FIRST) {
        Completion::Done { .. } => {}
        other => panic!("a delete was answered with {other:?}"),
    }
}

/// Asks for the deletion of a log in this storage; its answer.
pub(super) fn try_delete<S: Subject>(
    d: &mut Driver<'_, S>,
    log: LogId,
    as_of: Sequence,
    storage: StorageName,
) -> Completion {
    let origin = Box::new(Origin {
        storage,
        ..Origin::default()
    });
    d.ask(|t| Call::Delete {
        t,
        log,
        as_of,
        origin,
    })
}

pub(super) fn retained(first: u64, last: u64) -> Seen {
    let (first, last) = (Sequence(first), Sequence(last));
    Seen::Gap(Extent { first, last }, GapWhy::Retention)
}

/// Batches of 1, 2, 3 records in turn: their edges are at 2, 4, 7, 8, 10, 13…
fn six<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 6);
}

/// A gap to the edge, and then what survives.
pub fn a_trim_at_a_batch_edge_leaves_exactly_the_rest<S: Subject>(d: &mut Driver<'_, S>) {
    six(d);
    for edge in [2, 4, 7, 8, 10] {
        trim(d, log(0), edge);
        let bounds = d.bounds(log(0));
        assert_eq!((bounds.first, bounds.next), (Sequence(edge), Sequence(13)));
        assert!(bounds.first_time.is_some());
        let reader = d.read_all(log(0), 1);
        let tiles = d.tiles(reader);
        assert_eq!(tiles[0], retained(1, edge - 1));
        let numbers = tiles.iter().flat_map(Seen::records).map(|(n, ..)| n);
        assert_eq!(numbers.collect::<Vec<_>>(), (edge..13).collect::<Vec<_>>());
    }
}

/// Never more is given up than was asked for.
pub fn a_trim_inside_a_batch_keeps_that_batch<S: Subject>(d: &mut Driver<'_, S>) {
    six(d);
    trim(d, log(0), 6);
    let reader = d.read_all(log(0), 1);
    let tiles = d.tiles(reader);
    let numbers: Vec<u64> = tiles
        .iter()
        .flat_map(Seen::records)
        .map(|(n, ..)| n)
        .collect();
    assert!(
        numbers.ends_with(&(6..13).collect::<Vec<_>>()),
        "{numbers:?}"
    );
    assert!(d.bounds(log(0)).first <= Sequence(6));
    assert_eq!(tiles[0], retained(1, numbers[0] - 1));
}

/// Trims more than there is, too.
pub fn a_trim_of_everything_leaves_the_numbers_going_on<S: Subject>(d: &mut Driver<'_, S>) {
    six(d);
    for (before, next) in [(13, 13), (1000, 14)] {
        trim(d, log(0), before);
        let bounds = d.bounds(log(0));
        assert_eq!(
            (bounds.first, bounds.next),
            (Sequence(next), Sequence(next))
        );
        assert_eq!((bounds.first_time, bounds.bytes), (None, 0));
        let reader = d.read_all(log(0), 1);
        let expected = [retained(1, next - 1), Seen::Tail(Sequence(next))];
        assert_eq!(d.seen(reader), expected);
        let tail = d.read_all(log(0), next);
        assert_eq!(d.seen(tail), [Seen::Tail(Sequence(next))]);
        assert_eq!(
            d.append(log(0), &[("a", &next.to_string())]).first,
            Sequence(next)
        );
        assert_all(d, reader, next, next);
        assert_all(d, tail, next, next);
    }
}

/// Nothing comes back.
pub fn a_trim_backwards_changes_nothing<S: Subject>(d: &mut Driver<'_, S>) {
    six(d);
    trim(d, log(0), 7);
    let bounds = d.bounds(log(0));
    for before in [0, 1, 4, 7] {
        trim(d, log(0), before);
        assert_eq!(d.bounds(log(0)), bounds);
    }
}

/// Expects the gap to begin neither where the trim did, nor where the log did.
pub fn a_gap_begins_where_the_reader_does<S: Subject>(d: &mut Driver<'_, S>) {
    six(d);
    trim(d, log(0), 8);
    for from in 1..=7 {
        let reader = d.read_all(log(0), from);
        assert_eq!(d.tiles(reader)[0], retained(from, 7));
    }
    let reader = d.read_all(log(0), 8);
    assert_all(d, reader, 8, 12);
}

/// It has had some of it, and is told of exactly the rest.
pub fn a_reader_in_the_middle_of_what_is_trimmed_is_told<S: Subject>(d: &mut Driver<'_, S>) {
    six(d);
    let reader = d.read(log(0), 1, Scope::default(), 1);
    assert_all(d, reader, 1, 1);
    trim(d, log(0), 8);
    d.credit(reader, u32::MAX);
    let tiles = d.tiles(reader);
    assert_eq!(tiles[0], retained(2, 7));
    let numbers = tiles.iter().flat_map(Seen::records).map(|(n, ..)| n);
    assert_eq!(numbers.collect::<Vec<_>>(), (8..13).collect::<Vec<_>>());
    let tail = d.read_all(log(0), 13);
    trim(d, log(0), 13);
    assert_eq!(d.tiles(reader), []);
    assert_eq!(d.tiles(tail), []);
    fill(d, 0, 1);
    assert_all(d, reader, 13, 13);
    assert_all(d, tail, 13, 13);
}

/// Trims the data under a reader again and again, from the disk too.
pub fn a_long_log_is_trimmed_under_a_slow_reader<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let reader = d.read(log(0), 1, Scope::default(), 0);
    let filler = "x".repeat(2000);
    let mut seen = Vec::new();
    for n in 1..=300u64 {
        d.append(log(0), &[("a", &filler)]);
        if n % 25 == 0 {
            trim(d, log(0), n - 10);
            d.credit(reader, 8000);
            seen.extend(d.tiles(reader));
        }
    }
    d.credit(reader, u32::MAX);
    seen.extend(d.tiles(reader));
    // The driver holds the tiling; here it is that nothing was lost but by retention.
    let gaps = seen.iter().filter_map(|tile| match tile {
        Seen::Gap(_, why) => Some(*why),
        _ => None,
    });
    assert!(gaps.clone().count() > 0);
    for why in gaps {
        assert_eq!(why, GapWhy::Retention);
    }
    assert_eq!(d.next_of(reader), Sequence(301));
}

fn kept<S: Subject>(d: &mut Driver<'_, S>, retention: Retention) -> LogSpec {
    LogSpec {
        retention,
        ..spec(d.capabilities().strongest)
    }
}

/// And nothing that is younger.
pub fn retention_by_time_takes_what_is_older<S: Subject>(d: &mut Driver<'_, S>) {
    let retention = Retention {
        time_ms: Some(3_600_000),
        bytes: None,
    };
    let spec = kept(d, retention);
    d.open_with(log(0), &spec);
    d.open(log(1));
    for index in [0, 1] {
        fill(d, index, 3);
    }
    d.sleep(Duration::from_secs(1800));
    for index in [0, 1] {
        fill(d, index, 3);
    }
    d.sleep(Duration::from_secs(1700));
    assert_eq!(d.bounds(log(0)).first, Sequence(1));
    d.sleep(Duration::from_secs(100) + A_WHILE);
    assert_eq!(d.bounds(log(0)).first, Sequence(7));
    let reader = d.read_all(log(0), 1);
    let tiles = d.tiles(reader);
    assert_eq!(tiles[0], retained(1, 6));
    assert_eq!(tiles.iter().flat_map(Seen::records).count(), 6);
    d.sleep(Duration::from_secs(1800));
    let bounds = d.bounds(log(0));
    assert_eq!((bounds.first, bounds.next), (Sequence(13), Sequence(13)));
    assert_eq!((bounds.first_time, bounds.bytes), (None, 0));
    // The other log is kept for ever.
    let reader = d.read_all(log(1), 1);
    assert_all(d, reader, 1, 12);
    fill(d, 0, 1);
    assert_eq!(d.bounds(log(0)).first, Sequence(13));
}

/// Expects records to go until the rest fits; those that one index entry covers may stay or go
/// together.
pub fn retention_by_size_takes_the_oldest<S: Subject>(d: &mut Driver<'_, S>) {
    let retention = Retention {
        time_ms: None,
        bytes: Some(50_000),
    };
    let spec = kept(d, retention);
    d.open_with(log(0), &spec);
    let filler = "x".repeat(1000);
    for n in 1..=200u64 {
        d.append(log(0), &[("a", &filler)]);
        if n == 40 {
            d.sleep(A_WHILE);
            assert_eq!(d.bounds(log(0)).first, Sequence(1));
        }
    }
    d.sleep(A_WHILE);
    let bounds = d.bounds(log(0));
    assert!(bounds.bytes <= 55_000, "{bounds:?}");
    assert!(
        bounds.bytes > 45_000,
        "more was taken than had to be: {bounds:?}"
    );
    let reader = d.read_all(log(0), 1);
    let tiles = d.tiles(reader);
    assert_eq!(tiles[0], retained(1, bounds.first.0 - 1));
    let count = tiles.iter().flat_map(Seen::records).count() as u64;
    assert_eq!(count, 201 - bounds.first.0);
}

/// Opens with a shorter retention: old records go; with a longer one: removed records stay removed.
pub fn retention_may_change_when_a_log_is_opened_again<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 3);
    d.sleep(Duration::from_secs(10_000));
    fill(d, 0, 3);
    let retention = Retention {
        time_ms: Some(5_000_000),
        bytes: None,
    };
    let shorter = kept(d, retention);
    d.open_with(log(0), &shorter);
    d.sleep(A_WHILE);
    assert_eq!(d.bounds(log(0)).first, Sequence(7));
    d.open(log(0));
    d.sleep(Duration::from_secs(10_000));
    assert_eq!(d.bounds(log(0)).first, Sequence(7));
    let reader = d.read_all(log(0), 7);
    assert_all(d, reader, 7, 12);
}

/// Deletes a log with readers at the tail and in the middle; every later call is refused.
pub fn a_deleted_log_ends_its_readers_and_is_gone<S: Subject>(d: &mut Driver<'_, S>) {
    six(d);
    d.open(log(1));
    fill(d, 1, 3);
    let tail = d.read_all(log(0), 1);
    let middle = d.read(log(0), 1, Scope::default(), 1);
    let other = d.read_all(log(1), 1);
    d.settle();
    delete(d, log(0));
    for reader in [tail, middle] {
        assert!(matches!(d.seen(reader).last(), Some(Seen::Ended(_))));
    }
    assert_eq!(
        d.refused(&Maker::new(log(0)).batch(&[("a", "x")])),
        Refusal::NoLog
    );
    let again = d.read_all(log(0), 1);
    assert_eq!(d.seen(again), [Seen::Ended(Some(Refusal::NoLog))]);
    assert_all(d, other, 1, 6);
}

/// Nothing of its former life is served, and its numbers cannot be taken for the former ones.
pub fn a_deleted_log_made_anew_is_empty<S: Subject>(d: &mut Driver<'_, S>) {
    six(d);
    let old = d.bounds(log(0));
    delete(d, log(0));
    let new = d.open(log(0));
    assert_eq!((new.first, new.bytes), (new.next, 0));
    assert!(
        new.incarnation != old.incarnation || new.next >= old.next,
        "{new:?}"
    );
    let reader = d.read_all(log(0), new.first.0);
    fill(d, 0, 3);
    assert_all(d, reader, new.first.0, new.first.0 + 5);
}
