//! Messages and gaps, as a subscription or history gives them to its user.

use crate::core::{GapSeen, ReceivedBatch, SubscriptionKey};
use crate::named_topic::NamedTopic;
use airmail_model::batch::{AttributeValue, Record};
use airmail_model::frame::GapReason;
use airmail_model::position::LogPosition;
use airmail_model::{AppendTime, Incarnation, Lane, LogId, MapEpoch, Mono, Position, Sequence};
use bytes::Bytes;
use std::sync::Arc;

/// A message, with its place in its log.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    topic: Arc<NamedTopic>,
    /// Number in its log: higher than that of every earlier message of its topic there. A topic has another log since its
    /// namespace was moved, where numbers begin anew.
    pub sequence: Sequence,
    /// Lane that it was published to.
    pub lane: Lane,
    /// Time at which the storage appended it.
    pub appended: AppendTime,
    /// Time by the publisher's own clock, in microseconds since 1970-01-01 UTC: carried, not
    /// checked.
    pub time_us: i64,
    /// Attributes, by name.
    pub attributes: Vec<(String, AttributeValue)>,
    /// Milliseconds after its append time when it expires, if it does.
    pub ttl_ms: Option<u32>,
    /// Payload: a part of the batch that it came in, not a copy.
    pub payload: Bytes,
    log: LogInForce,
    aside: Aside,
}

/// Places of a subscription in other logs than a message's own, when that was handed over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Aside {
    /// Place of a topic's subscription in the other lane's log, if it has one.
    Lane(Option<LogPosition>),
    /// Places of a selection in all its other logs, as far as known, in any order. Shared by all messages of a
    /// batch, since nothing of another log is handed over between them: so many logs as a namespace may have are looked at
    /// once for each batch, and put in order for none but who asks for a position.
    Others(Arc<[Option<LogPosition>]>),
}

impl Received {
    pub(crate) fn new(
        topic: Arc<NamedTopic>,
        record: &Record<'_>,
        payload: Bytes,
        sequence: Sequence,
        appended: AppendTime,
        log: LogInForce,
    ) -> Received {
        let attributes = record.attributes;
        Received {
            topic,
            sequence,
            lane: log.id.lane,
            appended,
            time_us: record.time,
            attributes: attributes
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ttl_ms: record.ttl_ms,
            payload,
            log,
            aside: Aside::Lane(None),
        }
    }

    /// Sets where its subscription stands in other logs.
    pub(crate) fn aside(self, aside: Aside) -> Received {
        Received { aside, ..self }
    }

    /// Gives the log that it is in.
    #[must_use]
    pub fn log(&self) -> LogId {
        self.log.id
    }

    /// Gives the name of its namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.topic.namespace
    }

    /// Gives the name of its topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic.topic
    }

    /// Gives the position from which to go on after this message, and after what was handed over of other logs before it:
    /// that of the other lane, and all of a selection.
    #[must_use]
    pub fn position(&self) -> Position {
        let mut position = self.log.position(self.sequence.plus(1));
        match &self.aside {
            Aside::Lane(place) => position.logs.extend(*place),
            Aside::Others(places) => {
                position.logs.extend(places.iter().flatten());
            }
        }
        in_order(&mut position.logs);
        position
    }

    /// Gives the place from which to go on after this message in its own log.
    pub(crate) fn place_after(&self) -> LogPosition {
        self.log.place(self.sequence.plus(1))
    }
}

/// Puts places in order of log, each log once: where the least of it was given.
pub(crate) fn in_order(places: &mut Vec<LogPosition>) {
    places.sort_unstable_by_key(|at| (at.log, at.next));
    places.dedup_by_key(|at| at.log);
}

/// Numbers that will not come, because what they stood for is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The log that has these numbers. Those of another one, as after a move, say nothing about these.
    pub log: LogId,
    /// First of these numbers.
    pub first: Sequence,
    /// Last of these numbers. How many of them were messages of the topic is not known.
    pub last: Sequence,
    /// Reason: retention or loss.
    pub reason: GapReason,
}

impl From<GapSeen> for Gap {
    fn from(gap: GapSeen) -> Gap {
        Gap {
            log: gap.log,
            first: gap.extent.first,
            last: gap.extent.last,
            reason: gap.why,
        }
    }
}

/// A message that is not given because it has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// Log that has it.
    pub log: LogId,
    /// Its number there.
    pub sequence: Sequence,
}

/// One thing that a subscription gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A message.
    Message(Received),
    /// Numbers that are missing for good.
    Gap(Gap),
    /// A message that has expired, before what is behind it. Only where it was asked for; after a lost connection it may
    /// come again.
    Expired(Expired),
}

/// A log, its life and the epoch of its map: everything in a position but the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogInForce {
    pub(crate) id: LogId,
    pub(crate) incarnation: Incarnation,
    pub(crate) epoch: MapEpoch,
}

impl LogInForce {
    pub(crate) fn position(self, next: Sequence) -> Position {
        Position {
            namespace: self.id.namespace,
            epoch: self.epoch,
            logs: vec![self.place(next)],
        }
    }

