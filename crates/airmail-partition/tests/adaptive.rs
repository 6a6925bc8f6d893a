//! The adaptive policy, step by step, and with records that flow through simulated nodes, a
//! millisecond at a time: each node answers a fixed number of records in one, in order, and the
//! producer's buffers are bounded.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_partition::{
    Cluster, NodeId, Outcome, PartitionId, Partitioner, Policy, Settings, TopicId, record_bytes,
};
use std::collections::VecDeque;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const VALUE: usize = 1_000;
const NODES: usize = 3;

fn bytes() -> u32 {
    record_bytes(None, Some(VALUE))
}

/// Records that fit into a batch of 16 KiB, whose head has 61 bytes.
fn in_batch() -> usize {
    (16_384 - 61) / bytes() as usize
}

fn cluster(led: &[i32]) -> Cluster {
    let leaders: Vec<Option<NodeId>> = led.iter().map(|id| Some(NodeId(*id))).collect();
    Cluster {
        nodes: leaders.iter().flatten().copied().collect(),
        topics: [("A".to_owned(), leaders)].into(),
    }
}

fn partitioner(led: &[i32]) -> (Partitioner, TopicId) {
    let settings = Settings {
        start: 0,
        ..Settings::new(Policy::Adaptive, 7)
    };
    let mut partitioner = Partitioner::new(settings);
    partitioner.arrange(&cluster(led));
    let topic = partitioner.topic("A");
    (partitioner, topic)
}

#[test]
fn a_partition_keeps_its_turn_until_its_batch_is_full() {
    let (mut partitioner, topic) = partitioner(&[1, 2, 2]);
    let mut turns: Vec<i32> = Vec::new();
    for record in 0..4 * in_batch() {
        let PartitionId(at) = partitioner
            .place(topic, None, bytes(), MS)
            .unwrap()
            .partition;
        partitioner.arrived(topic, PartitionId(at), bytes(), Outcome::Acknowledged, MS);
        if turns.last() != Some(&at) {
            assert_eq!(record % in_batch(), 0, "record {record}");
            turns.push(at);
        }
    }
    assert_eq!(turns, [0, 1, 0, 2]);
}

#[test]
fn a_turn_ends_with_its_time_and_a_large_record_has_one_of_its_own() {
    let (mut partitioner, topic) = partitioner(&[1, 2, 2]);
    let mut place = |bytes, now| {
        let at = partitioner
            .place(topic, None, bytes, now)
            .unwrap()
            .partition;
        partitioner.arrived(topic, at, bytes, Outcome::Acknowledged, now);
        at.0
    };
    assert_eq!(place(100, MS), 0);
    assert_eq!(place(100, 100 * MS), 0);
    assert_eq!(place(100, 101 * MS), 1);
    assert_eq!(place(20_000, 102 * MS), 0);
    assert_eq!(place(20_000, 102 * MS), 2);
}

#[test]
fn what_is_in_flight_is_what_has_not_ended_and_moves_with_its_leader() {
    let (mut partitioner, topic) = partitioner(&[1, 2, 2]);
    for _ in 0..3 {
        partitioner.place(topic, None, bytes(), MS).unwrap();
    }
    assert_eq!(
        partitioner.bytes_in_flight(NodeId(1)),
        3 * u64::from(bytes())
    );
    for outcome in [Outcome::Acknowledged, Outcome::Refused] {
        partitioner.arrived(topic, PartitionId(0), bytes(), outcome, MS);
    }
    partitioner.arrange(&cluster(&[2, 2, 2]));
    assert_eq!(partitioner.bytes_in_flight(NodeId(1)), 0);
    assert_eq!(partitioner.bytes_in_flight(NodeId(2)), u64::from(bytes()));
}

#[test]
fn a_node_whose_records_fail_is_passed_over_then_tried_again() {
    let (mut partitioner, topic) = partitioner(&[1, 2, 2]);
    let batches = |partitioner: &mut Partitioner, count: usize, now| {
        let mut seen = Vec::new();
        for _ in 0..count * in_batch() {
            let at = partitioner
                .place(topic, None, bytes(), now)
                .unwrap()
                .partition;
            partitioner.arrived(topic, at, bytes(), Outcome::Acknowledged, now);
            seen.push(at.0);
        }
        seen
    };
    batches(&mut partitioner, 2, MS);
    partitioner
        .place(topic, Some(b"key4"), bytes(), MS)
        .unwrap();
    partitioner.arrived(topic, PartitionId(0), bytes(), Outcome::NodeFailed, MS);
    assert!(!batches(&mut partitioner, 3, MS).contains(&0));
    assert!(batches(&mut partitioner, 3, 1_001 * MS).contains(&0));
}

