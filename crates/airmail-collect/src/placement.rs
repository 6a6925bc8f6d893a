//! Choice of the main cluster's partition for a record.

use crate::source::Source;
use airmail_partition::{Cluster, Outcome, PartitionId, Partitioner, Place, TopicId, TopicUnknown};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Orders that can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The policy chooses for each record. Records of one key stay in order, as Kafka places them; a source's
    /// order can be restored from the stamps.
    Spread,
    /// Every record of a source goes to one partition: the source's number modulo the topic's partitions.
    /// It depends neither on leaders nor on the collecting instance, so that a takeover finds the same one.
    Pinned,
}

/// A name that no order has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("order {0:?}: spread or pinned")]
pub struct OrderUnknown(pub String);

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Order::Spread => "spread",
            Order::Pinned => "pinned",
        })
    }
}

impl FromStr for Order {
    type Err = OrderUnknown;

    fn from_str(text: &str) -> Result<Order, OrderUnknown> {
        match text {
            "spread" => Ok(Order::Spread),
            "pinned" => Ok(Order::Pinned),
            _ => Err(OrderUnknown(text.to_owned())),
        }
    }
}

/// A policy and an order, for the topics that are collected.
#[derive(Debug)]
pub struct Placement {
    order: Order,
    partitioner: Partitioner,
    /// The topic of the main cluster, by the collected topic's place in the list.
    topics: Vec<TopicId>,
}

impl Placement {
    /// One for sources whose topics go to these of the main cluster, in the order of [`Source::topic`].
    pub fn new<'a>(
        order: Order,
        mut partitioner: Partitioner,
        targets: impl IntoIterator<Item = &'a str>,
    ) -> Placement {
        let targets = targets.into_iter();
        let topics = targets.map(|name| partitioner.topic(name)).collect();
        Placement {
            order,
            partitioner,
            topics,
        }
    }

    /// The main cluster has changed.
    pub fn arrange(&mut self, cluster: &Cluster) {
        self.partitioner.arrange(cluster);
    }

    /// The place of a record of `bytes`.
    ///
    /// # Errors
    /// The main cluster does not have the topic.
    pub fn place(
        &mut self,
        source: Source,
        key: Option<&[u8]>,
        bytes: u32,
        now: Duration,
    ) -> Result<Place, TopicUnknown> {
        let topic = self.topics[source.topic];
        match self.order {
            Order::Spread => self.partitioner.place(topic, key, bytes, now),
            Order::Pinned => self
                .partitioner
                .pin(topic, source.partition.cast_unsigned()),
        }
    }

    /// A record that was placed has ended.
    pub fn arrived(
        &mut self,
        source: Source,
        partition: PartitionId,
        bytes: u32,
        outcome: Outcome,
        now: Duration,
    ) {
        if self.order == Order::Spread {
            let topic = self.topics[source.topic];
            self.partitioner
                .arrived(topic, partition, bytes, outcome, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_partition::{NodeId, Policy, Settings};

    #[test]
    fn a_pinned_source_stays_whoever_leads_and_whatever_the_policy_says() {
        let partitioner = Partitioner::new(Settings::new(Policy::Node, 1));
        let mut placement = Placement::new(Order::Pinned, partitioner, ["T"]);
        let source = |partition| Source {
            topic: 0,
            partition,
        };
        let place = |placement: &mut Placement, partition| {
            let place = placement.place(source(partition), Some(b"k"), 9, Duration::ZERO);
            place.map(|place| (place.partition.0, place.leader))
        };
        assert!(place(&mut placement, 0).is_err());
        for leader in [Some(NodeId(1)), None] {
            let cluster = Cluster {
                nodes: [NodeId(1)].into(),
                topics: [("T".to_owned(), vec![leader; 3])].into(),
            };
            placement.arrange(&cluster);
            for (partition, pinned) in [(0, 0), (1, 1), (5, 2), (5, 2)] {
                assert_eq!(place(&mut placement, partition), Ok((pinned, leader)));
            }
        }
    }
}
