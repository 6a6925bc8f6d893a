//! Reckoning of the answers that a load's streams got between the end of the warm-up and the end of
//! the load.

use super::generator::Offered;
use super::stream::Fate;
use airmail_bench::latency::Latencies;
use airmail_model::ErrorCode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sums. Rates are in messages a second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    /// Due, sent or not.
    pub(super) offered_per_s: f64,
    /// Acknowledged.
    pub(super) goodput_per_s: f64,
    /// Refused as the API has it: try again later.
    pub(super) refused_per_s: f64,
    /// Sent, and not answered before nobody listened any more.
    pub(super) unanswered_per_s: f64,
    /// Due, but not sent: the node did not read.
    pub(super) unsent_per_s: f64,
    /// Latencies of batches that were taken in, from when they were due to the ack. One without an
    /// answer counts for as long as it was waited for.
    pub(super) admitted: Latencies,
    /// Latencies of batches that were refused, from when they were due to the refusal.
    pub(super) refused: Latencies,
    /// Refusals of any other kind, of the whole load, by the error's name.
    pub(super) strange: BTreeMap<String, u64>,
    /// Errors that broke streams.
    pub(super) errors: Vec<String>,
}

impl Sums {
    /// Adds those of other streams in the same span of time.
    pub(super) fn add(&mut self, other: Sums) {
        self.offered_per_s += other.offered_per_s;
        self.goodput_per_s += other.goodput_per_s;
        self.refused_per_s += other.refused_per_s;
        self.unanswered_per_s += other.unanswered_per_s;
        self.unsent_per_s += other.unsent_per_s;
        self.admitted.add(&other.admitted);
        self.refused.add(&other.refused);
        for (name, times) in other.strange {
            *self.strange.entry(name).or_default() += times;
        }
        self.errors.extend(other.errors);
    }
}

/// Adds up; nothing before `warmup_us` counts, except what should not have been.
pub(super) fn sums(offered: &Offered, warmup_us: u64, batch: u32) -> Sums {
    let window = offered.start_us + warmup_us..offered.end_us;
    let seconds = (offered.end_us.saturating_sub(window.start)).max(1) as f64 / 1e6;
    let per_s = |batches: u64| batches as f64 * f64::from(batch) / seconds;
    let mut sums = Sums::default();
    let (mut due, mut stored, mut refused, mut unanswered, mut unsent) = (0, 0, 0, 0, 0);
    for story in &offered.streams {
        let mut waiting: Vec<Option<u64>> = story.dues_us.iter().copied().map(Some).collect();
        due += story
            .dues_us
            .iter()
            .filter(|due| window.contains(due))
            .count() as u64;
        unsent += story.unsent;
        sums.errors.extend(story.error.clone());
        for heard in &story.heard {
            let place = usize::try_from(heard.batch).unwrap_or(usize::MAX);
            let Some(due_us) = waiting.get_mut(place).and_then(Option::take) else {
                *sums.strange.entry("answered twice".into()).or_default() += 1;
                continue;
            };
            let counts = u64::from(window.contains(&heard.at_us));
            let times = match heard.fate {
                Fate::Stored { .. } => {
                    stored += counts;
                    &mut sums.admitted
                }
                Fate::Refused { code, has_delay } => {
                    if !is_typed(code, has_delay) {
                        *sums.strange.entry(name_of(code, has_delay)).or_default() += 1;
                        continue;
                    }
                    refused += counts;
                    &mut sums.refused
                }
            };
            if window.contains(&due_us) {
                times.record(heard.at_us.saturating_sub(due_us));
            }
        }
        for due_us in waiting
            .into_iter()
            .flatten()
            .filter(|due| window.contains(due))
        {
            unanswered += 1;
            let waited_us = offered.heard_until_us.saturating_sub(due_us);
            sums.admitted.record(waited_us);
        }
    }
    sums.offered_per_s = per_s(due + unsent);
    sums.goodput_per_s = per_s(stored);
    sums.refused_per_s = per_s(refused);
    sums.unanswered_per_s = per_s(unanswered);
    sums.unsent_per_s = per_s(unsent);
    sums
}