    pub(crate) fn place(self, next: Sequence) -> LogPosition {
        LogPosition {
            log: self.id,
            incarnation: self.incarnation,
            next,
        }
    }
}

/// A cursor in a received batch, from which its user takes message by message. None is decoded
/// before it is asked for.
#[derive(Debug)]
pub(crate) struct BatchCursor {
    received: ReceivedBatch,
    /// Place of the next message in the batch.
    next: Option<u16>,
    /// Places of a selection's other logs, as its messages bear them: found with the first that is taken.
    others: Option<Arc<[Option<LogPosition>]>>,
}

impl BatchCursor {
    pub(crate) fn new(received: ReceivedBatch) -> BatchCursor {
        BatchCursor {
            next: received.seek(0),
            others: None,
            received,
        }
    }

    /// Tells whether there is another message.
    pub(crate) fn has_more(&self) -> bool {
        self.next.is_some()
    }

    /// Tells whether there is another message that has not expired at `now`.
    pub(crate) fn has_unexpired(&self, now: impl FnOnce() -> Mono) -> bool {
        let time = self.received.clock.and_then(|_| self.received.time(now()));
        let has = |place| self.received.has_unexpired(place, time);
        self.next.is_some_and(has)
    }

    /// Skips messages that have expired at `now`, up to one that has not, and tells them.
    pub(crate) fn skip_expired(
        &mut self,
        now: impl FnOnce() -> Mono,
        mut tell: impl FnMut(SubscriptionKey, Expired),
    ) {
        if self.received.clock.is_none() {
            return;
        }
        let time = self.received.time(now());
        while let Some(place) = self.next {
            let (sequence, record) = self.received.message(place);
            if !self.received.is_expired(&record, time) {
                return;
            }
            let log = self.received.log;
            for owner in self.received.owners(place) {
                tell(owner, Expired { log, sequence });
            }
            self.skip();
        }
    }

    /// Gives the credit that is to be given back when all messages have been taken.
    pub(crate) fn cost(&self) -> u32 {
        self.received.cost
    }

