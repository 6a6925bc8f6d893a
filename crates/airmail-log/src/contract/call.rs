//! Calls: the requests of a storage's owner.
//!
//! One closed enum, so that a call is a value: the shard makes it, wrappers and queues pass it on
//! unchanged, and only the storage takes it apart. A call that has a [`Tag`] is answered under it,
//! once; one that has a [`ReaderId`] is answered by its reader's deliveries.

use super::completion::Stored;
use airmail_model::{
    AppendTime, Batch, Checked, Durability, LogId, MapEpoch, NamespaceId, Provisions, Retention,
    Sequence, StorageName, TopicHash,
};
use std::collections::BTreeMap;

/// Comes back with a call's answer. The caller's choice; unique among calls not yet answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// A reader, by the caller's choice; not used again before its [`Completion::Ended`].
///
/// [`Completion::Ended`]: super::Completion::Ended
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(pub u64);

/// A call. Every publish moves one through every queue on its way, so rare and large contents are boxed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "fields are documented by their types and the variant's own text"
)]
pub enum Call {
    /// Makes what the logs of a new map need before its namespace can say that they are there: those of both lanes,
    /// `logs` of each, from the index of `log` on, with the map, the durability and the retention of `spec`, whose
    /// place and provisions are not looked at. Only where the storage says so ([`Capabilities::provisions`]). It opens
    /// nothing, and may be done more than once: what no namespace names is removed by the storage itself, later.
    /// Answer: `Provisioned`, with what the specs of these logs have to say.
    ///
    /// [`Capabilities::provisions`]: super::Capabilities::provisions
    Provision {
        t: Tag,
        log: LogId,
        logs: u16,
        spec: Box<LogSpec>,
    },
    /// Removes what a `Provision` has made, of the same first log and number of logs: no namespace will ever name it, as
    /// log 0 surely has no command with these provisions that counts. Only where the storage says so
    /// ([`Capabilities::provisions`]). What is removed already, or in part, stays so. Answer: `Done`.
    ///
    /// [`Capabilities::provisions`]: super::Capabilities::provisions
    Withdraw {
        t: Tag,
        log: LogId,
        logs: u16,
        origin: Box<Origin>,
    },
    /// Creates the log, or opens it and takes over `spec` (retention and durability may change;
    /// a map epoch lower than the log's own is [`Refusal::StaleMap`]). A spec that is of an earlier place
    /// than the log's own changes nothing: the answer is that of an open log. One that is of an earlier
    /// place than the log's deletion is [`Refusal::NoLog`]. One that names a storage which is no
    /// part of this one is [`Refusal::Elsewhere`], and makes nothing. Answer: `Opened`.
    ///
    /// [`Refusal::Elsewhere`]: super::Refusal::Elsewhere
    /// [`Refusal::StaleMap`]: super::Refusal::StaleMap
    /// [`Refusal::NoLog`]: super::Refusal::NoLog
    Open {
        t: Tag,
        log: LogId,
        spec: Box<LogSpec>,
    },
    /// Appends a batch made with map `map`. Answer: `Appended` once it is held as the log's
    /// durability says, or `Refused`.
    ///
    /// `sole`: no part of the epoch of the batch's producer, from its first batch on, has gone to the log by any way but
    /// the caller's, this batch goes for the first time, and nobody goes by another answer than the caller's. A storage
    /// that recognises retries only when they are read may then take its own word for proof. Whoever is not sure says
    /// false; it means nothing of a batch without a producer.
    Append {
        t: Tag,
        log: LogId,
        map: MapEpoch,
        batch: Checked<Batch>,
        sole: bool,
    },
    /// Starts a reader at `from`, clamped to the first number kept (numbers before it are told as a
    /// `Retention` gap from `from` on). It gives batches and gaps while it has credit, `Tail` each
    /// time it has given everything, and `Ended` after `Stop` or when `scope.until` is reached. A
    /// `from` beyond the end waits there.
    Read {
        r: ReaderId,
        log: LogId,
        from: Sequence,
        scope: Box<Scope>,
        credit: u32,
    },
    /// Lets a reader give `bytes` more. A batch may overdraw the credit left by its own size; a
    /// reader without credit gives nothing.
    Credit { r: ReaderId, bytes: u32 },
    /// Changes what a reader of [`ScopeFilter::Wanted`] gives. Answer: `Effective` with this `edit`, among
    /// what the reader gives; before it, topics that the edit names may be given or not. Edits of one reader
    /// take effect in the order of the calls; `edit` is the caller's.
    ///
    /// [`ScopeFilter::Wanted`]: super::ScopeFilter::Wanted
    Want {
        r: ReaderId,
        edit: u32,
        topics: Box<WantEdit>,
    },
    /// Ends a reader; the last that is heard of it is `Ended`.
    Stop { r: ReaderId },
    /// Asks where a reader has to begin to see every record appended at `at` or later: never later
    /// than the first of them, and at most one index entry earlier; not before the first number that is kept, and not
    /// beyond the log's end. Answer: `Found`.
    FindTime { t: Tag, log: LogId, at: AppendTime },
    /// Asks for the log's bounds. Answer: `Bounds`.
    Bounds { t: Tag, log: LogId },
    /// Asks what the clock shows by which the log's append times are made, where they are made: whoever judges how old
    /// a record is goes by it, and not by a clock of its own. Answer: `Clock`, with what it showed at some time between
    /// the call and the answer, or more; where [`Capabilities::clock`] is `Within`, less by no more than that.
    ///
    /// [`Capabilities::clock`]: super::Capabilities::clock
    Clock { t: Tag, log: LogId },
    /// Lists topics seen in the log, a page at a time. Answer: `Topics`.
    Topics {
        t: Tag,
        log: LogId,
        page: Box<TopicPage>,
    },
    /// Gives up everything before `before`: at once for readers, later on disk. Answer: `Done`.
    Trim {
        t: Tag,
        log: LogId,
        before: Sequence,
    },
    /// Seals the log: it takes nothing more, but still answers retries with the first one's result, and says
    /// [`Refusal::Sealed`] only of what it surely never stored; where it does not know that, the refusal is the one of a
    /// log that is not sealed. Readers that reach its end get `Sealed`, and its bounds say it as soon as nothing is under
    /// way. A log that is sealed already stays so, with the map that it was sealed for. Answer: `Done`.
    ///
    /// [`Refusal::Sealed`]: super::Refusal::Sealed
    Seal { t: Tag, log: LogId, next: MapEpoch },
    /// Puts a replica's copy in place of a loss. Answer: `Done` or `Refused`.
    Heal {
        t: Tag,
        log: LogId,
        copy: Box<Stored>,
    },
    /// Has the storage keep what it has for logs as log 0 says. `kept` is all that log 0 names, up to some
    /// place: what is set otherwise is set right as far as that takes nothing away, and what neither `kept` nor any later
    /// command can name is removed. So it may be out of date, and any number of callers may do so at once. Only where the
    /// storage says that it provisions ([`Capabilities::provisions`]). Answer: `Done`, when all was looked at; what could
    /// not be done is done the next time.
    ///
    /// [`Capabilities::provisions`]: super::Capabilities::provisions
    Keep { t: Tag, kept: Box<Kept> },
    /// Begins a new life of the log: its records and numbers stay, under an incarnation that it
    /// never had. Answer: `Opened`, when no crash can take the new life back; nobody is told of it
    /// before.
    Renew { t: Tag, log: LogId },
    /// Removes the log, if it is there, and all it holds; its readers end. What is left is a tombstone, for
    /// ever: no spec of an earlier place than `as_of` makes the log anew. A deletion of an earlier place
    /// than the log's spec changes nothing; one that names a storage which is no part of this one is
    /// [`Refusal::Elsewhere`]. With its provisions, a log is found and removed that was never opened here, too.
    /// Answer: `Done`.
    ///
    /// [`Refusal::Elsewhere`]: super::Refusal::Elsewhere
    Delete {
        t: Tag,
        log: LogId,
        as_of: Sequence,
        origin: Box<Origin>,
    },
}

