//! Completions: a storage's answers to calls, the deliveries of its readers, and events that no call asked for.

use super::call::{ReaderId, Tag};
use airmail_model::{
    AppendTime, Batch, Checked, Durability, Extent, Holder, Incarnation, LogId, MapEpoch,
    ProducerSequence, Provisions, Sequence,
};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The answer to a call, something a reader came upon, or something that has happened to a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "fields are the call's own, documented by their types"
)]
pub enum Completion {
    /// Answers `Provision`.
    Provisioned { t: Tag, provisions: Box<Provisions> },
    /// Answers `Open` and `Renew`.
    Opened { t: Tag, bounds: Bounds },
    /// Answers `Bounds`.
    Bounds { t: Tag, bounds: Bounds },
    /// Answers `Append`. `held` satisfies the log's durability. Its copies are those that the storage
    /// waits for, not a count of who had it.
    Appended {
        t: Tag,
        extent: Extent,
        at: AppendTime,
        held: Durability,
        duplicate: bool,
        exact: bool,
    },
    /// Answers any call that was not done.
    Refused { t: Tag, why: Refusal },
    /// The reader's next batch.
    Batch { r: ReaderId, stored: Stored },
    /// Numbers that the reader will not get.
    Gap {
        r: ReaderId,
        extent: Extent,
        why: GapWhy,
    },
    /// The reader has given everything before `next`, and waits there.
    Tail { r: ReaderId, next: Sequence },
    /// The reader has reached the end of a sealed log.
    Sealed {
        r: ReaderId,
        last: Sequence,
        next: MapEpoch,
    },
    /// Answers `Want`, in the reader's order: from `at` on, the next number that it accounts for, everything
    /// wanted is given. `None`: there is no room for so many topics, and nothing was changed.
    Effective {
        r: ReaderId,
        edit: u32,
        at: Option<Sequence>,
    },
    /// Topics that the reader wanted are forgotten where it reads, or at another place that is to know them. Edits under
    /// way are not answered, though they may take effect. Its owner names everything anew before it polls again; until
    /// that is known the reader may give nothing, and then it goes on where it was.
    WantsLost { r: ReaderId },
    /// Answers `FindTime`.
    Found { t: Tag, at: Sequence },
    /// Answers `Clock`.
    Clock { t: Tag, at: AppendTime },
    /// Answers `Topics`: in byte order of name, each once. Empty: no more.
    Topics { t: Tag, page: Vec<TopicSeen> },
    /// Answers `Trim`, `Seal`, `Heal`, `Delete`, `Withdraw` and `Keep`.
    Done { t: Tag },
    /// Nothing more comes of this reader. `why` is `None` after `Stop` or at `until`.
    Ended { r: ReaderId, why: Option<Refusal> },
    /// Unasked: the log can be used as these bounds say. It was lost and is back, or somebody else has begun a
    /// new life of it: then the incarnation is another one.
    Gained { log: LogId, bounds: Bounds },
    /// Unasked: the log cannot be used until it is gained again. What was asked of it may be answered only
    /// then; its readers go on then.
    Lost { log: LogId },
    /// Unasked, to whoever owns the storage and to no guest: it has lost something of the log, and stops it. What comes of
    /// it is for log 0 to say ([`Soundness`](super::Soundness)). May be told again.
    Suspended { log: LogId, loss: Box<LogLoss> },
}

impl Completion {
    /// Tag of the call that it answers; `None` for what a reader gets, and for what nobody asked.
    #[must_use]
    pub const fn tag(&self) -> Option<Tag> {
        match self {
            Completion::Provisioned { t, .. }
            | Completion::Opened { t, .. }
            | Completion::Bounds { t, .. }
            | Completion::Appended { t, .. }
            | Completion::Refused { t, .. }
            | Completion::Found { t, .. }
            | Completion::Clock { t, .. }
            | Completion::Topics { t, .. }
            | Completion::Done { t } => Some(*t),
            Completion::Batch { .. }
            | Completion::Gap { .. }
            | Completion::Tail { .. }
            | Completion::Sealed { .. }
            | Completion::Effective { .. }
            | Completion::WantsLost { .. }
            | Completion::Ended { .. }
            | Completion::Gained { .. }
            | Completion::Lost { .. }
            | Completion::Suspended { .. } => None,
        }
    }

