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
    let (mut last, mut last_log) = (0, None);
    loop {
        let item = history.next().await;
        let item =
            item.unwrap_or_else(|error| panic!("history of {topic:?} after {last}: {error}"));
        let Some(item) = item else { return read };
        let (log, first, next) = match &item {
            Item::Message(message) => {
                let number = message.sequence.0;
                (message.position().logs[0].log, number, number)
            }
            Item::Gap(gap) => (gap.log, gap.first.0, gap.last.0),
            Item::Expired(gone) => panic!("{topic:?}: nothing expires: {gone:?}"),
        };
        assert!(last_log <= Some(log), "{topic:?}: {log} after {last_log:?}");
        if last_log.replace(log) != Some(log) {
            last = 0;
        }
        assert!(first > last, "{topic:?}: {first} after {last} of {log}");
        last = next;
        match item {
            Item::Message(message) => {
                let stamp = Stamp::read(&message.payload);
                let stamp = stamp.filter(|stamp| stamp.topic == topic.index);
                let payload = &message.payload;
                let stamp = stamp.unwrap_or_else(|| panic!("never published: {first} {payload:?}"));
                read.log = Some(log);
                read.logs.push(log);
                read.messages.push((first, stamp));
            }
            Item::Expired(_) => {}
            Item::Gap(gap) => match gap.reason {
                GapReason::Loss => read.lost.push(first..=next),
                GapReason::Unused => {}
                other => panic!("{topic:?}: {first} to {next}: {other:?}, and nothing was removed"),
            },
        }
    }
}
