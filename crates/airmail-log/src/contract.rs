//! What every log storage promises: `memory`, `disk`, and later `tree`, `raft` and `kafka`.
//!
//! A storage is owned by one shard and polled. Nothing blocks or awaits; each call is answered
//! through [`LogStorage::poll`], under its tag, once. Appends to one log are answered in call
//! order. A reader sees the log's numbers tiled by batches and gaps, in order, without holes or
//! overlaps, and only what has reached the log's durability. What a storage cannot do it says by
//! its [`Capabilities`], and refuses as [`Refusal::Unsupported`], never by surprise.

use airmail_model::{
    AppendTime, Batch, Checked, Durability, Extent, Incarnation, LogId, MapEpoch, Mono, Now,
    ProducerSequence, Retention, Sequence, TopicHash,
};
use std::fmt;
use std::time::Duration;

/// Comes back with a call's answer. The caller's choice; unique among calls not yet answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// A reader, by the caller's choice; not used again before its [`Completion::Ended`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(pub u64);

/// Owned by one shard. See the module's documentation for what holds of every call.
pub trait LogStorage: Send {
    /// What this storage can do. Constant for its life.
    fn capabilities(&self) -> Capabilities;

    /// Creates the log, or opens it and takes over `spec` (retention and durability may change;
    /// a map epoch lower than the log's own is [`Refusal::StaleMap`]). Answer: `Opened`.
    fn open(&mut self, t: Tag, log: LogId, spec: &LogSpec);

    /// Appends a batch made with map `map`. Answer: `Appended` once it is held as the log's
    /// durability says, or `Refused`.
    fn append(&mut self, t: Tag, log: LogId, map: MapEpoch, batch: Checked<Batch>);

    /// Starts a reader at `from`, clamped to the first number kept (what is before is told as a
    /// `Retention` gap from `from` on). It gives batches and gaps while it has credit, `Tail` each
    /// time it has given everything, and `Ended` after `stop` or when `scope.until` is reached.
    /// A `from` beyond the end waits there.
    fn read(&mut self, r: ReaderId, log: LogId, from: Sequence, scope: Scope, credit: u32);

    /// Lets a reader give `bytes` more. A batch may overdraw what is left by its own size; a reader
    /// without credit gives nothing.
    fn credit(&mut self, r: ReaderId, bytes: u32);

    /// Ends a reader; the last that is heard of it is `Ended`.
    fn stop(&mut self, r: ReaderId);

    /// Where a reader has to begin to see every record appended at `at` or later: never later than
    /// the first of them, and at most one index entry earlier. Answer: `Found`.
    fn find_time(&mut self, t: Tag, log: LogId, at: AppendTime);

    /// What the log holds. Answer: `Bounds`.
    fn bounds(&mut self, t: Tag, log: LogId);

    /// Topics seen in the log, a page at a time. Answer: `Topics`.
    fn topics(&mut self, t: Tag, log: LogId, page: &TopicPage);

    /// Gives up everything before `before`: at once for readers, later on disk. Answer: `Done`.
    fn trim(&mut self, t: Tag, log: LogId, before: Sequence);

    /// The log takes nothing more, but still answers retries with the first one's result. Readers
    /// that reach its end get `Sealed`. Answer: `Done`.
    fn seal(&mut self, t: Tag, log: LogId, next: MapEpoch);

    /// Puts a replica's copy in place of a loss. Answer: `Done` or `Refused`.
    fn heal(&mut self, t: Tag, log: LogId, copy: Stored);

    /// Begins a new life of the log: what it holds and its numbers stay, under an incarnation that
    /// it never had. Answer: `Opened`, when no crash can take the new life back; nobody is told of
    /// it before.
    fn renew(&mut self, t: Tag, log: LogId);

    /// Removes the log and all it holds; its readers end. Answer: `Done`.
    fn delete(&mut self, t: Tag, log: LogId);

    /// Does what is ready, starts the next commit if none is under way, and tells what has become
    /// of earlier calls. Returns when to poll again if nothing else happens before.
    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono>;
}

/// What a storage can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// When a producer's retry is recognised.
    pub dedup: Dedup,
    /// The strongest durability that it can give.
    pub strongest: Durability,
    /// It finds a topic's records without reading the log ([`ScopeFilter::Topic`]).
    pub topic_index: bool,
    /// It takes reads from beyond the end.
    pub past_end: bool,
    /// It can seal a log.
    pub seal: bool,
    /// It can take a replica's copy in place of a loss.
    pub heal: bool,
    /// More than one node may append to a log.
    pub many_writers: bool,
}

