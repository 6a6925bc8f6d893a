//! The link: a log storage whose logs are at the other end of a connection.
//!
//! Several shards of one process each own a part of the logs, and each serves clients of all logs. What
//! crosses between two shards is the storage contract as values: calls one way, completions the other. So a
//! shard does not know that a log is another's: its storage, a [`ShardedStorage`], passes the calls for such a
//! log to the log's *home*.
//!
//! ```text
//!        shard 0                                   shard 1
//!  ┌─ ShardedStorage ───────┐               ┌─ ShardedStorage ───────┐
//!  │ LinkStorage (of 1)   ──┼── RingPorts ──┼──▶ HostedStorage       │
//!  │ HostedStorage      ◀───┼── RingPorts ──┼─── LinkStorage (of 0)  │
//!  │   its own storage      │               │      its own storage   │
//!  └────────────────────────┘               └────────────────────────┘
//! ```
//!
//! - [`LinkStorage`]: the near end. It keeps what is not answered, so a connection may be cut at any moment
//!   and be made again: it asks again, and goes on reading where each reader stands.
//! - [`HostedStorage`]: the far end, around a storage that its own shard uses too.
//! - [`ToHost`], [`FromHost`]: the messages. [`Port`]: whatever carries them. [`RingPort`]: a port between two
//!   threads.
//! - [`LogHomes`]: which shard has which log. [`join`]: the storages of all shards of a process, linked.
//!   [`RemoteStorage`]: that of a process whose logs are all another's. [`TowersStorage`]: that of one whose logs
//!   each are at several others.
//!
//! Invariants of a link, which `tests/cuts.rs` holds it to:
//!
//! - What was acknowledged is stored, once where its producer is named.
//! - Appends to one log are sent, and answered, in the order of the calls, across every cut.
//! - A refusal that says *not stored* is only told if no attempt at that batch can have been stored.
//! - A reader's numbers are tiled without a hole or an overlap, across every cut.
//! - A log that moves from one tower to another keeps all of this.
//! - Every queue is bounded: appends by bytes, calls by number, deliveries by bytes and number.

#![forbid(unsafe_code)]

mod cached_storage;
mod homes;
mod hosted_storage;
mod join;
mod limits;
mod link_storage;
mod message;
mod port;
mod remote_storage;
mod ring;
mod routes;
#[cfg(feature = "sabotage")]
pub mod sabotage;
mod sharded_storage;
mod tiling;
mod tower_ranks;
mod towers_storage;
mod tree_node;

pub use cached_storage::{CacheLimits, CacheState, CachedStorage};
pub use homes::{LogHomes, TwoHomes};
pub use hosted_storage::{HostPort, HostedStorage};
pub use join::join;
pub use limits::LinkLimits;
pub use link_storage::LinkStorage;
pub use message::{FromHost, ToHost};
pub use port::{Event, Port};
pub use remote_storage::RemoteStorage;
pub use ring::{RingPort, ring};
pub use sharded_storage::ShardedStorage;
pub use tower_ranks::{TowerName, towers_of};
pub use towers_storage::{Tower, TowerLimits, TowersStorage};
pub use tree_node::{Ancestor, Heartbeat, NoChild, TreeInput, TreeLimits, TreeNode};
