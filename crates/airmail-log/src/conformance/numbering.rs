//! Promises of the numbers themselves, of those with holes between them too.
//!
//! All other cases count records; these look at the storage's own numbers.

use super::batches::{Maker, log};
use super::{Driver, Seen, Subject};
use crate::contract::{Call, Completion, GapWhy, ReaderId, Scope};
use airmail_model::{Extent, Sequence};

/// Batches of 1, 2, 3, 1, 2, 3… records, some of them under way together, and their numbers.
fn batches<S: Subject>(d: &mut Driver<'_, S>) -> Vec<Extent> {
    d.open(log(0));
    let records = [("a", "x"), ("b", "y"), ("c", "z")];
    for n in 0..12 {
        let tags: Vec<_> = (0..n % 4)
            .map(|more| d.send(&Maker::new(log(0)).batch(&records[..=(n + more) % 3])))
            .collect();
        for tag in tags {
            d.answer(tag);
        }
    }
    let extents = d.extents(log(0));
    assert_eq!(extents.len(), 18);
    extents
}

/// A reader from number `from` on, up to `until`.
fn read<S: Subject>(d: &mut Driver<'_, S>, from: Sequence, until: Option<Sequence>) -> ReaderId {
    let scope = Scope {
        until,
        ..Scope::default()
    };
    d.read_numbers(log(0), from, scope, u32::MAX)
}

/// The numbers of the records that a reader has got.
fn numbers(seen: &[Seen]) -> Vec<u64> {
    let records = seen.iter().flat_map(Seen::records);
    records.map(|(number, ..)| number).collect()
}

/// The numbers of the records in batches.
fn numbers_in(extents: &[Extent]) -> Vec<u64> {
    let all = extents.iter().flat_map(|e| e.first.0..=e.last.0);
    all.collect()
}

/// The first number is 1; each batch goes on where the one before ended.
pub fn dense_numbers_begin_at_one_and_follow_one_another<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.is_dense() {
        return;
    }
    let bounds = d.open(log(0));
    assert_eq!((bounds.first, bounds.next), (Sequence(1), Sequence(1)));
    let mut next = Sequence(1);
    for n in 1..=20u32 {
        let records = vec![("a", "x"); n as usize];
        assert_eq!(d.append(log(0), &records), Extent::starting_at(next, n));
        next = next.plus(n.into());
    }
    assert_eq!(d.bounds(log(0)).next, next);
}

/// The driver holds that they rise and do not overlap; here it is that a reader gets the very numbers that
/// were acknowledged.
pub fn a_record_has_its_batchs_number_and_its_index<S: Subject>(d: &mut Driver<'_, S>) {
    let extents = batches(d);
    let reader = read(d, Sequence::FIRST, None);
    let (_, seen) = d.seen_numbers(reader);
    assert_eq!(numbers(&seen), numbers_in(&extents));
    for tile in &seen {
        if let Seen::Batch(stored) = tile {
            assert_eq!(stored.base, stored.extent.first, "{stored:?}");
        }
    }
}

/// Looks at all that lies between two batches, or before the first: nothing is missing there.
pub fn holes_are_told_as_unused<S: Subject>(d: &mut Driver<'_, S>) {
    let extents = batches(d);
    let reader = read(d, Sequence::FIRST, None);
    let (_, seen) = d.seen_numbers(reader);
    let mut holes = 0;
    for tile in &seen {
        if let Seen::Gap(extent, why) = tile {
            assert_eq!(*why, GapWhy::Unused, "{extent:?}");
            holes += extent.numbers();
        }
    }
    let Some(Seen::Tail(next)) = seen.last() else {
        panic!("a reader of everything has not come to the tail: {seen:?}");
    };
    let used: u64 = extents.iter().map(|extent| extent.numbers()).sum();
    assert_eq!(holes + used, next.before().0);
    assert!(!d.is_dense() || holes == 0, "{holes} numbers are unused");
}

/// Begins before, in and behind each batch: in a hole, a number is as good as any.
pub fn a_reader_from_any_number_gets_what_follows<S: Subject>(d: &mut Driver<'_, S>) {
    let extents = batches(d);
    let all = numbers_in(&extents);
    for extent in &extents {
        let before = extent.first.before().max(Sequence::FIRST);
        for from in [before, extent.first, extent.last, extent.next()] {
            let reader = read(d, from, None);
            let (_, seen) = d.seen_numbers(reader);
            let mut got = numbers(&seen);
            got.retain(|number| *number >= from.0);
            let due: Vec<u64> = all.iter().copied().filter(|n| *n >= from.0).collect();
            assert_eq!(got, due, "from {from}");
        }
    }
}

/// Ends there without the next batch, though nothing has the number of the bound.
pub fn a_reader_ends_at_a_bound_between_batches<S: Subject>(d: &mut Driver<'_, S>) {
    let extents = batches(d);
    for pair in extents.windows(2) {
        for until in [pair[0].next(), pair[1].first] {
            let reader = read(d, pair[0].first, Some(until));
            let (_, mut seen) = d.seen_numbers(reader);
            assert_eq!(seen.pop(), Some(Seen::Ended(None)), "until {until}");
            assert_eq!(numbers(&seen), numbers_in(&pair[..1]), "until {until}");
            let last = seen.iter().filter_map(Seen::extent).next_back();
            assert_eq!(last.map(Extent::next), Some(until));
        }
    }
}

/// Gives up what is before a number that nothing need have, and tells it from where the reader begins.
pub fn a_trim_between_batches_keeps_the_next<S: Subject>(d: &mut Driver<'_, S>) {
    let extents = batches(d);
    for (n, pair) in extents.windows(2).enumerate().step_by(5) {
        for before in [pair[0].next(), pair[1].first] {
            let done = d.ask_numbers(|t| Call::Trim {
                t,
                log: log(0),
                before,
            });
            assert!(matches!(done, Completion::Done { .. }), "{done:?}");
            let reader = read(d, Sequence::FIRST, None);
            let (_, seen) = d.seen_numbers(reader);
            let Some(Seen::Gap(gone, GapWhy::Retention)) = seen.first() else {
                panic!("trimmed before {before}, and told {:?}", seen.first());
            };
            // Of a hole behind it, either part may be told as unused.
            let (least, most) = (pair[0].last, pair[1].first.before());
            assert!(
                least <= gone.last && gone.last <= most,
                "{gone:?} of {pair:?}"
            );
            assert_eq!(numbers(&seen), numbers_in(&extents[n + 1..]));
        }
    }
}
