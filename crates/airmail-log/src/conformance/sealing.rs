//! A sealed log takes nothing more, and says so to everyone.

use super::batches::{Maker, log};
use super::reading::fill;
use super::{Driver, Seen, Subject};
use crate::contract::{Call, Completion, Refusal, Scope};
use airmail_model::{LogId, MapEpoch, ProducerSequence, Sequence};

const NEXT: MapEpoch = MapEpoch(2);

/// False: the storage cannot, and has refused.
pub(super) fn seal<S: Subject>(d: &mut Driver<'_, S>, log: LogId) -> bool {
    let can = d.capabilities().seal;
    match d.ask(|t| Call::Seal { t, log, next: NEXT }) {
        Completion::Done { .. } if can => true,
        Completion::Refused {
            why: Refusal::Unsupported(_),
            ..
        } if !can => false,
        other => panic!("a seal was answered with {other:?}"),
    }
}

/// Appends to a sealed log: the refusal names the map that has its successors.
pub fn a_sealed_log_takes_nothing_more<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 3);
    if !seal(d, log(0)) {
        return;
    }
    let refused = Refusal::Sealed { next: NEXT };
    assert_eq!(d.refused(&Maker::new(log(0)).batch(&[("a", "x")])), refused);
    let producer = Maker::of(log(0), 5, 1);
    assert_eq!(d.refused(&producer.batch(&[("a", "x")])), refused);
    assert_eq!(d.bounds(log(0)).next, Sequence(7));
    d.open(log(1));
    d.append(log(1), &[("a", "x")]);
}

/// A client whose ack was lost must not take the seal for "not stored".
pub fn a_sealed_log_still_answers_retries<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let producer = Maker::of(log(0), 5, 1);
    let first = d.store(&producer.batch(&[("a", "x"), ("a", "y")]));
    if !seal(d, log(0)) {
        return;
    }
    assert_eq!(
        d.duplicate(&producer.batch(&[("a", "x"), ("a", "y")])),
        first
    );
    for sequence in [2, 7] {
        let why = d.refused(&producer.at(sequence).batch(&[("a", "z")]));
        assert_eq!(why, Refusal::Sealed { next: NEXT }, "{sequence}");
    }
}

/// A client who is told of the seal publishes anew in another log. So a batch that may have been stored, and whose
/// result is not known any more, is refused as it is where there is no seal.
pub fn a_sealed_log_says_of_nothing_that_may_be_stored_that_it_is_not<S: Subject>(
    d: &mut Driver<'_, S>,
) {
    d.open(log(0));
    let producer = Maker::of(log(0), 5, 1);
    d.store(&producer.batch(&[("a", "x"), ("a", "y")]));
    if !seal(d, log(0)) {
        return;
    }
    let unknown = Maker::of(log(0), 6, 1).at(3).batch(&[("a", "z")]);
    assert_eq!(d.refused(&unknown), Refusal::UnknownProducer);
    let (expected, found) = (ProducerSequence(2), ProducerSequence(1));
    let within = producer.at(1).batch(&[("a", "z"), ("a", "z")]);
    let why = d.refused(&within);
    assert_eq!(why, Refusal::OutOfOrder { expected, found });
    let fenced = Maker::of(log(0), 5, 0).batch(&[("a", "z")]);
    assert_eq!(d.refused(&fenced), Refusal::Fenced);
}

/// The end of a sealed log is final, and its bounds say so; a second seal changes nothing.
pub fn bounds_tell_the_seal_and_the_first_one_counts<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 3);
    assert_eq!(d.bounds(log(0)).sealed, None);
    if !seal(d, log(0)) {
        return;
    }
    let bounds = d.bounds(log(0));
    assert_eq!((bounds.next, bounds.sealed), (Sequence(7), Some(NEXT)));
    let next = MapEpoch(3);
    let again = d.ask(|t| Call::Seal {
        t,
        log: log(0),
        next,
    });
    assert!(matches!(again, Completion::Done { .. }), "{again:?}");
    assert_eq!(d.open(log(0)).sealed, Some(NEXT));
}

/// Expects the seal after every record.
pub fn readers_are_told_of_the_seal_at_the_end<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    fill(d, 0, 3);
    if !seal(d, log(0)) {
        return;
    }
    let reader = d.read(log(0), 1, Scope::default(), 1);
    assert!(!d.seen(reader).contains(&Seen::Sealed(Sequence(6), NEXT)));
    d.credit(reader, u32::MAX);
    let seen = d.seen(reader);
    assert!(seen.contains(&Seen::Sealed(Sequence(6), NEXT)), "{seen:?}");
    let tail = d.read_all(log(0), 7);
    let seen = d.seen(tail);
    assert!(seen.contains(&Seen::Sealed(Sequence(6), NEXT)), "{seen:?}");
}

/// Seals an empty log too.
pub fn a_reader_at_the_tail_is_told_of_the_seal<S: Subject>(d: &mut Driver<'_, S>) {
    for index in [0, 1] {
        d.open(log(index));
    }
    fill(d, 0, 3);
    let full = d.read_all(log(0), 1);
    let empty = d.read_all(log(1), 1);
    d.seen(full);
    d.seen(empty);
    if !seal(d, log(0)) {
        return;
    }
    seal(d, log(1));
    let seen = d.seen(full);
    assert_eq!(seen.first(), Some(&Seen::Sealed(Sequence(6), NEXT)));
    let seen = d.seen(empty);
    assert_eq!(seen.first(), Some(&Seen::Sealed(Sequence(0), NEXT)));
}
