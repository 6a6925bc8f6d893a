//! The owner of a prefix, where log 0 is in another storage.

use super::node::{BEGIN, Node};
use crate::brokers::Topic;
use crate::config::KafkaConfig;
use crate::model::{Faults, ModelCluster};
use airmail_log::conformance::{EPOCH, log, spec};
use airmail_log::{Call, Completion, LogSpec, LogStorage as _};
use airmail_model::Now;

fn further(cluster: u64) -> KafkaConfig {
    KafkaConfig {
        cluster,
        is_further: true,
        ..KafkaConfig::default()
    }
}

/// Has a node provision for a namespace.
fn provision(node: &mut Node, now: &mut Now) -> Completion {
    let spec = LogSpec {
        epoch: EPOCH,
        ..spec(node.storage.capabilities().strongest)
    };
    let tag = node.call(|t| Call::Provision {
        t,
        log: log(0),
        logs: 1,
        spec: Box::new(spec),
    });
    node.answer(now, tag)
}

fn names(cluster: &ModelCluster, part: &str) -> Vec<String> {
    let topics = cluster.topics();
    let names = topics.iter().map(Topic::to_string);
    names.filter(|name| name.contains(part)).collect()
}

#[test]
fn the_first_cluster_that_uses_a_prefix_owns_it_and_another_is_refused_by_name() {
    let brokers = ModelCluster::new(1, Faults::NONE);
    let mut now = BEGIN;
    for seed in 0..2 {
        let config = KafkaConfig { seed, ..further(7) };
        let mut own = Node::new(&brokers, config);
        let made = provision(&mut own, &mut now);
        assert!(matches!(made, Completion::Provisioned { .. }), "{made:?}");
    }
    let owner = "airmail.of.0000000000000007";
    assert_eq!(names(&brokers, ".of."), [owner]);
    assert_eq!(names(&brokers, ".meta"), [""; 0], "log 0 is elsewhere");
    let mut other = Node::new(&brokers, further(8));
    let Completion::Refused { why, .. } = provision(&mut other, &mut now) else {
        panic!("the prefix is of another cluster");
    };
    let why = why.to_string();
    assert!(
        why.contains("prefix airmail is not of cluster 0000000000000008") && why.contains(owner),
        "{why}"
    );
    assert_eq!(names(&brokers, ".of."), [owner], "nothing is left behind");
}

#[test]
fn a_prefix_that_has_log_0_or_topics_of_nobody_is_refused() {
    for first in [true, false] {
        let brokers = ModelCluster::new(2, Faults::NONE);
        let mut now = BEGIN;
        let mut whole = Node::new(&brokers, KafkaConfig::default());
        provision(&mut whole, &mut now);
        if !first {
            brokers.delete(&Topic::new("airmail.meta"));
        }
        let mut other = Node::new(&brokers, further(8));
        let Completion::Refused { why, .. } = provision(&mut other, &mut now) else {
            panic!("the prefix is of another cluster");
        };
        let why = why.to_string();
        assert_eq!(why.contains("topic airmail.meta says"), first, "{why}");
        assert_eq!(names(&brokers, ".of."), [""; 0]);
    }
}

#[test]
fn of_two_clusters_that_begin_at_once_no_two_own_a_prefix() {
    for seed in 0..64 {
        let brokers = ModelCluster::new(seed, Faults::NONE);
        let mut now = BEGIN;
        let mut nodes = [7, 8].map(|cluster| Node::new(&brokers, further(cluster)));
        let tags: Vec<_> = nodes
            .iter_mut()
            .map(|node| {
                let spec = LogSpec {
                    epoch: EPOCH,
                    ..spec(node.storage.capabilities().strongest)
                };
                node.call(|t| Call::Provision {
                    t,
                    log: log(0),
                    logs: 1,
                    spec: Box::new(spec),
                })
            })
            .collect();
        for _ in 0..2_000 {
            now = super::node::after(now, std::time::Duration::from_millis(1));
            // Now one is ahead, now the other.
            let (one, other) = nodes.split_at_mut(1);
            if !(seed + now.mono.0 / 1_000_000).is_multiple_of(3) {
                one[0].poll(now);
            }
            other[0].poll(now);
        }
        let owns = |(node, tag): (&Node, _)| {
            let answer = node.answers.get(tag);
            matches!(answer, Some(Completion::Provisioned { .. }))
        };
        let owners = nodes.iter().zip(&tags).filter(|pair| owns(*pair)).count();
        assert!(owners <= 1, "seed {seed}: {owners}");
        let left = names(&brokers, ".of.");
        assert_eq!(left.len(), owners, "seed {seed}: {left:?}");
    }
}
