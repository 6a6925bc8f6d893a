//! The cluster: nodes, topics, partitions, and their leaders.
//!
//! The Kafka thesis, section 3.2: C_T, C_N and C_P, with the replicas that its section 3.5.4 asks for. Nodes are
//! known by their [`Place`] and topics by their index, both in order of ids and names, so that the same
//! cluster gives the same answers however its file was written.
//!
//! Invariants: each topic has a partition, each partition a replica; no replica is named twice; leaders
//! and in-sync nodes are replicas; a leader is not offline.

use crate::description::{Description, NodeId, ToldPartition};
use crate::node_set::{NodeSet, Place};
use smallvec::SmallVec;

/// Reason for which a description is no cluster.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A node stands there twice.
    #[error("{field}: node {node} stands there twice")]
    NodeTwice {
        /// `nodes` or `offline`.
        field: &'static str,
        /// The node.
        node: NodeId,
    },
    /// A topic stands there twice.
    #[error("topics: {topic:?} stands there twice")]
    TopicTwice {
        /// The topic.
        topic: String,
    },
    /// A topic has no partitions.
    #[error("topics.{topic}: has 0 partitions; at least 1")]
    NoPartitions {
        /// The topic.
        topic: String,
    },
    /// A partition has no replicas.
    #[error("topics.{topic}[{partition}]: has 0 replicas; at least 1")]
    NoReplicas {
        /// The topic.
        topic: String,
        /// The partition, from 0.
        partition: usize,
    },
    /// The node is not in the list of nodes.
    #[error("{place}: node {node} is not in nodes")]
    UnknownNode {
        /// The field.
        place: String,
        /// The node.
        node: NodeId,
    },
    /// A replica stands there twice.
    #[error("{place}: node {node} stands there twice")]
    ReplicaTwice {
        /// The field.
        place: String,
        /// The node.
        node: NodeId,
    },
    /// A leader or a node in sync is no replica.
    #[error("{place}: node {node} is not one of the partition's replicas")]
    NoReplica {
        /// The field.
        place: String,
        /// The node.
        node: NodeId,
    },
    /// A rate is for a topic that there is not.
    #[error("rates: {topic:?} is not in topics")]
    UnknownTopic {
        /// The topic.
        topic: String,
    },
    /// A rate is no rate.
    #[error("rates.{topic}: {rate} is no rate; from 0 up, and finite")]
    Rate {
        /// The topic.
        topic: String,
        /// The rate given.
        rate: f64,
    },
}

/// A topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Rate at which producers send to it, in records/s or whatever unit the caller has.
    pub rate: f64,
    /// Partitions, from 0.
    pub partitions: Vec<Partition>,
}

/// Places of nodes in an order that matters.
pub type Places = SmallVec<[Place; 4]>;

/// Where a partition is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Replicas in the order in which they are elected: the preferred leader first.
    pub replicas: Places,
    /// The leader; `None`: no node can lead it.
    pub leader: Option<Place>,
    /// The replicas that may be elected; `None`: all.
    pub in_sync: Option<Places>,
}

impl Partition {
    /// The leader once some nodes are down: the present one if it is up, else the first in the
    /// order of replicas that is in sync and not down, as Kafka's controller elects.
    #[must_use]
    pub fn leader_without(&self, down: &NodeSet) -> Option<Place> {
        let stays = self.leader.filter(|leader| !down.contains(*leader));
        stays.or_else(|| self.elect(down))
    }

    fn elect(&self, down: &NodeSet) -> Option<Place> {
        let may = |place: &Place| !down.contains(*place) && self.is_in_sync(*place);
        self.replicas.iter().copied().find(may)
    }

    /// Whether a replica is in sync.
    #[must_use]
    pub fn is_in_sync(&self, place: Place) -> bool {
        let told = self.in_sync.as_ref();
        told.is_none_or(|in_sync| in_sync.contains(&place))
    }
}

/// A cluster that was checked.
///
/// ```
/// use airmail_topology::{Cluster, MaxGroups};
///
/// let text = r#"{"nodes": [1, 2, 3], "topics": {"A": [[1, 2], [2, 3]], "B": [[3, 1]]}}"#;
/// let cluster = Cluster::new(serde_json::from_str(text)?)?;
/// let groups = MaxGroups::of(&cluster);
/// assert_eq!(groups.iter().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    nodes: Vec<NodeId>,
    offline: NodeSet,
    topics: Vec<Topic>,
}

