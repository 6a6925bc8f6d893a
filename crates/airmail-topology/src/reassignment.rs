//! Changes of partitions' replicas, in the form that Kafka's own tool takes.
//!
//! Written as JSON a reassignment is the input of `kafka-reassign-partitions
//! --reassignment-json-file`:
//!
//! ```json
//! {"version":1,"partitions":[{"topic":"A","partition":0,"replicas":[3,2]}]}
//! ```
//!
//! It names only partitions that change, and keeps the number of replicas of each. The first replica is
//! the preferred leader; a partition whose replicas change their order and nothing else moves no data, and is led
//! by its new first replica after an election (`kafka-leader-election --election-type preferred`).

use crate::cluster::{Cluster, Partition, Places};
use crate::description::NodeId;
use crate::replicas::PartitionIndex;
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

/// New replicas for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reassigned {
    /// The partition.
    pub partition: PartitionIndex,
    /// All its replicas from then on, the preferred leader first.
    pub replicas: Places,
    /// Whether a node gets data that it has not.
    pub moves_data: bool,
}

/// Partitions that a topic is to have besides, made with `kafka-topics --alter --partitions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedPartitions {
    /// The topic, as an index.
    pub topic: usize,
    /// Number of partitions that it has.
    pub from: usize,
    /// Number of partitions that it needs.
    pub to: usize,
}

/// Changes of replicas, in the order of topics and partitions.
///
/// ```
/// use airmail_topology::{Advice, Cluster, Goal};
///
/// let text = r#"{"nodes": [1, 2], "topics": {"A": [[1], [1]]}}"#;
/// let cluster = Cluster::new(serde_json::from_str(text)?)?;
/// let advice = Advice::of(&cluster, 1);
/// let plan = advice.plans.iter().find(|plan| plan.goal == Goal::WithinMoves).unwrap();
/// let json = serde_json::to_string(&plan.reassignment.for_kafka(&cluster))?;
/// assert_eq!(json, r#"{"version":1,"partitions":[{"topic":"A","partition":0,"replicas":[2]}]}"#);
/// let after = plan.reassignment.applied_to(&cluster);
/// assert_eq!(after.topics()[0].partitions[0].leader, Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reassignment {
    /// Each partition once.
    pub partitions: Vec<Reassigned>,
    /// Partitions to be added before; `partitions` has them too, as Kafka places them as it likes.
    pub added: Vec<AddedPartitions>,
}

impl Reassignment {
    /// The cluster as it will be, with preferred leaders elected and all replicas in sync that are not down.
    #[must_use]
    pub fn applied_to(&self, cluster: &Cluster) -> Cluster {
        let mut after = cluster.clone();
        let offline = cluster.offline().clone();
        for added in &self.added {
            let partitions = &mut after.topics_mut()[added.topic].partitions;
            let like = partitions[0].clone();
            partitions.resize(added.to, like);
        }
        for changed in &self.partitions {
            let partition = changed.partition;
            after.topics_mut()[partition.topic].partitions[partition.partition] = Partition {
                replicas: changed.replicas.clone(),
                leader: None,
                in_sync: None,
            };
        }
        for topic in after.topics_mut() {
            for partition in &mut topic.partitions {
                partition.in_sync = None;
                partition.leader = None;
                partition.leader = partition.leader_without(&offline);
            }
        }
        after
    }

    /// Number of partitions that get other replicas, or the same ones in another order.
    #[must_use]
    pub fn moves(&self) -> usize {
        self.partitions.len()
    }

    /// The reassignment as JSON for Kafka's tool.
    #[must_use]
    pub fn for_kafka<'a>(&'a self, cluster: &'a Cluster) -> impl Serialize + 'a {
        ForKafka {
            partitions: self
                .partitions
                .iter()
                .map(|changed| KafkaPartition {
                    topic: &cluster.topics()[changed.partition.topic].name,
                    partition: changed.partition.partition,
                    replicas: changed
                        .replicas
                        .iter()
                        .map(|place| cluster.id(*place))
                        .collect(),
                })
                .collect(),
        }
    }
}

struct ForKafka<'a> {
    partitions: Vec<KafkaPartition<'a>>,
}

#[derive(serde::Serialize)]
struct KafkaPartition<'a> {
    topic: &'a str,
    partition: usize,
    replicas: Vec<NodeId>,
}

impl Serialize for ForKafka<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut whole = serializer.serialize_struct("Reassignment", 2)?;
        whole.serialize_field("version", &1)?;
        whole.serialize_field("partitions", &self.partitions)?;
        whole.end()
    }
}