struct Flow {
    partitioner: Partitioner,
    topic: TopicId,
    now: Duration,
    queues: Vec<VecDeque<PartitionId>>,
    answers_each_ms: [usize; NODES],
    given: [usize; NODES],
    buffers_records: usize,
    buffered: usize,
}

impl Flow {
    fn new() -> Flow {
        let (partitioner, topic) = partitioner(&[1, 2, 3, 1, 2, 3]);
        Flow {
            partitioner,
            topic,
            now: MS,
            queues: vec![VecDeque::new(); NODES],
            answers_each_ms: [100; NODES],
            given: [0; NODES],
            buffers_records: 6_000,
            buffered: 0,
        }
    }

    /// Offers a number of records each millisecond; those that the buffers do not hold wait outside.
    fn flow(&mut self, millis: usize, offered: usize) {
        self.given = [0; NODES];
        for _ in 0..millis {
            self.now += MS;
            for _ in 0..offered.min(self.buffers_records - self.buffered) {
                let place = self
                    .partitioner
                    .place(self.topic, None, bytes(), self.now)
                    .unwrap();
                let node = place.partition.0 as usize % NODES;
                self.queues[node].push_back(place.partition);
                self.given[node] += 1;
                self.buffered += 1;
            }
            for node in 0..NODES {
                for _ in 0..self.answers_each_ms[node].min(self.queues[node].len()) {
                    let at = self.queues[node].pop_front().unwrap();
                    let outcome = Outcome::Acknowledged;
                    self.partitioner
                        .arrived(self.topic, at, bytes(), outcome, self.now);
                    self.buffered -= 1;
                }
            }
        }
    }

    fn all(&self) -> usize {
        self.given.iter().sum()
    }

    #[track_caller]
    fn assert_part(&self, node: usize, expected: f64, tolerance: f64) {
        let part = self.given[node] as f64 / self.all() as f64;
        assert!(
            (part - expected).abs() <= tolerance,
            "node {node} has {part}"
        );
    }
}

#[test]
fn nodes_that_do_well_have_equal_parts() {
    let mut flow = Flow::new();
    flow.flow(2_000, 150);
    for node in 0..NODES {
        flow.assert_part(node, 1.0 / 3.0, 0.01);
    }
}

#[test]
fn nodes_that_are_all_busy_get_what_they_can_take() {
    let mut flow = Flow::new();
    flow.answers_each_ms[0] = 20;
    flow.flow(2_000, 1_000);
    flow.flow(2_000, 1_000);
    for (node, answers) in [(0, 20.0), (1, 100.0), (2, 100.0)] {
        flow.assert_part(node, answers / 220.0, 0.02);
    }
}

#[test]
fn nodes_that_are_all_busy_have_as_long_to_work_for_what_they_have() {
    let mut flow = Flow::new();
    flow.buffers_records = 220 * 3_000;
    flow.answers_each_ms[0] = 20;
    flow.flow(10_000, 1_000);
    for (queue, answers) in flow.queues.iter().zip(flow.answers_each_ms) {
        let work_ms = queue.len() / answers;
        assert!(work_ms.abs_diff(3_000) <= 300, "{work_ms}");
    }
}

#[test]
fn a_slow_node_does_not_hold_up_the_others() {
    let mut flow = Flow::new();
    flow.answers_each_ms[0] = 20;
    flow.flow(1_000, 200);
    flow.flow(1_000, 200);
    // Turns would give it a third, and the flow would be three times what it takes.
    assert!(flow.all() >= 190_000, "{}", flow.all());
}

#[test]
fn a_node_that_stops_is_left_within_a_second_and_used_again_when_it_is_back() {
    let mut flow = Flow::new();
    flow.flow(1_000, 200);
    flow.answers_each_ms[0] = 0;
    flow.flow(1_000, 200);
    flow.flow(1_000, 200);
    flow.assert_part(0, 0.0, 0.002);
    assert_eq!(flow.all(), 200_000, "the others take it all");
    flow.answers_each_ms[0] = 100;
    flow.flow(1_000, 200);
    assert!(flow.given[0] > 0, "tried");
    flow.flow(2_000, 200);
    flow.assert_part(0, 1.0 / 3.0, 0.05);
}

#[test]
fn a_trickle_leaves_a_node_that_stops_too() {
    let mut flow = Flow::new();
    flow.flow(1_000, 1);
    flow.answers_each_ms[0] = 0;
    flow.flow(1_000, 1);
    flow.flow(1_000, 1);
    flow.assert_part(0, 0.0, 0.15);
}
