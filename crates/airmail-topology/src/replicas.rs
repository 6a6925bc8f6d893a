//! Partitions that are not as they were assigned: led by another than the preferred replica, kept by fewer
//! nodes than they should be, or led by nobody.
//!
//! These are the traces that faults leave (Kafka thesis, section 2.3 and figure 2.2): a node came back, and its
//! partitions are still led elsewhere.

use crate::cluster::{Cluster, Partition};
use crate::node_set::Place;

/// A partition, by the index of its topic and its own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartitionIndex {
    /// The topic's index in the cluster.
    pub topic: usize,
    /// Kafka's number of the partition, from 0.
    pub partition: usize,
}

/// Faults in a cluster's replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaFindings {
    /// Led by another than the first replica; with the leader.
    pub not_preferred: Vec<(PartitionIndex, Place)>,
    /// Some replicas are down or out of sync; with these.
    pub under_replicated: Vec<(PartitionIndex, Vec<Place>)>,
    /// Led by nobody: no replica is both in sync and not down.
    pub leaderless: Vec<PartitionIndex>,
}

impl ReplicaFindings {
    /// Finds the faults in the replicas of a cluster as it is.
    #[must_use]
    pub fn of(cluster: &Cluster) -> ReplicaFindings {
        let mut findings = ReplicaFindings::default();
        for (topic, members) in cluster.topics().iter().enumerate() {
            for (partition, kept) in members.partitions.iter().enumerate() {
                findings.look_at(cluster, PartitionIndex { topic, partition }, kept);
            }
        }
        findings
    }

    /// Whether nothing is amiss.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.not_preferred.is_empty()
            && self.under_replicated.is_empty()
            && self.leaderless.is_empty()
    }

    fn look_at(&mut self, cluster: &Cluster, index: PartitionIndex, partition: &Partition) {
        match partition.leader {
            None => self.leaderless.push(index),
            Some(leader) if partition.replicas.first() != Some(&leader) => {
                self.not_preferred.push((index, leader));
            }
            Some(_) => {}
        }
        let is_missing =
            |place: &Place| cluster.offline().contains(*place) || !partition.is_in_sync(*place);
        let missing: Vec<Place> = partition
            .replicas
            .iter()
            .copied()
            .filter(is_missing)
            .collect();
        if !missing.is_empty() {
            self.under_replicated.push((index, missing));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_fault_left_is_found() {
        let text = r#"{"nodes":[1,2,3],"offline":[3],"topics":{"A":[
            [1,2],
            {"replicas":[1,2],"leader":2},
            {"replicas":[2,1],"in_sync":[2]},
            [2,3],
            {"replicas":[3,1],"in_sync":[3]}]}}"#;
        let cluster = Cluster::new(serde_json::from_str(text).unwrap()).unwrap();
        let at = |partition| PartitionIndex {
            topic: 0,
            partition,
        };
        let findings = ReplicaFindings::of(&cluster);
        assert_eq!(findings.not_preferred, [(at(1), 1)]);
        let under = [(at(2), vec![0]), (at(3), vec![2]), (at(4), vec![2, 0])];
        assert_eq!(findings.under_replicated, under);
        assert_eq!(findings.leaderless, [at(4)]);
    }
}
