//! The core of a cluster whose nodes are a fixed list of addresses.
//!
//! A node *asks* at each address of the list four times a second, and whoever is there *answers*. Both carry the card of
//! who says it. A question names the place that the address has in the list of who asks, and the answer repeats it: so
//! a node learns who is at which place by the answer itself, whatever address that seems to come from, and finds its
//! own place by hearing itself. Answers alone are signs of life, since they show that both ways are open. Each node
//! judges by itself; nobody tells of others. Whoever asks is answered, be it on the list or not, so that a list can be
//! made longer one node after another.
//!
//! Invariants: an earlier start of a node does not take the place of a later one; a member that has left stays so until
//! it is started again; memory is bounded by the list.

mod peer;
mod said;

use crate::card::{self, Card};
use crate::member::{Member, MemberId, Standing};
use crate::membership::Datagram;
use crate::seal::{Seal, SealError, Speech};
use airmail_model::{Mono, NodeId};
use peer::{Peer, Who};
use said::Said;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::time::Duration;

/// Most addresses of a list.
pub const PEERS_MAX: usize = 32;

/// Time between two questions at an address.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// Time between two steps beyond which it was this node that stood still: others could not answer what it did not ask.
const OWN_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Times that a node says that it leaves, since it waits for no answer.
const LEAVE_TIMES: usize = 3;

/// Place of an address in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub u16);

/// Everything that happens to a node with a fixed list.
#[derive(Clone, Debug)]
pub enum PeerInput<'a> {
    /// Time has passed.
    Tick,
    /// The name at a place leads to this address.
    Found(Place, SocketAddr),
    /// A datagram has come from there.
    Datagram(SocketAddr, &'a [u8]),
    /// The node says this of itself from now on. Its name, boot and count are filled in.
    Card(Card),
    /// The node stops, and says so.
    Leave,
}

/// A node's view of a cluster whose nodes are a fixed list. See the module's documentation.
///
/// ```
/// use airmail_membership::{Card, MemberId, PeerInput, PeerList, Place, Seal};
/// use airmail_model::{Mono, NodeId};
/// use std::net::SocketAddr;
///
/// let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
/// let node = |name: &str, port: u16, peer: u16| {
///     let id = MemberId::new(name, NodeId(port.into()), 1, at(port));
///     let seal = Seal::new(5, None, name, 1);
///     let mut node = PeerList::new(id, [at(peer).to_string()], seal, Card::default());
///     let mut out = Vec::new();
///     node.step(Mono(0), PeerInput::Found(Place(0), at(peer)), &mut out).unwrap();
///     (node, out)
/// };
/// let (mut a, questions) = node("a", 1, 2);
/// let (mut b, _) = node("b", 2, 1);
/// let (mut answers, mut out) = (Vec::new(), Vec::new());
/// for datagram in questions {
///     b.step(Mono(0), PeerInput::Datagram(at(1), &datagram.bytes), &mut answers).unwrap();
/// }
/// for datagram in answers {
///     a.step(Mono(0), PeerInput::Datagram(at(2), &datagram.bytes), &mut out).unwrap();
/// }
/// assert_eq!(a.members().next().unwrap().id.name, "b");
/// ```
#[derive(Debug)]
pub struct PeerList {
    id: MemberId,
    own: Card,
    seal: Seal,
    peers: Vec<Peer>,
    members: BTreeMap<String, Member>,
    /// Rises when anything that is known of members changes.
    version: u64,
    /// The first step, but for times that this node stood still.
    begun: Option<Mono>,
    stepped: Mono,
    next_ask: Mono,
    has_left: bool,
}

impl PeerList {
    /// A start of a node that says this of itself, and has heard of nobody yet. What is listed is shown for nodes that
    /// do not answer; where it leads to is told by [`PeerInput::Found`]. Of a list that is too long the end is left out.
    #[must_use]
    pub fn new(
        id: MemberId,
        listed: impl IntoIterator<Item = String>,
        seal: Seal,
        card: Card,
    ) -> PeerList {
        PeerList {
            own: Card {
                name: id.name.clone(),
                boot: id.boot,
                count: 0,
                ..card
            },
            id,
            seal: seal.speaking(Speech::PeerList),
            peers: listed.into_iter().take(PEERS_MAX).map(Peer::new).collect(),
            members: BTreeMap::new(),
            version: 0,
            begun: None,
            stepped: Mono(0),
            next_ask: Mono(0),
            has_left: false,
        }
    }

    /// The card of this node.
    #[must_use]
    pub fn own(&self) -> &Card {
        &self.own
    }

    /// The other nodes, by name. One that has not answered since this one began is shown, as down, by its address in the
    /// list.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// Rises whenever anything changes that [`PeerList::members`] tells.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Takes one thing that has happened; appends to `out` what is to be sent, and tells when to come back at the
    /// latest.
    ///
    /// # Errors
    /// A datagram that was dropped, with the reason.
    pub fn step(
        &mut self,
        now: Mono,
        input: PeerInput<'_>,
        out: &mut Vec<Datagram>,
    ) -> Result<Mono, SealError> {
        if self.has_left {
            return Ok(Mono::NEVER);
        }
        self.leave_out_own_pause(now);
        let taken = self.take(now, input, out);
        if self.has_left {
            return Ok(Mono::NEVER);
        }
        if now >= self.next_ask {
            self.ask(out);
            self.next_ask = now.plus(ASK_EVERY);
        }
        self.look(now);
        taken.map(|()| self.next_ask)
    }

