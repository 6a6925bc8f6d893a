//! The protocol between a client and a node, before any wire encoding.
//!
//! The shard and the SDK's core take and give these types; gRPC only translates them, and the
//! simulator needs no translation at all.
//!
//! Ranges (G2): each side of a (stream, log), and each detached subscription, holds `next`, the
//! first number not yet accounted for. A [`Reply::Delivery`] or [`Reply::Gap`] covers
//! `(previous, last]`. `last < next`: a duplicate, dropped. `previous >= next`: a hole, dropped, and
//! asked for again from `next`. Otherwise the numbers `>= next` are taken and `next` becomes `last
//! + 1`.

mod delivery;
mod hello;
mod matches;
mod nodes;

pub use delivery::{Channel, DELIVERY_OVERHEAD_BYTES, Delivered, Delivery, Expired};
pub use hello::{Credit, Hello, Maps, NamedMap, Welcome};
pub use matches::Matches;
pub use nodes::{NODES_TOLD_MAX, News, Nodes, ServingNode};

use crate::batch::{Batch, Checked};
use crate::durability::Durability;
use crate::error::Error;
use crate::filter::Filter;
use crate::id::{Extent, Incarnation, Lane, LogId, NamespaceId, Sequence, TopicHash};
use crate::map::LogMap;
use crate::position::{LogPosition, Position};
use crate::selector::Selector;
use crate::time::{AppendTime, Mono};
use crate::verdict::Roles;
use smallvec::SmallVec;
use std::sync::Arc;

/// A publish, by the number its stream gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A subscription, by the number its stream gave it. Dense numbers from 0 cost the node least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(pub u32);

/// Distinguishes successive uses of a subscription's number, so that a late message for an old use
/// is recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u32);

/// Where a subscription, or a look into history, begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Begins after the newest record.
    #[default]
    Latest,
    /// Begins with the oldest record kept.
    Earliest,
    /// Begins with this number of the log that takes the topic's publishes. Beyond the end is legal: the subscription waits there, detached,
    /// and goes live when the log gets to it.
    Sequence(Sequence),
    /// Begins with the first record appended at this time or later.
    Time(AppendTime),
    /// Begins at this position. A position from beyond the end of its own log's life shows that the
    /// node's files are older than the position: the log begins a new life, and records that the
    /// position's holder may have missed are told as lost.
    Position(Position),
}

/// A client's requests to a node on a stream.
#[derive(Clone, Debug)]
pub enum Request {
    /// Store a batch. Answered once, by [`Reply::Acked`].
    Publish {
        /// Comes back with the answer.
        request: RequestId,
        /// One (namespace, lane, log, map epoch).
        batch: Checked<Batch>,
        /// Word of the client that the batch is the first of its producer's epoch in its log, that nothing of that epoch
        /// was sent over another stream, and that whatever is will be sent over this one, as long as its answers count.
        begins_epoch: bool,
    },
    /// Begin a subscription. Answered by [`Reply::Status`].
    Add(Subscribe),
    /// End a subscription. Nothing of its generation is sent after the [`Reply::Status`] that
    /// answers it.
    Remove {
        /// The subscription to drop.
        subscription: SubscriptionId,
    },
    /// Give a subscription another filter. Answered by [`State::Changed`] or [`State::Unchanged`].
    Change(Change),
    /// The client has room for this many more bytes of deliveries.
    Credit {
        /// Bytes that are added to the present credit.
        bytes: u32,
    },
    /// The client is believed to have these roles from here on. Its front door says so, and no client by itself.
    Roles(Roles),
    /// Tell what the node's monotone clock shows. Answered by [`Reply::Clock`], in the order of the requests.
    Clock {
        /// Comes back with the answer: when it was asked, by the client's clock.
        asked: Mono,
    },
}

/// A subscription as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribe {
    /// Its number; not in use on this stream.
    pub subscription: SubscriptionId,
    /// The present use of the subscription's number.
    pub generation: Generation,
    /// The namespace.
    pub namespace: NamespaceId,
    /// Its messages.
    pub wanted: Wanted,
    /// Where to begin.
    pub start: Start,
    /// Ends before this number instead of going on live: history.
    pub until: Option<Until>,
    /// Whether its client is to be told of messages that it does not get because they have expired
    /// ([`Reply::Expired`]).
    pub tell_expired: bool,
    /// Messages that are wanted, by their attributes; `None`: all. On a stream every subscription has a filter, or none has,
    /// as the first one says, and with filters a topic has one subscription, unless the stream has `matches`.
    pub filter: Option<Arc<Filter>>,
    /// Whether the stream's deliveries come without payloads ([`Batch::headers_of`]). What the first subscription of a
    /// stream says holds for all of them.
    pub headers_only: bool,
    /// Whether the stream's live deliveries say which of its subscriptions each message is for ([`Delivery::matches`]). What the
    /// first subscription of a stream says holds for all of them. Then they may overlap: each has a filter, and there may
    /// be any number to a topic and of a log, topics beside selections.
    pub matches: bool,
    /// Lanes in which it is.
    pub lanes: Lanes,
}

