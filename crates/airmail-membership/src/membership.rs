//! The core of membership: `foca` with its timers, the cards that travel with it, and what is known of each member.
//!
//! `foca` asks for timers, sends to members and tells what changes; here these are values. A node joins by a member
//! that it knows from somewhere else (a link's handshake) and asks again as long as that one is not there. Every node
//! says its card again each second or so, since a card is lost to whoever comes later.

use crate::card::{self, Card, CardError};
use crate::member::{Member, MemberId, Standing};
use crate::seal::{SEAL_BYTES_MAX, Seal, SealError};
use airmail_model::Mono;
use foca::{
    BroadcastHandler, Config, Foca, Invalidates, Notification, PeriodicParams, PostcardCodec,
    Runtime, State, Timer,
};
use foca_rand::SeedableRng;
use foca_rand::rngs::SmallRng;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU8, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

/// Most bytes of a datagram: it crosses any network in one piece.
pub const DATAGRAM_BYTES_MAX: usize = 1400;
/// Time for which a member is remembered after it went down.
pub const FORGOTTEN: Duration = Duration::from_secs(3600);

/// Time between two questions of a node whether another one lives, and for a direct answer.
const PROBE_EVERY: Duration = Duration::from_millis(400);
const PROBE_ANSWER: Duration = Duration::from_millis(200);
/// Time that a suspect has to object: with a few questions before it, everybody knows of a dead node within five seconds.
const SUSPECT: Duration = Duration::from_millis(2200);
/// Time after which `foca` is told that a suspect is down: it forgets its timers when another node has taken this one for
/// dead, as one does that hears nothing.
const SUSPECT_MOST: Duration = Duration::from_millis(2600);
/// Time between two rounds of gossip, and the nodes that each goes to.
const GOSSIP_EVERY: Duration = Duration::from_millis(200);
const GOSSIP_TO: NonZeroUsize = NonZeroUsize::new(3).unwrap();
/// Time between two questions for members that are not known, and for those that were down.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(10);
const ANNOUNCE_DOWN_EVERY: Duration = Duration::from_secs(2);
/// Times that a piece of news is sent on by each node.
const TRANSMISSIONS: NonZeroU8 = NonZeroU8::new(10).unwrap();
/// Time between two attempts to join.
const JOIN_EVERY: Duration = Duration::from_secs(1);
/// Time between two of a node's cards: the first at least, and so much for each member.
const CARD_EVERY: Duration = Duration::from_secs(1);
const CARD_EVERY_OF_ONE: Duration = Duration::from_millis(50);

/// Time between two times at which it is said for a node that it has left: whoever was cut off has not heard it.
const LEFT_EVERY: Duration = Duration::from_secs(5);

/// Cards of nodes that are no members that are kept: one may come before its node is known. Beyond it all such go.
const CARDS_SPARE: usize = 64;

/// A datagram to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The receiver.
    pub to: SocketAddr,
    /// The bytes, sealed.
    pub bytes: Vec<u8>,
}

/// Everything that happens to a node's membership.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Time has passed.
    Tick,
    /// A datagram has come.
    Datagram(&'a [u8]),
    /// A member is known from elsewhere: the cluster is to be joined by it.
    Join(MemberId),
    /// The node says this of itself from now on. Its name, boot and count are filled in.
    Card(Card),
    /// The node stops, and says so.
    Leave,
}

/// Settings of a node's membership.
#[derive(Clone, Debug)]
pub struct MembershipConfig {
    /// The node's own start.
    pub id: MemberId,
    /// Seed of the choice of whom to ask.
    pub seed: u64,
}

/// The order of a node's cards.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CardKey(String);

impl Invalidates for CardKey {
    fn invalidates(&self, other: &CardKey) -> bool {
        self == other
    }
}

/// The last card of each node.
#[derive(Clone, Debug, Default)]
struct Cards(Arc<Mutex<BTreeMap<String, Card>>>);

impl BroadcastHandler<MemberId> for Cards {
    type Key = CardKey;
    type Error = CardError;

