//! Turns of the processes that have no clients, the towers and the storage; and of a tree's nodes for their places.

use super::Roles;
use super::tree::Ambient;
use crate::evidence::Evidence;
use crate::invariants::Checked;
use crate::world::cluster::Cluster;
use airmail_log::LogStorage as _;
use airmail_model::{Mono, Now};

impl Roles {
    /// The storage behind towers is to end in good order.
    pub(in crate::world) fn close_store(&mut self, now: Now) {
        if let Some(store) = &mut self.store {
            store.close(now);
        }
    }

    /// Whether the storage behind towers has ended in good order.
    pub(in crate::world) fn is_store_closed(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_closed())
    }
}

impl Cluster {
    /// Draws which towers, and whether the storage, have a turn in this step. Gateways that have one are `awake`.
    pub(in crate::world) fn wake_nodes(&mut self, now: Mono, awake: &[bool]) {
        let Some(roles) = &mut self.roles else {
            return;
        };
        for (process, is_awake) in roles.nodes.iter_mut().zip(awake) {
            process.is_awake = *is_awake;
        }
        let nodes = roles.gateways..roles.nodes.len();
        for node in nodes {
            let dozes = self.dozes();
            if let Some(roles) = &mut self.roles {
                let is_stalled = roles.is_stalled(node, now);
                roles.nodes[node].is_awake = !is_stalled && !dozes;
            }
        }
    }

    /// A turn of the towers and of the storage; whether any has more to do now.
    pub(in crate::world) fn turn_nodes(&mut self, now: Now) -> bool {
        let Some(roles) = &mut self.roles else {
            return false;
        };
        let mut busy = false;
        let mut out = Vec::new();
        for (tower, host) in roles.towers.iter_mut().enumerate() {
            let process = &mut roles.nodes[roles.gateways + tower];
            if let (Some(host), true) = (host, process.is_awake) {
                process.wake = host.poll(now, &mut out);
                busy |= process.wake.is_some_and(|wake| wake <= now.mono);
            }
        }
        let node = roles.store_node();
        let process = &mut roles.nodes[node];
        if let (Some(store), true) = (&mut roles.store, process.is_awake) {
            process.wake = store.poll(now, &mut out);
            busy |= process.wake.is_some_and(|wake| wake <= now.mono);
        }
        let nodes = roles.nodes.iter().enumerate().skip(roles.gateways);
        let awake = nodes.filter(|(_, process)| process.is_up && process.is_awake);
        let awake: Vec<usize> = awake.map(|(node, _)| node).collect();
        busy || awake.into_iter().any(|node| self.has_due(node))
    }

    /// A turn of a tree's nodes, as far as their places go.
    pub(in crate::world) fn turn_places(&mut self, now: Mono, evidence: &mut Evidence) -> Checked {
        let Some(roles) = &mut self.roles else {
            return Ok(());
        };
        let Some(tree) = &mut roles.tree else {
            return Ok(());
        };
        tree.turn(&mut Ambient {
            now,
            nodes: &roles.nodes,
            joints: &mut self.joints,
            wires: self.wires,
            chance: &mut roles.chance,
            evidence,
        })
    }

    /// Whether the process that has the disk has a turn in this step.
    pub(in crate::world) fn is_store_awake(&self) -> bool {
        let roles = self.roles.as_ref().filter(|roles| roles.has_store());
        roles.is_some_and(|roles| roles.nodes[roles.store_node()].is_awake)
    }

    /// When a tower, or the storage, wants its next turn.
    pub(in crate::world) fn wake_of_nodes(&self) -> Option<Mono> {
        let roles = self.roles.as_ref()?;
        let nodes = roles.nodes.iter().skip(roles.gateways);
        let awake = nodes.filter(|process| process.is_up && process.is_awake);
        awake.filter_map(|process| process.wake).min()
    }
}