// One cache line. An append alone needs 56 bytes.
const _: () = assert!(size_of::<Call>() <= 64);

impl Call {
    /// Tag of its answer; `None` for what is said to a reader.
    #[must_use]
    pub const fn tag(&self) -> Option<Tag> {
        match self {
            Call::Provision { t, .. }
            | Call::Withdraw { t, .. }
            | Call::Open { t, .. }
            | Call::Append { t, .. }
            | Call::FindTime { t, .. }
            | Call::Bounds { t, .. }
            | Call::Clock { t, .. }
            | Call::Topics { t, .. }
            | Call::Trim { t, .. }
            | Call::Seal { t, .. }
            | Call::Heal { t, .. }
            | Call::Keep { t, .. }
            | Call::Renew { t, .. }
            | Call::Delete { t, .. } => Some(*t),
            Call::Read { .. } | Call::Credit { .. } | Call::Want { .. } | Call::Stop { .. } => None,
        }
    }

    /// The log that it is about; log 0 for what is of all. `None` for what is said to a reader under way.
    #[must_use]
    pub const fn log(&self) -> Option<LogId> {
        match self {
            Call::Provision { log, .. }
            | Call::Withdraw { log, .. }
            | Call::Open { log, .. }
            | Call::Append { log, .. }
            | Call::Read { log, .. }
            | Call::FindTime { log, .. }
            | Call::Bounds { log, .. }
            | Call::Clock { log, .. }
            | Call::Topics { log, .. }
            | Call::Trim { log, .. }
            | Call::Seal { log, .. }
            | Call::Heal { log, .. }
            | Call::Renew { log, .. }
            | Call::Delete { log, .. } => Some(*log),
            Call::Keep { .. } => Some(LogId::SYSTEM),
            Call::Credit { .. } | Call::Want { .. } | Call::Stop { .. } => None,
        }
    }

