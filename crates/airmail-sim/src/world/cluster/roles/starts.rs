//! Starts: processes that are due come up, with a wire to each that they use.

use super::Roles;
use crate::evidence::Evidence;
use crate::world::cluster::{Cluster, Joint};
use crate::world::node_storage::{NearPort, NodeDisk, NodeStorage};
use crate::world::wire::Wire;
use airmail_link::{CachedStorage, HostedStorage, LinkStorage, LogHomes, Tower, TowersStorage};
use airmail_log::LogStorage;
use airmail_model::Mono;
use std::sync::Arc;

impl Cluster {
    /// The storage that all towers share starts on its disk's contents.
    pub(in crate::world) fn start_store(&mut self, journal: NodeDisk) {
        let Some(roles) = &mut self.roles else {
            return;
        };
        let mut store = HostedStorage::new(journal, self.limits);
        roles.capabilities = Some(store.capabilities());
        let node = roles.store_node();
        serve(&mut store, &mut self.joints, node);
        roles.store = Some(store);
        roles.nodes[node].is_up = true;
    }

    /// Towers that are due start, once the storage has been there.
    pub(in crate::world) fn start_towers(&mut self, now: Mono, evidence: &mut Evidence) {
        let towers = self.roles.as_ref().map_or(0, |roles| roles.towers.len());
        for tower in 0..towers {
            if self.start_tower(tower, now).is_some() {
                evidence.note(format_args!("{} tower {tower} starts", now.0));
            }
        }
    }

    fn start_tower(&mut self, tower: usize, now: Mono) -> Option<()> {
        let roles = self.roles.as_mut()?;
        let capabilities = roles.capabilities?;
        let (node, store) = (roles.tower_node(tower), roles.store_node());
        if !roles.nodes[node].is_due(now) {
            return None;
        }
        let wire = Wire::new(self.wires, &mut self.chance);
        if let Some(store) = &mut roles.store {
            store.add_port(Box::new(wire.far()));
        }
        let link = LinkStorage::new(wire.near(), capabilities, self.limits);
        let storage: Box<dyn LogStorage> = match roles.cache {
            Some(cache) => Box::new(CachedStorage::new(link, cache)),
            None => Box::new(link),
        };
        let mut host = HostedStorage::new(storage, self.limits);
        serve(&mut host, &mut self.joints, node);
        self.joints.push(Joint::new(node, store, wire));
        roles.towers[tower] = Some(host);
        roles.nodes[node].is_up = true;
        Some(())
    }

    /// Gateways, or nodes of a tree below its root, that are due to start, once the storage has been there.
    pub(in crate::world) fn due_gateways(&self, now: Mono) -> Vec<usize> {
        if let Some(writers) = &self.writers {
            return writers.due(now);
        }
        let roles = self.roles.as_ref();
        let Some(roles) = roles.filter(|roles| roles.capabilities.is_some()) else {
            return Vec::new();
        };
        let gateways = usize::from(roles.tree.is_some())..roles.gateways;
        gateways
            .filter(|gateway| roles.nodes[*gateway].is_due(now))
            .collect()
    }

    /// The storage of a gateway, or of a node of a tree, that starts.
    pub(in crate::world) fn start_gateway(
        &mut self,
        gateway: usize,
        now: Mono,
    ) -> Option<NodeStorage> {
        if let Some(writers) = &mut self.writers {
            return Some(writers.start(gateway));
        }
        if self.is_tree() {
            return self.start_below(gateway, now);
        }
        self.start_of_towers(gateway).map(NodeStorage::Gateway)
    }

    fn start_of_towers(&mut self, gateway: usize) -> Option<TowersStorage<NearPort>> {
        let roles = self.roles.as_mut()?;
        let capabilities = roles.capabilities?;
        let homes = Arc::new(LogHomes::new(1));
        let mut storage: Option<TowersStorage<NearPort>> = None;
        for number in 0..roles.towers.len() {
            let wire = Wire::new(self.wires, &mut self.chance);
            if let Some(host) = &mut roles.towers[number] {
                host.add_port(Box::new(wire.far()));
            }
            let link = LinkStorage::new(wire.near(), capabilities, self.limits);
            let tower = Tower::new(Arc::clone(&homes), vec![link]);
            let node = roles.tower_node(number);
            self.joints.push(Joint::new(gateway, node, wire));
            let name = Roles::name(number);
            match &mut storage {
                Some(storage) => storage.add_tower(name, tower),
                None => {
                    storage = Some(TowersStorage::new(capabilities, roles.limits, name, tower));
                }
            }
        }
        roles.nodes[gateway].is_up = true;
        roles.news[gateway] = Mono(0);
        storage
    }
}

/// Lets a node that has started serve those that ask over wires which were made before.
fn serve<S: LogStorage>(host: &mut HostedStorage<S>, joints: &mut Vec<Joint>, node: usize) {
    joints.retain(|joint| !joint.has_ended_at(node));
    for joint in joints.iter().filter(|joint| joint.leads_to(node)) {
        host.add_port(Box::new(joint.wire.far()));
    }
}
