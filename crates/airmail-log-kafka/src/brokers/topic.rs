//! Topics, their partitions, and how a topic is set.
//!
//! A topic's name is shared, not copied: each record that is handed over names its partition. Settings are kept
//! under Kafka's own names and as Kafka writes them, because they are compared with what a broker says and shown
//! to whoever has to put them right.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Name of a topic of Kafka: 1 to 249 of `a-z A-Z 0-9 . _ -`. Not to be taken for a topic of Airmail.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Arc<str>);

impl Topic {
    /// A topic by a name that was made here, or that a broker has told.
    #[must_use]
    pub fn new(name: &str) -> Topic {
        Topic(name.into())
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topic({})", self.0)
    }
}

/// Number of a partition in its topic, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionNumber(pub u16);

/// A partition: Kafka's unit of order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// The topic.
    pub topic: Topic,
    /// Its number there.
    pub number: PartitionNumber,
}

impl Partition {
    /// A partition of a topic.
    #[must_use]
    pub fn new(topic: &Topic, number: u16) -> Partition {
        Partition {
            topic: topic.clone(),
            number: PartitionNumber(number),
        }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.number.0)
    }
}

/// Settings of a topic, by Kafka's names, such as `cleanup.policy`, with values as Kafka writes them.
pub type Settings = BTreeMap<String, String>;

/// A topic as the brokers describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// Number of its partitions.
    pub partitions: u16,
    /// Number of replicas of the partition that has the fewest.
    pub replicas: u8,
    /// Its settings as they are in effect, defaults among them.
    pub settings: Settings,
}