    /// The reader that it starts, or that it is said to.
    #[must_use]
    pub const fn reader(&self) -> Option<ReaderId> {
        match self {
            Call::Read { r, .. }
            | Call::Credit { r, .. }
            | Call::Want { r, .. }
            | Call::Stop { r } => Some(*r),
            Call::Provision { .. }
            | Call::Withdraw { .. }
            | Call::Open { .. }
            | Call::Append { .. }
            | Call::FindTime { .. }
            | Call::Bounds { .. }
            | Call::Clock { .. }
            | Call::Topics { .. }
            | Call::Trim { .. }
            | Call::Seal { .. }
            | Call::Heal { .. }
            | Call::Keep { .. }
            | Call::Renew { .. }
            | Call::Delete { .. } => None,
        }
    }

    /// Puts another tag in the place of its own, for whoever passes calls on under tags of their own. One that
    /// has none stays as it is.
    pub fn set_tag(&mut self, tag: Tag) {
        match self {
            Call::Provision { t, .. }
            | Call::Withdraw { t, .. }
            | Call::Open { t, .. }
            | Call::Append { t, .. }
            | Call::FindTime { t, .. }
            | Call::Bounds { t, .. }
            | Call::Clock { t, .. }
            | Call::Topics { t, .. }
            | Call::Trim { t, .. }
            | Call::Seal { t, .. }
            | Call::Heal { t, .. }
            | Call::Keep { t, .. }
            | Call::Renew { t, .. }
            | Call::Delete { t, .. } => *t = tag,
            Call::Read { .. } | Call::Credit { .. } | Call::Want { .. } | Call::Stop { .. } => {}
        }
    }

    /// Puts another reader in the place of its own, as [`Call::set_tag`] does with tags.
    pub fn set_reader(&mut self, reader: ReaderId) {
        match self {
            Call::Read { r, .. }
            | Call::Credit { r, .. }
            | Call::Want { r, .. }
            | Call::Stop { r } => *r = reader,
            Call::Provision { .. }
            | Call::Withdraw { .. }
            | Call::Open { .. }
            | Call::Append { .. }
            | Call::FindTime { .. }
            | Call::Bounds { .. }
            | Call::Clock { .. }
            | Call::Topics { .. }
            | Call::Trim { .. }
            | Call::Seal { .. }
            | Call::Heal { .. }
            | Call::Keep { .. }
            | Call::Renew { .. }
            | Call::Delete { .. } => {}
        }
    }
}

