//! Judge of a round: whether its history is one that Airmail promises. A function of the history
//! and of the node's messages in the end, without a node, a clock or a file, so that its own tests
//! can show it a lost message, a doubled one, one out of order and a silent hole.
//!
//! Two things may cost acknowledged messages, and only these: a restored copy (messages
//! acknowledged after the copy was begun may be gone: they are *rolled back*), and removed files
//! (their messages may be gone, and every reader that has not had one is told so). Rules:
//!
//! - **Acknowledged** messages are kept, once, under the number of their ack, unless lost as above. No
//!   number is acknowledged for two messages, unless the first one was rolled back before.
//! - **Failures** happen only to messages that were under way when something was lost. A refused
//!   message is not there; one of `OUTCOME_UNKNOWN` and the like may be.
//! - **Kept** messages stand once each, in the order of their publisher, and were published.
//! - **Readers** get numbers that grow within one life of the log, each message once, in the order
//!   of its publisher, and no number for two messages. After a restore, a reader that was told a loss
//!   may get again the messages that it had before.
//! - **Complete or told**: every kept message of a reader's range was given to it, or lies in a gap
//!   that it was told and is older than the gap's end. A message published after a restore is excused
//!   by no gap.
//! - **No silence**: a reader that had a message which was rolled back is told a loss before it
//!   gets any message published after the restore.
//! - **No false alarm**: no loss is told where nothing was lost; nothing is told as removed by
//!   retention.

mod published;
mod read;
#[cfg(test)]
mod tests;

use super::history::{Answer, Event, Hole, Place};
use crate::proof::stamp::Stamp;
use airmail_model::LogId;
use std::collections::{BTreeMap, BTreeSet};

/// Contents of a topic in the end, as given by a node that was stopped and started in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) messages: Vec<(Place, Stamp)>,
    pub(crate) gaps: Vec<Hole>,
}

/// Judges a round: lists what is wrong with it.
pub(crate) fn judge(events: &[Event], kept: &BTreeMap<u32, Kept>) -> Vec<String> {
    let case = Case::new(events, kept);
    let mut wrong = case.published();
    wrong.extend(case.read());
    wrong.extend(case.incomplete());
    wrong
}

/// Messages that readers still lack, and were not told to be gone.
pub(crate) fn incomplete(events: &[Event], kept: &BTreeMap<u32, Kept>) -> Vec<String> {
    Case::new(events, kept).incomplete()
}

/// A history, with what several rules look up in it.
struct Case<'a> {
    events: &'a [Event],
    kept: &'a BTreeMap<u32, Kept>,
    invoked: BTreeMap<Stamp, usize>,
    answers: BTreeMap<Stamp, (usize, &'a Answer)>,
    /// Places in the history at which each restore's copy was begun and was put in place.
    restores: Vec<(usize, usize)>,
    /// Place of each removal that may cost messages, and those messages.
    removals: Vec<(usize, &'a BTreeSet<Stamp>)>,
    /// Stretches in which the directory was not the node's.
    taken: Vec<(usize, usize)>,
    /// Kept messages, with where they stand.
    places: BTreeMap<Stamp, Place>,
}

impl<'a> Case<'a> {
    fn new(events: &'a [Event], kept: &'a BTreeMap<u32, Kept>) -> Case<'a> {
        let all = kept.values().flat_map(|kept| &kept.messages);
        let mut case = Case {
            events,
            kept,
            invoked: BTreeMap::new(),
            answers: BTreeMap::new(),
            restores: Vec::new(),
            removals: Vec::new(),
            taken: Vec::new(),
            places: all.map(|(place, stamp)| (*stamp, *place)).collect(),
        };
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::Invoked(stamp) => drop(case.invoked.insert(*stamp, at)),
                Event::Answered(stamp, answer) => drop(case.answers.insert(*stamp, (at, answer))),
                Event::Restored { copied } => case.restores.push((*copied, at)),
                Event::Removed(lost) if !lost.is_empty() => case.removals.push((at, lost)),
                Event::Taken => case.taken.push((at, usize::MAX)),
                Event::Back => case
                    .taken
                    .last_mut()
                    .into_iter()
                    .for_each(|taken| taken.1 = at),
                _ => {}
            }
        }
        case
    }

    /// The number that a message was acknowledged under, and when.
    fn stored(&self, stamp: &Stamp) -> Option<(usize, Option<(LogId, u64)>)> {
        match self.answers.get(stamp)? {
            (at, Answer::Stored(place)) => Some((*at, *place)),
            (_, Answer::Failed(_)) => None,
        }
    }

    /// The first restore that may have taken back what was durable at that time.
    fn rolled_back(&self, at: usize) -> Option<usize> {
        let over = self
            .restores
            .iter()
            .filter(|(copied, restored)| (*copied..*restored).contains(&at));
        over.map(|(_, restored)| *restored).min()
    }

    /// Whether it was in files that were removed.
    fn removed(&self, stamp: &Stamp) -> bool {
        self.removals.iter().any(|(_, lost)| lost.contains(stamp))
    }

    /// When something was lost, or may have been.
    fn losses(&self) -> impl Iterator<Item = usize> {
        let restored = self.restores.iter().map(|(_, at)| *at);
        restored.chain(self.removals.iter().map(|(at, _)| *at))
    }

    /// Whether a message was under way when something was lost: asked for before, answered after.
    fn was_under_way(&self, stamp: &Stamp) -> bool {
        let invoked = self.invoked.get(stamp).copied().unwrap_or(usize::MAX);
        let answered = self.answers.get(stamp).map_or(usize::MAX, |(at, _)| *at);
        self.losses().any(|at| invoked < at && at < answered)
    }
}
