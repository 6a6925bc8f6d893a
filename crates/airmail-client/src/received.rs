//! What a subscription or a look into history gives.

use crate::core::{Arrived, GapSeen};
use airmail_model::batch::{AttributeValue, Record};
use airmail_model::frame::GapReason;
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Incarnation, Lane, LogId, MapEpoch, NamespaceId, Position, Sequence,
};
use bytes::Bytes;
use std::sync::Arc;

/// A message, with where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The namespace's name.
    pub namespace: Arc<str>,
    /// The topic.
    pub topic: Arc<str>,
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
        namespace: &Arc<str>,
        topic: &Arc<str>,
        record: &Record<'_>,
        sequence: Sequence,
        appended: AppendTime,
        place: Place,
    ) -> Received {
        let attributes = record.attributes;
        Received {
            namespace: Arc::clone(namespace),
            topic: Arc::clone(topic),
            sequence,
            lane: place.log.lane,
            appended,
            time_us: record.time,
            attributes: attributes
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            payload: record.payload.clone(),
            place,
        }
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

/// A topic as its user named it, and as a node gave it a number.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) namespace: Arc<str>,
    pub(crate) topic: Arc<str>,
    pub(crate) id: NamespaceId,
    pub(crate) epoch: MapEpoch,
}

impl Names {
    /// The messages of an arrival, in order.
    pub(crate) fn received<'a>(
        &'a self,
        arrived: &'a Arrived,
    ) -> impl Iterator<Item = Received> + 'a {
        let place = Place {
            log: arrived.log,
            incarnation: arrived.incarnation,
            epoch: self.epoch,
        };
        arrived.iter().map(move |(sequence, record)| {
            Received::new(
                &self.namespace,
                &self.topic,
                &record,
                sequence,
                arrived.appended,
                place,
            )
        })
    }
}