    fn receive_item(
        &mut self,
        data: &[u8],
        _sender: Option<&MemberId>,
    ) -> Result<Option<CardKey>, CardError> {
        let card = Card::decode(data)?;
        let mut cards = self.0.lock();
        let known = cards.get(&card.name);
        if known.is_some_and(|known| known.age() >= card.age()) {
            return Ok(None);
        }
        let key = CardKey(card.name.clone());
        cards.insert(card.name.clone(), card);
        Ok(Some(key))
    }
}

/// Wishes of `foca` in one step.
#[derive(Debug, Default)]
struct Wishes {
    send: Vec<(SocketAddr, Vec<u8>)>,
    timers: Vec<(Timer<MemberId>, Duration)>,
}

impl Runtime<MemberId> for &mut Wishes {
    fn notify(&mut self, _notification: Notification<'_, MemberId>) {}

    fn send_to(&mut self, to: MemberId, data: &[u8]) {
        self.send.push((to.address, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<MemberId>, after: Duration) {
        self.timers.push((event, after));
    }
}

/// A node's view of its cluster. See the module's documentation.
///
/// ```
/// use airmail_membership::{Card, Input, MemberId, Membership, MembershipConfig, Seal};
/// use airmail_model::{Mono, NodeId};
///
/// let node = |name: &str, port: u16| {
///     let id = MemberId::new(name, NodeId(port.into()), 1, ([127, 0, 0, 1], port).into());
///     let config = MembershipConfig { id, seed: 1 };
///     Membership::new(config, Seal::new(5, None, name, 1), Card::default())
/// };
/// let (mut a, mut b) = (node("a", 1), node("b", 2));
/// let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
/// a.step(Mono(0), Input::Join(b.id().clone()), &mut of_a).unwrap();
/// for datagram in of_a.drain(..) {
///     b.step(Mono(0), Input::Datagram(&datagram.bytes), &mut of_b).unwrap();
/// }
/// assert_eq!(b.members().next().unwrap().id.name, "a");
/// ```
pub struct Membership {
    foca: Foca<MemberId, PostcardCodec, SmallRng, Cards>,
    cards: Cards,
    seal: Seal,
    own: Card,
    timers: BTreeMap<(Mono, u64), Timer<MemberId>>,
    timers_set: u64,
    /// Members by which the cluster is to be joined.
    contacts: BTreeMap<String, MemberId>,
    members: BTreeMap<String, Member>,
    /// Rises when anything that is known of members changes.
    version: u64,
    next_card: Mono,
    next_left: Mono,
    next_join: Mono,
    has_left: bool,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership")
            .field("id", self.id())
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

fn swim() -> Config {
    let every = |frequency, num_members| {
        Some(PeriodicParams {
            frequency,
            num_members,
        })
    };
    Config {
        probe_period: PROBE_EVERY,
        probe_rtt: PROBE_ANSWER,
        suspect_to_down_after: SUSPECT,
        remove_down_after: Some(FORGOTTEN),
        max_transmissions: TRANSMISSIONS,
        max_packet_size: NonZeroUsize::new(DATAGRAM_BYTES_MAX - SEAL_BYTES_MAX)
            .unwrap_or(NonZeroUsize::MIN),
        notify_down_members: true,
        periodic_announce: every(ANNOUNCE_EVERY, NonZeroUsize::MIN),
        periodic_announce_to_down_members: every(ANNOUNCE_DOWN_EVERY, GOSSIP_TO),
        periodic_gossip: every(GOSSIP_EVERY, GOSSIP_TO),
        ..Config::simple()
    }
}

impl Membership {
    /// Membership of a node that knows nobody yet, and says this of itself.
    #[must_use]
    pub fn new(config: MembershipConfig, seal: Seal, card: Card) -> Membership {
        let cards = Cards::default();
        let random = SmallRng::seed_from_u64(config.seed);
        let own = Card {
            name: config.id.name.clone(),
            boot: config.id.boot,
            count: 0,
            ..card
        };
        let foca =
            Foca::with_custom_broadcast(config.id, swim(), random, PostcardCodec, cards.clone());
        Membership {
            foca,
            cards,
            seal,
            own,
            timers: BTreeMap::new(),
            timers_set: 0,
            contacts: BTreeMap::new(),
            members: BTreeMap::new(),
            version: 0,
            next_card: Mono(0),
            next_left: Mono(0),
            next_join: Mono(0),
            has_left: false,
        }
    }

    /// This node's start.
    #[must_use]
    pub fn id(&self) -> &MemberId {
        self.foca.identity()
    }

    /// The card of this node.
    #[must_use]
    pub fn own(&self) -> &Card {
        &self.own
    }

    /// The other members, by name.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// Rises whenever anything changes that [`Membership::members`] tells.
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
        input: Input<'_>,
        out: &mut Vec<Datagram>,
    ) -> Result<Mono, SealError> {
        if self.has_left {
            return Ok(Mono::NEVER);
        }
        let mut wishes = Wishes::default();
        let taken = self.take(input, &mut wishes);
        self.take_due(now, &mut wishes);
        for (timer, after) in wishes.timers {
            self.timers_set += 1;
            self.timers
                .insert((now.plus(after), self.timers_set), timer);
        }
        for (to, said) in wishes.send {
            let bytes = self.seal.seal(&said);
            out.push(Datagram { to, bytes });
        }
        self.look(now);
        taken?;
        let timer = self.timers.first_key_value().map(|((at, _), _)| *at);
        let next = timer.unwrap_or(Mono::NEVER).min(self.next_card);
        Ok(if self.contacts.is_empty() {
            next
        } else {
            next.min(self.next_join)
        })
    }

    fn take(&mut self, input: Input<'_>, wishes: &mut Wishes) -> Result<(), SealError> {
        match input {
            Input::Tick => {}
            Input::Datagram(bytes) => {
                let said = self.seal.open(bytes)?;
                // Input: what a node of another release says may be none of ours; it is lost like a datagram.
                let _ = self.foca.handle_data(said, &mut *wishes);
            }
            Input::Join(member) => {
                if member.name != self.own.name {
                    self.contacts.insert(member.name.clone(), member);
                    self.next_join = Mono(0);
                }
            }
            Input::Card(card) => {
                self.own = Card {
                    name: std::mem::take(&mut self.own.name),
                    boot: self.own.boot,
                    count: self.own.count,
                    ..card
                };
                self.say_card();
                let _ = self.foca.gossip(&mut *wishes);
            }
            Input::Leave => {
                self.own.leaving = true;
                self.say_card();
                let _ = self.foca.leave_cluster(&mut *wishes);
                self.has_left = true;
            }
        }
        Ok(())
    }

    /// Does what is due by now.
    fn take_due(&mut self, now: Mono, wishes: &mut Wishes) {
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let timer = entry.remove();
            // A timer of before a change of identity is void.
            let _ = self.foca.handle_timer(timer, &mut *wishes);
        }
        self.take_down_overdue(now, wishes);
        if now >= self.next_card {
            self.say_card();
            let members = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
            let every = CARD_EVERY.max(CARD_EVERY_OF_ONE.saturating_mul(members));
            self.next_card = now.plus(every);
        }
        if now >= self.next_left {
            self.say_who_left(now);
            self.next_left = now.plus(LEFT_EVERY);
        }
        if now >= self.next_join && !self.contacts.is_empty() {
            let is_there = |name: &String| {
                let member = self.members.get(name);
                member.is_some_and(|member| member.standing != Standing::Down)
            };
            let missing: Vec<MemberId> = self
                .contacts
                .iter()
                .filter(|(name, _)| !is_there(name))
                .map(|(_, member)| member.clone())
                .collect();
            for member in missing {
                let _ = self.foca.announce(member, &mut *wishes);
            }
            self.next_join = now.plus(JOIN_EVERY);
        }
    }

    /// Takes suspects down that have not objected for long.
    fn take_down_overdue(&mut self, now: Mono, wishes: &mut Wishes) {
        let is_overdue = |known: &Member| {
            known.standing == Standing::Suspect && known.since.plus(SUSPECT_MOST) <= now
        };
        if !self.members.values().any(is_overdue) {
            return;
        }
        let seen = self.foca.iter_membership_state();
        let overdue = seen.filter(|seen| {
            let known = self.members.get(&seen.id().name);
            seen.state() == State::Suspect
                && known.is_some_and(|known| known.id == *seen.id() && is_overdue(known))
        });
        let down = |seen: &foca::Member<MemberId>| {
            foca::Member::new(seen.id().clone(), seen.incarnation(), State::Down)
        };
        let down: Vec<_> = overdue.map(down).collect();
        let _ = self.foca.apply_many(down.into_iter(), true, &mut *wishes);
    }

    /// Says for nodes that have left that they have: all that live do so in turn, for any of them may be the one that
    /// has not heard it.
    fn say_who_left(&mut self, now: Mono) {
        let live = self.members.values();
        let live = live.filter(|member| member.standing == Standing::Live);
        let names: Vec<&str> = live.map(|member| &*member.id.name).collect();
        let before = names
            .iter()
            .filter(|name| **name < self.own.name.as_str())
            .count();
        let turns = names.len() as u64 + 1;
        let turn = Duration::from_nanos(now.0).as_secs() / LEFT_EVERY.as_secs();
        if turn % turns != before as u64 {
            return;
        }
        let left = self
            .members
            .values()
            .filter(|member| member.standing == Standing::Left);
        let cards: Vec<Card> = left.filter_map(|member| member.card.clone()).collect();
        for card in cards {
            let count = card.count + 1;
            // As for the own card.
            let _ = self.foca.add_broadcast(&Card { count, ..card }.encode());
        }
    }

    /// Says the own card, to be sent on with whatever is sent next.
    fn say_card(&mut self) {
        self.own.count += 1;
        // It fails for a card that is too long, which a card never is.
        let _ = self.foca.add_broadcast(&self.own.encode());
    }

    /// Takes note of how the members are now.
    fn look(&mut self, now: Mono) {
        let mut cards = self.cards.0.lock();
        if cards.len() > self.members.len() + CARDS_SPARE {
            cards.retain(|name, _| *name == self.own.name || self.members.contains_key(name));
        }
        let mut changed = false;
        let mut there = 0;
        for seen in self.foca.iter_membership_state() {
            let id = seen.id();
            there += 1;
            let card = cards.get(&id.name).filter(|card| card.boot == id.boot);
            let leaving = card.is_some_and(|card| card.leaving);
            let standing = match seen.state() {
                _ if leaving => Standing::Left,
                State::Alive => Standing::Live,
                State::Suspect => Standing::Suspect,
                State::Down => Standing::Down,
            };
            match self.members.get_mut(&id.name) {
                Some(known) => {
                    if known.standing != standing || known.id != *id {
                        known.since = now;
                        changed = true;
                    }
                    known.id.clone_from(id);
                    known.standing = standing;
                    // One of the same age is the same.
                    if known.card.as_ref().map(Card::age) != card.map(Card::age) {
                        changed |= !card::say_the_same(known.card.as_ref(), card);
                        known.card = card.cloned();
                    }
                }
                None => {
                    changed = true;
                    let member = Member {
                        id: id.clone(),
                        card: card.cloned(),
                        standing,
                        since: now,
                    };
                    self.members.insert(id.name.clone(), member);
                }
            }
        }
        // `foca` knows one start of each name, and all of them are in the map by now.
        if self.members.len() > there {
            changed = true;
            let seen = self.foca.iter_membership_state();
            let names: BTreeSet<&str> = seen.map(|seen| &*seen.id().name).collect();
            self.members.retain(|name, _| names.contains(&**name));
        }
        self.version += u64::from(changed);
    }
}

#[cfg(test)]
mod tests;