/// Lanes in which a subscription is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lanes {
    /// Each that its namespace has, in each as it begins. A number says where in lane normal: lane high begins with the latest,
    /// and ends now.
    #[default]
    Each,
    /// This one alone; a number is one of it.
    Only(Lane),
    /// Each; it begins at a number, which is one of lane normal, and in lane high at this place.
    HighFrom(LogPosition),
}

impl Lanes {
    /// Whether a number at which it begins or ends is one of this lane.
    #[must_use]
    pub fn are_numbered_in(self, lane: Lane) -> bool {
        match self {
            Lanes::Only(only) => only == lane,
            Lanes::Each | Lanes::HighFrom(_) => lane == Lane::Normal,
        }
    }
}

/// Another filter for a subscription of a stream with [`Subscribe::matches`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The use of its number from the change on: higher than the one before.
    pub generation: Generation,
    /// Messages that are wanted from then on.
    pub filter: Arc<Filter>,
}

/// Messages that a subscription is for. On a stream without [`Subscribe::matches`] all subscriptions are to topics, or all are
/// selections, as the first one says; and of each log there is one selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Those of this topic.
    Topic(TopicHash),
    /// Those of every topic of one log that a selector selects.
    Selected {
        /// The log, by its place among those of the namespace's map, from 0. `None`: its only one.
        log: Option<u16>,
        /// The topics.
        selector: Arc<Selector>,
    },
}

impl Wanted {
    /// The topic, where it is one.
    #[must_use]
    pub fn topic(&self) -> Option<TopicHash> {
        match self {
            Wanted::Topic(topic) => Some(*topic),
            Wanted::Selected { .. } => None,
        }
    }
}

/// Where a look into history ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Ends before the log's next number as it was when asked.
    Now,
    /// Ends before this number of the log in which it begins, or at that log's end as it was when asked.
    Sequence(Sequence),
    /// Ends before the first record appended at this time or later, or at the end as it was when
    /// asked.
    Time(AppendTime),
}

/// Contents of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The numbers that the batch was given.
    pub extent: Extent,
    /// When it was appended.
    pub appended: AppendTime,
    /// The durability that held when the ack was given. Its copies are those that the log waits for, not
    /// a count of who had it.
    pub held: Durability,
    /// It was stored before: this is the first one's result.
    pub duplicate: bool,
    /// The storage de-duplicates when appending, so a retry cannot be stored twice.
    pub exact: bool,
}

/// A refusal of a publish. `map` is there when the client's was stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Reason of the refusal.
    pub error: Error,
    /// The present map.
    pub map: Option<LogMap>,
}

/// Reason for which a subscriber will not get some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapReason {
    /// Never used, not of the topic asked for, or not permitted: nothing is missing.
    Unused,
    /// Removed by retention or trim.
    Retention,
    /// Damaged, or gone with a log's earlier life.
    Loss,
}

/// Places of a subscription, one for each log, in order of log. As many as there are lanes need no memory of their own.
pub type Places = SmallVec<[LogPosition; Lane::ALL.len()]>;

/// State of a subscription. One that concerns several logs is told of each: [`State::Live`] of those in which it has come
/// to that at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Served at the tail: from the `next` of each place on by the stream's live range of its log. Of its other logs,
    /// if it has any, nothing is said.
    Live {
        /// Its logs, at least one. `next` is the first number that the live range covers for it; numbers before it are
        /// accounted for. The range itself may begin before: records below `next` are not for this subscription.
        places: Places,
    },
    /// Served behind the tail: on a channel of its own, from `next` on. One in another log than before goes on there, and
    /// all that the one before holds is accounted for.
    Detached {
        /// Its log.
        log: LogId,
        /// The log's life.
        incarnation: Incarnation,
        /// The first number not yet sent. For a subscription that was live, the node knows no more
        /// than the stream's range, so this may be below the client's own `next`: never above.
        next: Sequence,
        /// The log has begun a new life while the subscription was on it: it goes on in the new
        /// one where it was, and nothing is lost to it.
        resumed: bool,
        /// The log has begun a new life at `next`, where the one before was cut: of that everything from `next` up to this
        /// number is lost, and no more. `None`: as far as it is another life, all of the one before from where the
        /// subscription stands.
        lost_before: Option<Sequence>,
        /// Where it is detached in the other lane, too: of a subscription that has just begun, both are told at once, so that
        /// whoever comes back with its position has a place in either.
        beside: Option<LogPosition>,
    },
    /// All that [`Subscribe::until`] asked for has been sent.
    Complete {
        /// All of its logs. `next` is the first number not asked for; numbers before it are accounted for.
        places: Places,
    },
    /// Its generation is in force from here on, with the filter of its [`Change`].
    Changed {
        /// Its logs, as far as it stands in any: from `next` on, or from where it has got to if that is further, messages are held
        /// against the new filter; numbers before it are accounted for. It is where it was: live, or detached.
        places: Places,
    },
    /// The [`Change`] of its generation is refused, and the one before stays in force.
    Unchanged(Error),
    /// Ended at the client's wish.
    Removed,
    /// Ended by the node, or never begun.
    Failed(Error),
}