/// When a producer's retry is recognised (G3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dedup {
    /// When appended: acks are exact.
    AtAppend,
    /// When read, by log order.
    AtRead,
}

/// What a namespace asks of each of its logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSpec {
    /// What must hold before an append is answered, and before a reader sees it.
    pub durability: Durability,
    /// How long records are kept.
    pub retention: Retention,
    /// The map that the log belongs to. An append made with another is [`Refusal::StaleMap`].
    pub epoch: MapEpoch,
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

/// What a reader wants of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Which records.
    pub filter: ScopeFilter,
    /// Ends before this number. `None`: never ends.
    pub until: Option<Sequence>,
    /// Which way.
    pub direction: Direction,
}

/// Which records a reader wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScopeFilter {
    /// All of them.
    #[default]
    All,
    /// Those of one topic. Batches are given whole if they hold the topic at all; the others are
    /// covered by [`GapWhy::Unused`].
    Topic(TopicHash),
}

/// Which way a reader goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From older to newer.
    #[default]
    Forward,
    /// From newer to older. Reserved.
    Backward,
}

/// What a log holds.
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
}

/// Which topics to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPage {
    /// Only names that begin so.
    pub prefix: String,
    /// Only names after this one in byte order; empty for the first page.
    pub after: String,
    /// At most this many. Default of the command line: 1,000.
    pub limit: u32,
}

/// A topic found in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSeen {
    /// Its name.
    pub name: String,
    /// The highest number at which the storage knows that it was seen.
    pub last: Sequence,
}

/// Why a reader will not get some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapWhy {
    /// Never used, or not in the reader's scope: nothing is missing.
    Unused,
    /// Removed by retention or trim.
    Retention,
    /// Damaged or lost.
    Loss,
}

/// Why a call was refused, with the facts.
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
    /// Made with another map than the log's.
    StaleMap {
        /// The log's map.
        current: MapEpoch,
    },
    /// The log is sealed.
    Sealed {
        /// The map that names its successors.
        next: MapEpoch,
    },
    /// The producer's sequence is higher than the next one.
    OutOfOrder {
        /// What would have been stored.
        expected: ProducerSequence,
        /// What came.
        found: ProducerSequence,
    },
    /// The producer is not known, so a retry cannot be told from a new message.
    UnknownProducer,
    /// A newer epoch of the producer has taken over.
    Fenced,
    /// The log is not open here.
    NoLog,
    /// Another node has the log.
    Elsewhere,
    /// The storage cannot do this.
    Unsupported(&'static str),
    /// It is not known whether the batch was stored.
    OutcomeUnknown,
    /// The storage failed. Nothing was stored.
    Io(String),
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
            Refusal::StaleMap { current } => write!(f, "the log's map epoch is {current}"),
            Refusal::Sealed { next } => write!(f, "sealed, succeeded by map epoch {next}"),
            Refusal::OutOfOrder { expected, found } => {
                write!(f, "producer sequence {found} where {expected} is next")
            }
            Refusal::UnknownProducer => f.write_str("unknown producer"),
            Refusal::Fenced => f.write_str("producer fenced by a newer epoch"),
            Refusal::NoLog => f.write_str("the log is not open"),
            Refusal::Elsewhere => f.write_str("another node has the log"),
            Refusal::Unsupported(what) => write!(f, "{what} is not supported by this storage"),
            Refusal::OutcomeUnknown => f.write_str("outcome unknown"),
            Refusal::Io(error) => write!(f, "storage failed: {error}"),
        }
    }
}

/// The answer to a call, or something a reader came upon.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "fields are the call's own, documented by their types"
)]
pub enum Completion {
    /// Answers `open` and `renew`.
    Opened { t: Tag, bounds: Bounds },
    /// Answers `bounds`.
    Bounds { t: Tag, bounds: Bounds },
    /// Answers `append`. `held` is at least the log's durability.
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
    /// Answers `find_time`.
    Found { t: Tag, at: Sequence },
    /// Answers `topics`: in byte order of name, each once. Empty: no more.
    Topics { t: Tag, page: Vec<TopicSeen> },
    /// Answers `trim`, `seal`, `heal`, `delete`.
    Done { t: Tag },
    /// Nothing more comes of this reader. `why` is `None` after `stop` or at `until`.
    Ended { r: ReaderId, why: Option<Refusal> },
}