    /// Time in which this node stood still is nobody's silence.
    fn leave_out_own_pause(&mut self, now: Mono) {
        let begun = *self.begun.get_or_insert(now);
        let pause = now.since(self.stepped.max(begun));
        self.stepped = now;
        if pause <= OWN_PAUSE_MAX {
            return;
        }
        self.begun = Some(begun.plus(pause));
        for peer in &mut self.peers {
            if let Who::Met(met) = &mut peer.who {
                met.heard = met.heard.plus(pause);
            }
        }
    }

    fn take(
        &mut self,
        now: Mono,
        input: PeerInput<'_>,
        out: &mut Vec<Datagram>,
    ) -> Result<(), SealError> {
        match input {
            PeerInput::Tick => {}
            PeerInput::Found(place, address) => self.find(place, address),
            PeerInput::Datagram(from, bytes) => {
                let said = Said::decode(self.seal.open(bytes)?)?;
                self.hear(now, from, said, out);
            }
            PeerInput::Card(card) => {
                self.own = Card {
                    name: std::mem::take(&mut self.own.name),
                    boot: self.own.boot,
                    count: self.own.count + 1,
                    ..card
                };
                self.ask(out);
            }
            PeerInput::Leave => {
                self.own.leaving = true;
                self.own.count += 1;
                (0..LEAVE_TIMES).for_each(|_| self.ask(out));
                self.has_left = true;
            }
        }
        Ok(())
    }

    fn find(&mut self, place: Place, address: SocketAddr) {
        if let Some(peer) = self.peers.get_mut(usize::from(place.0))
            && peer.address != Some(address)
        {
            peer.address = Some(address);
            if matches!(peer.who, Who::Own) {
                // It is asked anew whose it is.
                peer.who = Who::Nobody;
            }
            self.next_ask = Mono(0);
        }
    }

    /// Asks all others.
    fn ask(&mut self, out: &mut Vec<Datagram>) {
        let mut said = Said {
            is_question: true,
            place: Place(0),
            asker: self.id.boot,
            node: NodeId(self.id.node),
            card: self.own.clone(),
        };
        for (place, peer) in (0..).map(Place).zip(&self.peers) {
            let is_other = !matches!(peer.who, Who::Own);
            if let Some(to) = peer.address.filter(|_| is_other) {
                said.place = place;
                let bytes = self.seal.seal(&said.encode());
                out.push(Datagram { to, bytes });
            }
        }
    }

    fn hear(&mut self, now: Mono, from: SocketAddr, said: Said, out: &mut Vec<Datagram>) {
        if said.card.name == self.id.name {
            let is_own = said.node.0 == self.id.node && said.card.boot == self.id.boot;
            let peer = self.peers.get_mut(usize::from(said.place.0));
            // Else it is another node of this name, which is none for this one.
            if let Some(peer) = peer.filter(|_| is_own) {
                peer.who = Who::Own;
            }
            return;
        }
        if !said.is_question {
            self.meet(now, from, said);
            return;
        }
        for peer in &mut self.peers {
            if let Who::Met(met) = &mut peer.who
                && met.id.name == said.card.name
            {
                met.take(&said.card);
            }
        }
        if !said.card.leaving {
            let answer = Said {
                is_question: false,
                node: NodeId(self.id.node),
                card: self.own.clone(),
                ..said
            };
            let bytes = self.seal.seal(&answer.encode());
            out.push(Datagram { to: from, bytes });
        }
    }

    /// Takes an answer.
    fn meet(&mut self, now: Mono, from: SocketAddr, said: Said) {
        // Else it was asked by an earlier start of this node, whose list may have been another.
        let peer = self.peers.get_mut(usize::from(said.place.0));
        if let Some(peer) = peer.filter(|_| said.asker == self.id.boot) {
            let address = peer.address.unwrap_or(from);
            let id = MemberId::new(said.card.name.clone(), said.node, said.card.boot, address);
            peer.meet(now, id, said.card);
        }
    }

    /// Takes note of how the members are now.
    fn look(&mut self, now: Mono) {
        let mut members: BTreeMap<String, Member> = BTreeMap::new();
        let waited = now.since(self.begun.unwrap_or(now));
        let seen = self.peers.iter();
        for member in seen.filter_map(|peer| peer.member(now, waited)) {
            match members.entry(member.id.name.clone()) {
                Entry::Vacant(place) => {
                    place.insert(member);
                }
                // It has two places, or has moved from one to another.
                Entry::Occupied(mut place) => {
                    let rank =
                        |member: &Member| (member.id.boot, member.standing == Standing::Live);
                    if rank(&member) > rank(place.get()) {
                        place.insert(member);
                    }
                }
            }
        }
        let mut changed = members.len() != self.members.len();
        for (name, member) in &mut members {
            match self.members.get(name) {
                Some(known) if known.id == member.id && known.standing == member.standing => {
                    member.since = known.since;
                    changed |= !card::say_the_same(known.card.as_ref(), member.card.as_ref());
                }
                _ => changed = true,
            }
        }
        self.members = members;
        self.version += u64::from(changed);
    }
}

#[cfg(test)]
mod tests;
