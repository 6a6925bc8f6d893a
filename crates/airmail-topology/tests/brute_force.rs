//! Brute force: on random clusters the paper's own loops over all pairs give the same results.

#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_topology::{
    Advice, Cluster, Description, Fault, FaultSearch, Faults, Goal, Load, MaxGroups, NodeSet,
    Overlaps, Spread, Summary,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Few enough nodes that every pair of them may be lost.
fn clusters() -> impl Strategy<Value = Cluster> {
    clusters_of(2_u32..8)
}

/// Generates clusters of any width, also with node sets of more than one word.
fn clusters_of_any_width() -> impl Strategy<Value = Cluster> {
    clusters_of(prop_oneof![2_u32..8, Just(70), Just(200)])
}

/// The nodes' ids are their places times 10.
fn clusters_of(nodes: impl Strategy<Value = u32>) -> impl Strategy<Value = Cluster> {
    let cluster = nodes.prop_flat_map(|nodes| {
        let replicas = prop::collection::vec(0..nodes, 1..4);
        let partition = (replicas, any::<u8>());
        let topic = (prop::collection::vec(partition, 1..6), 0_u32..5);
        (Just(nodes), prop::collection::vec(topic, 1..12))
    });
    cluster.prop_map(|(nodes, topics)| {
        let ids: Vec<u32> = (0..nodes).map(|node| node * 10).collect();
        let rates = topics.iter().enumerate();
        let rates: BTreeMap<_, _> = rates
            .map(|(topic, (_, rate))| (topic.to_string(), rate))
            .collect();
        let topics: BTreeMap<_, _> = topics
            .iter()
            .enumerate()
            .map(|(topic, (partitions, _))| {
                let partitions: Vec<_> = partitions.iter().map(partition).collect();
                (topic.to_string(), partitions)
            })
            .collect();
        let json = serde_json::json!({ "nodes": ids, "topics": topics, "rates": rates });
        Cluster::new(serde_json::from_value(json).unwrap()).unwrap()
    })
}

/// Replicas, of which one now and then is out of sync.
fn partition((places, chance): &(Vec<u32>, u8)) -> serde_json::Value {
    let mut replicas: Vec<u32> = Vec::new();
    for place in places {
        if !replicas.contains(&(place * 10)) {
            replicas.push(place * 10);
        }
    }
    match chance % 4 {
        0 => serde_json::json!({ "replicas": replicas, "in_sync": replicas[..1] }),
        1 => serde_json::json!({ "replicas": replicas, "leader": replicas[replicas.len() - 1] }),
        _ => serde_json::json!(replicas),
    }
}

/// Algorithm 1 as it is printed.
fn max_groups(cluster: &Cluster) -> Vec<(Vec<usize>, BTreeSet<u32>)> {
    let mut groups: Vec<(Vec<usize>, BTreeSet<u32>)> = Vec::new();
    for (index, topic) in cluster.topics().iter().enumerate() {
        let nodes: BTreeSet<u32> = topic
            .partitions
            .iter()
            .filter_map(|kept| kept.leader)
            .collect();
        if nodes.is_empty() {
            continue;
        }
        match groups.iter_mut().find(|(_, others)| *others == nodes) {
            Some((topics, _)) => topics.push(index),
            None => groups.push((vec![index], nodes)),
        }
    }
    groups
}

fn places(nodes: &NodeSet) -> BTreeSet<u32> {
    nodes.iter().collect()
}

/// The same cluster, described with these nodes down and leaders to be elected.
fn without(cluster: &Cluster, lost: &[u32]) -> Cluster {
    let id = |place: &u32| cluster.id(*place);
    let topics = cluster.topics().iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|kept| {
            let mut told = serde_json::json!({
                "replicas": kept.replicas.iter().map(id).collect::<Vec<_>>(),
            });
            if let Some(leader) = kept.leader {
                told["leader"] = serde_json::json!(id(&leader));
            }
            if let Some(in_sync) = &kept.in_sync {
                told["in_sync"] = serde_json::json!(in_sync.iter().map(id).collect::<Vec<_>>());
            }
            told
        });
        (topic.name.clone(), partitions.collect::<Vec<_>>())
    });
    let rates = cluster
        .topics()
        .iter()
        .map(|topic| (&topic.name, topic.rate));
    let json = serde_json::json!({
        "nodes": cluster.nodes(),
        "offline": lost.iter().map(id).collect::<Vec<_>>(),
        "topics": topics.collect::<BTreeMap<_, _>>(),
        "rates": rates.collect::<BTreeMap<_, _>>(),
    });
    let description: Description = serde_json::from_value(json).unwrap();
    Cluster::new(description).unwrap()
}

