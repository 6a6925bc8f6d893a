//! Max groups: topics that are led on the same nodes. The Kafka thesis, section 3.2, definitions 1 and 2, and
//! section 3.5.1, algorithm 1.
//!
//! The paper compares each topic with each group found so far, O(#C_T · #M · #C_N); here a group is
//! found by its node set's hash, O(#C_T · #C_N). The result is the same, also in order: a group
//! stands where its first topic does.
//!
//! A topic without a leader is in no group: N(t) = ∅ is the set that the paper leaves out of its
//! 2^n - 1.

use crate::cluster::Cluster;
use crate::leaders::Leaders;
use crate::node_set::NodeSet;
use hashbrown::HashTable;

/// T^M: all topics with one set of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaxGroup {
    /// Topics by index in the cluster, ascending.
    pub topics: Vec<usize>,
    /// N(T^M): the nodes that lead a partition of any of them, and so of each.
    pub nodes: NodeSet,
}

/// M: the cluster's max groups.
///
/// ```
/// use airmail_topology::{Cluster, MaxGroups};
///
/// let text = r#"{"nodes": [1, 2], "topics": {"A": [[1], [2]], "B": [[2], [1]], "C": [[2]]}}"#;
/// let cluster = Cluster::new(serde_json::from_str(text)?)?;
/// let groups = MaxGroups::of(&cluster);
/// let topics: Vec<_> = groups.iter().map(|group| group.topics.clone()).collect();
/// assert_eq!(topics, [vec![0, 1], vec![2]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MaxGroups {
    groups: Vec<MaxGroup>,
    found: HashTable<usize>,
}

impl MaxGroups {
    /// Finds the max groups of a cluster as it is.
    #[must_use]
    pub fn of(cluster: &Cluster) -> MaxGroups {
        let topics = cluster.topics().iter();
        MaxGroups::of_sets(topics.map(|topic| Leaders::without(topic, cluster.offline()).nodes()))
    }

    /// Algorithm 1, of N(t) for each topic in turn.
    pub(crate) fn of_sets(sets: impl Iterator<Item = NodeSet>) -> MaxGroups {
        let mut groups = MaxGroups::default();
        for (topic, nodes) in sets.enumerate() {
            if !nodes.is_empty() {
                groups.add(topic, nodes);
            }
        }
        groups
    }

    /// The groups, in the order of their first topics.
    pub fn iter(&self) -> std::slice::Iter<'_, MaxGroup> {
        self.groups.iter()
    }

    /// The group that has just these nodes.
    #[must_use]
    pub fn find(&self, nodes: &NodeSet) -> Option<usize> {
        let same = |group: &usize| self.groups[*group].nodes == *nodes;
        self.found.find(nodes.digest(), same).copied()
    }

    fn add(&mut self, topic: usize, nodes: NodeSet) {
        if let Some(group) = self.find(&nodes) {
            self.groups[group].topics.push(topic);
            return;
        }
        let groups = &self.groups;
        self.found
            .insert_unique(nodes.digest(), groups.len(), |group| {
                groups[*group].nodes.digest()
            });
        self.groups.push(MaxGroup {
            topics: vec![topic],
            nodes,
        });
    }
}
