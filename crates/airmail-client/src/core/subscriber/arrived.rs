//! What has arrived, as the subscriptions' users are told of it.
//!
//! A batch is not taken apart: who is told gets the batch, and what of it is new to whom.

use super::SubscriptionKey;
use airmail_model::batch::{Record, Records};
use airmail_model::{AppendTime, Batch, Checked, Incarnation, LogId, Sequence};
use bytes::Bytes;
use std::sync::Arc;

/// Messages that have arrived, all of one batch: of one subscription, or of several that one user
/// has ([`super::Subscriber::gathering`]).
#[derive(Clone, Debug)]
pub struct Arrived {
    /// Their log.
    pub log: LogId,
    /// The log's life.
    pub incarnation: Incarnation,
    /// When they were appended.
    pub appended: AppendTime,
    /// To be given to [`super::Subscriber::consumed`] when they have been dealt with.
    pub cost: u32,
    pub(super) batch: Checked<Batch>,
    pub(super) base: Sequence,
    /// A node that says more than its range has is not believed.
    pub(super) last: Sequence,
    pub(super) shares: Shares,
}

/// What of a batch is for whom.
#[derive(Clone, Debug)]
pub(super) enum Shares {
    /// The topic with this place in the batch.
    One(u16, Share),
    /// By the topics' places.
    Many(Arc<[Option<Share>]>),
}

/// A subscription's share: its topic's messages from a number on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) owner: SubscriptionKey,
    pub(super) from: Sequence,
}

impl Arrived {
    /// Whose the messages are whose topic has this place in the batch.
    #[must_use]
    pub fn owner(&self, topic: u16) -> Option<SubscriptionKey> {
        self.share_of(topic).map(|share| share.owner)
    }

    #[inline]
    fn share_of(&self, topic: u16) -> Option<&Share> {
        match &self.shares {
            Shares::One(of, share) => (*of == topic).then_some(share),
            Shares::Many(shares) => shares.get(usize::from(topic))?.as_ref(),
        }
    }

    #[inline]
    fn number(&self, index: u16) -> Sequence {
        self.base.plus(index.into())
    }

    /// Whether a message is new to somebody who wants its topic.
    #[inline]
    fn is_wanted(&self, index: u16, topic: u16) -> bool {
        let number = self.number(index);
        let share = self.share_of(topic);
        share.is_some_and(|share| share.from <= number && number <= self.last)
    }

    /// The place in its batch of the first message at `place` or behind.
    #[must_use]
    pub fn seek(&self, place: u16) -> Option<u16> {
        (place..self.batch.records()).find(|place| {
            let (index, topic) = self.batch.head(*place);
            self.is_wanted(index, topic)
        })
    }

    /// The message at a place that [`Arrived::seek`] gave, with its number.
    ///
    /// # Panics
    /// If there is no such place.
    #[must_use]
    pub fn message(&self, place: u16) -> (Sequence, Record<'_>) {
        let record = self.batch.record(place);
        (self.number(record.index), record)
    }

    /// A payload, for longer than the look at its message: it shares the memory of the batch.
    ///
    /// # Panics
    /// If it is not the payload of one of these messages.
    #[must_use]
    pub fn share(&self, payload: &[u8]) -> Bytes {
        self.batch.share(payload)
    }

    /// Each message with its number, in order.
    #[must_use]
    pub fn iter(&self) -> Messages<'_> {
        self.iter_from(0)
    }

    /// As [`Arrived::iter`], from a place in the batch on.
    #[must_use]
    pub fn iter_from(&self, place: u16) -> Messages<'_> {
        Messages {
            arrived: self,
            records: self.batch.iter_from(place),
        }
    }
}

/// Iterates messages that arrived together, each with its number.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    arrived: &'a Arrived,
    records: Records<'a>,
}

impl<'a> Iterator for Messages<'a> {
    type Item = (Sequence, Record<'a>);

    #[inline]
    fn next(&mut self) -> Option<(Sequence, Record<'a>)> {
        let arrived = self.arrived;
        let wanted = |index, topic| arrived.is_wanted(index, topic);
        let record = self.records.next_where(wanted)?;
        Some((arrived.number(record.index), record))
    }
}
