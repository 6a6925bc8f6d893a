//! Results of a producer's last batches in a log: the last one whole, and twelve bytes for each
//! before it, going back from there.
//!
//! A producer's sequence is contiguous, so a batch ends where the one after it begins; the
//! difference between their numbers and their times is kept as a step from one to the other. Where
//! a step cannot express it (a hole in the sequence, which only damage makes; more than 2^32
//! numbers or 8 years between), the results before it are forgotten.

use super::codec::{Reader, Writer};
use airmail_model::{AppendTime, ProducerSequence, Sequence};
use std::collections::VecDeque;

/// Result of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) sequence: ProducerSequence,
    pub(super) records: u32,
    pub(super) first: Sequence,
    pub(super) time: AppendTime,
}

/// The step from a batch to the one after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// Numbers of others between the two.
    between: u32,
    /// Records of the earlier one.
    records: u16,
    /// Time by which the later one is later, in microseconds: low, middle, high.
    later: [u16; 3],
}

/// The results that are remembered, in order. See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Results {
    last: Option<Outcome>,
    /// Steps from the oldest batch to the last.
    steps: VecDeque<Step>,
}

impl Outcome {
    const BYTES: usize = 28;

    /// The sequence after it.
    pub(super) fn end(&self) -> ProducerSequence {
        ProducerSequence(self.sequence.0.saturating_add(self.records.into()))
    }

    fn encode(&self, out: &mut Writer) {
        out.u64(self.sequence.0)
            .u32(self.records)
            .sequence(self.first)
            .time(self.time);
    }

    fn decode(input: &mut Reader<'_>) -> Option<Outcome> {
        Some(Outcome {
            sequence: ProducerSequence(input.u64()?),
            records: input.u32()?,
            first: input.sequence()?,
            time: input.time()?,
        })
    }
}

impl Step {
    const BYTES: usize = 12;

    /// `None` if it cannot be said in so few bytes.
    fn between(before: &Outcome, after: &Outcome) -> Option<Step> {
        let behind = before.first.0.checked_add(u64::from(before.records))?;
        let later = u64::try_from(after.time.0.checked_sub(before.time.0)?).ok()?;
        let whole = before.end() == after.sequence && later >> 48 == 0;
        let between = u32::try_from(after.first.0.checked_sub(behind)?).ok()?;
        whole.then_some(Step {
            between,
            records: u16::try_from(before.records).ok()?,
            later: [later as u16, (later >> 16) as u16, (later >> 32) as u16],
        })
    }

    /// The batch before `after`. A damaged file cannot make it panic.
    fn back(&self, after: &Outcome) -> Outcome {
        let records = u64::from(self.records);
        let [low, middle, high] = self.later.map(i64::from);
        Outcome {
            sequence: ProducerSequence(after.sequence.0.wrapping_sub(records)),
            records: self.records.into(),
            first: Sequence(
                after
                    .first
                    .0
                    .wrapping_sub(u64::from(self.between))
                    .wrapping_sub(records),
            ),
            time: AppendTime(after.time.0.wrapping_sub(low | middle << 16 | high << 32)),
        }
    }
}

impl Results {
    /// Takes up a batch's result, and forgets the oldest of more than `results_max`.
    pub(super) fn push(&mut self, outcome: Outcome, results_max: usize) {
        if let Some(last) = self.last.replace(outcome) {
            match Step::between(&last, &outcome) {
                Some(step) => self.steps.push_back(step),
                None => self.steps.clear(),
            }
        }
        while self.steps.len() >= results_max.max(1) {
            self.steps.pop_front();
        }
    }

    /// Forgets the last one.
    pub(super) fn pop(&mut self) {
        let step = self.steps.pop_back();
        self.last = self.last.zip(step).map(|(last, step)| step.back(&last));
    }

    /// The sequence after the last one's.
    pub(super) fn end(&self) -> Option<ProducerSequence> {
        self.last.map(|last| last.end())
    }

    /// Results from the last one back.
    fn back(&self) -> impl Iterator<Item = Outcome> {
        let mut steps = self.steps.iter().rev();
        std::iter::successors(self.last, move |after| Some(steps.next()?.back(after)))
    }

    /// The result of `records` records from `sequence` on, if the remembered results cover them
    /// with numbers that follow one another.
    pub(super) fn of(&self, sequence: ProducerSequence, records: u32) -> Option<Outcome> {
        let end = ProducerSequence(sequence.0.checked_add(u64::from(records))?);
        let mut covered = None;
        for outcome in self.back().filter(|outcome| outcome.sequence < end) {
            // Where the number of `end` would be.
            let here = outcome
                .first
                .0
                .wrapping_add(end.0.wrapping_sub(outcome.sequence.0));
            if covered.is_none() && outcome.end() < end {
                return None;
            }
            if *covered.get_or_insert(here) != here {
                return None;
            }
            if outcome.sequence <= sequence {
                return Some(Outcome {
                    sequence,
                    records,
                    first: Sequence(here.wrapping_sub(u64::from(records))),
                    time: outcome.time,
                });
            }
        }
        None
    }

