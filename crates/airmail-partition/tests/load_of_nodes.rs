//! Section 6.4 of the paper: what each node gets when X sends α records to A, and Y β records to B.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_partition::{Cluster, NodeId, Partitioner, Policy, QueueBoard, Settings};
use std::collections::BTreeMap;
use std::time::Duration;

const ALPHA: u32 = 6_000;
const BETA: u32 = 4_000;

/// A cluster of these topics, each with the leaders of its partitions; every leader is alive.
fn cluster(topics: &[(&str, &[i32])]) -> Cluster {
    let topics: BTreeMap<String, Vec<Option<NodeId>>> = topics
        .iter()
        .map(|(name, led)| {
            (
                (*name).to_owned(),
                led.iter().map(|id| Some(NodeId(*id))).collect(),
            )
        })
        .collect();
    Cluster {
        nodes: topics.values().flatten().flatten().copied().collect(),
        topics,
    }
}

fn figure_6_4() -> Cluster {
    cluster(&[("A", &[1, 2, 2]), ("B", &[2, 3])])
}

/// Sends both flows, mixed as evenly as they can be, and counts by node.
fn load(
    cluster: &Cluster,
    policy: Policy,
    shared: bool,
    (alpha, beta): (u32, u32),
) -> BTreeMap<i32, u32> {
    let board = QueueBoard::new();
    let producer = || {
        let board = if shared {
            board.clone()
        } else {
            QueueBoard::new()
        };
        let settings = Settings {
            start: 0,
            ..Settings::new(policy, 0)
        };
        let mut partitioner = Partitioner::sharing(settings, board);
        partitioner.arrange(cluster);
        partitioner
    };
    let (mut x, mut y) = (producer(), producer());
    let (of_a, of_b) = (x.topic("A"), y.topic("B"));
    let (mut a, mut b) = (0, 0);
    let mut load = BTreeMap::new();
    while a + b < alpha + beta {
        let to_a = (u64::from(a) * u64::from(beta) <= u64::from(b) * u64::from(alpha) && a < alpha)
            || b == beta;
        let place = if to_a {
            a += 1;
            x.place(of_a, None, 100, Duration::ZERO)
        } else {
            b += 1;
            y.place(of_b, None, 100, Duration::ZERO)
        };
        *load.entry(place.unwrap().leader.unwrap().0).or_default() += 1;
    }
    load
}

#[test]
fn the_node_policies_give_half_of_each_topic_to_each_of_its_nodes() {
    let table = BTreeMap::from([(1, ALPHA / 2), (2, (ALPHA + BETA) / 2), (3, BETA / 2)]);
    for policy in [Policy::Node, Policy::Sqf] {
        assert_eq!(
            load(&figure_6_4(), policy, false, (ALPHA, BETA)),
            table,
            "{policy}"
        );
    }
}

#[test]
fn the_default_gives_node_2_two_thirds_of_one_topic_and_half_of_the_other() {
    let table = BTreeMap::from([(1, ALPHA / 3), (2, ALPHA * 2 / 3 + BETA / 2), (3, BETA / 2)]);
    for policy in [Policy::Default, Policy::Improved] {
        assert_eq!(
            load(&figure_6_4(), policy, false, (ALPHA, BETA)),
            table,
            "{policy}"
        );
    }
}

#[test]
fn without_partial_overlap_the_node_policies_balance_each_group() {
    let figure_6_5 = cluster(&[("A", &[1, 2, 2]), ("B", &[3, 4])]);
    let halves = BTreeMap::from([(1, ALPHA / 2), (2, ALPHA / 2), (3, BETA / 2), (4, BETA / 2)]);
    for policy in [Policy::Node, Policy::Sqf] {
        assert_eq!(
            load(&figure_6_5, policy, false, (ALPHA, BETA)),
            halves,
            "{policy}"
        );
    }
}

#[test]
fn with_complete_overlap_every_policy_balances_all_nodes() {
    let figure_6_6 = cluster(&[("A", &[1, 2, 3]), ("B", &[1, 2, 3])]);
    let third = (ALPHA + 4_500) / 3;
    let thirds = BTreeMap::from([(1, third), (2, third), (3, third)]);
    for policy in [Policy::Default, Policy::Improved, Policy::Node, Policy::Sqf] {
        assert_eq!(
            load(&figure_6_6, policy, true, (ALPHA, 4_500)),
            thirds,
            "{policy}"
        );
    }
}

#[test]
fn a_shared_sqf_gives_equal_thirds_though_nodes_overlap_in_part() {
    let thirds = BTreeMap::from([(1, 4_000), (2, 4_000), (3, 4_000)]);
    assert_eq!(
        load(&figure_6_4(), Policy::Sqf, true, (6_000, 6_000)),
        thirds
    );
}

#[test]
fn a_shared_sqf_comes_as_near_as_one_flow_lets_it() {
    // B alone can reach node 3, and has too little for a third of all. Its first record meets two empty
    // queues, and may go to either.
    let load = load(&figure_6_4(), Policy::Sqf, true, (9_000, 1_000));
    for (node, part) in [(1, 4_500), (2, 4_500), (3, 1_000)] {
        assert!(load[&node].abs_diff(part) <= 1, "{load:?}");
    }
}
