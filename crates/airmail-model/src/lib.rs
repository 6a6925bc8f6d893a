//! Airmail's vocabulary: the types that every part of the system shares.
//!
//! No I/O, no async: everything here is a value, but for [`clock`], by which programs read the
//! time. The stored and delivered format of messages is [`batch`]; the protocol between a client
//! and a node, before it is put on any wire, is [`frame`]; that of mailboxes is [`mailbox`]; every
//! error a user can see comes from one table, [`error`]. Programmer errors are reported through
//! [`mod@bug`]. Which messages somebody wants is said by a [`filter`], and of which topics by a
//! [`selector`]; which of them may be handed over, and until when, by a [`verdict`].

#![forbid(unsafe_code)]

pub mod batch;
pub mod bug;
pub mod clock;
pub mod durability;
pub mod error;
pub mod filter;
pub mod frame;
pub mod holder;
pub mod id;
pub mod lane_bytes;
pub mod lane_turns;
pub mod limits;
pub mod mailbox;
pub mod map;
pub mod namespace;
pub mod position;
pub mod provisions;
pub mod quantity;
pub mod random;
pub mod role;
pub mod selector;
pub mod storage_name;
pub mod time;
pub mod topic;
pub mod verdict;

pub use batch::{Batch, BatchEncoder, Checked, Message, Slice};
pub use durability::{Durability, ParseDurabilityError, Synced};
pub use error::{Error, ErrorCode, RetiredCode};
pub use holder::Holder;
pub use id::{
    Extent, GroupId, Incarnation, Lane, LogId, LogIndex, MapEpoch, NamespaceId, NodeId,
    ProducerEpoch, ProducerId, ProducerSequence, RoleId, Sequence, Term, TopicHash,
};
pub use lane_bytes::LaneBytes;
pub use lane_turns::{LaneTurns, NormalShare};
pub use limits::Limits;
pub use map::LogMap;
pub use namespace::{EarlierLogs, Namespace, NamespaceSpec, Retention};
pub use position::Position;
pub use provisions::Provisions;
pub use role::Role;
pub use storage_name::StorageName;
pub use time::{AppendTime, Mono, Now, Wall};
pub use topic::TopicName;
