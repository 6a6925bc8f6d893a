//! Messages of mailboxes: as they are sent, requested and handed out.

use super::id::{AccountId, LeaseId, MessageId, QueueId};
use crate::{Error, ErrorCode, Wall};
use bytes::Bytes;

/// Bytes that one message may hold.
pub const CONTENT_BYTES_MAX: usize = 1 << 20;
/// Messages that one request may send, take or settle.
pub const BATCH_MAX: usize = 1000;
/// Bytes of content that one answer to a reader holds, unless its first message alone has more.
pub const ANSWER_BYTES_MAX: usize = 4 << 20;
/// The highest priority.
pub const PRIORITY_MAX: u8 = 9;
/// Bytes that an ordering key may have.
pub const KEY_BYTES_MAX: usize = 255;
/// The longest lease, delay or lifetime: ten years.
pub const DURATION_MS_MAX: u64 = 10 * 366 * 24 * 3600 * 1000;
/// The longest that a reader may wait: an hour.
pub const WAIT_MS_MAX: u64 = 3600 * 1000;

/// The accounts that may receive a message: one, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recipients {
    /// One account.
    Direct(AccountId),
    /// All accounts: any may read a broadcast, and the first that removes it removes it for all.
    Broadcast,
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The queue that it goes to.
    pub queue: QueueId,
    /// The account that sends it.
    pub sender: AccountId,
    /// The accounts that may receive it.
    pub recipients: Recipients,
    /// The payload: at most [`CONTENT_BYTES_MAX`] bytes.
    pub content: Bytes,
    /// The priority, from 0, the default, to [`PRIORITY_MAX`]; higher is handed out first.
    pub priority: u8,
    /// The ordering key, of 1 to [`KEY_BYTES_MAX`] bytes. Messages of one key in one inbox are handed
    /// out in order, each after the one before has been settled. Without a key there is no order
    /// beyond oldest first.
    pub key: Option<String>,
    /// The delay before it can be handed out; 0 for none.
    pub delay_ms: u64,
    /// The time that it may wait for a reader; none: for ever. After it the message expires: it goes
    /// to the queue's dead letters, or is removed if the queue has none.
    pub lifetime_ms: Option<u64>,
}

impl Outgoing {
    /// A message with the defaults.
    #[must_use]
    pub fn new(
        queue: QueueId,
        sender: AccountId,
        recipients: Recipients,
        content: impl Into<Bytes>,
    ) -> Outgoing {
        Outgoing {
            queue,
            sender,
            recipients,
            content: content.into(),
            priority: 0,
            key: None,
            delay_ms: 0,
            lifetime_ms: None,
        }
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// `MESSAGE_TOO_LARGE` or `INVALID_ARGUMENT`, with the field.
    pub fn check(&self) -> Result<(), Error> {
        if self.content.len() > CONTENT_BYTES_MAX {
            return Err(Error::new(ErrorCode::MessageTooLarge)
                .field("content")
                .value(format!("{} bytes", self.content.len()))
                .limit(format!("{CONTENT_BYTES_MAX} bytes")));
        }
        if self.priority > PRIORITY_MAX {
            return Err(invalid(
                "priority",
                self.priority,
                format!("0 to {PRIORITY_MAX}"),
            ));
        }
        if let Some(key) = &self.key
            && (key.is_empty() || key.len() > KEY_BYTES_MAX || key.contains('\0'))
        {
            let limit = format!("1 to {KEY_BYTES_MAX} bytes, none of them 0");
            return Err(invalid("key", format!("{} bytes", key.len()), limit));
        }
        check_ms("delay_ms", self.delay_ms, 0)?;
        self.lifetime_ms
            .map_or(Ok(()), |ms| check_ms("lifetime_ms", ms, 1))
    }
}

/// The way in which messages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Take {
    /// Messages are shown, and stay.
    Peek,
    /// Messages are removed as they are handed out: delivery at most once.
    Remove,
    /// Messages are kept from other readers until acknowledged, or until the lease ends: delivery at
    /// least once.
    Lease {
        /// The duration of the lease, from 1.
        lease_ms: u64,
    },
}

/// A request for the oldest messages of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The queue to read.
    pub queue: QueueId,
    /// The account that reads.
    pub reader: AccountId,
    /// True for broadcasts, false for the messages to `reader`.
    pub broadcast: bool,
    /// The number of messages wanted, 1 to [`BATCH_MAX`]; fewer come where they have more than
    /// [`ANSWER_BYTES_MAX`] together.
    pub count: usize,
    /// The way in which they are taken.
    pub take: Take,
}

impl Receive {
    /// A request for the oldest message to `reader`, which is removed.
    #[must_use]
    pub fn new(queue: QueueId, reader: AccountId) -> Receive {
        Receive {
            queue,
            reader,
            broadcast: false,
            count: 1,
            take: Take::Remove,
        }
    }