    /// Writes them as a checkpoint has them.
    pub(super) fn encode(&self, out: &mut Writer) {
        let Some(last) = self.last else {
            // Input: a producer of whose batches none is remembered.
            out.u8(0);
            return;
        };
        out.u8(1);
        last.encode(out);
        out.count(self.steps.len());
        for step in &self.steps {
            out.u32(step.between).u16(step.records);
            for part in step.later {
                out.u16(part);
            }
        }
    }

    /// Decodes the output of [`encode`](Self::encode).
    pub(super) fn decode(input: &mut Reader<'_>) -> Option<Results> {
        if input.u8()? == 0 {
            return Some(Results::default());
        }
        let last = Some(Outcome::decode(input)?);
        let steps = (0..input.count(Step::BYTES)?).map(|_| {
            Some(Step {
                between: input.u32()?,
                records: input.u16()?,
                later: [input.u16()?, input.u16()?, input.u16()?],
            })
        });
        let steps = steps.collect::<Option<_>>()?;
        Some(Results { last, steps })
    }

    /// Reads them as checkpoints of version 1 had them: each one whole.
    pub(super) fn decode_whole(input: &mut Reader<'_>) -> Option<Results> {
        let mut results = Results::default();
        for _ in 0..input.count(Outcome::BYTES)? {
            results.push(Outcome::decode(input)?, usize::MAX);
        }
        Some(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches of 1, 2, 3 records and so on, others' numbers between every second and the next.
    fn batches(count: u64) -> Vec<Outcome> {
        let mut next = (0, 1);
        let batches = (1..=count).map(|n| {
            let (sequence, first) = next;
            next = (sequence + n, first + n + 1000 * (n % 2));
            Outcome {
                sequence: ProducerSequence(sequence),
                records: n as u32,
                first: Sequence(first),
                time: AppendTime((n * n * 1_000_000_000) as i64),
            }
        });
        batches.collect()
    }

    #[test]
    fn each_of_the_last_batches_has_its_own_result_and_older_ones_none() {
        let (mut results, all) = (Results::default(), batches(100));
        for outcome in &all {
            results.push(*outcome, 64);
        }
        for (n, outcome) in all.iter().enumerate() {
            let known = results.of(outcome.sequence, outcome.records);
            assert_eq!(known, (n >= 36).then_some(*outcome), "batch {n}");
        }
        assert_eq!(results.of(all[99].sequence, 101), None);
    }

    #[test]
    fn what_is_split_or_joined_is_found_if_its_numbers_follow_one_another() {
        let (mut results, all) = (Results::default(), batches(10));
        for outcome in &all {
            results.push(*outcome, 64);
        }
        // The sixth and the seventh: 6 and 7 records, without others' numbers between.
        let joined = results
            .of(ProducerSequence(all[5].sequence.0 + 1), 5 + 7)
            .unwrap();
        assert_eq!(
            (joined.first, joined.time),
            (all[5].first.plus(1), all[5].time)
        );
        // Between the seventh and the eighth there are others'.
        assert_eq!(results.of(all[6].sequence, 7 + 8), None);
        assert_eq!(results.of(all[6].sequence, 7), Some(all[6]));
    }

    #[test]
    fn taken_back_and_encoded_they_are_the_same() {
        let all = batches(50);
        let (mut results, mut half) = (Results::default(), Results::default());
        for (n, outcome) in all.iter().enumerate() {
            results.push(*outcome, 64);
            if n < 25 {
                half.push(*outcome, 64);
            }
        }
        for _ in 25..50 {
            results.pop();
        }
        assert_eq!(results, half);
        let mut out = Writer::default();
        results.encode(&mut out);
        let bytes = out.with_crc();
        let mut input = Reader::checked(&bytes).unwrap();
        assert_eq!(Results::decode(&mut input), Some(results));
        assert!(input.is_empty());
    }

    #[test]
    fn behind_a_hole_nothing_before_it_is_remembered() {
        let (mut results, all) = (Results::default(), batches(3));
        results.push(all[0], 64);
        results.push(all[2], 64);
        assert_eq!(results.of(all[2].sequence, 3), Some(all[2]));
        assert_eq!(results.of(all[0].sequence, 1), None);
        results.pop();
        assert_eq!(results, Results::default());
    }
}