impl Cluster {
    /// Checks a description.
    ///
    /// # Errors
    /// It breaks one of the invariants above; the error names the field and the value.
    pub fn new(description: Description) -> Result<Cluster, ClusterError> {
        let nodes = ascending("nodes", description.nodes)?;
        let mut cluster = Cluster {
            nodes,
            ..Cluster::default()
        };
        for node in ascending("offline", description.offline)? {
            let place = cluster.place("offline", node)?;
            cluster.offline.insert(place);
        }
        let rate = if description.rates.is_empty() {
            1.0
        } else {
            0.0
        };
        let mut described = description.topics.0;
        described.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, partitions) in described {
            if cluster.topics.last().is_some_and(|last| last.name == name) {
                return Err(ClusterError::TopicTwice { topic: name });
            }
            if partitions.is_empty() {
                return Err(ClusterError::NoPartitions { topic: name });
            }
            let read = partitions
                .into_iter()
                .enumerate()
                .map(|(index, partition)| {
                    let place = format!("topics.{name}[{index}]");
                    cluster.partition(&name, index, &place, &partition.told())
                });
            let partitions = read.collect::<Result<_, _>>()?;
            cluster.topics.push(Topic {
                name,
                rate,
                partitions,
            });
        }
        for (topic, rate) in description.rates {
            cluster.set_rate(&topic, rate)?;
        }
        Ok(cluster)
    }

    /// Sets the rate of one topic.
    ///
    /// # Errors
    /// There is no such topic, or the rate is negative or not finite.
    pub fn set_rate(&mut self, topic: &str, rate: f64) -> Result<(), ClusterError> {
        let topic = topic.to_owned();
        if !(rate.is_finite() && rate >= 0.0) {
            return Err(ClusterError::Rate { topic, rate });
        }
        let found = self.topics.binary_search_by(|other| other.name.cmp(&topic));
        match found {
            Ok(index) => self.topics[index].rate = rate,
            Err(_) => return Err(ClusterError::UnknownTopic { topic }),
        }
        Ok(())
    }

    /// Sets the rate of every topic, before [`Cluster::set_rate`] says otherwise. Not checked: a
    /// constant of the caller's.
    pub fn set_rates(&mut self, rate: f64) {
        for topic in &mut self.topics {
            topic.rate = rate;
        }
    }

    /// The nodes by place, ascending by id; also those that are down.
    #[must_use]
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// The id of a node.
    ///
    /// # Panics
    /// There is no such place.
    #[must_use]
    pub fn id(&self, place: Place) -> NodeId {
        self.nodes[place as usize]
    }

    /// The nodes that are down.
    #[must_use]
    pub fn offline(&self) -> &NodeSet {
        &self.offline
    }

    /// The nodes that are not.
    pub fn living(&self) -> impl Iterator<Item = Place> + Clone + '_ {
        (0..)
            .take(self.nodes.len())
            .filter(|place| !self.offline.contains(*place))
    }

    /// The topics, by name.
    #[must_use]
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    pub(crate) fn topics_mut(&mut self) -> &mut [Topic] {
        &mut self.topics
    }

    fn place(&self, field: &str, node: NodeId) -> Result<Place, ClusterError> {
        let found = self.nodes.binary_search(&node).ok();
        let found = found.and_then(|place| Place::try_from(place).ok());
        found.ok_or_else(|| ClusterError::UnknownNode {
            place: field.to_owned(),
            node,
        })
    }

    fn partition(
        &self,
        topic: &str,
        index: usize,
        place: &str,
        told: &ToldPartition,
    ) -> Result<Partition, ClusterError> {
        if told.replicas.is_empty() {
            return Err(ClusterError::NoReplicas {
                topic: topic.to_owned(),
                partition: index,
            });
        }
        let replicas = self.distinct(place, &told.replicas)?;
        let member = |field: &str, node: NodeId| {
            let place = format!("{place}.{field}");
            if told.replicas.contains(&node) {
                self.place(&place, node)
            } else {
                Err(ClusterError::NoReplica { place, node })
            }
        };
        let in_sync = match &told.in_sync {
            Some(nodes) => {
                for node in nodes {
                    member("in_sync", *node)?;
                }
                Some(self.distinct(&format!("{place}.in_sync"), nodes)?)
            }
            None => None,
        };
        let leader = told.leader.map(|node| member("leader", node)).transpose()?;
        let mut partition = Partition {
            replicas,
            leader,
            in_sync,
        };
        partition.leader = partition.leader_without(&self.offline);
        Ok(partition)
    }

    fn distinct(&self, place: &str, nodes: &[NodeId]) -> Result<Places, ClusterError> {
        let mut places = Places::new();
        for node in nodes {
            let found = self.place(place, *node)?;
            if places.contains(&found) {
                return Err(ClusterError::ReplicaTwice {
                    place: place.to_owned(),
                    node: *node,
                });
            }
            places.push(found);
        }
        Ok(places)
    }
}

