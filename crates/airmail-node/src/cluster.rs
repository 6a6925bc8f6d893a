//! Links to and from other processes: connections, and the tasks that move what a link says over them.
//!
//! A node with a storage lets others use it (`hosting`); a node without one uses another's (`dialing`). Either
//! way a task moves bytes between a socket and the port of a shard's storage (`carrying`), on that shard's own
//! thread (`host_shard`), so that nobody is woken on another. What is said first is the handshake (`greeting`).
//!
//! In a tree a node does both: it has its logs from a parent (`climbing`), whoever that is at the moment (`tree`), and
//! hosts children of its own.
//!
//! Where several nodes have the same logs, those meet each other (`meeting`), and a gateway spreads its logs over them
//! (`following`), whose shards' storages it tells so by way of a desk (`tower_desk`).
//!
//! Who else there is the nodes find out by gossip (`membership`, `gossiping`), once they have met by a link, or by asking
//! all of a fixed list (`knowledge`, `resolving`); what this one makes of it is its view (`view`), which clients are told
//! of.
//!
//! ```text
//!   gateway process                                        process with the storage
//!   shard: RemoteStorage ── WirePort ─ carrying ══ TCP ══ carrying ─ WirePort ── HostedStorage :shard
//!                                      dialing            hosting
//! ```

mod carrying;
pub(crate) mod climbing;
pub(crate) mod credentials;
pub(crate) mod dialing;
pub(crate) mod following;
pub(crate) mod gossiping;
mod greeting;
mod hearing;
pub(crate) mod host_shard;
pub(crate) mod hosting;
mod knowledge;
mod link_end;
pub(crate) mod link_states;
pub(crate) mod meeting;
pub(crate) mod membership;
mod resolving;
pub(crate) mod tower_desk;
pub(crate) mod tree;
pub(crate) mod view;
