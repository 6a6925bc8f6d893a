//! Load of each node, by the rate of each topic and the way its producers spread records (Kafka
//! thesis, section 6.4 and its table).
//!
//! Each producer spreads without knowing of the others, so a node's load is the sum of the parts of
//! its topics. Replication is not counted: it loads followers by the same factor everywhere that
//! replicas are spread evenly.

use crate::cluster::{Cluster, Topic};
use crate::leaders::Leaders;
use crate::node_set::{NodeSet, Place};

/// Ways in which a topic's producers spread records without keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Spread in equal parts over partitions that have a leader: the paper's default partitioner.
    Partitions,
    /// Spread in equal parts over nodes that lead any: the paper's Node and SQF partitioners, each
    /// producer with an instance of its own.
    Nodes,
}

impl Spread {
    /// Part of a topic's rate that goes to a node that leads `count` of its partitions.
    pub(crate) fn share(self, leaders: &Leaders, count: u32) -> f64 {
        match self {
            Spread::Partitions => f64::from(count) / f64::from(leaders.led()),
            Spread::Nodes => 1.0 / leaders.counts().len() as f64,
        }
    }
}

/// The expected load of each node, in the unit of the topics' rates.
///
/// ```
/// use airmail_topology::{Cluster, Load, Spread};
///
/// let text = r#"{"nodes": [1, 2], "topics": {"A": [[1], [2], [2], [2]]}, "rates": {"A": 100}}"#;
/// let cluster = Cluster::new(serde_json::from_str(text)?)?;
/// assert_eq!(Load::of(&cluster, Spread::Partitions).by_node(), [25.0, 75.0]);
/// assert_eq!(Load::of(&cluster, Spread::Nodes).by_node(), [50.0, 50.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    by_node: Vec<f64>,
}

impl Load {
    /// Computes the load of a cluster as it is.
    #[must_use]
    pub fn of(cluster: &Cluster, spread: Spread) -> Load {
        let mut load = Load {
            by_node: vec![0.0; cluster.nodes().len()],
        };
        for topic in cluster.topics() {
            let leaders = Leaders::without(topic, cluster.offline());
            load.add(topic, &leaders, spread, 1.0);
        }
        load
    }

    /// Loads by place, in the unit of the rates.
    #[must_use]
    pub fn by_node(&self) -> &[f64] {
        &self.by_node
    }

    /// The node with most, of those that are not down, and its load. The first of equals.
    #[must_use]
    pub fn peak(&self, down: &NodeSet) -> Option<(Place, f64)> {
        let living = self.living(down);
        living.fold(None, |most, (place, load)| match most {
            Some((_, highest)) if highest >= load => most,
            _ => Some((place, load)),
        })
    }

    /// The highest load divided by the mean of the nodes that are not down; 1 is balanced.
    #[must_use]
    pub fn imbalance(&self, down: &NodeSet) -> f64 {
        let (nodes, sum) = self
            .living(down)
            .fold((0.0, 0.0), |(nodes, sum), (_, load)| {
                (nodes + 1.0, sum + load)
            });
        match self.peak(down) {
            Some((_, highest)) if sum > 0.0 => highest * nodes / sum,
            _ => 1.0,
        }
    }

    /// Adds a topic's part, or with a `factor` of -1 takes it away.
    pub(crate) fn add(&mut self, topic: &Topic, leaders: &Leaders, spread: Spread, factor: f64) {
        for &(place, count) in leaders.counts() {
            self.by_node[place as usize] += factor * topic.rate * spread.share(leaders, count);
        }
    }

    fn living<'a>(&'a self, down: &'a NodeSet) -> impl Iterator<Item = (Place, f64)> + 'a {
        (0..)
            .zip(self.by_node.iter().copied())
            .filter(|(place, _)| !down.contains(*place))
    }
}
