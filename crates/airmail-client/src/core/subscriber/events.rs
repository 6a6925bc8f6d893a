//! Events: what users of subscriptions get, and what a step gives.

use super::{ReceivedBatch, SubscriptionKey};
use airmail_model::frame::{GapReason, Request, State};
use airmail_model::{Extent, Incarnation, LogId, Sequence};

/// Numbers that a subscription will not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapSeen {
    /// Log that has them.
    pub log: LogId,
    /// Life of the log that the numbers belong to.
    pub incarnation: Incarnation,
    /// First and last of them. Up to `Sequence::MAX` if the log has begun a new life: all the rest
    /// of the old.
    pub extent: Extent,
    /// Reason; never [`GapReason::Unused`].
    pub why: GapReason,
}

/// Messages that a subscription does not get because they have expired, as the node has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredSeen {
    /// Log that has them.
    pub log: LogId,
    /// Their numbers, ascending; at least one.
    pub numbers: Vec<Sequence>,
    /// Credit that it uses up, to be given back by [`Subscriber::consumed`](super::Subscriber::consumed) once it has been
    /// consumed.
    pub cost: u32,
}

/// One thing that the user of a subscription gets.
#[derive(Clone, Debug)]
pub enum Event {
    /// Messages.
    Messages(ReceivedBatch),
    /// Numbers that will not come.
    Gap(GapSeen),
    /// Messages that have expired.
    Expired(ExpiredSeen),
    /// Status of the subscription. [`State::Complete`] and [`State::Failed`] are its last event,
    /// and make the key void. [`State::Removed`] is never given. [`State::Changed`] and [`State::Unchanged`] answer
    /// [`Subscriber::change`](super::Subscriber::change): messages that come before it were held against the filter before,
    /// those behind it are held against the new one; a change that a lost connection has overtaken is in force from where the
    /// subscription goes on.
    Status(State),
}

/// Effects of a step: what the subscriber wants sent, and what users get.
#[derive(Debug, Default)]
pub struct SubscriberOutput {
    /// Requests to be sent to the node, in order.
    pub requests: Vec<Request>,
    /// Events for the users, in order.
    pub events: Vec<(SubscriptionKey, Event)>,
}
