//! Messages of a link: two closed enums, and nothing else crosses.
//!
//! Each names its *generation*: the count of the connection that it is of, as the near end counts. A
//! message of another generation than the present one is dropped at either end, for whatever it says was
//! asked again, or is told again.
//!
//! Tags and readers in them are the near end's own. A reader of the link is never used twice: one that is
//! resumed has a new one, so that what comes late of the earlier one is known by it.

use crate::tree_node::Heartbeat;
use airmail_log::{Call, Completion, ReaderId};
use airmail_model::Sequence;

/// Messages of the near end, which asks, to the far end, which has the logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHost {
    /// A generation begins: whatever an earlier one asked is void.
    Begin {
        /// Count of the connection.
        generation: u64,
    },
    /// A call of the storage contract.
    Call {
        /// Generation that it is of.
        generation: u64,
        /// The call, under tags and readers of the link.
        call: Call,
    },
    /// A reader of what is wanted goes on as another, with what is wanted of it.
    Resume {
        /// Generation that both are of.
        generation: u64,
        /// The reader that it was.
        of: ReaderId,
        /// The call that starts the other.
        call: Call,
    },
    /// The near end closes: no append of its follows.
    Closing {
        /// Generation that it is of.
        generation: u64,
    },
    /// In a tree, from node to node beside what the link is for: of a child to its parent.
    Below {
        /// Children of the child.
        children: u32,
        /// The child's time, in microseconds; it comes back in a heartbeat.
        asked_us: u64,
    },
}

/// Messages of the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromHost {
    /// A completion that is no range: an answer, a mark of a reader, or an event of a log.
    Told {
        /// Generation of the call.
        generation: u64,
        /// The completion, under the link's tags and readers.
        completion: Completion,
    },
    /// The next numbers of a reader: all after `previous`, up to the last of the batch or gap.
    Range {
        /// Generation of the reader.
        generation: u64,
        /// The last number that the reader was told of before.
        previous: Sequence,
        /// A batch or a gap.
        completion: Completion,
    },
    /// There was no room for what a reader got: nothing more comes of it. It is to be resumed from the first
    /// number that it was not told of.
    Behind {
        /// Generation of the reader.
        generation: u64,
        /// The reader.
        r: ReaderId,
    },
    /// In a tree, from node to node beside what the link is for: of a parent to its child.
    Heartbeat {
        /// The root's heartbeat.
        heartbeat: Box<Heartbeat>,
        /// The time of the question that it answers; 0 of one that answers none.
        asked_us: u64,
    },
}

impl FromHost {
    /// Generation that it is of. 0: of none.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        match self {
            FromHost::Told { generation, .. }
            | FromHost::Range { generation, .. }
            | FromHost::Behind { generation, .. } => *generation,
            FromHost::Heartbeat { .. } => 0,
        }
    }

    /// The reader that it is of, as the link counts them.
    pub(crate) fn run(&self) -> Option<ReaderId> {
        match self {
            FromHost::Told { completion, .. } | FromHost::Range { completion, .. } => {
                completion.reader()
            }
            FromHost::Behind { r, .. } => Some(*r),
            FromHost::Heartbeat { .. } => None,
        }
    }

    /// Bytes of the batch in it; 0 where there is none.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            FromHost::Range {
                completion: Completion::Batch { stored, .. },
                ..
            } => stored.batch.bytes().len() as u64,
            FromHost::Range { .. }
            | FromHost::Told { .. }
            | FromHost::Behind { .. }
            | FromHost::Heartbeat { .. } => 0,
        }
    }
}
