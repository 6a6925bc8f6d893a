//! One producer's records in flight, by partition and by node, and the cost of giving a node more.
//!
//! Bytes in flight to a node are summed over the partitions that it leads *now*, when they are asked for,
//! once a batch: a batch whose leader moved is sent again to the new one, and no sum can drift.

use crate::answer_rate::AnswerRate;
use crate::cluster::{NodeId, PartitionId};
use crate::flight::PartitionFlight;
use crate::partitioner::TopicId;
use crate::peak_latency::{LATENCY_MAX, PeakLatency};
use std::collections::BTreeMap;
use std::time::Duration;

/// Shorter latencies are all the same: below this, differences are noise.
const LATENCY_FLOOR_S: f64 = 0.001;
/// Work before a node, in seconds, above which it is busy.
const BUSY_S: f64 = 0.25;
/// Factor by which the work of one busy node must be shorter for it to count as better off than
/// another.
const BUSY_TOLERANCE: f64 = 1.05;

/// Result of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The cluster has it.
    Acknowledged,
    /// It failed for a reason of its node's: no answer, no leader.
    NodeFailed,
    /// It failed for a reason of its own, as its size, or was never sent.
    Refused,
}

#[derive(Clone, Debug)]
struct NodeFlight {
    latency: PeakLatency,
    /// Bytes that ended, but for what speaks against the node.
    answered: u64,
    rate: AnswerRate,
    led: Vec<(TopicId, PartitionId)>,
}

/// All of them.
#[derive(Clone, Debug)]
pub(crate) struct FlightBoard {
    decay: Duration,
    /// Records in flight by topic, then by partition.
    partitions: Vec<Vec<PartitionFlight>>,
    nodes: BTreeMap<NodeId, NodeFlight>,
}

impl FlightBoard {
    pub(crate) fn new(decay: Duration) -> FlightBoard {
        FlightBoard {
            decay,
            partitions: Vec::new(),
            nodes: BTreeMap::new(),
        }
    }

    /// Forgets all leaders, to be told anew.
    pub(crate) fn begin_arranging(&mut self) {
        for node in self.nodes.values_mut() {
            node.led.clear();
        }
    }

    /// A topic's partitions have these leaders now.
    pub(crate) fn arrange(&mut self, topic: TopicId, leaders: &[Option<NodeId>]) {
        if self.partitions.len() <= topic.0 {
            self.partitions.resize_with(topic.0 + 1, Vec::new);
        }
        let flights = &mut self.partitions[topic.0];
        if flights.len() < leaders.len() {
            flights.resize_with(leaders.len(), PartitionFlight::default);
        }
        for ((partition, leader), flight) in (0..).zip(leaders).zip(flights) {
            let Some(leader) = *leader else { continue };
            flight.leader = Some(leader);
            let node = self.nodes.entry(leader).or_insert_with(|| NodeFlight {
                latency: PeakLatency::new(self.decay),
                answered: 0,
                rate: AnswerRate::default(),
                led: Vec::new(),
            });
            node.led.push((topic, PartitionId(partition)));
        }
    }

    /// A record sets out.
    pub(crate) fn depart(&mut self, topic: TopicId, at: PartitionId, bytes: u32, now: Duration) {
        if let Some(flight) = self.flight(topic, at) {
            flight.depart(bytes, now);
        }
    }

    /// A record's end is known.
    pub(crate) fn arrive(
        &mut self,
        topic: TopicId,
        at: PartitionId,
        bytes: u32,
        outcome: Outcome,
        now: Duration,
    ) {
        let Some(flight) = self.flight(topic, at) else {
            return;
        };
        let sample = flight.arrive(bytes, now);
        let leader = flight.leader;
        let Some(node) = leader.and_then(|leader| self.nodes.get_mut(&leader)) else {
            return;
        };
        if let Some(sample) = sample {
            node.latency.observe(sample, now);
        }
        match outcome {
            Outcome::NodeFailed => node.latency.observe(LATENCY_MAX, now),
            Outcome::Acknowledged | Outcome::Refused => node.answered += u64::from(bytes),
        }
    }

    /// Whether another node should rather have the next `bytes`: where both are busy, the one that will be
    /// done sooner; otherwise the one that costs less, unless that is less than `tolerance` times.
    ///
    /// Of two busy nodes a record that goes to the one with more work waits for longer, and when no more are
    /// sent the other has nothing to do while it waits.
    pub(crate) fn is_worse(
        &mut self,
        (node, other): (NodeId, NodeId),
        bytes: u32,
        tolerance: f64,
        now: Duration,
    ) -> bool {
        let (work_s, other_s) = (
            self.work_s(node, bytes, now),
            self.work_s(other, bytes, now),
        );
        if work_s > BUSY_S && other_s > BUSY_S {
            return work_s > BUSY_TOLERANCE * other_s;
        }
        self.cost(node, bytes, now) > tolerance * self.cost(other, bytes, now)
    }

    /// Time that a node will take for its bytes in flight, in seconds, by Little's law; 0 where its
    /// rate is not known, or where it has less than `bytes`: a trickle says nothing about the rate.
    fn work_s(&mut self, node: NodeId, bytes: u32, now: Duration) -> f64 {
        let in_flight = self.bytes_in_flight(node);
        let node = self.nodes.get_mut(&node);
        let rate = node.and_then(|node| node.rate.bytes_per_s(node.answered, now));
        match rate {
            Some(rate) if in_flight >= u64::from(bytes) => in_flight as f64 / rate,
            _ => 0.0,
        }
    }

    /// Cost of giving a node `bytes` more: the latency to expect, times the bytes that would then
    /// be in flight. Latency alone would send all records to the quickest node; bytes alone would
    /// let a slow node hold as much of the producer's buffers as a quick one.
    fn cost(&self, node: NodeId, bytes: u32, now: Duration) -> f64 {
        let Some(flight) = self.nodes.get(&node) else {
            return 0.0;
        };
        let mut latency_s = flight.latency.seconds(now).max(LATENCY_FLOOR_S);
        let mut in_flight = u64::from(bytes);
        for (topic, partition) in &flight.led {
            let led = &self.partitions[topic.0][partition.0 as usize];
            latency_s = latency_s.max(led.probe_age(now).as_secs_f64());
            in_flight += led.bytes();
        }
        latency_s * in_flight as f64
    }

    /// The bytes in flight to a node.
    pub(crate) fn bytes_in_flight(&self, node: NodeId) -> u64 {
        let led = self.nodes.get(&node).map(|node| &node.led);
        led.into_iter()
            .flatten()
            .map(|(topic, partition)| self.partitions[topic.0][partition.0 as usize].bytes())
            .sum()
    }

    fn flight(&mut self, topic: TopicId, at: PartitionId) -> Option<&mut PartitionFlight> {
        let of_topic = self.partitions.get_mut(topic.0)?;
        of_topic.get_mut(usize::try_from(at.0).ok()?)
    }
}
