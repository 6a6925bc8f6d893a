//! What a subscription or a look into history gives.

use crate::core::{GapSeen, ReceivedBatch, SubscriptionKey};
use crate::named_topic::NamedTopic;
use airmail_model::batch::{AttributeValue, Record};
use airmail_model::frame::GapReason;
use airmail_model::position::LogPosition;
use airmail_model::{AppendTime, Incarnation, Lane, LogId, MapEpoch, Position, Sequence};
use bytes::Bytes;
use std::sync::Arc;

/// A message, with where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    topic: Arc<NamedTopic>,
    /// Its number in its log: more than every earlier one of its topic.
    pub sequence: Sequence,
    /// Its lane.
    pub lane: Lane,
    /// When the storage took it.
    pub appended: AppendTime,
    /// The publisher's own time, in microseconds since 1970-01-01 UTC: carried, not checked.
    pub time_us: i64,
    /// Its attributes, by name.
    pub attributes: Vec<(String, AttributeValue)>,
    /// Its payload: a part of the batch that it came in, not a copy.
    pub payload: Bytes,
    place: Place,
}

impl Received {
    pub(crate) fn new(
        topic: &Arc<NamedTopic>,
        record: &Record<'_>,
        payload: Bytes,
        sequence: Sequence,
        appended: AppendTime,
        place: Place,
    ) -> Received {
        let attributes = record.attributes;
        Received {
            topic: Arc::clone(topic),
            sequence,
            lane: place.log.lane,
            appended,
            time_us: record.time,
            attributes: attributes
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            payload,
            place,
        }
    }

    /// Its namespace's name.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.topic.namespace
    }

    /// Its topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic.topic
    }

    /// Where to go on after this message.
    #[must_use]
    pub fn position(&self) -> Position {
        self.place.position(self.sequence.plus(1))
    }
}

/// Numbers that will not come, because what they stood for is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first number concerned.
    pub first: Sequence,
    /// The last number concerned. How many of them were of the topic is not known.
    pub last: Sequence,
    /// Why: retention, expiry or loss.
    pub reason: GapReason,
}

impl From<GapSeen> for Gap {
    fn from(gap: GapSeen) -> Gap {
        Gap {
            first: gap.extent.first,
            last: gap.extent.last,
            reason: gap.why,
        }
    }
}

/// One thing that a subscription gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A message.
    Message(Received),
    /// Something is missing for good.
    Gap(Gap),
}

/// A log in one of its lives, under a map: what a position needs beside the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) log: LogId,
    pub(crate) incarnation: Incarnation,
    pub(crate) epoch: MapEpoch,
}

impl Place {
    pub(crate) fn position(self, next: Sequence) -> Position {
        Position {
            namespace: self.log.namespace,
            epoch: self.epoch,
            logs: vec![LogPosition {
                log: self.log,
                incarnation: self.incarnation,
                next,
            }],
        }
    }
}

/// An arrival that is being given, message by message: none is unpacked before it is asked for.
#[derive(Debug)]
pub(crate) struct Reading {
    arrived: ReceivedBatch,
    /// Of the next message.
    place: Option<u16>,
}

impl Reading {
    pub(crate) fn new(arrived: ReceivedBatch) -> Reading {
        Reading {
            place: arrived.seek(0),
            arrived,
        }
    }

    /// Whether there is another message.
    pub(crate) fn has_more(&self) -> bool {
        self.place.is_some()
    }

    /// What is to be given back when all has been given.
    pub(crate) fn cost(&self) -> u32 {
        self.arrived.cost
    }

    /// Takes the next message; `named` knows whose topic is which.
    pub(crate) fn next<'a>(
        &mut self,
        epoch: MapEpoch,
        named: impl Fn(SubscriptionKey) -> Option<&'a Arc<NamedTopic>>,
    ) -> Option<Received> {
        let (sequence, record) = self.arrived.message(self.place?);
        let topic = named(self.arrived.owner(record.topic)?)?;
        let payload = self.arrived.share(record.payload);
        let appended = self.arrived.appended;
        let place = self.log_place(epoch);
        let message = Received::new(topic, &record, payload, sequence, appended, place);
        self.skip();
        Some(message)
    }

    /// The position before the next message of a subscription, if there is one.
    pub(crate) fn before(&self, owner: SubscriptionKey, epoch: MapEpoch) -> Option<Position> {
        let mut messages = self.arrived.iter_from(self.place?);
        let own = |record: &Record<'_>| self.arrived.owner(record.topic) == Some(owner);
        let (next, _) = messages.find(|(_, record)| own(record))?;
        Some(self.log_place(epoch).position(next))
    }

    fn log_place(&self, epoch: MapEpoch) -> Place {
        Place {
            log: self.arrived.log,
            incarnation: self.arrived.incarnation,
            epoch,
        }
    }

    fn skip(&mut self) {
        self.place = self.place.and_then(|at| self.arrived.seek(at + 1));
    }
}

/// Messages of one subscription that came in one batch, to be looked at where they lie: the cheapest way
/// to read many.
#[derive(Debug)]
pub struct MessageBatch {
    arrived: ReceivedBatch,
    from: u16,
}

impl MessageBatch {
    /// When the storage took them.
    #[must_use]
    pub fn appended(&self) -> AppendTime {
        self.arrived.appended
    }

    /// Each with its number in its log, in order; at least one.
    pub fn iter(&self) -> impl Iterator<Item = (Sequence, Record<'_>)> {
        self.arrived.iter_from(self.from)
    }

    /// As [`MessageBatch::iter`], with the place of each message's topic among those of the
    /// [`crate::ManySubscription`] that gave them; of a [`crate::Subscription`]'s it is 0.
    pub fn iter_topics(&self) -> impl Iterator<Item = (usize, Sequence, Record<'_>)> {
        self.iter().map(|(sequence, record)| {
            let owner = self.arrived.owner(record.topic);
            let topic = owner.map_or(0, |owner| owner.index() as usize);
            (topic, sequence, record)
        })
    }

    /// A payload, for longer than the look at its message: it shares the memory of the batch.
    ///
    /// # Panics
    /// If it is not the payload of one of these messages.
    #[must_use]
    pub fn share(&self, payload: &[u8]) -> Bytes {
        self.arrived.share(payload)
    }
}

/// What a subscription gives when it is read by batches.
#[derive(Debug)]
pub enum Items {
    /// Messages.
    Messages(MessageBatch),
    /// Something is missing for good.
    Gap(Gap),
}

impl Reading {
    /// All that has not been given, of which there is some, as a batch.
    pub(crate) fn rest(self) -> MessageBatch {
        MessageBatch {
            from: self.place.unwrap_or_default(),
            arrived: self.arrived,
        }
    }
}
