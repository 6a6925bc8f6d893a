//! Knowledge of the other nodes: by gossip, or by a fixed list of peers. Either way it is a core that takes what has
//! happened and gives datagrams.

use airmail_membership::{
    Card, Datagram, Input, Member, MemberId, Membership, PeerInput, PeerList, Place, SealError,
};
use airmail_model::Mono;
use std::net::SocketAddr;

/// The core of a node's membership.
pub(crate) enum Knowledge {
    /// Nodes tell each other of all.
    Gossip(Box<Membership>),
    /// Each asks all others.
    PeerList(Box<PeerList>),
}

/// Everything that happens to it.
pub(crate) enum Event<'a> {
    /// Time has passed.
    Tick,
    /// A datagram has come from there.
    Datagram(SocketAddr, &'a [u8]),
    /// A node was met by a link, which gossip begins with; of a list it is no news.
    Met(MemberId),
    /// A name in the list leads to this address; without a list there is none.
    Found(Place, SocketAddr),
    /// The node says this of itself from now on.
    Card(Card),
    /// The node stops.
    Leave,
}

impl Knowledge {
    /// Takes one thing that has happened; appends to `out` what is to be sent, and tells when to come back at the
    /// latest.
    ///
    /// # Errors
    /// A datagram that was dropped, with the reason.
    pub(crate) fn step(
        &mut self,
        now: Mono,
        event: Event<'_>,
        out: &mut Vec<Datagram>,
    ) -> Result<Mono, SealError> {
        match self {
            Knowledge::Gossip(membership) => {
                let input = match event {
                    Event::Tick | Event::Found(..) => Input::Tick,
                    Event::Datagram(_, bytes) => Input::Datagram(bytes),
                    Event::Met(member) => Input::Join(member),
                    Event::Card(card) => Input::Card(card),
                    Event::Leave => Input::Leave,
                };
                membership.step(now, input, out)
            }
            Knowledge::PeerList(list) => {
                let input = match event {
                    Event::Tick | Event::Met(_) => PeerInput::Tick,
                    Event::Datagram(from, bytes) => PeerInput::Datagram(from, bytes),
                    Event::Found(place, address) => PeerInput::Found(place, address),
                    Event::Card(card) => PeerInput::Card(card),
                    Event::Leave => PeerInput::Leave,
                };
                list.step(now, input, out)
            }
        }
    }

    /// The card of this node.
    pub(crate) fn own(&self) -> &Card {
        match self {
            Knowledge::Gossip(membership) => membership.own(),
            Knowledge::PeerList(list) => list.own(),
        }
    }

    /// The other nodes, by name.
    pub(crate) fn members(&self) -> Vec<&Member> {
        match self {
            Knowledge::Gossip(membership) => membership.members().collect(),
            Knowledge::PeerList(list) => list.members().collect(),
        }
    }

    /// Rises whenever anything changes that [`Knowledge::members`] tells.
    pub(crate) fn version(&self) -> u64 {
        match self {
            Knowledge::Gossip(membership) => membership.version(),
            Knowledge::PeerList(list) => list.version(),
        }
    }
}
