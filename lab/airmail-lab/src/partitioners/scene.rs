//! Scenes: the topics of figure 7.3, and the number of replicas that an ack waits for.
//!
//! The paper's text does not say which of the two nodes leads the second partition of U1 and U2; it is the
//! second one here, as in figure 6.4.

use std::fmt;

/// The paper's topics, on nodes 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
#[value(rename_all = "UPPER")]
pub(crate) enum Topic {
    /// Balanced, no replication
    B1,
    /// Balanced, on both nodes
    B2,
    /// Unbalanced, no replication
    U1,
    /// Unbalanced, on both nodes: what a fault leaves
    U2,
}

/// Replicas that have a record when it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Acks {
    /// The leader
    #[value(name = "1")]
    One,
    /// All that are in sync
    All,
}

/// A topic, and what an ack of its records means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scene {
    pub(super) topic: Topic,
    pub(super) acks: Acks,
}

impl Topic {
    /// All of them.
    pub(super) const ALL: [Topic; 4] = [Topic::B1, Topic::B2, Topic::U1, Topic::U2];

    /// Name of the topic in the paper.
    pub(super) fn name(self) -> &'static str {
        match self {
            Topic::B1 => "B1",
            Topic::B2 => "B2",
            Topic::U1 => "U1",
            Topic::U2 => "U2",
        }
    }

    /// The replicas of each partition, the leader first.
    pub(super) fn replicas(self) -> Vec<Vec<u32>> {
        match self {
            Topic::B1 => vec![vec![1], vec![2]],
            Topic::B2 => vec![vec![1, 2], vec![2, 1]],
            Topic::U1 => vec![vec![1], vec![2], vec![2]],
            Topic::U2 => vec![vec![1, 2], vec![2, 1], vec![2, 1]],
        }
    }
}

impl Acks {
    /// The two kinds.
    pub(super) const ALL: [Acks; 2] = [Acks::One, Acks::All];

    /// Value of the producer's property.
    pub(super) fn name(self) -> &'static str {
        match self {
            Acks::One => "1",
            Acks::All => "all",
        }
    }
}

impl Scene {
    /// A topic with these acks.
    pub(super) const fn new(topic: Topic, acks: Acks) -> Scene {
        Scene { topic, acks }
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, acks={}", self.topic.name(), self.acks.name())
    }
}
