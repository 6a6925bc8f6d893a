//! The link between gateway and tower: two closed enums, and nothing else crosses.
//!
//! The gateway has the sessions and every subscription's position, the tower has the logs and reads
//! them. Here both are in one thread, and a message is taken in the same step in which it was sent.
//! The rules are made so that a queue between them would change none: each side may be told late,
//! and stays right.
//!
//! - Messages of one direction arrive in the order in which they were sent.
//! - The link never waits for a client. A part for a session without credit is dropped by the
//!   gateway, which leaves, stands where the first dropped part begins, and follows again later.
//! - Each answer or delivery names its purpose: the generation of an attachment, the ticket of a
//!   member, the number of a publish. One for an earlier purpose is dropped.
//! - Live goes by log, and late goes by member. Each live message is of the numbers after
//!   `previous`; one that leaves a hole is answered by a new attachment from where the gateway
//!   stands.
//! - The end of a log is asked when it is needed, and never kept by the gateway: every answer
//!   brings the end as it is then.

use crate::keys::BehindKey;
use airmail_log::{Bounds, GapWhy, Refusal, Stored, TopicPage, TopicSeen, WantEdit};
use airmail_model::frame::{Ack, Delivered};
use airmail_model::{
    AppendTime, Batch, Checked, Extent, Holder, Incarnation, LogId, Mono, Sequence, TopicHash,
};

/// Id of the tower's work for one subscription: one that is behind, in one of its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MemberId {
    /// The gateway's record. The tower only gives it back.
    pub(crate) behind: BehindKey,
    /// The attempt of the record. Never used twice.
    pub(crate) ticket: u64,
}

/// Part of a log's tail that an attachment is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interest {
    /// Everything.
    #[default]
    All,
    /// At least the topics that are wanted.
    Wanted,
}

/// Messages of the gateway to the tower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToTower {
    /// Give the log's batches and gaps from here on, as they become durable. Takes the place of an earlier
    /// attachment to the log.
    Attach {
        log: LogId,
        generation: u64,
        from: Sequence,
        interest: Interest,
    },
    /// Change what is wanted of an attachment. Answered by `Effective`.
    Want {
        log: LogId,
        generation: u64,
        edit: u32,
        topics: Box<WantEdit>,
    },
    /// Nobody needs the log's tail any more.
    Detach { log: LogId, generation: u64 },
    /// Read for a member. Ended by `Reached`, by `Ended`, or by its leaving.
    Follow(Follow),
    /// The member is gone: nothing more is wanted for it.
    Leave { member: MemberId },
    /// Tell something of a log. Answered by `Answer`.
    Ask {
        member: MemberId,
        log: LogId,
        question: Question,
    },
    /// Append a batch. Answered by `Appended`, in the order of the log's appends.
    Append {
        log: LogId,
        number: u64,
        batch: Checked<Batch>,
        /// See [`Call::Append`](airmail_log::Call::Append).
        sole: bool,
    },
    /// Tell what the clock of a log's append times shows. Answered by `Clock`; `asked` comes back.
    Clock { log: LogId, asked: Mono },
    /// Begin a new life of a log. Answered by `Renewed`.
    Renew { log: LogId },
    /// List topics of a log. Answered by `Topics`.
    Topics {
        listing: u64,
        part: usize,
        log: LogId,
        page: Box<TopicPage>,
    },
    /// Live traffic has moved so many bytes: a part of as much may be read for those behind.
    Moved { bytes: usize },
}

/// Request of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Follow {
    pub(crate) member: MemberId,
    pub(crate) log: LogId,
    /// The topic that it is for. `None`: all.
    pub(crate) topic: Option<TopicHash>,
    /// The first number that has not been looked at for it.
    pub(crate) from: Sequence,
    /// Where it ends. `None`: it wants to get to the tail.
    pub(crate) until: Option<Sequence>,
    /// Time before which appended records are not for it.
    pub(crate) not_before: Option<AppendTime>,
    /// Time from which appended records are not for it. It ends where none from before can come any more.
    pub(crate) not_after: Option<AppendTime>,
}

/// Questions of the gateway about a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Only the end.
    End,
    /// The bounds that the storage holds.
    Bounds,
    /// The number of the first record that was appended at this time or later.
    Time(AppendTime),
}

/// Messages of the tower to the gateway.
#[derive(Clone, Debug)]
pub(crate) enum FromTower {
    /// The log can be used.
    Opened {
        log: LogId,
        incarnation: Incarnation,
    },
    /// The log is not here, so that nothing can be done with it, until it is told to be open.
    Elsewhere { log: LogId, holder: Holder },
    /// The log is sealed, and ends there for ever: its topics go on in the logs of the next map. Told once.
    Sealed { log: LogId, end: Sequence },
    /// The log is to be deleted, with its namespace or because retention has left nothing in it: nothing can be done
    /// with it any more.
    Closed { log: LogId },
    /// The log is deleted, or what is left of it is left to the next start: what was asked of it and is
    /// not answered is not answered any more.
    Gone { log: LogId },
    /// The next batch at the tail: it accounts for the numbers after `previous`.
    Live {
        log: LogId,
        generation: u64,
        previous: Sequence,
        stored: Stored,
    },
    /// Numbers at the tail that no reader will get.
    LiveGap {
        log: LogId,
        generation: u64,
        extent: Extent,
        why: GapWhy,
    },
    /// The topics of an edit are given from here on, at the latest; or there is no room for them, and nothing has
    /// changed.
    Effective {
        log: LogId,
        generation: u64,
        edit: u32,
        at: Option<Sequence>,
    },
    /// It is to be said anew what is wanted of an attachment: nothing is given before.
    WantsLost { log: LogId, generation: u64 },
    /// A member's part of a batch.
    Part { member: MemberId, part: Part },
    /// Numbers that will not come for a member.
    PartGap {
        member: MemberId,
        extent: Extent,
        why: GapWhy,
    },
    /// There is nothing for a member before `next` that it was not told of.
    Progress { member: MemberId, next: Sequence },
    /// A member is at the tail, with everything told before `next`. It is a member no more.
    Reached {
        member: MemberId,
        next: Sequence,
        end: Sequence,
    },
    /// A member has had all that it wanted, up to `next`. It is a member no more.
    Ended { member: MemberId, next: Sequence },
    /// The answer to `Ask`, and where the log ends now.
    Answer {
        member: MemberId,
        end: Sequence,
        answer: Answer,
    },
    /// The result of an append.
    Appended {
        log: LogId,
        number: u64,
        result: Result<Ack, Refusal>,
    },
    /// The clock of a log's append times shows this, or less; `None` if it cannot be known.
    Clock {
        log: LogId,
        asked: Mono,
        clock: Option<AppendTime>,
    },
    /// The log has begun a new life, and no crash can take it back; or it could not.
    Renewed {
        log: LogId,
        result: Result<Incarnation, Refusal>,
    },
    /// A page of a log's topics.
    Topics {
        listing: u64,
        part: usize,
        result: Result<Vec<TopicSeen>, Refusal>,
    },
}

/// The part of a batch that is for a member.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The first number of the batch that may be for it.
    pub(crate) first: Sequence,
    /// It has everything before, with this part.
    pub(crate) end: Sequence,
    /// The number of the batch's first record.
    pub(crate) base: Sequence,
    pub(crate) appended: AppendTime,
    pub(crate) body: Delivered,
}

/// Answers of the tower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    End,
    Bounds(Bounds),
    Time(Sequence),
    Refused(Refusal),
}
