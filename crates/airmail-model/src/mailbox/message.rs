//! What is sent, asked for and handed out.

use super::id::{AccountId, LeaseId, MessageId, QueueId};
use crate::{Error, ErrorCode, Wall};
use bytes::Bytes;

/// Bytes that one message may hold.
pub const CONTENT_BYTES_MAX: usize = 1 << 20;
/// Messages that one request may send, take, or say something about.
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

/// Whom a message is for, or whose messages are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Audience {
    /// One receiver.
    Direct(AccountId),
    /// Whoever reads it first: any account may read a broadcast, and one may remove it.
    Broadcast,
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Where to.
    pub queue: QueueId,
    /// From whom.
    pub sender: AccountId,
    /// For whom.
    pub audience: Audience,
    /// At most [`CONTENT_BYTES_MAX`] bytes.
    pub content: Bytes,
    /// 0, the default, to [`PRIORITY_MAX`]; higher is handed out first.
    pub priority: u8,
    /// Messages of one key, queue and audience are handed out in order, each when the one before
    /// is done with. 1 to [`KEY_BYTES_MAX`] bytes; none: no order beyond oldest first.
    pub key: Option<String>,
    /// How long it is kept back before it can be handed out; 0: not at all.
    pub delay_ms: u64,
    /// How long it may wait for a reader; none: for ever. What expires goes to the queue's dead
    /// letters where it has such, and is removed where not.
    pub lifetime_ms: Option<u64>,
}

impl Outgoing {
    /// A message with the defaults.
    #[must_use]
    pub fn new(
        queue: QueueId,
        sender: AccountId,
        audience: Audience,
        content: impl Into<Bytes>,
    ) -> Outgoing {
        Outgoing {
            queue,
            sender,
            audience,
            content: content.into(),
            priority: 0,
            key: None,
            delay_ms: 0,
            lifetime_ms: None,
        }
    }

    /// Whether it keeps the bounds.
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

/// How messages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Take {
    /// They are shown, and stay.
    Peek,
    /// They are removed as they are handed out: at most once.
    Remove,
    /// They are kept from others until acknowledged, or until the time is over: at least once.
    Lease {
        /// How long, from 1.
        lease_ms: u64,
    },
}

/// A request for the oldest messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Where from.
    pub queue: QueueId,
    /// Who asks.
    pub reader: AccountId,
    /// Whether for broadcasts, rather than what is for `reader`.
    pub broadcast: bool,
    /// How many at most: 1 to [`BATCH_MAX`]; fewer where they have more than [`ANSWER_BYTES_MAX`].
    pub count: usize,
    /// What becomes of them.
    pub take: Take,
}

impl Receive {
    /// The oldest message for `reader`, removed.
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

    /// The same for broadcasts.
    #[must_use]
    pub fn broadcast(self) -> Receive {
        Receive {
            broadcast: true,
            ..self
        }
    }

    /// The same, that many.
    #[must_use]
    pub fn count(self, count: usize) -> Receive {
        Receive { count, ..self }
    }

    /// The same, taken another way.
    #[must_use]
    pub fn take(self, take: Take) -> Receive {
        Receive { take, ..self }
    }

    /// The line in which the reader stands.
    #[must_use]
    pub fn line(&self) -> Line {
        Line {
            queue: self.queue,
            audience: if self.broadcast {
                Audience::Broadcast
            } else {
                Audience::Direct(self.reader)
            },
        }
    }

    /// Whether it keeps the bounds.
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

/// The messages of one queue that are for the same: what is handed out oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The queue.
    pub queue: QueueId,
    /// For whom.
    pub audience: Audience,
}

/// A message as it is handed out or shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number.
    pub id: MessageId,
    /// Where it is; for a dead letter, the queue of dead letters.
    pub queue: QueueId,
    /// Where it was sent to.
    pub origin: QueueId,
    /// From whom.
    pub sender: AccountId,
    /// For whom.
    pub audience: Audience,
    /// What was sent.
    pub content: Bytes,
    /// When it was stored, by the store's clock.
    pub created_at: Wall,
    /// As it was sent.
    pub priority: u8,
    /// As it was sent.
    pub key: Option<String>,
    /// When it expires, if it does.
    pub expires_at: Option<Wall>,
    /// How often it has been handed out, this time included; in a peek, up to now.
    pub deliveries: u32,
    /// The lease under which it was handed out, if it was.
    pub lease: Option<LeaseId>,
}

impl Message {
    /// What to acknowledge, extend or release it with; none without a lease.
    #[must_use]
    pub fn receipt(&self) -> Option<Receipt> {
        let message = self.id;
        self.lease.map(|lease| Receipt { message, lease })
    }
}

/// A message handed out under a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt {
    /// The message.
    pub message: MessageId,
    /// The lease.
    pub lease: LeaseId,
}

/// What to do with leased messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Settle {
    /// They are done with.
    Acknowledge,
    /// They are kept for longer.
    Extend {
        /// From now, from 1.
        lease_ms: u64,
    },
    /// They go back, and are handed out again.
    Release {
        /// Not before so long from now; 0: at once.
        delay_ms: u64,
    },
}

impl Settle {
    /// Whether it keeps the bounds.
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

/// How many messages a queue has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// That can be handed out.
    pub ready: u64,
    /// That are kept back by a delay.
    pub delayed: u64,
    /// That readers have.
    pub leased: u64,
}

/// Whether a request says something about 1 to [`BATCH_MAX`] messages.
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

/// Whether a reader may wait for so long.
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
