//! Deliveries as plain messages, for clients that do not read batches.
//!
//! Such a client keeps no ranges by itself, so the node remembers for it what an SDK would: which
//! subscription wants which topic from which number on, which life of a log it is in, and how far each lane has been
//! told. The position of a message names both lanes: the other one as far as what has left the node, for this is asked
//! when the connection takes the message. What waits behind it is still to come.

use airmail_model::batch::TopicEntry;
use airmail_model::frame::{
    Channel, Delivery, Generation, Matches, Reply, State, Subscribe, SubscriptionId,
};
use airmail_model::position::LogPosition;
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

/// A subscription, as its stream numbers it.
type Subscriber = (SubscriptionId, Generation);

/// Live subscriptions of a stream are found by their topic; or by their log, where they are selections, or the node says of
/// each message which of them it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FoundBy {
    Topic(TopicHash),
    Log(LogId),
}

/// Memory of a lane.
#[derive(Debug, Default)]
struct LaneMemory {
    /// From which number on each live subscription wants messages.
    live: BTreeMap<FoundBy, BTreeMap<Subscriber, LogPosition>>,
    /// Where each detached subscription stands.
    detached: BTreeMap<Subscriber, LogPosition>,
}

impl LaneMemory {
    /// Whether no subscription has a log in it.
    fn is_empty(&self) -> bool {
        self.live.is_empty() && self.detached.is_empty()
    }

    /// Takes a subscription out.
    fn leave(&mut self, key: Subscriber, topic: Option<TopicHash>) {
        self.detached.remove(&key);
        let Some(topic) = topic.map(FoundBy::Topic) else {
            // Input: a stream whose live subscriptions are found by their logs, which are few.
            self.live.retain(|_, from| {
                from.remove(&key);
                !from.is_empty()
            });
            return;
        };
        if let Some(from) = self.live.get_mut(&topic) {
            from.remove(&key);
            if from.is_empty() {
                self.live.remove(&topic);
            }
        }
    }

    /// Where a live subscription to a topic, or a selection, began.
    fn begun(&self, key: Subscriber, topic: Option<TopicHash>) -> Option<&LogPosition> {
        match topic {
            Some(topic) => self.live.get(&FoundBy::Topic(topic))?.get(&key),
            None => self.live.values().find_map(|from| from.get(&key)),
        }
    }
}

/// Memory of a stream of plain messages.
#[derive(Debug, Default)]
pub(super) struct PlainMessages {
    /// The topic of each subscription that is found by its topic.
    topics: BTreeMap<Subscriber, Option<TopicHash>>,
    /// Whether they are found by their logs, as the first one says.
    by_log: bool,
    lanes: [LaneMemory; Lane::ALL.len()],
    /// First number of each log's live range that has not been told.
    ranges: BTreeMap<LogId, Sequence>,
    lives: BTreeMap<LogId, Incarnation>,
}

impl PlainMessages {
    /// Takes note of a subscription.
    pub(super) fn add(&mut self, subscribe: &Subscribe) {
        let key = (subscribe.subscription, subscribe.generation);
        let topic = subscribe.wanted.topic().filter(|_| !subscribe.matches);
        self.by_log |= topic.is_none();
        self.topics.insert(key, topic);
    }

