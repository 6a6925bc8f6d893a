//! A cluster as it is written down: the file that operators and scripts make.
//!
//! ```json
//! {"nodes": [1, 2, 3], "topics": {"A": [[1, 2], [2, 3]]}}
//! ```
//!
//! For each partition its replicas, preferred leader first. Further facts of a live cluster are
//! optional: a partition may be `{"replicas": [1, 2], "leader": 2, "in_sync": [2]}`, `offline`
//! names nodes that are down, and `rates` gives the rate at which producers send to each topic. An
//! unknown field is an error, and so is a topic that is there twice: a typing error must not pass
//! for a balanced cluster.

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Kafka's number of a node (`node.id`, `broker.id`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A cluster as it is written down, not yet checked: [`Cluster::new`](crate::Cluster::new) checks it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// All nodes, in any order.
    pub nodes: Vec<NodeId>,
    /// Those of them that are down. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offline: Vec<NodeId>,
    /// The partitions of each topic.
    pub topics: Topics,
    /// Rate of each topic, in records/s or any other unit. Default: 1 for each topic. If any is
    /// given, a topic without one gets nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rates: BTreeMap<String, f64>,
}

/// Topics by name, with their partitions from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topics(pub Vec<(String, Vec<DescribedPartition>)>);

/// Where a partition is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DescribedPartition {
    /// Its replicas, all of them in sync; the first one leads.
    Replicas(Vec<NodeId>),
    /// A partition as a live cluster describes it.
    Told(ToldPartition),
}

/// A partition as a live cluster tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldPartition {
    /// Its replicas, the preferred leader first.
    pub replicas: Vec<NodeId>,
    /// The leader. Default: the first replica that is in sync and not down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<NodeId>,
    /// The replicas in sync. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_sync: Option<Vec<NodeId>>,
}

impl DescribedPartition {
    pub(crate) fn told(self) -> ToldPartition {
        match self {
            DescribedPartition::Told(told) => told,
            DescribedPartition::Replicas(replicas) => ToldPartition {
                replicas,
                ..ToldPartition::default()
            },
        }
    }
}

impl Serialize for Topics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, partitions) in &self.0 {
            map.serialize_entry(name, partitions)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Topics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Topics, D::Error> {
        deserializer.deserialize_map(TopicsVisitor)
    }
}

/// Keeps every entry: a map type would keep the last of two with the same name, in silence.
struct TopicsVisitor;

impl<'de> Visitor<'de> for TopicsVisitor {
    type Value = Topics;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the partitions of each topic, as {\"A\": [[1, 2], [2, 3]]}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Topics, A::Error> {
        let mut topics = Vec::new();
        while let Some(entry) = map.next_entry()? {
            topics.push(entry);
        }
        Ok(Topics(topics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Description, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn the_short_form_and_the_long_one_are_both_read() {
        let text =
            r#"{"nodes":[1,2],"topics":{"A":[[1,2],{"replicas":[1,2],"leader":2,"in_sync":[2]}]}}"#;
        let description = read(text).unwrap();
        let Topics(topics) = &description.topics;
        assert_eq!(
            topics[0].1[0],
            DescribedPartition::Replicas(vec![NodeId(1), NodeId(2)])
        );
        assert_eq!(topics[0].1[1].clone().told().leader, Some(NodeId(2)));
        assert_eq!(serde_json::to_string(&description).unwrap(), text);
    }

    #[test]
    fn a_field_that_is_not_known_is_an_error() {
        for text in [
            r#"{"nodes":[1],"topics":{},"ofline":[1]}"#,
            r#"{"nodes":[1],"topics":{"A":[{"replicas":[1],"insync":[1]}]}}"#,
            r#"{"nodes":[-1],"topics":{}}"#,
            r#"{"nodes":[1]}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_topic_that_stands_there_twice_is_read_twice() {
        let description = read(r#"{"nodes":[1],"topics":{"A":[[1]],"A":[[1]]}}"#).unwrap();
        assert_eq!(description.topics.0.len(), 2);
    }
}
