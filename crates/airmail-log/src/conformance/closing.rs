//! Promises of a clean stop, and a storage's report that it is well.

use super::batches::{Maker, log};
use super::{Driver, Subject};
use crate::contract::{Completion, LogStorage, Refusal};

/// All of it is answered as stored, before it says that it is closed.
pub fn what_was_accepted_is_answered_before_it_is_closed<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let batch = Maker::new(log(0)).batch(&[("a", "x")]);
    let sent: Vec<_> = (0..20).map(|_| d.send(&batch)).collect();
    // What a storage has not looked at, it may still refuse.
    d.poll();
    d.close();
    for tag in sent {
        let answer = d.answer(tag);
        assert!(matches!(answer, Completion::Appended { .. }), "{answer:?}");
    }
}

/// Appends after a close: the batch is neither stored nor left unanswered.
pub fn what_comes_after_a_close_is_refused_as_busy<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    d.append(log(0), &[("a", "x")]);
    let now = d.now();
    d.storage().close(now);
    let late = d.refused(&Maker::new(log(0)).batch(&[("a", "y")]));
    assert!(matches!(late, Refusal::Busy { .. }), "{late:?}");
    d.close();
}

/// Nor does it say that it is closed before it was asked to.
pub fn a_sound_storage_has_neither_trouble_nor_damage<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    d.append(log(0), &[("a", "x")]);
    let storage = d.storage();
    assert_eq!(storage.trouble(), None);
    assert_eq!(storage.damage(), 0);
    assert!(!storage.is_closed());
}
