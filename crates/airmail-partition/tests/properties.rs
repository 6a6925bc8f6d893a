//! Properties of every policy on every cluster, whatever happens to it.

#![forbid(unsafe_code)]

use airmail_partition::{
    Cluster, NodeId, Outcome, Partitioner, Policy, Settings, partition_of_key, record_bytes,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

fn policies() -> impl Strategy<Value = Policy> {
    proptest::sample::select(Policy::ALL.to_vec())
}

/// The leaders of a topic's partitions, some of which have none.
fn leaders() -> impl Strategy<Value = Vec<Option<i32>>> {
    vec(proptest::option::weighted(0.8, 1..6_i32), 1..12)
}

fn cluster(topics: &[Vec<Option<i32>>]) -> Cluster {
    let named = |(at, led): (usize, &Vec<Option<i32>>)| {
        (
            format!("T{at}"),
            led.iter().map(|id| id.map(NodeId)).collect(),
        )
    };
    Cluster {
        nodes: topics
            .iter()
            .flatten()
            .flatten()
            .map(|id| NodeId(*id))
            .collect(),
        topics: topics.iter().enumerate().map(named).collect(),
    }
}

proptest! {
    #[test]
    fn a_record_without_a_key_goes_where_there_is_a_leader_if_there_is_one(
        policy in policies(),
        seed: u64,
        states in vec((vec(leaders(), 1..4), 1..60_usize), 1..6),
    ) {
        let mut partitioner = Partitioner::new(Settings::new(policy, seed));
        let mut now = Duration::ZERO;
        for (topics, records) in states {
            partitioner.arrange(&cluster(&topics));
            for record in 0..records {
                now += Duration::from_millis(1);
                let which = record % topics.len();
                let topic = partitioner.topic(&format!("T{which}"));
                let bytes = record_bytes(None, Some(record * 100));
                let place = partitioner.place(topic, None, bytes, now).unwrap();
                let led = &topics[which];
                let leader = led[place.partition.0 as usize];
                prop_assert_eq!(place.leader, leader.map(NodeId));
                prop_assert_eq!(leader.is_some(), led.iter().any(Option::is_some));
                if record % 3 > 0 {
                    partitioner.arrived(topic, place.partition, bytes, Outcome::Acknowledged, now);
                }
            }
        }
    }

    #[test]
    fn a_key_goes_to_one_place_and_moves_no_turn(
        policy in policies(),
        led in leaders(),
        keys in vec(vec(any::<u8>(), 0..20), 1..20),
    ) {
        let settings = Settings::new(policy, 3);
        let mut with = Partitioner::new(settings.clone());
        let mut without = Partitioner::new(settings);
        let cluster = cluster(std::slice::from_ref(&led));
        with.arrange(&cluster);
        without.arrange(&cluster);
        let topic = with.topic("T0");
        prop_assert_eq!(without.topic("T0"), topic);
        for key in keys {
            let place = with.place(topic, Some(&key), 100, Duration::ZERO).unwrap();
            prop_assert_eq!(place.partition, partition_of_key(&key, led.len() as u32));
            with.arrived(topic, place.partition, 100, Outcome::Acknowledged, Duration::ZERO);
            let place = with.place(topic, None, 20_000, Duration::ZERO).unwrap();
            prop_assert_eq!(Ok(place), without.place(topic, None, 20_000, Duration::ZERO));
            for partitioner in [&mut with, &mut without] {
                partitioner.arrived(topic, place.partition, 20_000, Outcome::Acknowledged, Duration::ZERO);
            }
        }
    }

    #[test]
    fn each_node_of_a_topic_gets_its_part_and_each_of_its_partitions_an_equal_one(
        policy in proptest::sample::select(vec![Policy::Node, Policy::Sqf]),
        led in vec(1..5_i32, 1..10),
        start in 0..1_000_u32,
    ) {
        let settings = Settings { start, ..Settings::new(policy, 1) };
        let mut partitioner = Partitioner::new(settings);
        let led: Vec<Option<i32>> = led.into_iter().map(Some).collect();
        partitioner.arrange(&cluster(std::slice::from_ref(&led)));
        let topic = partitioner.topic("T0");
        let mut given: BTreeMap<NodeId, BTreeMap<i32, u32>> = BTreeMap::new();
        for _ in 0..1_000 {
            let place = partitioner.place(topic, None, 100, Duration::ZERO).unwrap();
            *given.entry(place.leader.unwrap()).or_default().entry(place.partition.0).or_default() += 1;
        }
        let spread = |counts: Vec<u32>| counts.iter().max().unwrap() - counts.iter().min().unwrap();
        prop_assert!(spread(given.values().map(|node| node.values().sum()).collect()) <= 1);
        for node in given.values() {
            prop_assert!(spread(node.values().copied().collect()) <= 1);
        }
    }

    #[test]
    fn a_topic_that_the_cluster_has_not_is_named(policy in policies()) {
        let mut partitioner = Partitioner::new(Settings::new(policy, 1));
        let topic = partitioner.topic("gone");
        partitioner.arrange(&cluster(&[vec![Some(1)]]));
        let refused = partitioner.place(topic, Some(b"key"), 1, Duration::ZERO).unwrap_err();
        prop_assert_eq!(refused.topic, "gone");
        prop_assert_eq!(partitioner.partitions(topic), None);
    }
}