    /// The reader that gets it; `None` for an answer, and for what nobody asked.
    #[must_use]
    pub const fn reader(&self) -> Option<ReaderId> {
        match self {
            Completion::Batch { r, .. }
            | Completion::Gap { r, .. }
            | Completion::Tail { r, .. }
            | Completion::Sealed { r, .. }
            | Completion::Effective { r, .. }
            | Completion::WantsLost { r }
            | Completion::Ended { r, .. } => Some(*r),
            Completion::Provisioned { .. }
            | Completion::Opened { .. }
            | Completion::Bounds { .. }
            | Completion::Appended { .. }
            | Completion::Refused { .. }
            | Completion::Found { .. }
            | Completion::Clock { .. }
            | Completion::Topics { .. }
            | Completion::Done { .. }
            | Completion::Gained { .. }
            | Completion::Lost { .. }
            | Completion::Suspended { .. } => None,
        }
    }

    /// Puts another tag in the place of its own, for whoever passes calls on under tags of their own. One that
    /// has none stays as it is.
    pub fn set_tag(&mut self, tag: Tag) {
        match self {
            Completion::Provisioned { t, .. }
            | Completion::Opened { t, .. }
            | Completion::Bounds { t, .. }
            | Completion::Appended { t, .. }
            | Completion::Refused { t, .. }
            | Completion::Found { t, .. }
            | Completion::Clock { t, .. }
            | Completion::Topics { t, .. }
            | Completion::Done { t } => *t = tag,
            Completion::Batch { .. }
            | Completion::Gap { .. }
            | Completion::Tail { .. }
            | Completion::Sealed { .. }
            | Completion::Effective { .. }
            | Completion::WantsLost { .. }
            | Completion::Ended { .. }
            | Completion::Gained { .. }
            | Completion::Lost { .. }
            | Completion::Suspended { .. } => {}
        }
    }

    /// Puts another reader in the place of its own, as [`Completion::set_tag`] does with tags.
    pub fn set_reader(&mut self, reader: ReaderId) {
        match self {
            Completion::Batch { r, .. }
            | Completion::Gap { r, .. }
            | Completion::Tail { r, .. }
            | Completion::Sealed { r, .. }
            | Completion::Effective { r, .. }
            | Completion::WantsLost { r }
            | Completion::Ended { r, .. } => *r = reader,
            Completion::Provisioned { .. }
            | Completion::Opened { .. }
            | Completion::Bounds { .. }
            | Completion::Appended { .. }
            | Completion::Refused { .. }
            | Completion::Found { .. }
            | Completion::Clock { .. }
            | Completion::Topics { .. }
            | Completion::Done { .. }
            | Completion::Gained { .. }
            | Completion::Lost { .. }
            | Completion::Suspended { .. } => {}
        }
    }
}

/// A batch as a log holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The number of a record with index 0: a record's own number is `base` plus its index.
    pub base: Sequence,
    /// The numbers that this accounts for. Usually the whole batch, from `base` on; where a
    /// damaged record cuts a batch in pieces, each piece has the part that is its own.
    pub extent: Extent,
    /// When it was appended.
    pub appended: AppendTime,
    /// The records of `extent`.
    pub batch: Checked<Batch>,
}

/// Bounds of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first number kept.
    pub first: Sequence,
    /// The number that the next durable append follows: everything before it is held as the log's
    /// durability says, or is a gap.
    pub next: Sequence,
    /// No number at or above this was ever given in this life: `next`, or higher where it is known
    /// that numbers were reserved, but not that a power cut leaves the reservation.
    pub reach: Sequence,
    /// The log's life.
    pub incarnation: Incarnation,
    /// When the first record kept was appended. `None` where there is none.
    pub first_time: Option<AppendTime>,
    /// Bytes kept, without indexes.
    pub bytes: u64,
    /// The map that names its successors, if the log is sealed and nothing of it is under way any more: `next` is where
    /// it ends for ever.
    pub sealed: Option<MapEpoch>,
}

