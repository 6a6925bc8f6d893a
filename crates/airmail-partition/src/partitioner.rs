//! The partitioner: one producer's choices among all its topics.

use crate::cluster::{Cluster, NodeId, PartitionId};
use crate::flight_board::{FlightBoard, Outcome};
use crate::key_hash::partition_of_key;
use crate::layout::TopicLayout;
use crate::policy::Policy;
use crate::queue_board::QueueBoard;
use crate::settings::Settings;
use crate::stops::{Circumstances, Stops};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::time::Duration;

/// A topic that a partitioner was told of: an index, so that a record costs no look-up by name (section 6.3).
/// It means nothing to another partitioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub(crate) usize);

/// Where a record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The partition.
    pub partition: PartitionId,
    /// Its leader, as far as is known; `None` while it has none.
    pub leader: Option<NodeId>,
}

/// A record for a topic that the cluster does not have, as it is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("topic {topic} is not in the cluster's metadata")]
pub struct TopicUnknown {
    /// Its name.
    pub topic: String,
}

/// Chooses the partition of each record that one producer sends.
#[derive(Debug)]
pub struct Partitioner {
    settings: Settings,
    queues: QueueBoard,
    flights: FlightBoard,
    random: SmallRng,
    ids: BTreeMap<String, TopicId>,
    names: Vec<String>,
    topics: Vec<Stops>,
}

impl Partitioner {
    /// One with SQF counts of its own. It knows of no cluster yet.
    #[must_use]
    pub fn new(settings: Settings) -> Partitioner {
        Partitioner::sharing(settings, QueueBoard::new())
    }

    /// Makes one that shares SQF's counts with others of one board (figure 6.7). Other policies do not look
    /// at it.
    #[must_use]
    pub fn sharing(settings: Settings, queues: QueueBoard) -> Partitioner {
        Partitioner {
            flights: FlightBoard::new(settings.decay),
            random: SmallRng::seed_from_u64(settings.seed),
            settings,
            queues,
            ids: BTreeMap::new(),
            names: Vec::new(),
            topics: Vec::new(),
        }
    }

    /// The id of a topic, which the cluster may not have yet. The same on every call.
    pub fn topic(&mut self, name: &str) -> TopicId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = TopicId(self.topics.len());
        self.ids.insert(name.to_owned(), id);
        self.names.push(name.to_owned());
        self.topics.push(Stops::new(&self.settings));
        id
    }

    /// The cluster's metadata has changed: computes the choices, for every topic that it has. Turns
    /// go on where they were.
    pub fn arrange(&mut self, cluster: &Cluster) {
        let none = Vec::new();
        for name in cluster.topics.keys() {
            self.topic(name);
        }
        self.flights.begin_arranging();
        let mut layouts = Vec::with_capacity(self.names.len());
        for (at, name) in self.names.iter().enumerate() {
            let leaders = cluster.topics.get(name).unwrap_or(&none);
            self.flights.arrange(TopicId(at), leaders);
            layouts.push(TopicLayout::new(leaders));
        }
        let queues = if self.settings.policy == Policy::Sqf {
            let nodes = |layout: &Option<TopicLayout>| {
                let nodes = layout.iter().flat_map(|layout| &layout.nodes);
                nodes.map(|(node, _)| *node).collect()
            };
            let nodes: Vec<Vec<NodeId>> = layouts.iter().map(nodes).collect();
            self.queues.arrange(&cluster.nodes, &nodes)
        } else {
            vec![Vec::new(); layouts.len()]
        };
        for ((topic, layout), queues) in self.topics.iter_mut().zip(layouts).zip(queues) {
            topic.arrange(layout, queues, &self.settings);
        }
    }

    /// The place of a record of `bytes`, as [`record_bytes`](crate::record_bytes) has them. It is in flight
    /// until [`arrived`](Partitioner::arrived).
    ///
    /// # Errors
    /// The cluster does not have the topic, or nothing is known of it yet.
    pub fn place(
        &mut self,
        topic: TopicId,
        key: Option<&[u8]>,
        bytes: u32,
        now: Duration,
    ) -> Result<Place, TopicUnknown> {
        let found = self.choose(topic, key, bytes, now);
        let place = found.ok_or_else(|| TopicUnknown {
            topic: self.names[topic.0].clone(),
        })?;
        if self.settings.policy == Policy::Adaptive {
            self.flights.depart(topic, place.partition, bytes, now);
        }
        Ok(place)
    }

    fn choose(
        &mut self,
        topic: TopicId,
        key: Option<&[u8]>,
        bytes: u32,
        now: Duration,
    ) -> Option<Place> {
        let stops = &mut self.topics[topic.0];
        let partition = match key.filter(|_| !self.settings.ignore_keys) {
            Some(key) => {
                let partitions = stops.layout()?.leaders.len();
                partition_of_key(key, u32::try_from(partitions).unwrap_or(u32::MAX))
            }
            None => {
                let mut circumstances = Circumstances {
                    settings: &self.settings,
                    board: &mut self.flights,
                    random: &mut self.random,
                    now,
                };
                stops.next(bytes, &mut circumstances)?
            }
        };
        let leaders = &stops.layout()?.leaders;
        let leader = leaders[partition.0 as usize];
        Some(Place { partition, leader })
    }

    /// The place number `pin` modulo the topic's partitions: no policy is asked, no turn moves, and nothing
    /// counts as in flight.
    ///
    /// # Errors
    /// As [`place`](Partitioner::place).
    pub fn pin(&self, topic: TopicId, pin: u32) -> Result<Place, TopicUnknown> {
        let Some(layout) = self.topics[topic.0].layout() else {
            let topic = self.names[topic.0].clone();
            return Err(TopicUnknown { topic });
        };
        let at = pin as usize % layout.leaders.len();
        Ok(Place {
            partition: PartitionId(at as i32),
            leader: layout.leaders[at],
        })
    }

    /// A record that was placed has ended: what [`Policy::Adaptive`] learns from. The others need not be told.
    pub fn arrived(
        &mut self,
        topic: TopicId,
        partition: PartitionId,
        bytes: u32,
        outcome: Outcome,
        now: Duration,
    ) {
        if self.settings.policy == Policy::Adaptive {
            self.flights.arrive(topic, partition, bytes, outcome, now);
        }
    }

    /// The bytes that are in flight to a node, under [`Policy::Adaptive`]; 0 under others, which do not look.
    #[must_use]
    pub fn bytes_in_flight(&self, node: NodeId) -> u64 {
        self.flights.bytes_in_flight(node)
    }

    /// Number of a topic's partitions; `None` while the cluster does not have the topic.
    #[must_use]
    pub fn partitions(&self, topic: TopicId) -> Option<u32> {
        let layout = self.topics[topic.0].layout()?;
        u32::try_from(layout.leaders.len()).ok()
    }
}
