//! What a producer knows of a cluster: who is there, and who leads what.

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
    /// For each topic the leader of each of its partitions, from partition 0 on; `None` while it has none.
    pub topics: BTreeMap<String, Vec<Option<NodeId>>>,
}