/// Whether a client that is told this knows that the node is overloaded, and for how long.
fn is_typed(code: u32, has_delay: bool) -> bool {
    code_of(code) == Some(ErrorCode::Overloaded) && has_delay
}

fn name_of(code: u32, has_delay: bool) -> String {
    let name = code_of(code).map_or_else(|| code.to_string(), |code| code.name().to_owned());
    if has_delay {
        name
    } else {
        format!("{name} without a delay")
    }
}

fn code_of(code: u32) -> Option<ErrorCode> {
    u16::try_from(code).ok().and_then(ErrorCode::from_u16)
}

#[cfg(test)]
mod tests {
    use super::super::stream::{Heard, Story};
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn heard(batch: u64, at_us: u64, fate: Fate) -> Heard {
        Heard { batch, at_us, fate }
    }

    fn overloaded(has_delay: bool) -> Fate {
        let code = u32::from(ErrorCode::Overloaded as u16);
        Fate::Refused { code, has_delay }
    }

    fn offered(story: Story) -> Offered {
        Offered {
            start_us: 0,
            end_us: 2 * SECOND,
            heard_until_us: 5 * SECOND,
            streams: vec![story],
        }
    }

    #[test]
    fn only_what_is_after_the_warm_up_counts() {
        let stored = Fate::Stored { first: 1 };
        let story = Story {
            dues_us: vec![0, SECOND, SECOND + 10, SECOND + 20, SECOND + 30],
            unsent: 2,
            heard: vec![
                heard(0, 50, stored),
                heard(1, SECOND + 300, stored),
                heard(2, SECOND + 110, overloaded(true)),
                // Too late for the goodput, but not for the latency.
                heard(3, 3 * SECOND, stored),
            ],
            error: None,
        };
        let sums = sums(&offered(story), SECOND, 10);
        assert_eq!((sums.offered_per_s, sums.goodput_per_s), (60.0, 10.0));
        assert_eq!((sums.refused_per_s, sums.unsent_per_s), (10.0, 20.0));
        assert_eq!(sums.unanswered_per_s, 10.0);
        assert_eq!((sums.admitted.count(), sums.refused.count()), (3, 1));
        assert_eq!(sums.refused.percentiles().max, 100);
        // The one without an answer was waited for until the end.
        assert!(sums.admitted.percentiles().max >= 3_990_000);
        assert!(sums.strange.is_empty());
    }

    #[test]
    fn streams_of_two_processes_are_reckoned_as_those_of_one() {
        let story = |late_us| Story {
            dues_us: vec![SECOND, SECOND + 10],
            heard: vec![
                heard(0, SECOND + late_us, Fate::Stored { first: 1 }),
                heard(1, SECOND + 20, overloaded(false)),
            ],
            ..Story::default()
        };
        let both = Offered {
            streams: vec![story(100), story(1500)],
            ..offered(Story::default())
        };
        let mut added = sums(&offered(story(100)), SECOND, 10);
        added.add(sums(&offered(story(1500)), SECOND, 10));
        let words = |sums: &Sums| serde_json::to_string(sums).unwrap();
        assert_eq!(words(&added), words(&sums(&both, SECOND, 10)));
        assert_eq!(added.admitted.percentiles().max, 1500);
    }

    #[test]
    fn a_refusal_without_a_delay_or_of_another_kind_is_strange() {
        let full = Fate::Refused {
            code: u32::from(ErrorCode::StorageFull as u16),
            has_delay: true,
        };
        let story = Story {
            dues_us: vec![0, 0, 0],
            heard: vec![
                heard(0, 1, overloaded(false)),
                heard(1, 1, full),
                heard(1, 2, full),
                heard(7, 1, Fate::Stored { first: 1 }),
            ],
            ..Story::default()
        };
        let sums = sums(&offered(story), 0, 1);
        let strange: Vec<(&str, u64)> =
            sums.strange.iter().map(|(name, n)| (&**name, *n)).collect();
        let expected = [
            ("OVERLOADED without a delay", 1),
            ("STORAGE_FULL", 1),
            ("answered twice", 2),
        ];
        assert_eq!(strange, expected);
        assert_eq!(sums.refused_per_s, 0.0);
    }
}
