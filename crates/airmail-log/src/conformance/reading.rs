//! Promises to a reader: everything from its place on, in order, as its credit allows.

use super::batches::{Maker, log};
use super::{Driver, Seen, Subject};
use crate::contract::{ReaderId, Refusal, Scope};
use airmail_model::Sequence;

/// Appends batches of 1, 2, 3, 1, 2, 3… records, whose payload is their own number.
pub(super) fn fill<S: Subject>(d: &mut Driver<'_, S>, index: u16, batches: u32) {
    let mut next = d.bounds(log(index)).next.0;
    for n in 0..batches {
        let numbers = u64::from(n % 3) + 1;
        let payloads: Vec<String> = (next..next + numbers).map(|n| n.to_string()).collect();
        let records: Vec<_> = payloads.iter().map(|p| ("a", p.as_str())).collect();
        d.append(log(index), &records);
        next += numbers;
    }
}

/// Asserts that a reader has come from `from` to `to`, both included, without a gap.
pub(super) fn assert_all<S: Subject>(d: &mut Driver<'_, S>, r: ReaderId, from: u64, to: u64) {
    assert_records(&d.records(r), from, to);
}

fn assert_records(records: &[(u64, String, Vec<u8>)], from: u64, to: u64) {
    let numbers: Vec<u64> = records.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (from..=to).collect::<Vec<_>>());
    for (number, _, payload) in records {
        assert_eq!(payload, number.to_string().as_bytes());
    }
}

fn until(number: u64) -> Scope {
    Scope {
        until: Some(Sequence(number)),
        ..Scope::default()
    }
}

/// Expects a mark each time that there is nothing more.
pub fn a_reader_gets_what_was_there_and_what_comes<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let reader = d.read_all(log(0), 1);
    assert_eq!(d.seen(reader), [Seen::Tail(Sequence(1))]);
    for round in 1..=3 {
        fill(d, 0, 3);
        let next = round * 6 + 1;
        let seen = d.seen(reader);
        assert_eq!(seen.last(), Some(&Seen::Tail(Sequence(next))));
        let records: Vec<_> = seen.iter().flat_map(Seen::records).collect();
        assert_records(&records, next - 6, next - 1);
    }
    let late = d.read_all(log(0), 1);
    assert_all(d, late, 1, 18);
}

/// None of the earlier ones, not even the last.
pub fn a_tail_reader_sees_only_what_comes_later<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 10);
    let next = d.bounds(log(0)).next.0;
    let reader = d.read_all(log(0), next);
    assert_eq!(d.seen(reader), [Seen::Tail(Sequence(next))]);
    fill(d, 0, 1);
    assert_all(d, reader, next, next);
    let again = d.read_all(log(0), next + 1);
    assert_eq!(d.tiles(again), []);
    fill(d, 0, 1);
    assert_all(d, again, next + 1, next + 1);
}

/// It is given nothing until the log has come there, and then that.
pub fn a_reader_from_beyond_the_end_waits_there<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    if !d.capabilities().past_end {
        // However many of the storage's numbers a record takes.
        let far = Sequence(1 << 60);
        let reader = d.read_numbers(log(0), far, Scope::default(), u32::MAX);
        let seen = d.seen(reader);
        let refused = matches!(seen[..], [Seen::Ended(Some(Refusal::Unsupported(_)))]);
        assert!(refused, "{seen:?}");
        return;
    }
    let reader = d.read_all(log(0), 50);
    fill(d, 0, 18);
    assert_eq!(d.bounds(log(0)).next, Sequence(37));
    assert_eq!(d.tiles(reader), []);
    // "Far future, then 0": another one at the beginning is not held up by it.
    let first = d.read_all(log(0), 1);
    assert_all(d, first, 1, 36);
    fill(d, 0, 18);
    let seen = d.records(reader);
    let wanted: Vec<_> = seen.into_iter().filter(|(n, ..)| *n >= 50).collect();
    assert_records(&wanted, 50, 72);
}

/// Begun there or cut there; nothing from its place on is missing.
pub fn a_reader_from_inside_a_batch_gets_that_batch<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 30);
    for from in 1..=60 {
        let reader = d.read_all(log(0), from);
        let records = d.records(reader);
        let wanted: Vec<_> = records.into_iter().filter(|(n, ..)| *n >= from).collect();
        assert_records(&wanted, from, 60);
    }
}

/// One is in the middle when the other begins.
pub fn two_readers_at_different_places_both_get_everything<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 30);
    let first = d.read(log(0), 1, Scope::default(), 200);
    d.settle();
    let second = d.read(log(0), 1, Scope::default(), 200);
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for round in 0..300 {
        one.extend(d.records(first));
        two.extend(d.records(second));
        if round % 2 == 0 {
            d.credit(first, 100);
        }
        d.credit(second, 150);
        if round == 20 {
            fill(d, 0, 3);
        }
    }
    assert_records(&one, 1, 66);
    assert_records(&two, 1, 66);
}

