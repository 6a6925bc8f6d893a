//! Layout of a topic: its partitions and nodes, from which a policy chooses.
//!
//! Partitions are in the order of their numbers and nodes in the order of their ids, so that equal clusters
//! give equal choices.

use crate::cluster::{NodeId, PartitionId};
use std::collections::BTreeMap;

/// One topic's.
#[derive(Clone, Debug)]
pub(crate) struct TopicLayout {
    /// The leader of each partition.
    pub(crate) leaders: Vec<Option<NodeId>>,
    /// Partitions to choose from: those with a leader, or all of them if none has one.
    pub(crate) choices: Vec<PartitionId>,
    /// The partitions with a leader, by node.
    pub(crate) nodes: Vec<(NodeId, Vec<PartitionId>)>,
}

impl TopicLayout {
    /// None for a topic without partitions: no record can go there.
    pub(crate) fn new(leaders: &[Option<NodeId>]) -> Option<TopicLayout> {
        let mut choices = Vec::new();
        let mut nodes: BTreeMap<NodeId, Vec<PartitionId>> = BTreeMap::new();
        for (number, leader) in (0..).zip(leaders) {
            if let Some(leader) = *leader {
                choices.push(PartitionId(number));
                nodes.entry(leader).or_default().push(PartitionId(number));
            }
        }
        if choices.is_empty() {
            choices = (0..).zip(leaders).map(|(at, _)| PartitionId(at)).collect();
        }
        (!choices.is_empty()).then(|| TopicLayout {
            leaders: leaders.to_vec(),
            choices,
            nodes: nodes.into_iter().collect(),
        })
    }
}
