//! Deliveries as plain messages, for clients that do not read batches.
//!
//! Such a client keeps no ranges by itself, so the node remembers for it what an SDK would: which
//! subscription wants which topic from which number on, and which life of a log it is in.

use airmail_model::batch::TopicEntry;
use airmail_model::frame::{
    Channel, Delivery, Generation, Reply, State, Subscribe, SubscriptionId,
};
use airmail_model::{Extent, Incarnation, Lane, LogId, MapEpoch, NamespaceId, Sequence, TopicHash};
use airmail_proto::message::{Placed, stored_messages};
use airmail_proto::subscribe::{delivery_to_proto, reply_to_proto};
use airmail_proto::v1;
use std::collections::BTreeMap;

/// Format of a stream's deliveries: the first Add decides.
#[derive(Debug, Default)]
pub(super) enum Format {
    /// No Add has come yet.
    #[default]
    Unknown,
    /// Batches in the stored format.
    Batches,
    /// Plain messages.
    Plain(PlainMessages),
}

impl Format {
    /// Takes note of an Add.
    pub(super) fn add(&mut self, batches: bool, subscribe: &Subscribe) {
        if matches!(self, Format::Unknown) {
            *self = if batches {
                Format::Batches
            } else {
                Format::Plain(PlainMessages::default())
            };
        }
        if let Format::Plain(plain) = self {
            plain.add(subscribe);
        }
    }
}

/// Memory of a stream of plain messages.
#[derive(Debug, Default)]
pub(super) struct PlainMessages {
    topics: BTreeMap<(SubscriptionId, Generation), TopicHash>,
    /// From which number on each live subscription of a topic wants messages of a lane.
    live: BTreeMap<(TopicHash, Lane), BTreeMap<(SubscriptionId, Generation), Sequence>>,
    lives: BTreeMap<LogId, Incarnation>,
}

impl PlainMessages {
    /// Takes note of a subscription.
    pub(super) fn add(&mut self, subscribe: &Subscribe) {
        let key = (subscribe.subscription, subscribe.generation);
        self.topics.insert(key, subscribe.topic);
    }

    /// Takes note of which life a log is in.
    pub(super) fn note_life(&mut self, log: LogId, life: Incarnation) {
        self.lives.insert(log, life);
    }

    /// A reply as a message, with deliveries as plain messages.
    pub(super) fn translate(
        &mut self,
        reply: &Reply,
        epoch_of: impl Fn(NamespaceId) -> MapEpoch,
    ) -> Option<v1::SubscribeResponse> {
        match reply {
            Reply::Delivery(delivery) => {
                let delivery = self.delivery(delivery, epoch_of);
                let kind = v1::subscribe_response::Kind::Delivery(delivery);
                return Some(v1::SubscribeResponse { kind: Some(kind) });
            }
            Reply::Status {
                subscription,
                generation,
                state,
            } => self.note((*subscription, *generation), state),
            _ => {}
        }
        reply_to_proto(reply, epoch_of)
    }

    /// A delivery of plain messages.
    pub(super) fn delivery(
        &self,
        delivery: &Delivery,
        epoch_of: impl Fn(NamespaceId) -> MapEpoch,
    ) -> v1::Delivery {
        let log = delivery.log;
        let placed = Placed {
            log,
            incarnation: self.lives.get(&log).copied().unwrap_or_default(),
            epoch: epoch_of(log.namespace),
            base: delivery.base,
            appended: delivery.appended,
        };
        let covers = Extent {
            first: delivery.previous.plus(1),
            last: delivery.last,
        };
        let batch = delivery.body.to_batch();
        let messages = stored_messages(&batch, &placed, covers, |topic, number| {
            self.wants(delivery.channel, log.lane, topic, number)
        });
        let messages = v1::StoredMessages { messages };
        v1::Delivery {
            body: Some(v1::delivery::Body::Messages(messages)),
            ..delivery_to_proto(delivery)
        }
    }

    fn wants(&self, channel: Channel, lane: Lane, topic: TopicEntry<'_>, number: Sequence) -> bool {
        match channel {
            Channel::Live => self
                .live
                .get(&(topic.hash, lane))
                .is_some_and(|from| from.values().any(|first| *first <= number)),
            Channel::Detached(subscription, generation) => {
                self.topics.get(&(subscription, generation)) == Some(&topic.hash)
            }
        }
    }

    fn note(&mut self, key: (SubscriptionId, Generation), state: &State) {
        let Some(topic) = self.topics.get(&key).copied() else {
            return;
        };
        match state {
            State::Live { places } => {
                for place in places {
                    self.lives.insert(place.log, place.incarnation);
                    let live = self.live.entry((topic, place.log.lane)).or_default();
                    live.insert(key, place.next);
                }
            }
            State::Detached {
                log, incarnation, ..
            } => {
                self.lives.insert(*log, *incarnation);
                self.leave(key, topic, log.lane);
            }
            State::Complete { .. } | State::Removed | State::Failed(_) => {
                self.topics.remove(&key);
                for lane in Lane::ALL {
                    self.leave(key, topic, lane);
                }
            }
        }
    }

    /// Takes note that a subscription is not live in a lane.
    fn leave(&mut self, key: (SubscriptionId, Generation), topic: TopicHash, lane: Lane) {
        if let Some(from) = self.live.get_mut(&(topic, lane)) {
            from.remove(&key);
            if from.is_empty() {
                self.live.remove(&(topic, lane));
            }
        }
    }
}
