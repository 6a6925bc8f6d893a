//! Received batches, as the users of subscriptions get them.
//!
//! A batch is not taken apart: its users get it whole, together with the share that each
//! subscription has in it.

use super::SubscriptionKey;
use airmail_model::batch::{Record, Records};
use airmail_model::position::LogPosition;
use airmail_model::verdict::{ClockReading, expired};
use airmail_model::{AppendTime, Batch, Checked, Incarnation, LogId, Mono, Sequence};
use bytes::Bytes;
use std::sync::Arc;

/// A batch with new messages for one subscription, or for several that one user has
/// ([`super::Subscriber::gathering`]).
#[derive(Clone, Debug)]
pub struct ReceivedBatch {
    /// Log that it is in.
    pub log: LogId,
    /// Life of the log.
    pub incarnation: Incarnation,
    /// Time at which it was appended.
    pub appended: AppendTime,
    /// The clock of the log by the client's own; `None` if no message expires.
    pub clock: Option<ClockReading>,
    /// Credit that it uses up, to be given back by [`super::Subscriber::consumed`] once it has been
    /// consumed.
    pub cost: u32,
    pub(super) batch: Checked<Batch>,
    pub(super) base: Sequence,
    /// Last number of the delivery; what the batch has beyond it is not given to anybody.
    pub(super) last: Sequence,
    pub(super) shares: Shares,
}

/// Shares that subscriptions have in a batch.
#[derive(Clone, Debug)]
pub(super) enum Shares {
    /// Single share, of the topic with this place in the batch.
    One(u16, Share),
    /// Single share, of every topic of the batch.
    All(Share),
    /// Shares by the places of their topics in the batch.
    ByTopic(Arc<[Option<Share>]>),
    /// Owners of each message, as the node has said.
    Named(Arc<Owners>),
}

/// Subscriptions that get each message of a batch, by its place; maybe none.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    /// For each message, where its owners end in the list of all.
    ends: Vec<u32>,
    all: Vec<SubscriptionKey>,
}

impl Owners {
    /// Takes the owners of the next message.
    pub(super) fn push(&mut self, owners: impl Iterator<Item = SubscriptionKey>) {
        self.all.extend(owners);
        self.ends
            .push(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
    }

    /// Gives any of them.
    pub(super) fn any(&self) -> Option<SubscriptionKey> {
        self.all.first().copied()
    }

    #[inline]
    fn of(&self, place: u16) -> &[SubscriptionKey] {
        let place = usize::from(place);
        let Some(end) = self.ends.get(place) else {
            // Input: a place beyond the last message.
            return &[];
        };
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[begin as usize..*end as usize]
    }
}

/// Share of a subscription: the messages of its topics from a number on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) owner: SubscriptionKey,
    pub(super) from: Sequence,
}

impl ReceivedBatch {
    /// Gives the subscription that gets the messages of the topic with this place in the batch. `None`, too, where the node says
    /// of each message for which subscriptions it is.
    #[must_use]
    pub fn owner(&self, topic: u16) -> Option<SubscriptionKey> {
        self.share_of(topic).map(|share| share.owner)
    }

    /// Iterates over the subscriptions that get the message at this place in the batch.
    pub fn owners(&self, place: u16) -> impl Iterator<Item = SubscriptionKey> {
        let (one, named) = match &self.shares {
            Shares::Named(owners) => (None, owners.of(place)),
            _ => (self.owner(self.batch.head(place).1), &[][..]),
        };
        one.into_iter().chain(named.iter().copied())
    }

    /// Gives the place before a subscription's first message at `place` in the batch or behind, if it has one there.
    #[must_use]
    pub fn place_before(&self, owner: SubscriptionKey, place: u16) -> Option<LogPosition> {
        if let Shares::One(_, share) | Shares::All(share) = &self.shares
            && share.owner != owner
        {
            return None;
        }
        let mut places = place..self.batch.records();
        let next = places.find_map(|place| {
            let (index, topic) = self.batch.head(place);
            let is_own =
                self.is_wanted(place, index, topic) && self.owners(place).any(|of| of == owner);
            is_own.then(|| self.number(index))
        })?;
        Some(LogPosition {
            log: self.log,
            incarnation: self.incarnation,
            next,
        })
    }

    #[inline]
    fn share_of(&self, topic: u16) -> Option<&Share> {
        match &self.shares {
            Shares::One(own, share) => (*own == topic).then_some(share),
            Shares::All(share) => Some(share),
            Shares::ByTopic(shares) => shares.get(usize::from(topic))?.as_ref(),
            Shares::Named(_) => None,
        }
    }

