//! A sealed log takes nothing more, and says so to everyone.

use super::batches::{Maker, log};
use super::reading::fill;
use super::{Driver, Seen, Subject};
use crate::contract::{Call, Completion, Refusal, Scope};
use airmail_model::{LogId, MapEpoch, Sequence};

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
    let why = d.refused(&producer.at(2).batch(&[("a", "z")]));
    assert_eq!(why, Refusal::Sealed { next: NEXT });
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