    /// Takes note of which life a log is in.
    fn note_life(&mut self, log: LogId, life: Incarnation) {
        if self.lives.insert(log, life) != Some(life) {
            self.ranges.remove(&log);
        }
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
            } => {
                if let State::Changed { .. } = state {
                    self.change(*subscription, *generation);
                }
                self.note((*subscription, *generation), state);
            }
            Reply::Gap {
                channel, log, last, ..
            } => self.account(*channel, *log, last.plus(1)),
            Reply::Mark { log, next, .. } => self.account(Channel::Live, *log, *next),
            Reply::Acked { .. } | Reply::Expired(_) | Reply::Clock { .. } => {}
        }
        reply_to_proto(reply, epoch_of)
    }

    /// A delivery of plain messages.
    pub(super) fn delivery(
        &mut self,
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
        let channel = delivery.channel;
        let wanted = |place, topic: TopicEntry<'_>, number| match &delivery.matches {
            Some(matches) => self.matching((matches, place), log, number),
            None => self
                .wants(channel, log, topic, number)
                .then(Vec::<u32>::new),
        };
        let aside = |topic: TopicEntry<'_>| self.aside(channel, topic, log);
        let messages = stored_messages(&batch, &placed, covers, wanted, aside);
        let messages = v1::StoredMessages { messages };
        self.account(channel, log, delivery.last.plus(1));
        v1::Delivery {
            body: Some(v1::delivery::Body::Messages(messages)),
            ..delivery_to_proto(delivery)
        }
    }

    /// The live subscriptions of a log's topic are found by this.
    fn found_by(&self, topic: TopicEntry<'_>, log: LogId) -> FoundBy {
        if self.by_log {
            FoundBy::Log(log)
        } else {
            FoundBy::Topic(topic.hash)
        }
    }

    /// Those of a message's subscriptions that have got to its number; none if there is none.
    fn matching(
        &self,
        (matches, place): (&Matches, usize),
        log: LogId,
        number: Sequence,
    ) -> Option<Vec<u32>> {
        let live = &self.lanes[log.lane as usize].live;
        let from = live.get(&FoundBy::Log(log))?;
        let has_got_there = |id: &&SubscriptionId| {
            let uses = (**id, Generation(0))..=(**id, Generation(u32::MAX));
            let mut uses = from.range(uses);
            uses.any(|(_, first)| first.next <= number)
        };
        let matching = matches.of(place).iter().filter(has_got_there);
        let matching: Vec<u32> = matching.map(|id| id.0).collect();
        (!matching.is_empty()).then_some(matching)
    }

    /// The number of a subscription has another use from here on: its filter has been changed.
    fn change(&mut self, id: SubscriptionId, generation: Generation) {
        let uses = (id, Generation(0))..=(id, Generation(u32::MAX));
        let Some(before) = self.topics.range(uses).map(|(key, _)| *key).next() else {
            // Input: a subscription that has ended.
            return;
        };
        let after = (id, generation);
        if let Some(topic) = self.topics.remove(&before) {
            self.topics.insert(after, topic);
        }
        for lane in &mut self.lanes {
            if let Some(place) = lane.detached.remove(&before) {
                lane.detached.insert(after, place);
            }
            for from in lane.live.values_mut() {
                if let Some(place) = from.remove(&before) {
                    from.insert(after, place);
                }
            }
        }
    }

    fn wants(&self, channel: Channel, log: LogId, topic: TopicEntry<'_>, number: Sequence) -> bool {
        match channel {
            Channel::Live => self.lanes[log.lane as usize]
                .live
                .get(&self.found_by(topic, log))
                .is_some_and(|from| from.values().any(|first| first.next <= number)),
            Channel::Detached(subscription, generation) => {
                let key = (subscription, generation);
                let place = self.lanes[log.lane as usize].detached.get(&key);
                let is_new = place.is_none_or(|place| place.log != log || place.next <= number);
                let wanted = self.topics.get(&key).filter(|_| is_new);
                wanted.is_some_and(|wanted| wanted.is_none_or(|wanted| wanted == topic.hash))
            }
        }
    }

    /// Takes note that all numbers of a log before `next` have been told on a channel.
    pub(super) fn account(&mut self, channel: Channel, log: LogId, next: Sequence) {
        let told = match channel {
            Channel::Live => self.ranges.entry(log).or_insert(next),
            Channel::Detached(subscription, generation) => {
                let lane = &mut self.lanes[log.lane as usize];
                match lane.detached.get_mut(&(subscription, generation)) {
                    Some(place) => &mut place.next,
                    None => return,
                }
            }
        };
        *told = next.max(*told);
    }

    /// Where the subscriptions of a lane's message stand in the other one; the least of theirs, where it is for several.
    fn aside(&self, channel: Channel, topic: TopicEntry<'_>, log: LogId) -> Option<LogPosition> {
        let lane = log.lane;
        // Nearly always: nothing is looked up for each message then.
        if self.lanes[lane.other() as usize].is_empty() {
            return None;
        }
        let place = |key| self.place(key, lane.other());
        match channel {
            Channel::Live => {
                let found_by = self.found_by(topic, log);
                let live = self.lanes[lane as usize].live.get(&found_by)?;
                let places = live.keys().filter_map(|key| place(*key));
                places.min_by_key(|place| place.next)
            }
            Channel::Detached(subscription, generation) => place((subscription, generation)),
        }
    }

    /// Where a subscription stands in a lane.
    fn place(&self, key: Subscriber, lane: Lane) -> Option<LogPosition> {
        let lane = &self.lanes[lane as usize];
        if let Some(place) = lane.detached.get(&key) {
            return Some(*place);
        }
        let begun = lane.begun(key, *self.topics.get(&key)?)?;
        let told = self.ranges.get(&begun.log);
        Some(LogPosition {
            next: told.map_or(begun.next, |told| begun.next.max(*told)),
            ..*begun
        })
    }

    /// Takes note of where a subscription stands.
    pub(super) fn note(&mut self, key: Subscriber, state: &State) {
        let Some(topic) = self.topics.get(&key).copied() else {
            return;
        };
        match state {
            State::Live { .. } | State::Detached { .. } => {
                for place in state.places() {
                    self.note_life(place.log, place.incarnation);
                    // Of one that was live the shard knows no more than the range of its stream.
                    let own = self.place(key, place.log.lane);
                    let own = own
                        .filter(|own| (own.log, own.incarnation) == (place.log, place.incarnation));
                    let lane = &mut self.lanes[place.log.lane as usize];
                    lane.leave(key, topic);
                    if matches!(state, State::Detached { .. }) {
                        let next = own.map_or(place.next, |own| own.next.max(place.next));
                        lane.detached.insert(key, LogPosition { next, ..place });
                        continue;
                    }
                    let found_by = topic.map_or(FoundBy::Log(place.log), FoundBy::Topic);
                    lane.live.entry(found_by).or_default().insert(key, place);
                    // A newcomer may have had less than the others of its range.
                    if let Some(told) = self.ranges.get_mut(&place.log) {
                        *told = place.next.min(*told);
                    }
                }
            }
            // Where it stands, it stands: numbers before the change are told already.
            State::Changed { .. } | State::Unchanged(_) => {}
            State::Complete { .. } | State::Removed | State::Failed(_) => {
                self.topics.remove(&key);
                for lane in &mut self.lanes {
                    lane.leave(key, topic);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::batch::BatchTarget;
    use airmail_model::frame::{Delivered, Places, Start, Wanted};
    use airmail_model::{AppendTime, BatchEncoder, Limits, LogIndex, Message, Position, TopicName};

    const NAMESPACE: NamespaceId = NamespaceId(1);

    fn place(lane: Lane, life: u64, next: u64) -> LogPosition {
        LogPosition {
            log: LogId {
                namespace: NAMESPACE,
                lane,
                index: LogIndex(0),
            },
            incarnation: Incarnation(life),
            next: Sequence(next),
        }
    }

    /// Takes note of a subscription of this number to the topic that is delivered.
    fn add(plain: &mut PlainMessages, number: u32) {
        plain.add(&Subscribe {
            subscription: SubscriptionId(number),
            generation: Generation(1),
            namespace: NAMESPACE,
            wanted: Wanted::Topic(TopicName::hash_of(NAMESPACE, "a")),
            start: Start::Latest,
            until: None,
            tell_expired: false,
            filter: None,
            headers_only: false,
            matches: false,
            lanes: airmail_model::frame::Lanes::Each,
        });
    }

    fn status(plain: &mut PlainMessages, state: State) {
        status_of(plain, 0, state);
    }

    fn status_of(plain: &mut PlainMessages, number: u32, state: State) {
        let reply = Reply::Status {
            subscription: SubscriptionId(number),
            generation: Generation(1),
            state,
        };
        plain.translate(&reply, |_| MapEpoch(1));
    }

    /// Delivers a message with this number, live; gives where its position goes on in each lane.
    fn deliver(plain: &mut PlainMessages, lane: Lane, number: u64) -> Vec<(Lane, u64)> {
        let mut encoder = BatchEncoder::new(NAMESPACE);
        let topic = TopicName::new("a", &Limits::DEFAULT).expect("a good name");
        let pushed = encoder.push(&Message::new(topic, Vec::new()), 0, &Limits::DEFAULT);
        pushed.expect("it fits");
        let log = place(lane, 7, number).log;
        let body = Delivered::Whole(encoder.finish(&BatchTarget {
            log,
            epoch: MapEpoch(1),
            producer: None,
            producer_time: 0,
        }));
        let delivery = Delivery {
            channel: Channel::Live,
            log,
            previous: Sequence(number).before(),
            last: Sequence(number),
            base: Sequence(number),
            appended: AppendTime(1),
            clock: None,
            body,
            matches: None,
        };
        let told = plain.delivery(&delivery, |_| MapEpoch(1));
        let Some(v1::delivery::Body::Messages(stored)) = told.body else {
            panic!("plain messages");
        };
        let position: Position = stored.messages[0].position.parse().expect("a position");
        let places = position.logs.iter();
        places.map(|at| (at.log.lane, at.next.0)).collect()
    }

    #[test]
    fn a_message_names_the_other_lane_as_far_as_that_has_left_the_node() {
        let mut plain = PlainMessages::default();
        add(&mut plain, 0);
        let (normal, high) = (Lane::Normal, Lane::High);
        status(&mut plain, State::live(place(normal, 7, 5)));
        assert_eq!(deliver(&mut plain, normal, 5), [(normal, 6)]);
        let places = Places::from_iter([place(high, 7, 8)]);
        status(&mut plain, State::Live { places });
        assert_eq!(deliver(&mut plain, high, 8), [(normal, 6), (high, 9)]);
        assert_eq!(deliver(&mut plain, normal, 6), [(normal, 7), (high, 9)]);
        let detached = State::Detached {
            log: place(high, 7, 9).log,
            incarnation: Incarnation(7),
            next: Sequence(9),
            resumed: false,
            lost_before: None,
            beside: None,
        };
        status(&mut plain, detached);
        let gap = Reply::Gap {
            channel: Channel::Detached(SubscriptionId(0), Generation(1)),
            log: place(high, 7, 9).log,
            previous: Sequence(8),
            last: Sequence(11),
            why: airmail_model::frame::GapReason::Unused,
        };
        plain.translate(&gap, |_| MapEpoch(1));
        assert_eq!(deliver(&mut plain, normal, 7), [(normal, 8), (high, 12)]);
        // In another life of the log its numbers begin anew.
        status(&mut plain, State::live(place(high, 8, 1)));
        assert_eq!(deliver(&mut plain, normal, 8), [(normal, 9), (high, 1)]);
    }
    #[test]
    fn a_newcomer_is_not_named_beyond_what_it_has_been_told() {
        let mut plain = PlainMessages::default();
        let (normal, high) = (Lane::Normal, Lane::High);
        add(&mut plain, 0);
        status(&mut plain, State::live(place(normal, 7, 5)));
        status(&mut plain, State::live(place(high, 7, 8)));
        deliver(&mut plain, high, 30);
        assert_eq!(deliver(&mut plain, normal, 5), [(normal, 6), (high, 31)]);
        add(&mut plain, 1);
        status_of(&mut plain, 1, State::live(place(normal, 7, 6)));
        status_of(&mut plain, 1, State::live(place(high, 7, 20)));
        assert_eq!(deliver(&mut plain, normal, 6), [(normal, 7), (high, 20)]);
    }
}
