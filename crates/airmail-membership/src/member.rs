//! Members: starts of nodes, and what is known of them.

use crate::card::Card;
use airmail_model::{Mono, NodeId};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// One start of a node, as others know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberId {
    /// Name of the node, unique in its cluster.
    pub name: String,
    /// Number of the node.
    pub node: u64,
    /// Rises with each start of the node.
    pub boot: u64,
    /// Times that it has joined again in this start, because others had taken it for down.
    pub renewals: u32,
    /// Where its datagrams go.
    pub address: SocketAddr,
}

impl MemberId {
    /// A start that has just begun.
    #[must_use]
    pub fn new(name: impl Into<String>, node: NodeId, boot: u64, address: SocketAddr) -> MemberId {
        MemberId {
            name: name.into(),
            node: node.0,
            boot,
            renewals: 0,
            address,
        }
    }

    fn age(&self) -> (u64, u32, u64) {
        (self.boot, self.renewals, self.node)
    }
}

impl foca::Identity for MemberId {
    type Addr = String;

    fn renew(&self) -> Option<MemberId> {
        Some(MemberId {
            renewals: self.renewals.wrapping_add(1),
            ..self.clone()
        })
    }

    fn addr(&self) -> String {
        self.name.clone()
    }

    fn win_addr_conflict(&self, adversary: &MemberId) -> bool {
        self.age() > adversary.age()
    }
}

/// Standing of a member, as a node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It answers.
    Live,
    /// It has not answered lately, and may still object.
    Suspect,
    /// It has not answered and not objected.
    Down,
    /// It has said that it stops.
    Left,
}

/// A member, as a node sees it.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its start.
    pub id: MemberId,
    /// Its card. `None`: none has come yet.
    pub card: Option<Card>,
    /// Its standing.
    pub standing: Standing,
    /// Since when it has been so, by the clock of who looks.
    pub since: Mono,
}
