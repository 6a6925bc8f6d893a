//! Golden vectors `vectors/partitioners.json`, which the policies of every language must give.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_partition::{Cluster, NodeId, Partitioner, Policy, QueueBoard, Settings, record_bytes};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Deserialize)]
struct Vectors {
    clusters: BTreeMap<String, Described>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Described {
    nodes: Vec<i32>,
    topics: BTreeMap<String, Vec<Option<i32>>>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    policies: Vec<String>,
    start: u32,
    ignore_keys: bool,
    shared: bool,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    producer: String,
    cluster: String,
    topic: String,
    key: Option<String>,
    partitions: Vec<i32>,
}

/// A producer, and the cluster that it knows.
struct Producer {
    partitioner: Partitioner,
    knows: Option<String>,
}

fn vectors() -> Vectors {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../vectors/partitioners.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn cluster(described: &Described) -> Cluster {
    let leaders = |leaders: &Vec<Option<i32>>| leaders.iter().map(|id| id.map(NodeId)).collect();
    Cluster {
        nodes: described.nodes.iter().copied().map(NodeId).collect(),
        topics: described
            .topics
            .iter()
            .map(|(topic, list)| (topic.clone(), leaders(list)))
            .collect(),
    }
}

fn run(vectors: &Vectors, case: &Case, policy: Policy) {
    let shared = QueueBoard::new();
    let mut producers: BTreeMap<&str, Producer> = BTreeMap::new();
    for step in &case.steps {
        let producer = producers.entry(&step.producer).or_insert_with(|| {
            let settings = Settings {
                start: case.start,
                ignore_keys: case.ignore_keys,
                ..Settings::new(policy, 0)
            };
            let board = if case.shared {
                shared.clone()
            } else {
                QueueBoard::new()
            };
            Producer {
                partitioner: Partitioner::sharing(settings, board),
                knows: None,
            }
        });
        let partitioner = &mut producer.partitioner;
        if producer.knows.as_ref() != Some(&step.cluster) {
            partitioner.arrange(&cluster(&vectors.clusters[&step.cluster]));
            producer.knows = Some(step.cluster.clone());
        }
        let topic = partitioner.topic(&step.topic);
        let key = step.key.as_deref().map(str::as_bytes);
        let bytes = record_bytes(key.map(<[u8]>::len), None);
        let mut place = || {
            partitioner
                .place(topic, key, bytes, Duration::ZERO)
                .unwrap()
        };
        let given: Vec<i32> = step
            .partitions
            .iter()
            .map(|_| place().partition.0)
            .collect();
        assert_eq!(
            given, step.partitions,
            "{policy}: {}: {} to {} of {}",
            case.name, step.producer, step.topic, step.cluster
        );
    }
}

#[test]
fn each_case_gives_its_partitions() {
    let vectors = vectors();
    for case in &vectors.cases {
        for policy in &case.policies {
            run(&vectors, case, policy.parse().unwrap());
        }
    }
}

#[test]
fn every_policy_that_leaves_nothing_to_chance_has_cases() {
    let vectors = vectors();
    for policy in Policy::ALL {
        let has = vectors
            .cases
            .iter()
            .any(|case| case.policies.iter().any(|one| one == policy.name()));
        assert_eq!(has, policy != Policy::Adaptive, "{policy}");
    }
}
