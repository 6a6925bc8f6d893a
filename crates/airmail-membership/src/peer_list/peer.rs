//! Peers: the addresses of a fixed list, and who is known to be there.

use crate::card::Card;
use crate::member::{Member, MemberId, Standing};
use airmail_model::{Mono, NodeId};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Time without an answer after which a node is suspect: five questions.
const SUSPECT_AFTER: Duration = Duration::from_millis(1_250);
/// Time without an answer after which it is down: as a suspect it has three seconds.
const DOWN_AFTER: Duration = Duration::from_millis(4_250);
/// A node that has answered.
#[derive(Clone, Debug)]
pub(super) struct Met {
    pub(super) id: MemberId,
    card: Card,
    /// When it answered last.
    pub(super) heard: Mono,
}

impl Met {
    fn standing(&self, now: Mono) -> Standing {
        let silence = now.since(self.heard);
        if self.card.leaving {
            Standing::Left
        } else if silence >= DOWN_AFTER {
            Standing::Down
        } else if silence >= SUSPECT_AFTER {
            Standing::Suspect
        } else {
            Standing::Live
        }
    }

    /// Takes a later card of the same start.
    pub(super) fn take(&mut self, card: &Card) {
        if card.boot == self.card.boot && card.age() > self.card.age() {
            self.card.clone_from(card);
        }
    }

    /// Whether another start is to be in its place, which has answered at its address. One that began before it may
    /// have been overtaken, unless it is of another node, and this one is silent.
    fn gives_way(&self, other: &MemberId, now: Mono) -> bool {
        let is_silent = self.standing(now) != Standing::Live;
        other.boot >= self.id.boot || (other.name != self.id.name && is_silent)
    }
}

/// The node that is at a place.
#[derive(Clone, Debug)]
pub(super) enum Who {
    /// Nobody has answered there yet.
    Nobody,
    /// This one.
    Own,
    /// Another one.
    Met(Box<Met>),
}

/// An address of the list.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// The address as it is listed.
    listed: String,
    /// The address that it leads to.
    pub(super) address: Option<SocketAddr>,
    pub(super) who: Who,
}

impl Peer {
    pub(super) fn new(listed: String) -> Peer {
        Peer {
            listed,
            address: None,
            who: Who::Nobody,
        }
    }

    /// Takes an answer of a start that is there, and says this of itself.
    pub(super) fn meet(&mut self, now: Mono, id: MemberId, card: Card) {
        match &mut self.who {
            Who::Met(met) if (met.id.boot, &met.id.name) == (id.boot, &id.name) => {
                met.id = id;
                met.heard = now;
                met.take(&card);
            }
            Who::Met(met) if !met.gives_way(&id, now) => {}
            who => {
                let heard = now;
                *who = Who::Met(Box::new(Met { id, card, heard }));
            }
        }
    }

    /// The member that it is, after all were asked for so long. Since when it is so is not known here.
    pub(super) fn member(&self, now: Mono, asked_for: Duration) -> Option<Member> {
        let (id, card, standing) = match &self.who {
            Who::Met(met) => (met.id.clone(), Some(met.card.clone()), met.standing(now)),
            Who::Nobody if asked_for >= DOWN_AFTER => {
                let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
                let address = self.address.unwrap_or(nowhere);
                let id = MemberId::new(&*self.listed, NodeId(0), 0, address);
                (id, None, Standing::Down)
            }
            Who::Own | Who::Nobody => return None,
        };
        Some(Member {
            id,
            card,
            standing,
            since: now,
        })
    }
}
