//! Placement of one topic's leaders, in equal parts over given nodes, with as few moves as
//! possible.
//!
//! First the present leaders stay; then a replica is made the leader, which moves no data; only the
//! remaining partitions go to a node that has no copy.

use crate::cluster::{Partition, Topic};
use crate::node_set::Place;
use crate::reassignment::Reassigned;
use crate::replicas::PartitionIndex;

/// New replicas for the partitions of a topic that need any, so that each of `nodes` leads as many as
/// another, or one more.
pub(super) fn spread(index: usize, topic: &Topic, nodes: &[Place]) -> Vec<Reassigned> {
    let (each, more) = (
        topic.partitions.len() / nodes.len(),
        topic.partitions.len() % nodes.len(),
    );
    let quotas = (0..nodes.len()).map(|place| each + usize::from(place < more));
    let mut room: Vec<(Place, usize)> = nodes.iter().copied().zip(quotas).collect();
    let mut take = |wanted: &[Place]| -> Option<Place> {
        let may = wanted.iter().find_map(|place| {
            room.iter()
                .position(|(node, left)| node == place && *left > 0)
        })?;
        room[may].1 -= 1;
        Some(room[may].0)
    };
    let mut leaders: Vec<Option<Place>> = topic
        .partitions
        .iter()
        .map(|partition| take(&partition.replicas[..1]))
        .collect();
    for (leader, partition) in leaders.iter_mut().zip(&topic.partitions) {
        *leader = leader.or_else(|| take(&partition.replicas));
    }
    for leader in &mut leaders {
        *leader = leader.or_else(|| take(nodes));
    }
    let changed = leaders.into_iter().zip(&topic.partitions).enumerate();
    let changed = changed.filter_map(|(partition, (leader, kept))| {
        let partition = PartitionIndex {
            topic: index,
            partition,
        };
        let leader = leader.filter(|leader| *leader != kept.replicas[0])?;
        Some(led_by(partition, kept, leader))
    });
    changed.collect()
}

/// The same partition with another preferred leader: one of its replicas moves to the front, or else the
/// new leader takes the old one's place.
pub(super) fn led_by(index: PartitionIndex, partition: &Partition, leader: Place) -> Reassigned {
    let moves_data = !partition.replicas.contains(&leader);
    let others = partition.replicas.iter().copied();
    let others = others
        .skip(usize::from(moves_data))
        .filter(|place| *place != leader);
    Reassigned {
        partition: index,
        replicas: [leader].into_iter().chain(others).collect(),
        moves_data,
    }
}