/// Partitions without a leader, and the highest load.
fn harm(fault: &Fault) -> (u32, f64) {
    let leaderless = fault.leaderless.iter().map(|(_, count)| count);
    (leaderless.sum(), fault.peak.map_or(0.0, |(_, load)| load))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn groups_overlaps_and_nodes_are_those_of_the_printed_algorithms(cluster in clusters_of_any_width()) {
        let expected = max_groups(&cluster);
        let groups = MaxGroups::of(&cluster);
        let found: Vec<_> = groups.iter().map(|group| (group.topics.clone(), places(&group.nodes))).collect();
        prop_assert_eq!(&found, &expected);
        let mut pairs = Vec::new();
        let mut on_node: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (one, (_, nodes)) in expected.iter().enumerate() {
            for (other, (_, others)) in expected.iter().enumerate().skip(one + 1) {
                let shared: BTreeSet<u32> = nodes.intersection(others).copied().collect();
                if !shared.is_empty() {
                    pairs.push(([one, other], shared));
                }
            }
            for node in nodes {
                on_node.entry(*node).or_default().push(one);
            }
        }
        on_node.retain(|_, groups| groups.len() > 1);
        let overlaps = Overlaps::of(&groups, cluster.nodes().len());
        let found: Vec<_> = overlaps.pairs().map(|pair| (pair.groups, places(&pair.nodes))).collect();
        prop_assert_eq!(overlaps.count(), pairs.len() as u64);
        prop_assert_eq!(found, pairs);
        prop_assert_eq!(places(&overlaps.shared()), on_node.keys().copied().collect());
        prop_assert_eq!(overlaps.nodes().collect::<BTreeMap<_, _>>(), on_node);
    }

    #[test]
    fn every_record_is_sent_to_some_node(cluster in clusters_of_any_width()) {
        let led = cluster.topics().iter().filter(|topic| {
            topic.partitions.iter().any(|kept| kept.leader.is_some())
        });
        let sent: f64 = led.map(|topic| topic.rate).sum();
        for spread in [Spread::Partitions, Spread::Nodes] {
            let load: f64 = Load::of(&cluster, spread).by_node().iter().sum();
            prop_assert!((load - sent).abs() < 1e-9);
        }
    }

    #[test]
    fn a_fault_does_what_it_does_to_the_whole_cluster(cluster in clusters()) {
        let search = FaultSearch { losses_max: 2, ..FaultSearch::default() };
        for fault in Faults::of(&cluster, search).worst.iter().take(40) {
            let after = Summary::of(&without(&cluster, &fault.lost));
            prop_assert_eq!(fault.overlaps, after.overlaps);
            prop_assert!((fault.imbalance - after.imbalance).abs() < 1e-9);
            let peaks = [fault.peak, after.peak].map(|peak| peak.map_or(0.0, |(_, load)| load));
            prop_assert!((peaks[0] - peaks[1]).abs() < 1e-9);
        }
    }

    #[test]
    fn what_is_told_of_pairs_is_the_worst_of_them(cluster in clusters(), pairs_max in 1_usize..6) {
        let of = |pairs_max| {
            let found = Faults::of(&cluster, FaultSearch { losses_max: 2, pairs_max }).worst;
            found.into_iter().filter(|fault| fault.lost.len() == 2).collect::<Vec<Fault>>()
        };
        let (all, some) = (of(usize::MAX), of(pairs_max));
        prop_assert!(some.len() <= pairs_max);
        prop_assert!(some.iter().all(|fault| all.contains(fault)));
        if let Some(last) = some.last() {
            let (leaderless, load) = harm(last);
            let worse = all.iter().filter(|fault| harm(fault) > (leaderless, load + 1e-9));
            prop_assert!(worse.into_iter().all(|fault| some.contains(fault)));
        }
    }

    #[test]
    fn a_plan_gives_what_it_promises_and_keeps_replicas(cluster in clusters_of_any_width()) {
        let advice = Advice::of(&cluster, 4);
        for plan in &advice.plans {
            let after = plan.reassignment.applied_to(&cluster);
            prop_assert_eq!(plan.after, Summary::of(&after));
            match plan.goal {
                Goal::NoOverlap => prop_assert!(plan.after.is_balanced()),
                Goal::CompleteOverlap => {
                    prop_assert!(plan.after.is_balanced() && plan.after.max_groups == 1);
                }
                Goal::WithinMoves => prop_assert!(plan.reassignment.moves() <= 4),
            }
            for (topic, new) in cluster.topics().iter().zip(after.topics()) {
                for (kept, changed) in topic.partitions.iter().zip(&new.partitions) {
                    prop_assert_eq!(kept.replicas.len(), changed.replicas.len());
                    let distinct: BTreeSet<_> = changed.replicas.iter().collect();
                    prop_assert_eq!(distinct.len(), changed.replicas.len());
                }
            }
        }
    }
}
