//! The publishers' side: acknowledged messages are kept, refused ones are not, and each refusal had
//! a cause.

use super::Case;
use crate::proof::hostile::history::Answer;
use crate::proof::stamp::Stamp;
use airmail_client::{ErrorCode, GapReason};
use airmail_model::LogId;
use std::collections::{BTreeMap, BTreeSet};

/// Codes after which it is not known whether the message is stored.
const UNKNOWN: [ErrorCode; 2] = [ErrorCode::OutcomeUnknown, ErrorCode::UnknownProducer];

impl Case<'_> {
    /// Faults in acks, refusals, and the kept messages.
    pub(super) fn published(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        self.answers_are_owed(&mut wrong);
        self.acknowledged_is_kept(&mut wrong);
        self.numbers_are_given_once(&mut wrong);
        self.failures_have_cause(&mut wrong);
        self.kept_is_what_was_published(&mut wrong);
        wrong
    }

    fn answers_are_owed(&self, wrong: &mut Vec<String>) {
        let open = self.invoked.keys();
        let open = open.filter(|stamp| !self.answers.contains_key(stamp));
        wrong.extend(open.map(|stamp| format!("no answer: {stamp:?}")));
    }

    fn acknowledged_is_kept(&self, wrong: &mut Vec<String>) {
        for (stamp, (at, _)) in &self.answers {
            let Some((_, acknowledged)) = self.stored(stamp) else {
                continue;
            };
            let number = acknowledged.map(|(_, number)| number);
            match self.places.get(stamp) {
                Some(place) if number.is_none_or(|number| number == place.number) => {}
                Some(place) => wrong.push(format!(
                    "acknowledged as number {number:?}, and kept as {place:?}: {stamp:?}"
                )),
                None if self.rolled_back(*at).is_some() => {}
                None if self.removed(stamp) => {
                    let gaps = self
                        .kept
                        .get(&stamp.topic)
                        .map_or(&[][..], |kept| &kept.gaps);
                    let told = |number| {
                        let lost = gaps.iter().filter(|gap| gap.reason == GapReason::Loss);
                        lost.into_iter().any(|gap| gap.covers(number))
                    };
                    if number.is_some_and(|number| !told(number)) {
                        wrong.push(format!(
                            "number {number:?} was in a removed file, and history does not tell: \
                             {stamp:?}, gaps {gaps:?}"
                        ));
                    }
                }
                None => wrong.push(format!("acknowledged as {number:?} and lost: {stamp:?}")),
            }
        }
    }

    fn numbers_are_given_once(&self, wrong: &mut Vec<String>) {
        let mut given: BTreeMap<(LogId, u64), Vec<(usize, Stamp)>> = BTreeMap::new();
        for stamp in self.answers.keys() {
            if let Some((at, Some(place))) = self.stored(stamp) {
                given.entry(place).or_default().push((at, *stamp));
            }
        }
        for ((log, number), mut stamps) in given {
            stamps.sort_unstable();
            for pair in stamps.windows(2) {
                let ((first, _), (second, _)) = (pair[0], pair[1]);
                let excused = self.restores.iter().any(|(copied, restored)| {
                    (*copied..*restored).contains(&first) && *restored < second
                });
                if !excused {
                    wrong.push(format!(
                        "number {number} of {log} acknowledged twice: {pair:?}"
                    ));
                }
            }
        }
    }

    /// A message fails only if it was handed over before its publisher could know that the node has
    /// lost something: before the first ack of what it handed over since.
    fn failures_have_cause(&self, wrong: &mut Vec<String>) {
        for (stamp, (answered, answer)) in &self.answers {
            let Answer::Failed(code) = answer else {
                continue;
            };
            let invoked = self.invoked.get(stamp).copied().unwrap_or(0);
            let mut before = self.losses().filter(|loss| loss < answered);
            let excused = before.any(|loss| !self.has_ack_of_message_between(stamp, loss, invoked));
            let excused = excused || self.met_a_taken_directory(invoked, *answered, *code);
            if !excused || *code == ErrorCode::Internal {
                wrong.push(format!("{}: {stamp:?}", code.name()));
            }
        }
    }

    /// Whether it is not known what became of a message because it was under way when the directory was
    /// not the node's: it may be stored, and nobody may say so.
    fn met_a_taken_directory(&self, invoked: usize, answered: usize, code: ErrorCode) -> bool {
        let mut taken = self.taken.iter();
        UNKNOWN.contains(&code) && taken.any(|(from, until)| invoked < *until && *from < answered)
    }

    /// Whether the publisher of a message has an ack, for the same topic, of one that it handed over
    /// between these two times.
    fn has_ack_of_message_between(&self, stamp: &Stamp, after: usize, before: usize) -> bool {
        let first = Stamp {
            number: 0,
            bytes: 0,
            ..*stamp
        };
        let earlier = self.invoked.range(first..*stamp);
        let mut between = earlier.filter(|(_, at)| (after..before).contains(at));
        between.any(|(other, _)| self.stored(other).is_some())
    }

    fn kept_is_what_was_published(&self, wrong: &mut Vec<String>) {
        for (topic, kept) in self.kept {
            let mut seen = BTreeSet::new();
            let mut next: BTreeMap<u32, u64> = BTreeMap::new();
            for (place, stamp) in &kept.messages {
                let here = format!("topic {topic} keeps at {place:?}");
                if !self.invoked.contains_key(stamp) {
                    wrong.push(format!("{here} what was never published: {stamp:?}"));
                }
                if !seen.insert(*stamp) {
                    wrong.push(format!("{here} a message for the second time: {stamp:?}"));
                }
                let next = next.entry(stamp.publisher).or_default();
                if stamp.number < *next {
                    wrong.push(format!("{here} a message after a later one: {stamp:?}"));
                }
                *next = stamp.number + 1;
                if let Some((_, Answer::Failed(code))) = self.answers.get(stamp)
                    && !UNKNOWN.contains(code)
                {
                    wrong.push(format!(
                        "{here} what was refused, {}: {stamp:?}",
                        code.name()
                    ));
                }
            }
        }
    }

    /// Whether a message was refused, so that no reader can have been given it: not one whose first
    /// attempt may have been stored in what was rolled back.
    pub(super) fn was_refused(&self, stamp: &Stamp) -> bool {
        let answer = self.answers.get(stamp);
        let refused = |(_, answer): &(usize, &Answer)| match answer {
            Answer::Failed(code) => !UNKNOWN.contains(code),
            Answer::Stored(_) => false,
        };
        answer.is_some_and(refused) && !self.was_under_way(stamp)
    }
}
