//! Looks through a log, by readers of the storage's own: for the answer to a call.
//!
//! - Topics: there is no index of topics on Kafka. A page is one sweep over the log that keeps the smallest names behind
//!   the page before, as many as were asked for.
//! - A trim that names a number inside a record: whether the record ends before it is in the record.

use crate::brokers::Brokers;
use crate::entry::Tile;
use crate::place::Offset;
use crate::reader::{Gift, Reader, ReaderKey};
use crate::storage::KafkaStorage;
use airmail_log::{Completion, Refusal, Scope, Tag, TopicPage, TopicSeen};
use airmail_model::{LogId, Sequence};
use std::collections::BTreeMap;

/// Target of a look.
#[derive(Debug)]
enum Look {
    /// Number of a record's numbers.
    Numbers { first: Sequence, found: u32 },
    /// Names of topics, with the last number at which each was seen.
    Topics {
        page: TopicPage,
        found: BTreeMap<String, Sequence>,
    },
}

/// A look through a log.
#[derive(Debug)]
pub(crate) struct Looking {
    log: LogId,
    look: Look,
    is_over: bool,
}

impl<B: Brokers> KafkaStorage<B> {
    /// Looks at the record at an offset, which the log's end is behind.
    pub(crate) fn look_at(&mut self, t: Tag, log: LogId, offset: Offset) {
        let first = offset.number();
        let look = Look::Numbers { first, found: 0 };
        self.begin_look(t, log, look, first, offset.plus(1).number());
    }

    /// Looks for a page of topics before an offset.
    pub(crate) fn look_for_topics(&mut self, t: Tag, log: LogId, page: TopicPage, end: Offset) {
        let found = BTreeMap::new();
        let look = Look::Topics { page, found };
        self.begin_look(t, log, look, Sequence::FIRST, end.number());
    }

    fn begin_look(&mut self, t: Tag, log: LogId, look: Look, from: Sequence, until: Sequence) {
        let scope = Scope {
            until: Some(until),
            ..Scope::default()
        };
        let looking = Looking {
            log,
            look,
            is_over: false,
        };
        self.work.looking.insert(t, looking);
        let mut reader = Reader::new(log, from, &scope, 0);
        reader.credit = i64::MAX;
        self.begin_reader(ReaderKey::Own(t), reader);
    }

    pub(crate) fn looked(&mut self, t: Tag, gifts: &[Gift]) {
        let Some(looking) = self.work.looking.get_mut(&t) else {
            // Input: a look that has ended with its log.
            return;
        };
        for gift in gifts {
            let Gift::Tile(tile) = gift else {
                // Input: a gap, in which nothing is to be found.
                continue;
            };
            match (&mut looking.look, tile) {
                (Look::Numbers { first, found }, tile) => {
                    let numbers = tile.extent().next().0.saturating_sub(first.0);
                    *found = u32::try_from(numbers).unwrap_or(u32::MAX).max(*found);
                }
                (Look::Topics { page, found }, Tile::Batch(stored)) => {
                    for topic in stored.batch.topics() {
                        note_topic(page, found, topic.name, stored.extent.last);
                    }
                }
                (Look::Topics { .. }, Tile::Lost(_)) => {}
            }
        }
    }

    pub(crate) fn look_over(&mut self, t: Tag) {
        if let Some(looking) = self.work.looking.get_mut(&t) {
            looking.is_over = true;
        }
    }

    /// The log is no more, or has stopped.
    pub(crate) fn look_ended(&mut self, t: Tag, why: &Refusal) {
        match self.work.looking.remove(&t) {
            Some(Looking {
                look: Look::Topics { .. },
                ..
            }) => self.refuse(t, why.clone()),
            Some(looking) => self.refuse_change(looking.log, why.clone()),
            None => {}
        }
    }

    /// Answers with what was found.
    pub(crate) fn look(&mut self) {
        let looking = self.work.looking.iter();
        let over: Vec<Tag> = looking
            .filter(|(_, of)| of.is_over)
            .map(|(t, _)| *t)
            .collect();
        for t in over {
            match self.work.looking.remove(&t) {
                Some(Looking {
                    look: Look::Topics { found, .. },
                    ..
                }) => {
                    let page = found
                        .into_iter()
                        .map(|(name, last)| TopicSeen { name, last });
                    let page = page.collect();
                    self.out.push(Completion::Topics { t, page });
                }
                Some(Looking {
                    log,
                    look: Look::Numbers { found, .. },
                    ..
                }) => self.probed(log, found),
                None => {}
            }
        }
    }
}

/// Takes note of a topic, if it is among the smallest names of its page.
fn note_topic(
    page: &TopicPage,
    found: &mut BTreeMap<String, Sequence>,
    name: &str,
    last: Sequence,
) {
    if !name.starts_with(&page.prefix) || name <= page.after.as_str() {
        return;
    }
    if let Some(seen) = found.get_mut(name) {
        *seen = last.max(*seen);
        return;
    }
    found.insert(name.to_owned(), last);
    if found.len() > page.limit as usize {
        found.pop_last();
    }
}