    /// Takes the next message; `named` finds the name of its topic, `aside` where its subscription stands in other logs than
    /// that of this lane.
    pub(crate) fn next(
        &mut self,
        epoch: MapEpoch,
        named: impl FnOnce(SubscriptionKey, &Record<'_>) -> Option<Arc<NamedTopic>>,
        aside: impl FnOnce(SubscriptionKey, Lane) -> Aside,
    ) -> Option<Received> {
        let (sequence, record) = self.received.message(self.next?);
        let owner = self.received.owner(record.topic)?;
        let topic = named(owner, &record)?;
        let payload = self.received.share(record.payload);
        let appended = self.received.appended;
        let log = self.log(epoch);
        let message = Received::new(topic, &record, payload, sequence, appended, log);
        let aside = match &self.others {
            Some(others) => Aside::Others(Arc::clone(others)),
            None => aside(owner, log.id.lane),
        };
        if let Aside::Others(others) = &aside {
            self.others.get_or_insert_with(|| Arc::clone(others));
        }
        self.skip();
        Some(message.aside(aside))
    }

    /// Takes the next message of which the node has said for which subscriptions it is, and these; `name` finds the name of its
    /// topic.
    pub(crate) fn next_named(
        &mut self,
        epoch: MapEpoch,
        name: impl FnOnce(&Record<'_>) -> Arc<NamedTopic>,
    ) -> Option<(Vec<SubscriptionKey>, Received)> {
        let place = self.next?;
        let (sequence, record) = self.received.message(place);
        let owners = self.received.owners(place).collect();
        let payload = self.received.share(record.payload);
        let (appended, log) = (self.received.appended, self.log(epoch));
        let message = Received::new(name(&record), &record, payload, sequence, appended, log);
        self.skip();
        Some((owners, message))
    }

    /// Gives the place before the next message of a subscription, if there is one.
    pub(crate) fn place_of(&self, owner: SubscriptionKey) -> Option<LogPosition> {
        self.received.place_before(owner, self.next?)
    }

    fn log(&self, epoch: MapEpoch) -> LogInForce {
        LogInForce {
            id: self.received.log,
            incarnation: self.received.incarnation,
            epoch,
        }
    }

    fn skip(&mut self) {
        self.next = self.next.and_then(|at| self.received.seek(at + 1));
    }

    /// Gives all messages that were not taken as a batch, but for those that have expired at `now`, and tells these. `None`
    /// if there are no others.
    pub(crate) fn rest(
        mut self,
        now: impl FnOnce() -> Mono,
        mut tell: impl FnMut(SubscriptionKey, Expired),
    ) -> Option<MessageBatch> {
        if self.received.clock.is_none() {
            return Some(MessageBatch {
                from: self.next?,
                expired: Box::default(),
                received: self.received,
            });
        }
        let now = now();
        self.skip_expired(|| now, &mut tell);
        let (from, time) = (self.next?, self.received.time(now));
        // What is left out behind the first that is given.
        let mut expired = Vec::new();
        let mut next = Some(from);
        while let Some(place) = next {
            let (sequence, record) = self.received.message(place);
            if self.received.is_expired(&record, time) {
                expired.push(record.index);
                for owner in self.received.owners(place) {
                    let log = self.received.log;
                    tell(owner, Expired { log, sequence });
                }
            }
            next = self.received.seek(place + 1);
        }
        Some(MessageBatch {
            from,
            expired: expired.into(),
            received: self.received,
        })
    }
}

/// Messages of one subscription that came in one batch, to be read where they lie in memory: the
/// cheapest way to read many.
#[derive(Debug)]
pub struct MessageBatch {
    received: ReceivedBatch,
    from: u16,
    /// Indexes of those that had expired when they were given.
    expired: Box<[u16]>,
}

impl MessageBatch {
    /// Gives the time at which the storage appended them.
    #[must_use]
    pub fn appended(&self) -> AppendTime {
        self.received.appended
    }

    /// Iterates over the messages in order, each with its number in its log; there is at least one.
    pub fn iter(&self) -> impl Iterator<Item = (Sequence, Record<'_>)> {
        self.received.iter_without(self.from, &self.expired)
    }

    /// Iterates like [`MessageBatch::iter`], with the place of each message's topic among those of
    /// the [`crate::ManySubscription`] that gave them; 0 if a [`crate::Subscription`] did. Those of a
    /// selection of topics have no such place: [`Record::topic_name`] says it.
    pub fn iter_topics(&self) -> impl Iterator<Item = (usize, Sequence, Record<'_>)> {
        self.iter().map(|(sequence, record)| {
            let owner = self.received.owner(record.topic);
            let topic = owner.map_or(0, |owner| owner.index() as usize);
            (topic, sequence, record)
        })
    }

    /// Iterates like [`MessageBatch::iter`], with the subscriptions that each is for.
    pub(crate) fn iter_owners(
        &self,
    ) -> impl Iterator<Item = (impl Iterator<Item = SubscriptionKey>, Sequence, Record<'_>)> {
        let places = std::iter::successors(Some(self.from), |place| self.received.seek(place + 1));
        let messages = places.map(|place| {
            let (sequence, record) = self.received.message(place);
            (self.received.owners(place), sequence, record)
        });
        messages.filter(|(_, _, record)| self.expired.binary_search(&record.index).is_err())
    }

    /// Keeps a payload for longer than its message is borrowed: it shares the memory of the batch.
    ///
    /// # Panics
    /// If `payload` is not that of one of these messages.
    #[must_use]
    pub fn share(&self, payload: &[u8]) -> Bytes {
        self.received.share(payload)
    }
}

/// One thing that a subscription gives when it is read by batches.
#[derive(Debug)]
pub enum Items {
    /// Messages of one batch.
    Messages(MessageBatch),
    /// Numbers that are missing for good.
    Gap(Gap),
    /// A message that has expired, as [`Item::Expired`], but that one of a batch that was given comes behind it.
    Expired(Expired),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_batch::batch_in;
    use airmail_model::{LogIndex, NamespaceId};

    #[test]
    fn a_position_names_both_lanes_in_order_whichever_the_message_was_of() {
        let place = |lane, next| LogPosition {
            log: LogId {
                namespace: NamespaceId(1),
                lane,
                index: LogIndex(0),
            },
            incarnation: Incarnation(7),
            next: Sequence(next),
        };
        let batch = batch_in(place(Lane::Normal, 1).log, ["a"]);
        let record = batch.iter().next().expect("a message");
        let named = Arc::new(NamedTopic {
            namespace: "default".into(),
            topic: "a".into(),
        });
        let received = |lane| {
            let log = LogInForce {
                id: place(lane, 1).log,
                incarnation: Incarnation(7),
                epoch: MapEpoch(1),
            };
            Received::new(
                Arc::clone(&named),
                &record,
                Bytes::new(),
                Sequence(5),
                AppendTime(1),
                log,
            )
        };
        let (normal, high) = (place(Lane::Normal, 6), place(Lane::High, 6));
        assert_eq!(received(Lane::Normal).position().logs, [normal]);
        let aside = place(Lane::High, 9);
        let of_topic = |message: Received, aside| message.aside(Aside::Lane(Some(aside)));
        let position = of_topic(received(Lane::Normal), aside).position();
        assert_eq!(position.logs, [normal, aside]);
        let aside = place(Lane::Normal, 9);
        let position = of_topic(received(Lane::High), aside).position();
        assert_eq!(position.logs, [aside, high]);
        // A selection names all its logs.
        let mut other = place(Lane::Normal, 70);
        other.log.index = LogIndex(1);
        let others = Aside::Others([None, Some(high), Some(other)].into());
        let position = received(Lane::Normal).aside(others).position();
        assert_eq!(position.logs, [normal, other, high]);
    }
}
