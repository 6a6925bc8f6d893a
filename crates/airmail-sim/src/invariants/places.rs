//! Places of a tree's nodes: each that has one stands below the root, not too deep, and is held there by the root's
//! count alone.
//!
//! A path begins with the root, and has nobody twice, nor the node itself. A count that comes down is one that the root
//! has told. A node whose patience has ended without a new one has no place: so no circle of nodes lasts, nor a part of
//! the tree that is cut off. Whoever is sent on is sent to a child of the one that says so, a bounded number of times.

use super::{Checked, Violation};
use airmail_link::{Ancestor, Heartbeat, TreeLimits, TreeNode};
use airmail_model::{Mono, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const INVARIANT: &str = "tree";

/// The last new count that a node was seen with.
#[derive(Clone, Copy, Debug)]
struct Renewed {
    boot: u64,
    count: u64,
    at: Mono,
    /// Nodes above the parent at that time.
    ancestors: usize,
}

/// State of a node, as it was seen last.
#[derive(Clone, Debug, Default)]
struct Seen {
    renewed: Option<Renewed>,
    /// Time since which it is its own ancestor, by links that are there.
    circling: Option<Mono>,
    /// Number of times that it was sent on, one after the other.
    sent_on: usize,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Places {
    limits: TreeLimits,
    root: NodeId,
    /// The highest count that the root has told, by its start.
    counts: BTreeMap<u64, u64>,
    nodes: Vec<Seen>,
}

impl Places {
    /// Places of this number of nodes, none of which has been seen.
    #[must_use]
    pub fn new(limits: TreeLimits, root: NodeId, nodes: usize) -> Places {
        Places {
            limits,
            root,
            counts: BTreeMap::new(),
            nodes: vec![Seen::default(); nodes],
        }
    }

    /// A node has started: nothing of it has lasted.
    pub fn started(&mut self, node: usize) {
        self.nodes[node] = Seen::default();
    }

    /// Looks at a node after something has happened to it.
    ///
    /// # Errors
    /// Its place is not as it has to be.
    pub fn see(&mut self, now: Mono, node: usize, own: &Ancestor, place: &TreeNode) -> Checked {
        let limits = self.limits;
        if place.children() > limits.children_max {
            let children = place.children();
            return Err(wrong(node, &format!("{children} children")));
        }
        let Some(heartbeat) = place.heartbeat() else {
            return Ok(());
        };
        if place.is_root() {
            let highest = self.counts.entry(heartbeat.boot).or_default();
            *highest = heartbeat.count.max(*highest);
            return Ok(());
        }
        self.check_path(node, own, &heartbeat)?;
        let Heartbeat { boot, count, path } = heartbeat;
        let seen = &mut self.nodes[node].renewed;
        if seen.is_none_or(|seen| seen.boot != boot || seen.count < count) {
            // Without itself and its parent.
            let ancestors = path.len().saturating_sub(2);
            *seen = Some(Renewed {
                boot,
                count,
                at: now,
                ancestors,
            });
        }
        let until = seen.map(|seen| seen.at.plus(patience(&limits, seen.ancestors)));
        if until.is_some_and(|until| now >= until) {
            let detail = format!("a place at {} that the root renewed last: {seen:?}", now.0);
            return Err(wrong(node, &detail));
        }
        Ok(())
    }

    fn check_path(&self, node: usize, own: &Ancestor, heartbeat: &Heartbeat) -> Checked {
        let path = &heartbeat.path;
        let once: BTreeSet<NodeId> = path.iter().map(|above| above.node).collect();
        let is_first = path.first().is_some_and(|first| first.node == self.root);
        let is_last = path.last().is_some_and(|last| last.node == own.node);
        if !is_first || !is_last || once.len() < path.len() {
            return Err(wrong(node, &format!("the path {path:?}")));
        }
        if path.len() > self.limits.depth_max {
            return Err(wrong(node, &format!("{} nodes in its path", path.len())));
        }
        let told = self.counts.get(&heartbeat.boot);
        if told.is_none_or(|told| *told < heartbeat.count) {
            let Heartbeat { boot, count, .. } = heartbeat;
            let detail = format!("count {count} of start {boot}; the root has told {told:?}");
            return Err(wrong(node, &detail));
        }
        Ok(())
    }

    /// A node without room names another one to who has asked.
    ///
    /// # Errors
    /// That is no child of it, or there is no end to it.
    pub fn sent_on(&mut self, node: usize, instead: &str, is_child: bool) -> Checked {
        if !is_child {
            return Err(wrong(node, &format!("sent on to {instead}, no child")));
        }
        let times = &mut self.nodes[node].sent_on;
        *times += 1;
        if *times > self.limits.depth_max {
            return Err(wrong(node, &format!("sent on {times} times in a row")));
        }
        Ok(())
    }

    /// A node was not sent on: it has a link, or tries another one by itself.
    pub fn not_sent_on(&mut self, node: usize) {
        self.nodes[node].sent_on = 0;
    }

    /// Looks whether a node is its own ancestor, by links of nodes that all have turns.
    ///
    /// # Errors
    /// It has been so for longer than the last count can go round.
    pub fn see_circle(&mut self, now: Mono, node: usize, is_circling: bool) -> Checked {
        let circling = &mut self.nodes[node].circling;
        if !is_circling {
            *circling = None;
            return Ok(());
        }
        let since = *circling.get_or_insert(now);
        // The last count goes round once, and then everybody's patience ends.
        let longest = 2 * patience(&self.limits, self.limits.depth_max);
        if now >= since.plus(longest) {
            return Err(wrong(node, &format!("its own ancestor since {}", since.0)));
        }
        Ok(())
    }
}

/// Time without a new count after which a node with so many nodes above its parent leaves that.
fn patience(limits: &TreeLimits, ancestors: usize) -> Duration {
    limits.patience + limits.patience / 4 * u32::try_from(ancestors).unwrap_or(u32::MAX)
}

fn wrong(node: usize, what: &str) -> Violation {
    Violation::new(INVARIANT, format!("node {node} has {what}"))
}
