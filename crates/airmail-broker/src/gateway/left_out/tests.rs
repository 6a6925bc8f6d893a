//! Records left out for whole sets of roles, against a verdict on each record.

use super::super::judging::judge_each;
use super::*;
use crate::transcript::{batch_with, message};
use airmail_model::{Checked, Message, Mono};
use proptest::collection::vec;
use proptest::prelude::*;

const BASE: Sequence = Sequence(100);

/// A message's topic, time to live and audience.
type Drawn = (u8, Option<u32>, Vec<u32>);

fn batch(messages: &[Drawn]) -> Checked<Batch> {
    batch_with(messages.iter().map(|(topic, ttl_ms, audience)| Message {
        ttl_ms: *ttl_ms,
        ..message(&format!("t{topic}"), "x").for_roles(audience.iter().copied().map(RoleId))
    }))
}

proptest! {
    #[test]
    fn it_is_what_a_verdict_on_each_record_says(
        messages in vec((0_u8..3, proptest::option::of(1_u32..4), vec(1_u32..6, 0..3)), 1..30),
        sets in vec(vec(1_u32..6, 0..5), 1..6),
        age_ms in 0_i64..5,
    ) {
        let batch = batch(&messages);
        let reading = ClockReading { clock: AppendTime(age_ms * 1_000), at: Mono(0) };
        let clock = batch.is_expiring().then_some(reading);
        let mut judged = JudgedBatch::of((&batch, BASE), AppendTime(0), clock);
        let sets = sets.into_iter().map(|set| Roles::of(set.into_iter().map(RoleId)));
        for roles in sets.chain([Roles::ALL]) {
            let times = (AppendTime(0), clock);
            let verdicts = judge_each(&batch, BASE, times, &roles, |_| true);
            let (kept, expired, forbidden) =
                (verdicts.kept, verdicts.expired, verdicts.forbidden);
            let left_out = judged.for_roles(&roles);
            let is_out = |place: &u16| left_out.places.get(usize::from(*place)) == Some(&true);
            let found: Vec<u16> = (0..batch.records()).filter(|place| !is_out(place)).collect();
            prop_assert_eq!(&found, &kept);
            prop_assert_eq!(left_out.is_nothing(), kept.len() == usize::from(batch.records()));
            let topics = 0..u16::try_from(batch.topics().len()).unwrap();
            let of_topics: Vec<&LeftOutOfTopic> =
                topics.filter_map(|topic| left_out.of_topic(topic)).collect();
            let mut told: Vec<Sequence> =
                of_topics.iter().flat_map(|of| of.expired.iter().copied()).collect();
            told.sort_unstable();
            prop_assert_eq!(&told, &expired);
            let others: u64 = of_topics.iter().map(|of| of.forbidden).sum();
            prop_assert_eq!(others, forbidden);
            let all: Vec<u16> = (0..batch.records()).collect();
            prop_assert_eq!(left_out.among(&all), (forbidden, expired));
            let (one, two): (Vec<u16>, Vec<u16>) = all.into_iter().partition(|place| place % 2 == 0);
            let (one, two) = (left_out.among(&one), left_out.among(&two));
            prop_assert_eq!(one.0 + two.0, forbidden);
            prop_assert_eq!(one.1.len() + two.1.len(), told.len());
        }
    }
}