    #[inline]
    fn number(&self, index: u16) -> Sequence {
        self.base.plus(index.into())
    }

    /// Tells whether a message is in somebody's share.
    #[inline]
    fn is_wanted(&self, place: u16, index: u16, topic: u16) -> bool {
        let number = self.number(index);
        if let Shares::Named(owners) = &self.shares {
            return number <= self.last && !owners.of(place).is_empty();
        }
        let share = self.share_of(topic);
        share.is_some_and(|share| share.from <= number && number <= self.last)
    }

    /// Finds the first message in somebody's share at `place` in the batch or behind.
    #[must_use]
    pub fn seek(&self, place: u16) -> Option<u16> {
        (place..self.batch.records()).find(|place| {
            let (index, topic) = self.batch.head(*place);
            self.is_wanted(*place, index, topic)
        })
    }

    /// Reads the message at a place that [`ReceivedBatch::seek`] gave, with its number.
    ///
    /// # Panics
    /// If there is no such place.
    #[must_use]
    pub fn message(&self, place: u16) -> (Sequence, Record<'_>) {
        let record = self.batch.record(place);
        (self.number(record.index), record)
    }

    /// Gives the time by which messages that are handed over at `now` are judged; `None` if none expires.
    #[must_use]
    pub fn time(&self, now: Mono) -> Option<AppendTime> {
        self.clock.map(|clock| clock.reaches(now))
    }

    /// Tells whether a message is too old to be handed over, by [`ReceivedBatch::time`].
    #[must_use]
    pub fn is_expired(&self, record: &Record<'_>, time: Option<AppendTime>) -> bool {
        let (Some(time), Some(ttl_ms)) = (time, record.ttl_ms) else {
            // Input: a message that never expires.
            return false;
        };
        expired(time, self.appended, ttl_ms)
    }

    /// Tells whether there is a message at `place` or behind that has not expired by then.
    #[must_use]
    pub fn has_unexpired(&self, place: u16, time: Option<AppendTime>) -> bool {
        match time {
            None => self.seek(place).is_some(),
            time => self
                .iter_from(place)
                .any(|(_, record)| !self.is_expired(&record, time)),
        }
    }

    /// Keeps a payload for longer than its message is borrowed: it shares the memory of the batch.
    ///
    /// # Panics
    /// If `payload` is not that of one of these messages.
    #[must_use]
    pub fn share(&self, payload: &[u8]) -> Bytes {
        self.batch.share(payload)
    }

    /// Iterates over the messages in order, each with its number; also over those that have expired.
    #[must_use]
    pub fn iter(&self) -> Messages<'_> {
        self.iter_from(0)
    }

    /// Iterates like [`ReceivedBatch::iter`] over the messages of one subscription.
    pub fn iter_of(&self, owner: SubscriptionKey) -> impl Iterator<Item = (Sequence, Record<'_>)> {
        let places = std::iter::successors(self.seek(0), |place| self.seek(place + 1));
        let own = places.filter(move |place| self.owners(*place).any(|of| of == owner));
        own.map(|place| self.message(place))
    }

    /// Iterates like [`ReceivedBatch::iter`], from a place in the batch on.
    #[must_use]
    pub fn iter_from(&self, place: u16) -> Messages<'_> {
        self.iter_without(place, &[])
    }

    /// Iterates like [`ReceivedBatch::iter_from`], without those whose indexes in the batch are `left_out`, ascending.
    #[must_use]
    pub fn iter_without<'a>(&'a self, place: u16, left_out: &'a [u16]) -> Messages<'a> {
        Messages {
            received: self,
            records: self.batch.iter_from(place),
            left_out,
        }
    }
}

/// Iterator over the messages of a received batch, each with its number.
///
/// It is decided by a record's index and topic whether it is given, before anything else of it is read: whoever looks at
/// payloads alone costs no look at the rest.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    received: &'a ReceivedBatch,
    records: Records<'a>,
    left_out: &'a [u16],
}

impl<'a> Iterator for Messages<'a> {
    type Item = (Sequence, Record<'a>);

    #[inline]
    fn next(&mut self) -> Option<(Sequence, Record<'a>)> {
        let (received, left_out) = (self.received, self.left_out);
        let is_left_out = |index| !left_out.is_empty() && left_out.binary_search(&index).is_ok();
        let wanted = |place: usize, index, topic| {
            let place = place as u16;
            received.is_wanted(place, index, topic) && !is_left_out(index)
        };
        let record = self.records.next_where(wanted)?;
        Some((received.number(record.index), record))
    }
}