impl State {
    /// Live in one log.
    #[must_use]
    pub fn live(place: LogPosition) -> State {
        State::Live {
            places: Places::from_iter([place]),
        }
    }

    /// Complete, where it had one log.
    #[must_use]
    pub fn complete(place: LogPosition) -> State {
        State::Complete {
            places: Places::from_iter([place]),
        }
    }

    /// The places that it names.
    #[must_use]
    pub fn places(&self) -> Places {
        match self {
            State::Live { places } | State::Complete { places } | State::Changed { places } => {
                places.clone()
            }
            State::Detached {
                log,
                incarnation,
                next,
                beside,
                ..
            } => {
                let place = LogPosition {
                    log: *log,
                    incarnation: *incarnation,
                    next: *next,
                };
                [place].into_iter().chain(*beside).collect()
            }
            State::Removed | State::Failed(_) | State::Unchanged(_) => Places::new(),
        }
    }

    /// The lane that it alone is about. `None`: it is about both, or about the subscription as a whole.
    #[must_use]
    pub fn lane(&self) -> Option<Lane> {
        match self {
            State::Live { places } => {
                let first = places.first()?.log.lane;
                let is_one = places.iter().all(|place| place.log.lane == first);
                is_one.then_some(first)
            }
            State::Detached { log, beside, .. } => {
                let is_one = beside.is_none_or(|place| place.log.lane == log.lane);
                is_one.then_some(log.lane)
            }
            State::Complete { .. }
            | State::Changed { .. }
            | State::Unchanged(_)
            | State::Removed
            | State::Failed(_) => None,
        }
    }
}

/// A node's messages to a client on a stream.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Answers a publish, in the order of the publishes to its log.
    Acked {
        /// The publish that is answered.
        request: RequestId,
        /// The acknowledgement, or the refusal.
        result: Result<Ack, Refused>,
    },
    /// Messages.
    Delivery(Delivery),
    /// Messages that have expired. Takes credit, and moves no range.
    Expired(Expired),
    /// Answers a question for the clock.
    Clock {
        /// When it was asked, by the client's clock.
        asked: Mono,
        /// The node's own monotone clock.
        node: Mono,
    },
    /// Numbers that will not come. Covers `(previous, last]`.
    Gap {
        /// The range that it belongs to.
        channel: Channel,
        /// The log that the numbers are of.
        log: LogId,
        /// The last number covered before.
        previous: Sequence,
        /// The last number covered now.
        last: Sequence,
        /// Reason of the gap.
        why: GapReason,
    },
    /// Progress without messages: everything before `next` is accounted for. Live range only; a
    /// hole if the receiver's own `next` is less than `previous + 1`.
    Mark {
        /// The log that the number is of.
        log: LogId,
        /// The last number covered before.
        previous: Sequence,
        /// The first number not yet accounted for.
        next: Sequence,
    },
    /// Reports the state of a subscription.
    Status {
        /// The subscription.
        subscription: SubscriptionId,
        /// The use of its number.
        generation: Generation,
        /// Its present state.
        state: State,
    },
}

impl Reply {
    /// The lane that it alone is about. `None`: it is about both lanes or about none, and whatever reorders lanes keeps
    /// it in its place among all replies.
    #[must_use]
    pub fn lane(&self) -> Option<Lane> {
        match self {
            Reply::Delivery(delivery) => Some(delivery.log.lane),
            Reply::Expired(expired) => Some(expired.log.lane),
            Reply::Gap { log, .. } | Reply::Mark { log, .. } => Some(log.lane),
            Reply::Status { state, .. } => state.lane(),
            Reply::Acked { .. } | Reply::Clock { .. } => None,
        }
    }
}
