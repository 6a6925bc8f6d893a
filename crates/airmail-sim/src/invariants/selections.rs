//! Selections: a subscription gets exactly the messages of the topics that its selector selects, of one log.
//!
//! In some runs some clients have selections of topics in place of topics. Whether one is for a message is decided here by
//! the name of its topic and the wish that the selector was made of, and not by what reads selectors.

use super::filters::CLIENTS;
use crate::entropy::Entropy;
use crate::ledger::Entry;
use airmail_model::selector::{Glob, Selector};
use airmail_model::{LogId, TopicHash};
use std::sync::Arc;

/// Rate of runs that have selections, in parts of a million.
const ON: u32 = 250_000;

/// Facts of the run by which it is judged.
#[derive(Debug)]
pub struct Selections {
    chance: Entropy,
    is_on: bool,
}

/// Topics that somebody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// All of them.
    All,
    /// This one.
    Topic(TopicHash),
    /// Those whose numbers begin with this digit.
    Begins(char),
    /// Those whose numbers end with this digit.
    Ends(char),
}

impl Selections {
    /// The facts of a run that has not begun.
    #[must_use]
    pub fn new(seed: u64) -> Selections {
        let mut chance = Entropy::new(seed ^ 0x5e1e_c701);
        Selections {
            is_on: chance.chance(ON),
            chance,
        }
    }

    /// Whether the subscriptions of a client are selections, by the client's number.
    #[must_use]
    pub fn of_client(&self, number: u32) -> bool {
        let mut chance = Entropy::new(self.chance.clone().next() ^ u64::from(number) << 17);
        self.is_on && number < CLIENTS && chance.coin()
    }

    /// The wish of a client for topics of a log.
    #[must_use]
    pub fn of_subscription(&self, number: u32, log: LogId) -> Subject {
        let log = u64::from(log.namespace.0) << 16 ^ u64::from(log.index.0);
        let of = self.chance.clone().next() ^ u64::from(number) << 29 ^ log;
        let mut chance = Entropy::new(of);
        let digit = char::from(b'0' + u8::try_from(chance.below(10)).unwrap_or(0));
        match chance.below(4) {
            0 | 1 => Subject::All,
            2 => Subject::Begins(digit),
            _ => Subject::Ends(digit),
        }
    }
}

/// Nobody has selections.
impl Default for Selections {
    fn default() -> Selections {
        Selections {
            is_on: false,
            ..Selections::new(0)
        }
    }
}

impl Subject {
    /// The selector that says so; `None` for a topic.
    #[must_use]
    pub fn selector(self) -> Option<Arc<Selector>> {
        let glob = |text: String| {
            Glob::parse(&text).unwrap_or_else(|_| unreachable!("a fixed, legal pattern"))
        };
        Some(Arc::new(match self {
            Subject::Topic(_) => return None,
            Subject::All => Selector::All,
            Subject::Begins(digit) => Selector::Prefix(format!("topic/{digit}").into()),
            Subject::Ends(digit) => Selector::Pattern(glob(format!("topic/*{digit}"))),
        }))
    }

    /// Whether a message is of it.
    #[must_use]
    pub fn has(self, entry: &Entry) -> bool {
        let name = entry.topic_name.as_str();
        match self {
            Subject::All => true,
            Subject::Topic(topic) => topic == entry.topic,
            Subject::Begins(digit) => name.chars().nth("topic/".len()) == Some(digit),
            Subject::Ends(digit) => name.ends_with(digit),
        }
    }

    /// The topic, where it is one.
    #[must_use]
    pub fn topic(self) -> Option<TopicHash> {
        match self {
            Subject::Topic(topic) => Some(topic),
            Subject::All | Subject::Begins(_) | Subject::Ends(_) => None,
        }
    }
}

/// A storage's reader of one topic, or of all.
impl From<Option<TopicHash>> for Subject {
    fn from(topic: Option<TopicHash>) -> Subject {
        topic.map_or(Subject::All, Subject::Topic)
    }
}
