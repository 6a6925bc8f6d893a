//! Faults that only a tree has: ways that are cut, in one direction or both, and nodes that end as soon as they have
//! started.

use super::Tree;
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::world::cluster::{Cluster, Condition, seldom_long};
use airmail_model::Mono;
use std::time::Duration;

/// Longest time for which a way is cut, in microseconds, nearly always and now and then.
const CUT_MICROS_MAX: [u64; 2] = [2_000_000, 10_000_000];
/// Longest life of a node that ends as soon as it has started, in microseconds.
const FALSE_START_MICROS_MAX: u64 = 100_000;

impl Tree {
    /// Whether all is lost that a node sends another.
    pub(super) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.ways.contains_key(&(from, to))
    }

    /// Draws whether a node that starts ends again at once.
    pub(super) fn draw_false_start(&mut self, node: usize, now: Mono, chance: &mut Entropy) {
        if chance.chance(self.rates.false_starts) {
            let life = Duration::from_micros(chance.below(FALSE_START_MICROS_MAX));
            self.false_starts.insert(node, now.plus(life));
        }
    }

    /// A node whose start was a false one, and which ends now.
    pub(in crate::world::cluster::roles) fn take_false_start(
        &mut self,
        now: Mono,
        evidence: &mut Evidence,
    ) -> Option<usize> {
        let (node, _) = self.false_starts.iter().find(|(_, until)| **until <= now)?;
        let node = *node;
        self.false_starts.remove(&node);
        evidence.count(Kind::FalseStart);
        Some(node)
    }

    /// Ends all faults.
    pub(in crate::world::cluster::roles) fn heal(&mut self) {
        self.rates = super::Rates::default();
        self.ways.clear();
        self.false_starts.clear();
    }
}

impl Cluster {
    /// Lets ways between nodes of a tree be cut, or be there again.
    pub(in crate::world) fn cut_ways(&mut self, now: Mono, evidence: &mut Evidence) {
        let Some(roles) = &mut self.roles else {
            return;
        };
        let given_up = roles.gives_up.then(|| now.plus(super::super::silence()));
        let chance = &mut roles.chance;
        let Some(tree) = &mut roles.tree else {
            return;
        };
        tree.ways.retain(|_, until| *until > now);
        if !chance.chance(tree.rates.ways) {
            return;
        }
        let (from, to) = (chance.index(tree.nodes()), chance.index(tree.nodes()));
        if from == to {
            return;
        }
        let until = now.plus(Duration::from_micros(seldom_long(chance, CUT_MICROS_MAX)));
        let is_both = chance.coin();
        evidence.count(if is_both {
            Kind::WayCut
        } else {
            Kind::WayCutOneWay
        });
        evidence.note(format_args!(
            "{} the way of node {from} to {to} is cut until {}, both ways: {is_both}",
            now.0, until.0
        ));
        tree.ways.insert((from, to), until);
        if is_both {
            tree.ways.insert((to, from), until);
        }
        let ends = given_up.map_or(until, |given_up| given_up.min(until));
        for joint in &mut self.joints {
            let is_to_host = (joint.near, joint.far) == (from, to);
            let is_from_host = (joint.far, joint.near) == (from, to);
            if joint.is_over || matches!(joint.condition, Condition::Down(_)) {
                continue;
            }
            if is_to_host || is_both && is_from_host {
                joint.wire.fall_silent(true);
            }
            if is_from_host || is_both && is_to_host {
                joint.wire.fall_silent(false);
            }
            if is_to_host || is_from_host {
                joint.condition = Condition::Silent(ends);
            }
        }
    }
}