/// Neither misses anything, nor gets anything twice.
pub fn a_rewind_beside_a_live_reader_disturbs_neither<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 30);
    let live = d.read_all(log(0), 61);
    assert_eq!(d.tiles(live), []);
    let back = d.read_all(log(0), 1);
    assert_all(d, back, 1, 60);
    fill(d, 0, 3);
    assert_all(d, live, 61, 66);
    assert_all(d, back, 61, 66);
    d.stop(back);
    let again = d.read_all(log(0), 10);
    fill(d, 0, 3);
    assert_all(d, live, 67, 72);
    let records = d.records(again);
    let wanted: Vec<_> = records.into_iter().filter(|(n, ..)| *n >= 10).collect();
    assert_records(&wanted, 10, 72);
}

/// Wherever it was stopped, the next one goes on there.
pub fn a_reader_may_be_restarted_as_often_as_one_likes<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 60);
    let mut records = Vec::new();
    let mut next = 1;
    while next <= 120 {
        let reader = d.read(log(0), next, Scope::default(), 1);
        records.extend(d.records(reader));
        next = d.next_of(reader).0;
        d.stop(reader);
        assert_eq!(d.seen(reader), [Seen::Ended(None)]);
    }
    assert_records(&records, 1, 120);
}

/// Expects not even the smallest batch.
pub fn a_reader_without_credit_gives_nothing<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 3);
    let reader = d.read(log(0), 1, Scope::default(), 0);
    assert_eq!(d.tiles(reader), []);
    fill(d, 0, 3);
    assert_eq!(d.tiles(reader), []);
    d.credit(reader, u32::MAX);
    assert_all(d, reader, 1, 12);
}

/// Reads a batch that is larger than the credit left: it has to be paid for then.
pub fn credit_is_overdrawn_by_one_batch_at_most<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let payload = "x".repeat(1000);
    let batch = Maker::new(log(0)).batch(&[("a", &payload)]);
    for _ in 0..20 {
        d.store(&batch);
    }
    let bytes = u32::try_from(batch.bytes().len()).unwrap_or(u32::MAX);
    let reader = d.read(log(0), 1, Scope::default(), 1);
    assert_eq!(d.tiles(reader).len(), 1);
    d.credit(reader, bytes - 1);
    assert_eq!(d.tiles(reader).len(), 0, "the overdraft is not paid yet");
    d.credit(reader, 1);
    assert_eq!(d.tiles(reader).len(), 1);
    d.credit(reader, bytes * 3);
    assert_eq!(d.tiles(reader).len(), 3);
}

/// Stops readers in the middle, at the tail, and twice.
pub fn a_stopped_reader_ends_and_is_silent<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 30);
    let middle = d.read(log(0), 1, Scope::default(), 100);
    let tail = d.read_all(log(0), 1);
    let unread = d.read_all(log(0), 1);
    // Stopped before it was ever polled.
    d.stop(unread);
    assert_eq!(d.seen(unread).last(), Some(&Seen::Ended(None)));
    d.seen(tail);
    for reader in [middle, tail] {
        d.stop(reader);
        assert_eq!(d.seen(reader).last(), Some(&Seen::Ended(None)));
        d.stop(reader);
        d.credit(reader, 1000);
    }
    fill(d, 0, 3);
    // The driver fails if anything comes of a reader that has ended.
    for reader in [middle, tail, unread] {
        assert_eq!(d.seen(reader), []);
    }
}

/// Reads to a bound at the edge of a batch and inside one.
pub fn a_reader_ends_at_its_bound<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 30);
    for (from, to) in [
        (1, 1),
        (1, 2),
        (1, 4),
        (1, 6),
        (4, 7),
        (20, 41),
        (60, 61),
        (9, 5),
    ] {
        let reader = d.read(log(0), from, until(to), u32::MAX);
        let mut seen = d.seen(reader);
        assert_eq!(seen.pop(), Some(Seen::Ended(None)), "{from} until {to}");
        let records = seen.iter().flat_map(Seen::records);
        let wanted: Vec<_> = records.filter(|(n, ..)| (from..to).contains(n)).collect();
        assert_records(&wanted, from, to.max(from) - 1);
        // It may have been given the rest of the batch that holds its bound, and no other.
        let next = d.next_of(reader);
        assert!(
            next < Sequence(to.max(from) + 3),
            "{from} until {to}: at {next}"
        );
    }
}

/// It ends when the log has come there. Where numbers have holes, nobody can say beforehand which record
/// will have the bound's number.
pub fn a_bound_in_the_future_is_waited_for<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.is_dense() {
        return;
    }
    d.open(log(0));
    fill(d, 0, 3);
    let reader = d.read(log(0), 1, until(10), u32::MAX);
    assert_eq!(d.seen(reader).last(), Some(&Seen::Tail(Sequence(7))));
    fill(d, 0, 3);
    let mut seen = d.seen(reader);
    assert_eq!(seen.pop(), Some(Seen::Ended(None)));
    let records = seen.iter().flat_map(Seen::records);
    let wanted: Vec<_> = records.filter(|(n, ..)| *n < 10).collect();
    assert_records(&wanted, 7, 9);
}

/// Batches go by while it reads old ones; it meets the tail without a hole.
pub fn a_far_reader_catches_up_while_appends_go_on<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 150);
    let reader = d.read(log(0), 1, Scope::default(), 0);
    let mut records = Vec::new();
    for round in 0..60 {
        d.credit(reader, 2_000);
        if round < 30 {
            fill(d, 0, 3);
        }
        records.extend(d.records(reader));
    }
    d.credit(reader, u32::MAX);
    records.extend(d.records(reader));
    assert_records(&records, 1, 300 + 30 * 6);
}
