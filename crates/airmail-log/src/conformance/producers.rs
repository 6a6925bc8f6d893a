//! G3, rule by rule: the producer's sequence is contiguous for each (producer, epoch, log).
//!
//! A storage that recognises retries only at reading is not checked for these.

use super::batches::{Maker, log};
use super::{Driver, Subject};
use crate::contract::{Completion, Refusal};
use airmail_model::{AppendTime, Batch, Checked, Extent, ProducerSequence, Sequence};

/// The producer of most cases, in its first epoch.
pub(super) fn maker() -> Maker {
    Maker::of(log(0), 77, 1)
}

fn two(maker: Maker, sequence: u64) -> Checked<Batch> {
    maker.at(sequence).batch(&[("a", "x"), ("a", "y")])
}

fn out_of_order(expected: u64, found: u64) -> Refusal {
    Refusal::OutOfOrder {
        expected: ProducerSequence(expected),
        found: ProducerSequence(found),
    }
}

/// Opens the log. False: retries are recognised only when read.
fn exact<S: Subject>(d: &mut Driver<'_, S>) -> bool {
    d.open(log(0));
    d.capabilities().dedup.is_exact()
}

/// Numbers batches one after the other, also many at once.
pub fn exactly_the_next_is_stored<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    for n in 0..5 {
        d.store(&two(maker(), n * 2));
    }
    let tags: Vec<_> = (5..40).map(|n| d.send(&two(maker(), n * 2))).collect();
    for tag in tags {
        let answer = d.answer(tag);
        let stored = matches!(
            answer,
            Completion::Appended {
                duplicate: false,
                ..
            }
        );
        assert!(stored, "{answer:?}");
    }
    assert_eq!(d.bounds(log(0)).next, Sequence(81));
}

/// The numbers and the time; and nothing is stored.
pub fn a_retry_gets_the_first_ones_result<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    let mut first = Vec::new();
    for n in 0..4 {
        match d.offer(&two(maker(), n * 2)) {
            Completion::Appended { extent, at, .. } => first.push((extent, at)),
            other => panic!("an append was answered with {other:?}"),
        }
        d.append(log(0), &[("b", "between")]);
    }
    let before = d.bounds(log(0));
    for n in [3, 0, 1, 2, 3] {
        match d.offer(&two(maker(), n * 2)) {
            Completion::Appended {
                extent,
                at,
                duplicate,
                exact,
                ..
            } => {
                assert_eq!((extent, at), first[n as usize]);
                assert!(duplicate && exact);
            }
            other => panic!("a retry was answered with {other:?}"),
        }
    }
    assert_eq!(d.bounds(log(0)), before);
}

/// Batches that a client without an answer sends again, each to get its first result.
const IN_FLIGHT: u64 = 64;

/// However many are under way, and whatever others append between.
pub fn every_batch_in_flight_is_recognised<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    let first = in_flight(d);
    sent_again(d, &first);
}

/// Appends what one client may have in flight, with others' between; their extents and times.
pub(super) fn in_flight<S: Subject>(d: &mut Driver<'_, S>) -> Vec<(Extent, AppendTime)> {
    let mut first = Vec::new();
    for n in 0..IN_FLIGHT * 2 {
        match d.offer(&two(maker(), n * 2)) {
            Completion::Appended { extent, at, .. } => first.push((extent, at)),
            other => panic!("an append was answered with {other:?}"),
        }
        if n % 3 == 0 {
            d.append(log(0), &[("b", "between")]);
        }
    }
    first
}

/// Sends the last of them again, and checks that each gets its first result.
pub(super) fn sent_again<S: Subject>(d: &mut Driver<'_, S>, first: &[(Extent, AppendTime)]) {
    let before = d.bounds(log(0));
    for n in IN_FLIGHT..IN_FLIGHT * 2 {
        match d.offer(&two(maker(), n * 2)) {
            Completion::Appended {
                extent,
                at,
                duplicate: true,
                exact: true,
                ..
            } => assert_eq!((extent, at), first[n as usize]),
            other => panic!("a retry was answered with {other:?}"),
        }
    }
    assert_eq!(d.bounds(log(0)), before);
}

