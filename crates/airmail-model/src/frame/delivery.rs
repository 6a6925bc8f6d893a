//! Deliveries: messages of one log on their way to a subscriber, and the numbers that they cover.
//!
//! One struct from the shard to the subscriber: every part of the program that passes a delivery
//! on, counts it or translates it takes the fields that it needs, and has the same idea of its
//! cost.

use super::{Generation, Matches, SubscriptionId};
use crate::batch::{Batch, Checked, Slice};
use crate::id::{LogId, Sequence};
use crate::time::AppendTime;
use crate::verdict::ClockReading;
use bytes::Bytes;
use std::sync::Arc;

/// Credit that a delivery costs beyond its bytes.
pub const DELIVERY_OVERHEAD_BYTES: u32 = 64;

/// Messages. Covers `(previous, last]`.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The range that it belongs to.
    pub channel: Channel,
    /// The log that the numbers are of.
    pub log: LogId,
    /// The last number covered before.
    pub previous: Sequence,
    /// The last number covered now.
    pub last: Sequence,
    /// The number of a record with index 0: a record's own is `base` plus its index.
    pub base: Sequence,
    /// When the batch was appended.
    pub appended: AppendTime,
    /// The clock by which records of it expire, against the node's own monotone clock. `None` where none does.
    pub clock: Option<ClockReading>,
    /// The messages.
    pub body: Delivered,
    /// The subscriptions that each message is for. There on the live range of a stream that asked for it
    /// ([`Subscribe::matches`](super::Subscribe::matches)), and nowhere else.
    pub matches: Option<Arc<Matches>>,
}

impl Delivery {
    /// Credit that it takes, in bytes.
    #[must_use]
    pub fn cost(&self) -> u32 {
        let matches = self.matches.as_ref();
        let matches = matches.map_or(0, |matches| matches.cost());
        self.body.cost().saturating_add(matches)
    }
}

/// Word that messages of a subscription have expired: it is not given them. Of a subscription that asked to be told
/// ([`Subscribe::tell_expired`]), before what covers their numbers; after a lost connection it may come again.
///
/// [`Subscribe::tell_expired`]: super::Subscribe::tell_expired
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The use of its number.
    pub generation: Generation,
    /// The log that the numbers are of.
    pub log: LogId,
    /// The messages' numbers, ascending; at least one.
    pub numbers: Vec<Sequence>,
}

impl Expired {
    /// Credit that it takes, in bytes: as a delivery of its numbers.
    #[must_use]
    pub fn cost(&self) -> u32 {
        let bytes = size_of_val(&self.numbers[..]);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        bytes.saturating_add(DELIVERY_OVERHEAD_BYTES)
    }
}

/// Identifies the range that a delivery or gap belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// All live subscriptions of the stream, on the log named beside it.
    Live,
    /// One detached subscription.
    Detached(SubscriptionId, Generation),
}

/// A delivered batch: whole where every topic in it is wanted, else a slice.
#[derive(Clone, Debug)]
pub enum Delivered {
    /// Shared with the storage and every other subscriber.
    Whole(Checked<Batch>),
    /// Made for this subscriber; its bodies are shared.
    Slice(Slice),
}

impl Delivered {
    /// Size in bytes, as counted against credit.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Delivered::Whole(batch) => batch.bytes().len(),
            Delivered::Slice(slice) => slice.len(),
        }
    }

    /// Never: a delivery has at least one record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Credit that its delivery takes, in bytes.
    #[must_use]
    pub fn cost(&self) -> u32 {
        let bytes = u32::try_from(self.len()).unwrap_or(u32::MAX);
        bytes.saturating_add(DELIVERY_OVERHEAD_BYTES)
    }

    /// The bytes to be sent; copies only a slice's bodies.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Delivered::Whole(batch) => batch.bytes().clone(),
            Delivered::Slice(slice) => slice.to_batch().bytes().clone(),
        }
    }

    /// A batch with these records alone; copies only a slice's bodies.
    #[must_use]
    pub fn to_batch(&self) -> Checked<Batch> {
        match self {
            Delivered::Whole(batch) => batch.clone(),
            Delivered::Slice(slice) => slice.to_batch(),
        }
    }

    /// Makes the same batch, and uses up the delivered one.
    #[must_use]
    pub fn into_batch(self) -> Checked<Batch> {
        match self {
            Delivered::Whole(batch) => batch,
            Delivered::Slice(slice) => slice.to_batch(),
        }
    }
}