/// Requirements of a namespace on each of its logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSpec {
    /// Durability that an append has to reach before it is answered, and before a reader sees it.
    pub durability: Durability,
    /// Bounds on the records that are kept.
    pub retention: Retention,
    /// The map that the log belongs to. An append made with another is [`Refusal::StaleMap`].
    ///
    /// [`Refusal::StaleMap`]: super::Refusal::StaleMap
    pub epoch: MapEpoch,
    /// The place in log 0 that it is of: the number of the command that said so last. Whoever has slept
    /// opens logs by what log 0 said then; the later place counts. 0, the default: before every command.
    pub as_of: Sequence,
    /// The storage that has the log, by its name among several ([`Routed`](crate::routed::Routed)). None, the
    /// default: the storage that is asked. It goes to that storage without the name.
    pub storage: StorageName,
    /// Provisions of the storage for the map that the log belongs to. None, the default: where a storage makes nothing
    /// beforehand, and for log 0.
    pub provisions: Provisions,
    /// Word of log 0 on losses that the storage has told of ([`Completion::Suspended`]). The default: of none.
    ///
    /// [`Completion::Suspended`]: super::Completion::Suspended
    pub soundness: Soundness,
}

/// Soundness of a log, as log 0 says it. Only of storages that tell of losses; others do not look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Soundness {
    /// Times that the loss of the log's end was accepted. Each has begun a life of the log that it never had.
    pub cuts: u32,
    /// The number from which on the log lost what it had, the last time. Below it everything is as it was. 0, the
    /// default: never.
    pub cut_at: Sequence,
    /// The log has stopped, until log 0 says more: nothing of it is given, and nothing is taken
    /// ([`Refusal::Suspended`]).
    ///
    /// [`Refusal::Suspended`]: super::Refusal::Suspended
    pub is_suspended: bool,
}

/// All that log 0 names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The storage that is to keep to it, as in [`LogSpec::storage`].
    pub storage: StorageName,
    /// Each map of a namespace, in whatever storage: two of them may have what they have in one place.
    pub maps: Vec<KeptMap>,
    /// The present map of each namespace that there is: those after it may be named yet.
    pub present: BTreeMap<NamespaceId, MapEpoch>,
    /// The last id that a namespace was given: those after it may be named yet.
    pub last: NamespaceId,
}

/// Logs of one map of a namespace, in both lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptMap {
    /// The namespace.
    pub namespace: NamespaceId,
    /// Where they are.
    pub origin: Origin,
    /// Retention of them; `None` if they are to be deleted, and nothing is set right any more.
    pub retention: Option<Retention>,
}

/// Where logs are that need not be open, as log 0 says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The storage that has them, as in [`LogSpec::storage`].
    pub storage: StorageName,
    /// Its provisions for the map that they belong to, as in [`LogSpec::provisions`].
    pub provisions: Provisions,
}

/// Selects the part of a log that a reader gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Filter of the records.
    pub filter: ScopeFilter,
    /// Ends before this number. `None`: never ends.
    pub until: Option<Sequence>,
    /// Direction of reading.
    pub direction: Direction,
}

/// Selects the records that a reader gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScopeFilter {
    /// All of them.
    #[default]
    All,
    /// Those of one topic. Batches are given whole if they hold the topic at all; the others are
    /// covered by [`GapWhy::Unused`].
    ///
    /// [`GapWhy::Unused`]: super::GapWhy::Unused
    Topic(TopicHash),
    /// Those of the topics that [`Call::Want`] names, which may change while the reader is under way, and at
    /// least those: a storage that is far away leaves out what nobody wants, covered by [`GapWhy::Unused`]; one
    /// at hand gives everything. It gives nothing before the first edit has taken effect.
    ///
    /// [`GapWhy::Unused`]: super::GapWhy::Unused
    Wanted,
}

/// Change of the topics that a reader gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantEdit {
    /// Topics to give from now on, too. What was wanted before may be named again.
    pub add: Vec<TopicHash>,
    /// Topics to give no more, unless `add` names them. What was not wanted may be named.
    pub drop: Vec<TopicHash>,
    /// Another edit follows, and this one takes effect with it, without an answer of its own: so that many topics
    /// need not be one message.
    pub more: bool,
}

/// Directions of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Reads from older to newer.
    #[default]
    Forward,
    /// Reads from newer to older. Reserved.
    Backward,
}

/// Selects the topics to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPage {
    /// Only names that begin so.
    pub prefix: String,
    /// Only names after this one in byte order; empty for the first page.
    pub after: String,
    /// Most topics to list. Default of the command line: 1,000.
    pub limit: u32,
}