fn ascending(field: &'static str, mut nodes: Vec<NodeId>) -> Result<Vec<NodeId>, ClusterError> {
    nodes.sort_unstable();
    match nodes.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ClusterError::NodeTwice {
            field,
            node: pair[0],
        }),
        None => Ok(nodes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(text: &str) -> Result<Cluster, ClusterError> {
        Cluster::new(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn an_error_names_field_and_value() {
        for (text, said) in [
            (
                r#"{"nodes":[1,1],"topics":{}}"#,
                "nodes: node 1 stands there twice",
            ),
            (
                r#"{"nodes":[1],"offline":[2],"topics":{}}"#,
                "offline: node 2 is not in nodes",
            ),
            (
                r#"{"nodes":[1],"topics":{"A":[[1]],"A":[[1]]}}"#,
                "topics: \"A\" stands there twice",
            ),
            (
                r#"{"nodes":[1],"topics":{"A":[]}}"#,
                "topics.A: has 0 partitions; at least 1",
            ),
            (
                r#"{"nodes":[1],"topics":{"A":[[1],[]]}}"#,
                "topics.A[1]: has 0 replicas; at least 1",
            ),
            (
                r#"{"nodes":[1],"topics":{"A":[[7]]}}"#,
                "topics.A[0]: node 7 is not in nodes",
            ),
            (
                r#"{"nodes":[1],"topics":{"A":[[1,1]]}}"#,
                "topics.A[0]: node 1 stands there twice",
            ),
            (
                r#"{"nodes":[1,2],"topics":{"A":[{"replicas":[1],"leader":2}]}}"#,
                "topics.A[0].leader: node 2 is not one of the partition's replicas",
            ),
            (
                r#"{"nodes":[1,2],"topics":{"A":[{"replicas":[1],"in_sync":[2]}]}}"#,
                "topics.A[0].in_sync: node 2 is not one of the partition's replicas",
            ),
            (
                r#"{"nodes":[1],"topics":{},"rates":{"A":1}}"#,
                "rates: \"A\" is not in topics",
            ),
            (
                r#"{"nodes":[1],"topics":{"A":[[1]]},"rates":{"A":-1}}"#,
                "rates.A: -1 is no rate; from 0 up, and finite",
            ),
        ] {
            assert_eq!(cluster(text).unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn who_is_down_or_out_of_sync_is_not_elected() {
        let text = r#"{"nodes":[1,2,3],"offline":[1],"topics":{
            "A":[[1,2,3], {"replicas":[1,2,3],"in_sync":[1,3]}, {"replicas":[1,2],"in_sync":[1]}]}}"#;
        let cluster = cluster(text).unwrap();
        let leaders = cluster.topics()[0].partitions.iter();
        let leaders: Vec<_> = leaders.map(|partition| partition.leader).collect();
        assert_eq!(leaders, [Some(1), Some(2), None]);
    }

    #[test]
    fn order_in_the_file_means_nothing_but_for_replicas() {
        let one = cluster(r#"{"nodes":[3,1],"topics":{"B":[[3]],"A":[[1]]}}"#).unwrap();
        let other = cluster(r#"{"nodes":[1,3],"topics":{"A":[[1]],"B":[[3]]}}"#).unwrap();
        assert_eq!(one, other);
    }

    #[test]
    fn without_rates_every_topic_has_the_same_and_with_any_only_those_have() {
        let rates = |text: &str| -> Vec<f64> {
            let cluster = cluster(text).unwrap();
            cluster.topics().iter().map(|topic| topic.rate).collect()
        };
        assert_eq!(
            rates(r#"{"nodes":[1],"topics":{"A":[[1]],"B":[[1]]}}"#),
            [1.0, 1.0]
        );
        let some = r#"{"nodes":[1],"topics":{"A":[[1]],"B":[[1]]},"rates":{"B":5}}"#;
        assert_eq!(rates(some), [0.0, 5.0]);
    }
}
