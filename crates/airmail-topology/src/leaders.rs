//! Leaders of one topic: the nodes, and the number of its partitions on each.
//!
//! Grouping, evenness and load need nothing else of a topic, so a fault costs no more than the
//! leaders of the topics that it touches.

use crate::cluster::Topic;
use crate::node_set::{NodeSet, Place};
use smallvec::SmallVec;

/// The leaders of one topic's partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaders {
    /// Ascending by node; each count is at least 1.
    counts: SmallVec<[(Place, u32); 4]>,
    leaderless: u32,
}

impl Leaders {
    /// Once some nodes are down, after elections.
    #[must_use]
    pub fn without(topic: &Topic, down: &NodeSet) -> Leaders {
        let mut leaders = Leaders::default();
        for partition in &topic.partitions {
            match partition.leader_without(down) {
                Some(place) => leaders.add(place),
                None => leaders.leaderless += 1,
            }
        }
        leaders
    }

    /// N(t): the nodes that lead at least one partition.
    #[must_use]
    pub fn nodes(&self) -> NodeSet {
        self.counts.iter().map(|(place, _)| *place).collect()
    }

    /// Partitions for each node that leads any, ascending by node.
    #[must_use]
    pub fn counts(&self) -> &[(Place, u32)] {
        &self.counts
    }

    /// Partitions that nobody leads.
    #[must_use]
    pub fn leaderless(&self) -> u32 {
        self.leaderless
    }

    /// Partitions that somebody leads.
    #[must_use]
    pub fn led(&self) -> u32 {
        self.counts.iter().map(|(_, count)| *count).sum()
    }

    /// Difference in partitions between the node with most and the node with fewest, of those that
    /// lead any.
    #[must_use]
    pub fn difference(&self) -> u32 {
        let counts = self.counts.iter().map(|(_, count)| *count);
        let most = counts.clone().max().unwrap_or(0);
        most - counts.min().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, place: Place) {
        match self.counts.binary_search_by_key(&place, |(node, _)| *node) {
            Ok(index) => self.counts[index].1 += 1,
            Err(index) => self.counts.insert(index, (place, 1)),
        }
    }

    /// Takes one partition from a node that leads some.
    pub(crate) fn remove(&mut self, place: Place) {
        if let Ok(index) = self.counts.binary_search_by_key(&place, |(node, _)| *node) {
            self.counts[index].1 -= 1;
            if self.counts[index].1 == 0 {
                self.counts.remove(index);
            }
        }
    }
}
