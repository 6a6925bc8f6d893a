//! Verdicts against what is plainly so, and bounds of clocks against clocks that run.

mod clocks;

use super::*;
use crate::batch::{BatchEncoder, BatchTarget};
use crate::{
    Batch, Checked, Limits, LogId, MapEpoch, Message, NamespaceId, RoleId, Sequence, TopicName,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const APPENDED: AppendTime = AppendTime(1_700_000_000_000_000);

fn batch_of(audience: &[u32], ttl_ms: Option<u32>) -> Checked<Batch> {
    let message = Message {
        ttl_ms,
        audience: audience.iter().copied().map(RoleId).collect(),
        ..Message::new(TopicName::new("t", &Limits::DEFAULT).unwrap(), "x")
    };
    let mut encoder = BatchEncoder::new(NamespaceId(7));
    encoder
        .push_reserved(&message, 0, &Limits::DEFAULT)
        .unwrap();
    encoder.finish(&BatchTarget {
        log: LogId {
            namespace: NamespaceId(7),
            ..LogId::default()
        },
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    })
}

fn roles(ids: impl IntoIterator<Item = u32>) -> Roles {
    Roles::of(ids.into_iter().map(RoleId))
}

fn after(us: i64) -> AppendTime {
    AppendTime(APPENDED.0 + us)
}

proptest! {
    #[test]
    fn a_record_is_for_who_has_one_of_its_roles_and_without_roles_for_everybody(
        held in vec(0_u32..40, 0..30),
        audience in vec(0_u32..40, 0..6),
    ) {
        let batch = batch_of(&audience, None);
        let of_record: BTreeSet<u32> = audience.iter().copied().collect();
        let of_subscriber: BTreeSet<u32> = held.iter().copied().collect();
        let may = audience.is_empty() || !of_record.is_disjoint(&of_subscriber);
        prop_assert_eq!(roles(held).may_have(batch.record(0).audience), may);
        prop_assert!(Roles::ALL.may_have(batch.record(0).audience));
        prop_assert_eq!(Roles::default().may_have(batch.record(0).audience), audience.is_empty());
    }

    #[test]
    fn roles_are_the_same_whatever_their_order(held in vec(0_u32..9, 0..9)) {
        let mut other = held.clone();
        other.reverse();
        other.extend(held.first());
        prop_assert_eq!(roles(held), roles(other));
    }

    #[test]
    fn a_record_is_expired_from_its_time_to_live_on_and_not_before(
        ttl_ms: u32,
        age_us in 0..i64::from(u32::MAX) * 1000 + 9,
    ) {
        let is = expired(after(age_us), APPENDED, ttl_ms);
        prop_assert_eq!(is, age_us >= i64::from(ttl_ms) * 1000);
    }

    #[test]
    fn the_time_of_a_record_never_goes_back_and_of_those_not_judged_before_it_is_the_logs(
        judged in vec((any::<i64>(), 1..30_u64, 0..5_u64), 1..40)
    ) {
        let mut time = LogTime::default();
        let (mut of_each, mut highest) = (BTreeMap::new(), 0);
        for (bound, first, more) in judged {
            let last = first + more;
            let by = time.judge(AppendTime(bound), Sequence(first), Sequence(last));
            prop_assert!(by >= AppendTime(bound));
            for number in first..=last {
                let before = of_each.insert(number, by);
                prop_assert!(before.is_none_or(|before| before <= by));
            }
            if first > highest {
                prop_assert_eq!(by, AppendTime(bound));
            }
            highest = highest.max(last);
        }
    }
}

#[test]
fn no_time_is_too_far_for_an_age() {
    assert!(expired(
        AppendTime(i64::MAX),
        AppendTime(i64::MIN),
        u32::MAX
    ));
    assert!(!expired(AppendTime(i64::MIN), AppendTime(i64::MAX), 1));
    // What lives for no time at all is never handed over, not even by a time before its own.
    assert!(expired(AppendTime(i64::MIN), AppendTime(i64::MAX), 0));
}

#[test]
fn who_may_not_have_a_record_is_not_asked_and_learns_nothing_of_its_age() {
    let batch = batch_of(&[3, 5], Some(200));
    let record = batch.record(0);
    let late = after(200_000);
    let unasked = |_: &Record<'_>| -> bool { panic!("asked about what is forbidden") };
    for others in [roles([]), roles([4]), roles([0, 1, 2, 4, 6])] {
        for now in [after(0), late] {
            let verdict = judge(&record, APPENDED, now, &others, unasked);
            assert_eq!(verdict, Verdict::Forbidden);
        }
    }
    for one in [roles([3]), roles([1, 5]), Roles::ALL] {
        let of = |now, wants| judge(&record, APPENDED, now, &one, |_| wants);
        assert_eq!(of(after(199_999), true), Verdict::HandOver);
        assert_eq!(of(late, true), Verdict::Expired);
        assert_eq!(of(late, false), Verdict::Unwanted);
        assert_eq!(of(after(0), false), Verdict::Unwanted);
    }
}

#[test]
fn what_brings_nothing_along_is_handed_over_at_any_age() {
    let batch = batch_of(&[], None);
    let record = batch.record(0);
    let verdict = judge(
        &record,
        APPENDED,
        AppendTime(i64::MAX),
        &Roles::default(),
        |_| true,
    );
    assert_eq!(verdict, Verdict::HandOver);
}
