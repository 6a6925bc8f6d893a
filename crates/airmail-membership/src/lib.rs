//! Membership: which nodes a cluster has, where they are, and how they are.
//!
//! Nodes find out by gossip (SWIM: Das, Gupta, Motivala 2002), which the library `foca` does: each asks another now
//! and then whether it lives, has others ask where that fails, and tells all of what it finds with the same
//! datagrams. A node that does not answer is *suspect* first, and *down* only when it has not objected for a while.
//! With the same datagrams goes a [`Card`] of each node: what it says of itself.
//!
//! Gossip spreads who is where. It never decides who may write: that is the storages' own.
//!
//! Where all addresses are known beforehand, nodes need no gossip: each asks all others of a fixed list by itself, and
//! nobody tells of others.
//!
//! - [`Membership`]: the core of gossip. It takes datagrams and the time, and gives datagrams. There is no socket, clock
//!   or randomness of the system's in it, so that a simulator runs it as it is.
//! - [`PeerList`]: the core of a fixed list, in the same manner.
//! - [`MemberId`], [`Card`], [`Member`]: a start of a node; what it says of itself; what is known of it.
//! - [`Seal`]: what shows that a datagram is of the cluster, and that it is no old one again.
//!
//! Invariants: a node that was started again takes the place of its earlier start at once, wherever it is now; of
//! two nodes with one name the one that started later is kept (the link's handshake refuses the other); memory is
//! bounded by the number of names in [`FORGOTTEN`], or by the length of the list.

#![forbid(unsafe_code)]

mod card;
mod member;
mod membership;
mod peer_list;
mod seal;
#[cfg(test)]
mod simulated_network;

pub use card::{CARD_BYTES_MAX, Card, CardError, TreeCard, Ways};
pub use member::{Member, MemberId, Standing};
pub use membership::{
    DATAGRAM_BYTES_MAX, Datagram, FORGOTTEN, Input, Membership, MembershipConfig,
};
pub use peer_list::{PEERS_MAX, PeerInput, PeerList, Place};
pub use seal::{Seal, SealError, Speech};
