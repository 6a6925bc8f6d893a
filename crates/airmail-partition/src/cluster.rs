//! A producer's view of a cluster: its nodes, and the leaders of its partitions.

use std::collections::{BTreeMap, BTreeSet};

/// A node of a Kafka cluster, by its id. Kafka's are not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i32);

/// A partition of a topic, by its number from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub i32);

/// One state of a cluster's metadata. Equal ones give equal choices, whatever order they were told in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The nodes that are alive.
    pub nodes: BTreeSet<NodeId>,
    /// Leaders of each topic's partitions, from partition 0 on; `None` while a partition has none.
    pub topics: BTreeMap<String, Vec<Option<NodeId>>>,
}
