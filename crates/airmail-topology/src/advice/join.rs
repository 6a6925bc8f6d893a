//! Complete overlap: every topic is led on every node, in equal parts (Kafka thesis, figure 6.5).
//!
//! A topic needs a multiple of the number of nodes as partitions; it gets the missing ones. New
//! partitions change the partition that a key belongs to, so no more are proposed than the topic
//! has.

use super::NotOffered;
use super::placement::spread;
use crate::cluster::{Cluster, Partition};
use crate::node_set::Place;
use crate::reassignment::{AddedPartitions, Reassigned, Reassignment};
use crate::replicas::PartitionIndex;

pub(super) fn plan(cluster: &Cluster) -> Result<Reassignment, NotOffered> {
    let nodes: Vec<Place> = cluster.living().collect();
    if nodes.is_empty() {
        return Err(NotOffered::NoNodes);
    }
    let counts = cluster.topics().iter().map(|topic| topic.partitions.len());
    let needed = counts
        .clone()
        .map(|count| count.next_multiple_of(nodes.len()) - count)
        .sum();
    let limit = counts.sum();
    if needed > limit {
        return Err(NotOffered::TooManyPartitions { needed, limit });
    }
    let mut reassignment = Reassignment::default();
    for (index, topic) in cluster.topics().iter().enumerate() {
        let from = topic.partitions.len();
        let to = from.next_multiple_of(nodes.len());
        let mut wider = topic.clone();
        // Not yet anywhere: the first node stands for whoever Kafka chooses.
        let replicas = topic.partitions[0].replicas.len().min(nodes.len());
        wider.partitions.resize_with(to, || Partition {
            replicas: nodes[..1].iter().copied().collect(),
            leader: None,
            in_sync: None,
        });
        if to > from {
            let topic = index;
            reassignment.added.push(AddedPartitions { topic, from, to });
        }
        let changed = spread(index, &wider, &nodes);
        let (old, new): (Vec<_>, Vec<_>) = changed
            .into_iter()
            .partition(|changed| changed.partition.partition < from);
        reassignment.partitions.extend(old);
        for partition in from..to {
            let found = new.iter().find(|new| new.partition.partition == partition);
            let leader = found.map_or(nodes[0], |new| new.replicas[0]);
            reassignment.partitions.push(Reassigned {
                partition: PartitionIndex {
                    topic: index,
                    partition,
                },
                replicas: following(&nodes, leader).take(replicas).collect(),
                moves_data: true,
            });
        }
    }
    Ok(reassignment)
}

/// The nodes from one on, round and round.
fn following(nodes: &[Place], from: Place) -> impl Iterator<Item = Place> + '_ {
    let start = nodes.iter().position(|node| *node == from).unwrap_or(0);
    nodes.iter().copied().cycle().skip(start)
}