/// Something that a storage has lost of a log which was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLoss {
    /// The log's life, whose positions are concerned.
    pub life: Incarnation,
    /// The life that begins if the loss is accepted. Means nothing where all is lost.
    pub next_life: Incarnation,
    /// Everything from this number on is lost, and everything below it is as it was. `None`: all is lost, and nothing
    /// can go on there.
    pub at: Option<Sequence>,
    /// The number behind the last that was given or acknowledged, as far as it is known here; [`Sequence::MAX`]: not.
    pub end: Sequence,
}

/// A topic found in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSeen {
    /// Its name.
    pub name: String,
    /// The highest number at which the storage knows that it was seen.
    pub last: Sequence,
}

/// Reason for which a reader will not get some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapWhy {
    /// Never used, or not in the reader's scope: nothing is missing.
    Unused,
    /// Removed by retention or trim.
    Retention,
    /// Damaged or lost.
    Loss,
}

/// Reason for which a call was refused, with the facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No room on the disk. Nothing was stored.
    Full {
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// More is waiting to be stored than the storage admits. Nothing was stored.
    Busy {
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// The node that has the log cannot be reached at the moment. Nothing was stored.
    Away {
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// Made with another map than the log's.
    StaleMap {
        /// The log's map.
        current: MapEpoch,
    },
    /// The log is sealed. Nothing was stored, nor ever will be there.
    Sealed {
        /// The map that names its successors.
        next: MapEpoch,
    },
    /// The producer's sequence is higher than the next one.
    OutOfOrder {
        /// The sequence that would have been stored.
        expected: ProducerSequence,
        /// The sequence that came.
        found: ProducerSequence,
    },
    /// The producer is not known, so a retry cannot be told from a new message.
    UnknownProducer,
    /// A newer epoch of the producer has taken over.
    Fenced,
    /// The log is not open here.
    NoLog,
    /// Another node has the log. Nothing was stored.
    Elsewhere(Holder),
    /// The storage cannot do this.
    Unsupported(Cow<'static, str>),
    /// It is not known whether the batch was stored.
    OutcomeUnknown,
    /// The storage failed. Nothing was stored.
    Io(String),
    /// The log has stopped, because the storage has lost something of it; what, in words. Nothing was stored.
    Suspended(String),
}

impl Refusal {
    /// Whether the batch that it refuses is not stored, and may come again under its number.
    #[must_use]
    pub const fn may_come_again(&self) -> bool {
        matches!(
            self,
            Refusal::Full { .. }
                | Refusal::Busy { .. }
                | Refusal::Away { .. }
                | Refusal::StaleMap { .. }
                | Refusal::OutOfOrder { .. }
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Full { retry_after } => {
                write!(
                    f,
                    "no room on the disk, retry after {} ms",
                    retry_after.as_millis()
                )
            }
            Refusal::Busy { retry_after } => {
                write!(
                    f,
                    "too much is waiting to be stored, retry after {} ms",
                    retry_after.as_millis()
                )
            }
            Refusal::Away { retry_after } => {
                write!(
                    f,
                    "the log is out of reach, retry after {} ms",
                    retry_after.as_millis()
                )
            }
            Refusal::StaleMap { current } => write!(f, "the log's map epoch is {current}"),
            Refusal::Sealed { next } => write!(f, "sealed, succeeded by map epoch {next}"),
            Refusal::OutOfOrder { expected, found } => {
                write!(f, "producer sequence {found} where {expected} is next")
            }
            Refusal::UnknownProducer => f.write_str("unknown producer"),
            Refusal::Fenced => f.write_str("producer fenced by a newer epoch"),
            Refusal::NoLog => f.write_str("the log is not open"),
            Refusal::Elsewhere(holder) => write!(f, "the log is elsewhere: {holder}"),
            Refusal::Unsupported(what) => write!(f, "{what} is not supported by this storage"),
            Refusal::OutcomeUnknown => f.write_str("outcome unknown"),
            Refusal::Io(error) => write!(f, "storage failed: {error}"),
            Refusal::Suspended(why) => write!(f, "the log is suspended: {why}"),
        }
    }
}