    /// Changes the request to broadcasts.
    #[must_use]
    pub fn broadcast(self) -> Receive {
        Receive {
            broadcast: true,
            ..self
        }
    }

    /// Changes the number of messages wanted.
    #[must_use]
    pub fn count(self, count: usize) -> Receive {
        Receive { count, ..self }
    }

    /// Changes the way in which messages are taken.
    #[must_use]
    pub fn take(self, take: Take) -> Receive {
        Receive { take, ..self }
    }

    /// The inbox that the request reads.
    #[must_use]
    pub fn inbox(&self) -> Inbox {
        Inbox {
            queue: self.queue,
            recipients: if self.broadcast {
                Recipients::Broadcast
            } else {
                Recipients::Direct(self.reader)
            },
        }
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the field.
    pub fn check(&self) -> Result<(), Error> {
        if self.count == 0 || self.count > BATCH_MAX {
            return Err(invalid("count", self.count, format!("1 to {BATCH_MAX}")));
        }
        match self.take {
            Take::Lease { lease_ms } => check_ms("lease_ms", lease_ms, 1),
            Take::Peek | Take::Remove => Ok(()),
        }
    }
}

/// The messages of one queue that have the same recipients: the unit of order, in which the oldest is
/// handed out first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inbox {
    /// The queue.
    pub queue: QueueId,
    /// The recipients of its messages.
    pub recipients: Recipients,
}

/// A message as it is handed out or shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number.
    pub id: MessageId,
    /// The queue that it is in; for a dead letter, the queue of dead letters.
    pub queue: QueueId,
    /// The queue that it was sent to.
    pub origin: QueueId,
    /// The account that sent it.
    pub sender: AccountId,
    /// The accounts that may receive it.
    pub recipients: Recipients,
    /// The payload.
    pub content: Bytes,
    /// The time at which it was stored, by the store's clock.
    pub created_at: Wall,
    /// The priority that it was sent with.
    pub priority: u8,
    /// The ordering key that it was sent with.
    pub key: Option<String>,
    /// The time at which it expires, if it does.
    pub expires_at: Option<Wall>,
    /// The number of times it has been handed out, this one included; in a peek, up to now.
    pub deliveries: u32,
    /// The lease under which it was handed out, if it was.
    pub lease: Option<LeaseId>,
}

impl Message {
    /// The receipt by which it is settled; none without a lease.
    #[must_use]
    pub fn receipt(&self) -> Option<Receipt> {
        let message = self.id;
        self.lease.map(|lease| Receipt { message, lease })
    }
}

/// A message that was handed out, and its lease: what a reader settles it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt {
    /// The message.
    pub message: MessageId,
    /// The lease.
    pub lease: LeaseId,
}

/// A decision about leased messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Settle {
    /// The reader is done with them: they are removed.
    Acknowledge,
    /// The reader needs longer.
    Extend {
        /// The rest of the lease from now on, from 1.
        lease_ms: u64,
    },
    /// The reader gives them back: they are handed out again.
    Release {
        /// The delay before that; 0 for none.
        delay_ms: u64,
    },
}

impl Settle {
    /// Checks the bounds.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the field.
    pub fn check(&self) -> Result<(), Error> {
        match *self {
            Settle::Acknowledge => Ok(()),
            Settle::Extend { lease_ms } => check_ms("lease_ms", lease_ms, 1),
            Settle::Release { delay_ms } => check_ms("delay_ms", delay_ms, 0),
        }
    }
}

/// The numbers of messages in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that can be handed out.
    pub ready: u64,
    /// Messages that are kept back by a delay.
    pub delayed: u64,
    /// Messages that readers have under leases.
    pub leased: u64,
}

/// Checks that a request is about 1 to [`BATCH_MAX`] messages.
///
/// # Errors
/// `INVALID_ARGUMENT`.
pub fn check_batch(field: &str, len: usize) -> Result<(), Error> {
    if len == 0 || len > BATCH_MAX {
        return Err(invalid(
            field,
            format!("{len} messages"),
            format!("1 to {BATCH_MAX}"),
        ));
    }
    Ok(())
}

/// Checks that a reader may wait for `wait_ms`.
///
/// # Errors
/// `INVALID_ARGUMENT`.
pub fn check_wait(wait_ms: u64) -> Result<(), Error> {
    if wait_ms > WAIT_MS_MAX {
        return Err(invalid(
            "wait_ms",
            wait_ms,
            format!("0 to {WAIT_MS_MAX} ms"),
        ));
    }
    Ok(())
}

fn check_ms(field: &str, ms: u64, min: u64) -> Result<(), Error> {
    if ms < min || ms > DURATION_MS_MAX {
        return Err(invalid(field, ms, format!("{min} to {DURATION_MS_MAX} ms")));
    }
    Ok(())
}

pub(super) fn invalid(field: &str, value: impl std::fmt::Display, limit: String) -> Error {
    Error::new(ErrorCode::InvalidArgument)
        .field(field)
        .value(value)
        .limit(limit)
}
