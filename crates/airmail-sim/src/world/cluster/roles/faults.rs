//! Faults of processes: they are killed, stand still, and hear of each other what is not so.

use super::{Rates, Roles, Stall};
use crate::census::Kind;
use crate::evidence::Evidence;
use crate::world::cluster::{Cluster, seldom_long};
use airmail_link::TowerName;
use airmail_model::Mono;
use std::time::Duration;

/// Longest time until a process is back, in microseconds, nearly always and now and then.
const DOWN_MICROS_MAX: [u64; 2] = [200_000, 5_000_000];
/// Longest stall, in microseconds, nearly always and now and then.
const STALL_MICROS_MAX: [u64; 2] = [300_000, 20_000_000];
/// Longest time between news of towers, in microseconds.
const NEWS_MICROS_MAX: u64 = 1_500_000;

impl Roles {
    /// The process that is killed in this step, if one is: any but the one that has the disk.
    fn victim(&mut self, now: Mono, evidence: &mut Evidence) -> Option<usize> {
        let tree = self.tree.as_mut();
        let false_start = tree.and_then(|tree| tree.take_false_start(now, evidence));
        if false_start.is_some() {
            return false_start;
        }
        if !self.chance.chance(self.rates.kills) {
            return None;
        }
        let others = self.nodes.len() - 1;
        let node = self.chance.index(others);
        // The root is the first, the storage behind towers the last.
        Some(node + usize::from(self.tree.is_some()))
    }
}

impl Cluster {
    /// News of towers for the gateways that hear some now.
    pub(in crate::world) fn news(
        &mut self,
        now: Mono,
        evidence: &mut Evidence,
    ) -> Vec<(usize, Vec<TowerName>)> {
        let Some(roles) = &mut self.roles else {
            return Vec::new();
        };
        let mut news = Vec::new();
        for gateway in 0..roles.gateways {
            if roles.news[gateway] > now || !roles.is_up(gateway) {
                continue;
            }
            let wait = Duration::from_micros(roles.chance.between(1_000, NEWS_MICROS_MAX));
            roles.news[gateway] = now.plus(wait);
            let mut live = roles.live(now);
            if live.len() > 1 && roles.chance.chance(roles.rates.false_news) {
                evidence.count(Kind::FalseNews);
                let out = roles.chance.index(live.len());
                live.remove(out);
            }
            news.push((gateway, live));
        }
        news
    }

    /// Draws a gateway that is killed in this step, if one is; a tower may be, too.
    pub(in crate::world) fn kills(&mut self, now: Mono, evidence: &mut Evidence) -> Option<usize> {
        if let Some(writers) = &mut self.writers {
            return writers.victim(now, evidence);
        }
        let roles = self.roles.as_mut()?;
        let node = roles.victim(now, evidence)?;
        if !roles.is_up(node) {
            return None;
        }
        let time = Duration::from_micros(seldom_long(&mut roles.chance, DOWN_MICROS_MAX));
        roles.nodes[node].back = now.plus(time);
        evidence.note(format_args!("{} node {node} is killed", now.0));
        let gateways = roles.gateways;
        self.node_ends(node, now, evidence);
        if node < gateways {
            let is_tree = self.is_tree();
            evidence.count(if is_tree {
                Kind::TreeNodeKilled
            } else {
                Kind::GatewayKilled
            });
            return Some(node);
        }
        evidence.count(Kind::TowerKilled);
        if let Some(roles) = &mut self.roles {
            roles.towers[node - gateways] = None;
        }
        None
    }

    /// Draws a tower, or a node of a tree, that stands still from now on: which, and until when.
    pub(in crate::world) fn stall_node(
        &mut self,
        now: Mono,
        evidence: &mut Evidence,
    ) -> Option<(usize, Mono)> {
        let roles = self.roles.as_mut()?;
        if !roles.chance.chance(roles.rates.stalls) {
            return None;
        }
        let (node, kind) = if roles.tree.is_some() {
            (roles.chance.index(roles.nodes.len()), Kind::TreeNodeStalled)
        } else {
            let tower = roles.chance.index(roles.towers.len());
            (roles.tower_node(tower), Kind::TowerStalled)
        };
        let micros = seldom_long(&mut roles.chance, STALL_MICROS_MAX);
        let until = now.plus(Duration::from_micros(micros));
        roles.stall(node, now, until);
        evidence.count(kind);
        evidence.note(format_args!("{} node {node} stalls", now.0));
        Some((node, until))
    }

    /// The process ends that has the disk. Time until it is started again.
    pub(in crate::world) fn end_store(&mut self, now: Mono, evidence: &mut Evidence) -> Duration {
        let Some(roles) = &mut self.roles else {
            return Duration::ZERO;
        };
        roles.store = None;
        let mut pause = Duration::ZERO;
        if roles.tree.is_some() {
            pause = Duration::from_micros(seldom_long(&mut roles.chance, DOWN_MICROS_MAX));
            evidence.count(Kind::RootEnded);
        }
        let node = roles.store_node();
        self.node_ends(node, now, evidence);
        pause
    }

    /// A process is gone: its connections are cut, and those that it had made are of no use any more.
    fn node_ends(&mut self, node: usize, now: Mono, evidence: &mut Evidence) {
        if let Some(roles) = &mut self.roles {
            let process = &mut roles.nodes[node];
            process.is_up = false;
            process.stall = Stall::default();
            process.wake = None;
            if let Some(tree) = &mut roles.tree {
                tree.ends(node);
            }
        }
        self.cut_node(node, now, evidence);
    }

    /// All processes come back, and none stands still.
    pub(in crate::world) fn heal_nodes(&mut self) {
        if let Some(writers) = &mut self.writers {
            writers.heal();
        }
        if let Some(roles) = &mut self.roles {
            roles.rates = Rates::default();
            if let Some(tree) = &mut roles.tree {
                tree.heal();
            }
            for process in &mut roles.nodes {
                process.back = Mono(0);
                process.stall = Stall::default();
            }
        }
    }
}
