//! Turns of one topic under a policy. Computed when the layout changes; the counters live on.

use crate::cluster::{NodeId, PartitionId};
use crate::flight_board::FlightBoard;
use crate::layout::TopicLayout;
use crate::policy::Policy;
use crate::queue_board::{self, Queue};
use crate::record_bytes::BATCH_HEAD;
use crate::rotation::Rotation;
use crate::settings::Settings;
use rand::Rng as _;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::time::Duration;

/// A node of the topic, with the partitions that it leads and their turns.
#[derive(Debug)]
struct Stop {
    node: NodeId,
    partitions: Vec<PartitionId>,
    within: Rotation,
}

impl Stop {
    fn next(&mut self) -> PartitionId {
        self.partitions[self.within.next(self.partitions.len())]
    }
}

/// Where the open batch of [`Policy::Adaptive`] goes.
#[derive(Clone, Copy, Debug)]
struct Sticky {
    partition: PartitionId,
    given: u64,
    since: Duration,
}

/// The inputs of a choice beside the topic's own turns.
pub(crate) struct Circumstances<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) board: &'a mut FlightBoard,
    pub(crate) random: &'a mut SmallRng,
    pub(crate) now: Duration,
}

/// The turns of one topic.
#[derive(Debug)]
pub(crate) struct Stops {
    /// None while the cluster does not have the topic.
    layout: Option<TopicLayout>,
    rotation: Rotation,
    stops: Vec<Stop>,
    /// Turns of nodes that led partitions of the topic before, and lead none now.
    resting: BTreeMap<NodeId, Rotation>,
    /// Queues of the nodes in `stops`, under SQF.
    queues: Vec<Queue>,
    sticky: Option<Sticky>,
}

impl Stops {
    pub(crate) fn new(settings: &Settings) -> Stops {
        let rotation = match settings.policy {
            Policy::Default => Rotation::of_31_bits(settings.start),
            _ => Rotation::new(settings.start),
        };
        Stops {
            layout: None,
            rotation,
            stops: Vec::new(),
            resting: BTreeMap::new(),
            queues: Vec::new(),
            sticky: None,
        }
    }

    /// The cluster has changed; `queues` are of the layout's nodes in their order, under SQF.
    pub(crate) fn arrange(
        &mut self,
        layout: Option<TopicLayout>,
        queues: Vec<Queue>,
        settings: &Settings,
    ) {
        for stop in self.stops.drain(..) {
            self.resting.insert(stop.node, stop.within);
        }
        for (node, partitions) in layout.iter().flat_map(|layout| &layout.nodes) {
            let rested = self.resting.remove(node);
            self.stops.push(Stop {
                node: *node,
                partitions: partitions.clone(),
                within: rested.unwrap_or_else(|| Rotation::new(settings.start)),
            });
        }
        self.layout = layout;
        self.queues = queues;
        self.sticky = None;
    }

    pub(crate) fn layout(&self) -> Option<&TopicLayout> {
        self.layout.as_ref()
    }

    /// The partition of a record of `bytes` without a key; none while the cluster does not have the topic.
    pub(crate) fn next(&mut self, bytes: u32, with: &mut Circumstances<'_>) -> Option<PartitionId> {
        let choices = &self.layout.as_ref()?.choices;
        let partition = match with.settings.policy {
            Policy::Adaptive => return self.next_sticky(bytes, with),
            Policy::Node if !self.stops.is_empty() => {
                let turn = self.rotation.next(self.stops.len());
                self.stops[turn].next()
            }
            Policy::Sqf if !self.queues.is_empty() => {
                self.stops[queue_board::add(&self.queues)].next()
            }
            _ => choices[self.rotation.next(choices.len())],
        };
        Some(partition)
    }

    /// Stays with a partition until its batch is full or its time is over. A batch takes its first record
    /// whatever its size.
    fn next_sticky(&mut self, bytes: u32, with: &mut Circumstances<'_>) -> Option<PartitionId> {
        let batch_bytes = u64::from(with.settings.sticky_bytes.saturating_sub(BATCH_HEAD));
        let stays = |sticky: &Sticky| {
            sticky.given + u64::from(bytes) <= batch_bytes
                && with.now.saturating_sub(sticky.since) < with.settings.sticky
        };
        let mut sticky = match self.sticky.filter(stays) {
            Some(sticky) => sticky,
            None => Sticky {
                partition: self.choose(with)?,
                given: 0,
                since: with.now,
            },
        };
        sticky.given += u64::from(bytes);
        self.sticky = Some(sticky);
        Some(sticky.partition)
    }

    /// A partition of the node whose turn it is; or of another, if that one is clearly better off (power of
    /// two choices).
    fn choose(&mut self, with: &mut Circumstances<'_>) -> Option<PartitionId> {
        let count = self.stops.len();
        if count == 0 {
            let choices = &self.layout.as_ref()?.choices;
            return Some(choices[self.rotation.next(choices.len())]);
        }
        let mut turn = self.rotation.next(count);
        if count > 1 {
            let mut other = with.random.random_range(0..count - 1);
            if other >= turn {
                other += 1;
            }
            let (bytes, tolerance) = (with.settings.sticky_bytes, with.settings.tolerance);
            let pair = (self.stops[turn].node, self.stops[other].node);
            if with.board.is_worse(pair, bytes, tolerance, with.now) {
                turn = other;
            }
        }
        Some(self.stops[turn].next())
    }
}
