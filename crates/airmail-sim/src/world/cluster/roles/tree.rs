//! A tree: every process is a node of it, with a shard and clients of its own. The first one is the root and has the
//! disk; the logs of each other are those of its parent, by a link behind a cache, and its children have them from it.
//!
//! Whose child a node is the real [`TreeNode`] says. What is here stands for the shell around it: a node dials the parent
//! that its place names, is admitted or refused there, tells children the root's heartbeats and its parent how many
//! children it has, and binds its link to the parent that it has now. Settings are drawn: each node knows some others as
//! parents, and a way to the root by them. Where the tree may not be as deep as it has nodes, everybody knows the root
//! itself, and there are places enough in whatever order they are taken.
//!
//! Ways between nodes are cut, in one direction or both, for longer than anybody's patience: what is sent over an open
//! link is lost then, and who dials gets no answer.

mod ambient;
mod climbing;
mod dialing;
mod faults;
mod member;

use crate::entropy::Entropy;
use crate::invariants::places::Places;
use crate::plant::Plant;
use crate::tuning;
use airmail_link::sabotage::TreeBug;
use airmail_link::{Ancestor, CacheLimits, TreeLimits, TreeNode};
use airmail_model::{Mono, NodeId};
use member::Member;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(super) use ambient::Ambient;

/// The root's number, which is kept on its disk.
const ROOT: NodeId = NodeId(1);
/// Node of the root.
const ROOT_AT: usize = 0;
/// Nodes of a tree, at least and at most.
const NODES: [usize; 2] = [3, 6];
/// Longest time between two looks for a better parent, in milliseconds.
const LOOK_MS_MAX: u64 = 5_000;

/// Rates of faults, in parts of a million for each step.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    /// The way between two nodes is cut, in one direction or both.
    ways: u32,
    /// A node that starts ends again at once, of each.
    false_starts: u32,
}

/// See the module's documentation.
#[derive(Debug)]
pub(in crate::world) struct Tree {
    limits: TreeLimits,
    cache: CacheLimits,
    look_every: Duration,
    /// Parents of each node, as its settings name them. The root has none.
    parents: Vec<Vec<usize>>,
    /// Nodes to which clients come.
    has_clients: Vec<bool>,
    /// Nodes that are up.
    members: Vec<Option<Member>>,
    /// The last parent of each node, whichever start that was of.
    last_parents: Vec<Option<usize>>,
    /// Ways that are cut, from a node to another, until then.
    ways: BTreeMap<(usize, usize), Mono>,
    rates: Rates,
    /// Nodes that end soon after they have started.
    false_starts: BTreeMap<usize, Mono>,
    /// The root takes no children: it is about to stop.
    is_root_stopping: bool,
    boots: u64,
    places: Places,
    bug: Option<TreeBug>,
}

impl Tree {
    /// The tree of a seed.
    pub(super) fn of(chance: &mut Entropy, plant: Option<Plant>) -> Tree {
        let count = NODES[0] + chance.index(NODES[1] - NODES[0] + 1);
        let children_max = chance.index(3) + 1;
        let is_flat = chance.coin();
        let depth_max = if is_flat {
            // A full tree has a place for everybody, whichever nodes have come first.
            1 + (count - 1).div_ceil(children_max)
        } else {
            count
        };
        let renew_every = Duration::from_millis(chance.between(50, 200));
        let limits = TreeLimits {
            depth_max,
            children_max,
            renew_every,
            patience: renew_every * 5,
        };
        let mut rate = |high: u64| {
            if chance.coin() {
                u32::try_from(chance.between(high / 20, high)).unwrap_or(0)
            } else {
                0
            }
        };
        let rates = Rates {
            ways: rate(6_000),
            false_starts: rate(500_000),
        };
        Tree {
            limits,
            cache: tuning::cache(chance).unwrap_or_default(),
            look_every: Duration::from_millis(chance.between(300, LOOK_MS_MAX)),
            parents: parents(chance, count, depth_max < count),
            has_clients: with_clients(chance, count),
            members: (0..count).map(|_| None).collect(),
            last_parents: vec![None; count],
            ways: BTreeMap::new(),
            rates,
            false_starts: BTreeMap::new(),
            is_root_stopping: false,
            boots: 0,
            places: Places::new(limits, ROOT, count),
            bug: plant.and_then(Plant::in_tree),
        }
    }

    /// Number of its nodes.
    pub(super) fn nodes(&self) -> usize {
        self.parents.len()
    }