/// Answers the retry not before the first one: both acks make the same promise.
pub fn a_retry_of_one_under_way_is_answered_with_it<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    let first = d.send(&two(maker(), 0));
    let retry = d.send(&two(maker(), 0));
    let next = d.send(&two(maker(), 2));
    let (Completion::Appended { extent, .. }, again) = (d.answer(first), d.answer(retry)) else {
        panic!("not appended");
    };
    match again {
        Completion::Appended {
            extent: same,
            duplicate: true,
            ..
        } => assert_eq!(same, extent),
        other => panic!("a retry was answered with {other:?}"),
    }
    match d.answer(next) {
        Completion::Appended {
            extent: after,
            duplicate: false,
            ..
        } => assert_eq!(after.first, extent.next()),
        other => panic!("an append was answered with {other:?}"),
    }
}

/// Sends a sequence that is greater, and not the next: the batches between would be lost.
pub fn a_higher_sequence_is_refused_with_the_next<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    d.store(&two(maker(), 0));
    for found in [3, 4, 1000, u64::MAX / 2] {
        assert_eq!(d.refused(&two(maker(), found)), out_of_order(2, found));
    }
    assert_eq!(d.bounds(log(0)).next, Sequence(3));
    d.store(&two(maker(), 2));
}

/// Its new part cannot be told apart from a loss between; its old part would be there twice.
pub fn a_batch_that_is_old_in_part_is_not_stored<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    d.store(&two(maker(), 0));
    d.store(&two(maker(), 2));
    let why = d.refused(&two(maker(), 3));
    assert_eq!(why, out_of_order(4, 3));
    assert_eq!(d.bounds(log(0)).next, Sequence(5));
    d.store(&two(maker(), 4));
}

/// A retry could not be told from a new message: never a guess.
pub fn an_unknown_producer_is_refused<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    for sequence in [1, 2, 1000] {
        assert_eq!(d.refused(&two(maker(), sequence)), Refusal::UnknownProducer);
    }
    assert_eq!(d.bounds(log(0)).next, Sequence(1));
    d.store(&two(maker(), 0));
}

/// Sends batches of an older epoch, with any sequence.
pub fn an_older_epoch_is_fenced<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    let older = maker();
    let newer = Maker::of(log(0), 77, 2);
    d.store(&two(older, 0));
    d.store(&two(newer, 0));
    for sequence in [0, 2, 4] {
        assert_eq!(d.refused(&two(older, sequence)), Refusal::Fenced);
    }
    d.store(&two(newer, 2));
}

/// Begins a newer epoch, which knows nothing of the older one's batches.
pub fn a_newer_epoch_begins_at_zero<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    let newer = Maker::of(log(0), 77, 2);
    d.store(&two(maker(), 0));
    let why = d.refused(&two(newer, 2));
    let told = matches!(why, Refusal::OutOfOrder { .. } | Refusal::UnknownProducer);
    assert!(told, "{why:?}");
    // What was refused has fenced nobody.
    d.store(&two(maker(), 2));
    let first = d.store(&two(newer, 0));
    assert_eq!(d.duplicate(&two(newer, 0)), first);
}

/// Each (producer, log) counts for itself.
pub fn producers_are_told_apart_by_log_and_id<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    d.open(log(1));
    for (index, id) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
        let maker = Maker::of(log(index), id, 1);
        d.store(&two(maker, 0));
        d.store(&two(maker, 2));
        d.duplicate(&two(maker, 0));
    }
    assert_eq!(d.bounds(log(0)).next, Sequence(9));
    assert_eq!(d.bounds(log(1)).next, Sequence(9));
}

/// Or the retry of the refused one would come after it.
pub fn what_follows_a_refused_batch_is_refused_too<S: Subject>(d: &mut Driver<'_, S>) {
    if !exact(d) {
        return;
    }
    let stale = Maker {
        epoch: airmail_model::MapEpoch(9),
        ..maker()
    };
    let tags = [
        d.send(&two(maker(), 0)),
        d.send(&two(stale, 2)),
        d.send(&two(maker(), 4)),
    ];
    let answers = tags.map(|tag| d.answer(tag));
    assert!(matches!(answers[0], Completion::Appended { .. }));
    for answer in &answers[1..] {
        assert!(matches!(answer, Completion::Refused { .. }), "{answer:?}");
    }
    d.store(&two(maker(), 2));
    d.store(&two(maker(), 4));
}

/// The same bytes twice are two batches.
pub fn without_a_producer_nothing_is_a_duplicate<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let batch = Maker::new(log(0)).batch(&[("a", "x")]);
    assert_eq!(d.store(&batch).first, Sequence(1));
    assert_eq!(d.store(&batch).first, Sequence(2));
}
