//! Check of the stored messages: each acknowledged one is there once, under its number, in order,
//! and no refused one is.

use super::stream::{Fate, Story};
use serde::{Deserialize, Serialize};

/// Numbers of messages that are not as they should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wrong {
    /// Acknowledged, and not there.
    pub(super) lost: u64,
    /// There more than once.
    pub(super) duplicates: u64,
    /// There under another number than acknowledged, or before an earlier one of the stream.
    pub(super) reordered: u64,
    /// There though refused, or never sent.
    pub(super) strange: u64,
}

impl Wrong {
    /// Adds that of other streams.
    pub(super) fn add(&mut self, other: Wrong) {
        self.lost += other.lost;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.strange += other.strange;
    }
}

/// Messages that one stream may find of those it sent.
#[derive(Debug)]
pub(super) struct Kept {
    /// Fate of each batch. `None`: no answer, so it may be there or not.
    fates: Vec<Option<Fate>>,
    /// Messages in a batch.
    batch: u64,
    seen: Vec<bool>,
    /// The highest message seen.
    last: Option<u64>,
    wrong: Wrong,
}

impl Kept {
    /// Begins for a stream with `batch` messages in each batch.
    pub(super) fn new(story: &Story, batch: u32) -> Kept {
        let mut fates = vec![None; story.dues_us.len()];
        for heard in &story.heard {
            let place = usize::try_from(heard.batch).unwrap_or(usize::MAX);
            if let Some(fate) = fates.get_mut(place) {
                *fate = Some(heard.fate);
            }
        }
        let batch = u64::from(batch).max(1);
        Kept {
            seen: vec![false; fates.len() * batch as usize],
            fates,
            batch,
            last: None,
            wrong: Wrong::default(),
        }
    }

    /// Message `number` of the stream is stored under `sequence`. In the order of the log.
    pub(super) fn see(&mut self, number: u64, sequence: u64) {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let (Some(seen), Some(fate)) = (
            self.seen.get_mut(place),
            self.fates.get(place / self.batch as usize),
        ) else {
            return self.see_strange();
        };
        if std::mem::replace(seen, true) {
            self.wrong.duplicates += 1;
            return;
        }
        let moved = match fate {
            Some(Fate::Refused { .. }) => {
                self.wrong.strange += 1;
                false
            }
            Some(Fate::Stored { first }) => sequence != first + number % self.batch,
            None => false,
        };
        let early = self.last.is_some_and(|last| last > number);
        self.wrong.reordered += u64::from(moved || early);
        self.last = self.last.max(Some(number));
    }

    /// Something is stored that the stream did not send.
    pub(super) fn see_strange(&mut self) {
        self.wrong.strange += 1;
    }

    /// All that is stored has been seen.
    pub(super) fn end(self) -> Wrong {
        let batches = self.seen.chunks(self.batch as usize).zip(&self.fates);
        let stored = batches.filter(|(_, fate)| matches!(fate, Some(Fate::Stored { .. })));
        let lost = stored
            .flat_map(|(seen, _)| seen)
            .filter(|seen| !**seen)
            .count();
        Wrong {
            lost: lost as u64,
            ..self.wrong
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::Heard;
    use super::*;

    /// Batches of two: stored under 10, refused, no answer, stored under 20.
    fn kept() -> Kept {
        let refused = Fate::Refused {
            code: 28,
            has_delay: true,
        };
        let fates = [
            (0, Fate::Stored { first: 10 }),
            (1, refused),
            (3, Fate::Stored { first: 20 }),
        ];
        let heard = |(batch, fate)| Heard {
            batch,
            at_us: 0,
            fate,
        };
        let story = Story {
            dues_us: vec![0; 4],
            heard: fates.map(heard).into(),
            ..Story::default()
        };
        Kept::new(&story, 2)
    }

    fn wrong(seen: &[(u64, u64)]) -> Wrong {
        let mut kept = kept();
        seen.iter().for_each(|(number, at)| kept.see(*number, *at));
        kept.end()
    }

    #[test]
    fn what_has_no_answer_may_be_there_or_not() {
        let stored = [(0, 10), (1, 11), (4, 15), (5, 16), (6, 20), (7, 21)];
        assert_eq!(wrong(&stored), Wrong::default());
        assert_eq!(
            wrong(&[&stored[..2], &stored[4..]].concat()),
            Wrong::default()
        );
    }

    #[test]
    fn what_was_acknowledged_and_is_not_there_is_lost() {
        assert_eq!(wrong(&[(0, 10), (6, 20), (7, 21)]).lost, 1);
        assert_eq!(wrong(&[]).lost, 4);
    }

    #[test]
    fn a_message_has_one_place_and_that_is_the_acknowledged_one() {
        let found = wrong(&[(0, 10), (1, 11), (1, 12), (7, 21), (6, 20)]);
        assert_eq!((found.duplicates, found.reordered, found.lost), (1, 1, 0));
        assert_eq!(wrong(&[(0, 9), (1, 11), (6, 20), (7, 21)]).reordered, 1);
    }

    #[test]
    fn what_was_refused_or_never_sent_is_not_there() {
        let found = wrong(&[(0, 10), (1, 11), (2, 12), (6, 20), (7, 21), (8, 22)]);
        assert_eq!(found.strange, 2);
    }
}