    /// Whether clients come to a node.
    pub(super) fn has_clients(&self, node: usize) -> bool {
        self.has_clients[node]
    }

    /// Whether everybody but this one has a place.
    pub(in crate::world) fn all_have_places(&self, but: Option<usize>) -> bool {
        let others = self.members.iter().enumerate();
        others
            .filter(|(node, _)| Some(*node) != but)
            .all(|(_, member)| {
                let place = member.as_ref().map(|member| &member.place);
                place.is_some_and(|place| place.path().is_some())
            })
    }

    /// Nodes without which each other one still knows a way to the root, and clients one to them. Those that have
    /// children come first, if there are some.
    pub(in crate::world) fn dispensable(&self) -> Vec<usize> {
        let is_needed = |node: &usize| {
            let others = (0..self.nodes()).filter(|other| other != node);
            let knows = others.clone().all(|other| self.knows_root(other, *node));
            knows && others.clone().any(|other| self.has_clients[other])
        };
        let all: Vec<usize> = (1..self.nodes()).filter(is_needed).collect();
        let is_inner = |node: &&usize| {
            let member = self.members[**node].as_ref();
            member.is_some_and(|member| member.place.children() > 0)
        };
        let inner: Vec<usize> = all.iter().filter(is_inner).copied().collect();
        if inner.is_empty() { all } else { inner }
    }

    /// Whether a node's parents, or theirs, know the root, without one of them.
    fn knows_root(&self, node: usize, without: usize) -> bool {
        knows_root(&self.parents, node, Some(without))
    }

    /// The place of a node that starts, and what others know of it.
    fn place(&mut self, node: usize, chance: &mut Entropy) -> (Ancestor, TreeNode) {
        self.boots += 1;
        let number = if node == ROOT_AT {
            ROOT
        } else {
            // Nothing of it has lasted.
            NodeId(chance.next())
        };
        let own = Ancestor {
            node: number,
            name: format!("n{node}"),
            address: address(node),
        };
        let (boot, limits) = (self.boots, self.limits);
        let parents: Vec<String> = self.parents[node].iter().copied().map(address).collect();
        let mut place = if node == ROOT_AT {
            TreeNode::root(own.clone(), boot, limits)
        } else {
            TreeNode::below(own.clone(), boot, parents, limits, chance.next())
        };
        place.plant(self.bug);
        self.places.started(node);
        (own, place)
    }

    /// The node at an address.
    fn node_at(&self, address: &str) -> Option<usize> {
        (0..self.nodes()).find(|node| self::address(*node) == address)
    }
}

/// Where other nodes reach a node.
fn address(node: usize) -> String {
    format!("n{node}:2")
}

/// Parents of each node, by which it knows a way to the root; `all_know_root`: the root itself, last of all.
fn parents(chance: &mut Entropy, count: usize, all_know_root: bool) -> Vec<Vec<usize>> {
    let mut parents: Vec<Vec<usize>> = vec![Vec::new()];
    for node in 1..count {
        let mut of_node = Vec::new();
        for _ in 0..=chance.index(2) {
            let parent = chance.index(count);
            if parent != node && !of_node.contains(&parent) {
                of_node.push(parent);
            }
        }
        if (all_know_root || of_node.is_empty() || chance.coin()) && !of_node.contains(&ROOT_AT) {
            of_node.push(ROOT_AT);
        }
        parents.push(of_node);
    }
    for node in 1..count {
        if !knows_root(&parents, node, None) {
            parents[node].push(ROOT_AT);
        }
    }
    parents
}

fn knows_root(parents: &[Vec<usize>], node: usize, without: Option<usize>) -> bool {
    let mut known = BTreeSet::from([node]);
    for _ in 0..parents.len() {
        let more: Vec<usize> = known
            .iter()
            .flat_map(|node| parents[*node].iter().copied())
            .filter(|parent| Some(*parent) != without)
            .collect();
        known.extend(more);
    }
    known.contains(&ROOT_AT)
}

/// Nodes to which clients come: all, all below the root, or any.
fn with_clients(chance: &mut Entropy, count: usize) -> Vec<bool> {
    let sort = chance.below(3);
    let mut with: Vec<bool> = (0..count)
        .map(|node| match sort {
            0 => true,
            1 => node != ROOT_AT,
            _ => chance.coin(),
        })
        .collect();
    let one = chance.index(count);
    with[one] = true;
    with
}
