//! A topic's whole history, read by the SDK and checked to be stamped and in order.

use super::load::Topic;
use super::stamp::Stamp;
use airmail_client::{Client, GapReason, Item};
use airmail_model::LogId;
use std::ops::RangeInclusive;

/// Contents of a topic's history.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Number and stamp of each message.
    pub(crate) messages: Vec<(u64, Stamp)>,
    /// Log of each message: a topic has another one since its namespace was moved.
    pub(crate) logs: Vec<LogId>,
    /// The numbers that it said are lost.
    pub(crate) lost: Vec<RangeInclusive<u64>>,
    /// The log of the last message, if it has any.
    pub(crate) log: Option<LogId>,
}

/// Reads all of it.
pub(crate) async fn history(client: &Client, topic: &Topic) -> History {
    let mut read = History::default();
    let request = client.history(&topic.name).namespace(topic.namespace);
    let mut history = request.open().unwrap();
    let (mut last, mut begins_next, mut was_gap) = (0, false, false);
    loop {
        let item = history.next().await;
        let item =
            item.unwrap_or_else(|error| panic!("history of {topic:?} after {last}: {error}"));
        let (first, next) = match &item {
            None => return read,
            Some(Item::Message(message)) => (message.sequence.0, message.sequence.0),
            Some(Item::Gap(gap)) => (gap.first.0, gap.last.0),
        };
        let log = match &item {
            Some(Item::Message(message)) => Some(message.position().logs[0].log),
            _ => None,
        };
        // A gap does not say its log. One from the first number on is at the beginning of the next; so is one that
        // follows another and lies before it: the log has nothing of this topic before that.
        let is_next_log =
            log.is_some_and(|log| read.log.is_some_and(|before| log > before)) && !begins_next;
        let is_next_gap = log.is_none() && (first == 1 || was_gap && first <= last);
        if is_next_log || is_next_gap && last > 0 {
            last = 0;
        }
        (begins_next, was_gap) = (is_next_gap, log.is_none());
        assert!(first > last, "{topic:?}: {first} after {last}");
        last = next;
        match item {
            Some(Item::Message(message)) => {
                let stamp = Stamp::read(&message.payload);
                let stamp = stamp.filter(|stamp| stamp.topic == topic.index);
                let payload = &message.payload;
                let stamp = stamp.unwrap_or_else(|| panic!("never published: {first} {payload:?}"));
                assert!(read.log <= log, "{topic:?}: {log:?} after {:?}", read.log);
                read.log = log;
                read.logs.extend(log);
                read.messages.push((first, stamp));
            }
            Some(Item::Gap(gap)) => match gap.reason {
                GapReason::Loss => read.lost.push(first..=next),
                GapReason::Unused => {}
                other => panic!("{topic:?}: {first} to {next}: {other:?}, and nothing was removed"),
            },
            None => {}
        }
    }
}
