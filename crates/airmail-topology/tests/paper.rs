//! Every example of the Kafka thesis, chapters 2, 3 and 6, with its own sets and numbers.

#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_topology::{
    Advice, Cluster, FaultSearch, Faults, Goal, Load, MaxGroups, NodeSet, Overlaps, Spread,
    Summary, Uneven,
};
use std::collections::BTreeMap;

fn cluster(text: &str) -> Cluster {
    Cluster::new(serde_json::from_str(text).unwrap()).unwrap()
}

/// The topics and the nodes of each max group, as the paper writes them.
fn groups(cluster: &Cluster) -> Vec<(Vec<&str>, Vec<u32>)> {
    let groups = MaxGroups::of(cluster);
    let each = groups.iter().map(|group| {
        let topics = group.topics.iter();
        let topics = topics.map(|topic| cluster.topics()[*topic].name.as_str());
        (topics.collect(), ids(cluster, &group.nodes))
    });
    each.collect()
}

fn ids(cluster: &Cluster, nodes: &NodeSet) -> Vec<u32> {
    nodes.iter().map(|place| cluster.id(place).0).collect()
}

/// Pairs of indices with the ids of the nodes that they share.
fn overlaps(cluster: &Cluster) -> Vec<([usize; 2], Vec<u32>)> {
    let groups = MaxGroups::of(cluster);
    let overlaps = Overlaps::of(&groups, cluster.nodes().len());
    let pairs: Vec<_> = overlaps
        .pairs()
        .map(|pair| (pair.groups, ids(cluster, &pair.nodes)))
        .collect();
    assert_eq!(overlaps.count(), pairs.len() as u64);
    pairs
}

fn load(cluster: &Cluster, spread: Spread) -> Vec<f64> {
    Load::of(cluster, spread).by_node().to_vec()
}

#[track_caller]
fn assert_near(one: &[f64], other: &[f64]) {
    assert_eq!(one.len(), other.len());
    let near = one
        .iter()
        .zip(other)
        .all(|(one, other)| (one - other).abs() < 1e-12);
    assert!(near, "{one:?} and {other:?}");
}

#[test]
fn figure_2_2_a_node_that_fails_leaves_its_whole_load_to_one_other() {
    let cluster = cluster(r#"{"nodes":[1,2,3],"topics":{"A":[[1,2],[2,3],[3,1]]}}"#);
    assert!(Summary::of(&cluster).is_balanced());
    let faults = Faults::of(&cluster, FaultSearch::default());
    let third = faults.worst.iter().find(|fault| fault.lost == [2]).unwrap();
    assert_eq!(third.peak, Some((0, 2.0 / 3.0)));
    assert_eq!(third.uneven, [0]);
    assert_near(&[third.imbalance], &[4.0 / 3.0]);
}

#[test]
fn figure_2_3_replicas_on_a_spare_node_keep_the_balance() {
    let cluster = cluster(r#"{"nodes":[1,2,3,4],"topics":{"A":[[1,4],[2,4],[3,4]]}}"#);
    let faults = Faults::of(&cluster, FaultSearch::default());
    assert_eq!(faults.worst, []);
}

/// The text does not give this figure's sets, only that each topic is sent the same and the first node
/// has less to do.
#[test]
fn figure_3_1_the_first_node_has_less_to_do() {
    let cluster =
        cluster(r#"{"nodes":[1,2,3],"topics":{"A":[[1],[2],[3]],"B":[[2],[3]],"C":[[2],[3]]}}"#);
    let loads = load(&cluster, Spread::Partitions);
    assert!(loads[0] < loads[1] && loads[1] == loads[2]);
    assert_eq!(overlaps(&cluster), [([0, 1], vec![2, 3])]);
}

#[test]
fn figure_3_2_even_counts_do_not_help_where_rates_differ() {
    let cluster = cluster(
        r#"{"nodes":[1,2,3],"topics":{"X":[[1],[2]],"Y":[[2],[3]],"Z":[[3],[1]]},
            "rates":{"X":1,"Y":1,"Z":2}}"#,
    );
    let groups = MaxGroups::of(&cluster);
    assert_eq!(Uneven::of(&cluster, &groups), []);
    assert_near(&load(&cluster, Spread::Partitions), &[1.5, 1.0, 1.5]);
    let pairs = [([0, 1], vec![2]), ([0, 2], vec![1]), ([1, 2], vec![3])];
    assert_eq!(overlaps(&cluster), pairs);
}

#[test]
fn figure_3_3_has_three_max_groups() {
    let cluster = cluster(
        r#"{"nodes":[1,2,3],"topics":{
            "A":[[1],[2],[3]],"B":[[2],[3]],"C":[[2],[3]],"D":[[1]]}}"#,
    );
    let expected = [
        (vec!["A"], vec![1, 2, 3]),
        (vec!["B", "C"], vec![2, 3]),
        (vec!["D"], vec![1]),
    ];
    assert_eq!(groups(&cluster), expected);
    assert_eq!(
        overlaps(&cluster),
        [([0, 1], vec![2, 3]), ([0, 2], vec![1])]
    );
    let groups = MaxGroups::of(&cluster);
    let nodes: BTreeMap<u32, Vec<usize>> = Overlaps::of(&groups, 3).nodes().collect();
    let expected = BTreeMap::from([(0, vec![0, 2]), (1, vec![0, 1]), (2, vec![0, 1])]);
    assert_eq!(nodes, expected);
}

#[test]
fn figure_3_4_has_no_overlaps() {
    let x = cluster(r#"{"nodes":[1,2],"topics":{"A":[[1],[2]],"B":[[1],[2]],"C":[[1],[2]]}}"#);
    assert_eq!(groups(&x), [(vec!["A", "B", "C"], vec![1, 2])]);
    let y = cluster(r#"{"nodes":[1,2,3],"topics":{"A":[[1],[2]],"B":[[3]],"C":[[1],[2]]}}"#);
    assert_eq!(
        groups(&y),
        [(vec!["A", "C"], vec![1, 2]), (vec!["B"], vec![3])]
    );
    assert!(Summary::of(&x).is_balanced() && Summary::of(&y).is_balanced());
}

#[test]
fn figure_3_5_overlaps_on_node_2() {
    let z = cluster(r#"{"nodes":[1,2],"topics":{"A":[[1],[2]],"B":[[2]],"C":[[1],[2]]}}"#);
    assert_eq!(
        groups(&z),
        [(vec!["A", "C"], vec![1, 2]), (vec!["B"], vec![2])]
    );
    assert_eq!(overlaps(&z), [([0, 1], vec![2])]);
    assert!(!Summary::of(&z).is_balanced());
}

#[test]
fn figure_3_6_every_node_has_at_most_one_max_group() {
    let x = cluster(r#"{"nodes":[1,2,3],"topics":{"A":[[1]],"B":[[2]],"C":[[3]]}}"#);
    assert_eq!(groups(&x).len(), 3);
    let y = cluster(
        r#"{"nodes":[1,2,3],"topics":{"A":[[1],[2],[3]],"B":[[2],[3],[1]],"C":[[3],[1],[2]]}}"#,
    );
    assert_eq!(groups(&y), [(vec!["A", "B", "C"], vec![1, 2, 3])]);
    assert_eq!((overlaps(&x), overlaps(&y)), (vec![], vec![]));
}

/// A topic for each set of nodes, named by its bits.
fn worst_case(nodes: u32) -> Cluster {
    let ids: Vec<u32> = (1..=nodes).collect();
    let topics = (1_u32..1 << nodes).map(|mask| {
        let led = (0..nodes).filter(|node| mask & (1 << node) != 0);
        let partitions: Vec<_> = led.map(|node| vec![node + 1]).collect();
        (
            format!("{mask:0width$b}", width = nodes as usize),
            partitions,
        )
    });
    let topics: BTreeMap<_, _> = topics.collect();
    let json = serde_json::json!({ "nodes": ids, "topics": topics });
    Cluster::new(serde_json::from_value(json).unwrap()).unwrap()
}

#[test]
fn figure_3_7_three_nodes_have_at_most_seven_max_groups() {
    let cluster = worst_case(3);
    assert_eq!(groups(&cluster).len(), 7);
    // All 21 pairs but {001, 010}, {001, 100}, {010, 100}, and each of these with the other two.
    assert_eq!(overlaps(&cluster).len(), 21 - 6);
}

#[test]
fn the_worst_case_has_2_to_the_n_less_1_groups_and_few_pairs_that_do_not_overlap() {
    for nodes in 1..=10 {
        let summary = Summary::of(&worst_case(nodes));
        let groups = 2_u64.pow(nodes) - 1;
        assert_eq!(summary.max_groups as u64, groups);
        // Each node is in the one, in the other or in neither, and neither of them is empty.
        let disjoint = (3_u64.pow(nodes) + 1 - 2_u64.pow(nodes + 1)) / 2;
        assert_eq!(summary.overlaps, groups * (groups - 1) / 2 - disjoint);
    }
}

#[test]
fn figure_3_8_four_partitions_on_three_nodes_load_one_of_them_more() {
    let cluster = cluster(
        r#"{"nodes":[1,2,3],"topics":{"A":[[1],[2],[3]],"B":[[1],[2],[3],[3]],"C":[[1],[2],[3]]}}"#,
    );
    let groups = MaxGroups::of(&cluster);
    assert_eq!(overlaps(&cluster), []);
    let uneven = Uneven::of(&cluster, &groups);
    assert_eq!(uneven.len(), 1);
    assert_eq!((uneven[0].group, uneven[0].topic), (0, 1));
    assert_eq!(uneven[0].leaders.counts(), [(0, 1), (1, 1), (2, 2)]);
}

/// Section 6.4's prototype, for which producers X and Y send α and β.
fn prototype(alpha: f64, beta: f64) -> Cluster {
    cluster(&format!(
        r#"{{"nodes":[1,2,3],"topics":{{"A":[[1],[2],[2]],"B":[[2],[3]]}},
            "rates":{{"A":{alpha},"B":{beta}}}}}"#
    ))
}

#[test]
fn figure_6_4_overlaps_on_node_2_and_is_uneven() {
    let cluster = prototype(1.0, 1.0);
    assert_eq!(
        groups(&cluster),
        [(vec!["A"], vec![1, 2]), (vec!["B"], vec![2, 3])]
    );
    assert_eq!(overlaps(&cluster), [([0, 1], vec![2])]);
    let uneven = Uneven::of(&cluster, &MaxGroups::of(&cluster));
    assert_eq!(uneven.len(), 1);
    assert_eq!(uneven[0].leaders.counts(), [(0, 1), (1, 2)]);
}

#[test]
fn the_table_of_6_4_gives_the_load_of_each_node() {
    for (alpha, beta) in [(1.0, 1.0), (3.0, 2.0), (600.0, 0.0), (0.0, 7.0), (1e6, 1.0)] {
        let cluster = prototype(alpha, beta);
        let by_node = [alpha / 2.0, (alpha + beta) / 2.0, beta / 2.0];
        assert_near(&load(&cluster, Spread::Nodes), &by_node);
        let default = [alpha / 3.0, alpha * 2.0 / 3.0 + beta / 2.0, beta / 2.0];
        for (one, other) in load(&cluster, Spread::Partitions).iter().zip(default) {
            assert!(
                (one - other).abs() <= 1e-12 * other.max(1.0),
                "{one} {other}"
            );
        }
    }
}

#[test]
fn figure_6_5_complete_overlap_is_proposed_with_the_partition_that_it_needs() {
    let cluster = prototype(1.0, 1.0);
    let advice = Advice::of(&cluster, 3);
    let plan = advice
        .plans
        .iter()
        .find(|plan| plan.goal == Goal::CompleteOverlap)
        .unwrap();
    let added = &plan.reassignment.added;
    assert_eq!(added.len(), 1);
    assert_eq!((added[0].topic, added[0].from, added[0].to), (1, 2, 3));
    let after = plan.reassignment.applied_to(&cluster);
    assert_eq!(groups(&after), [(vec!["A", "B"], vec![1, 2, 3])]);
    assert_eq!(plan.after, Summary::of(&after));
    assert!(plan.after.is_balanced());
    assert_near(&[plan.after.imbalance], &[1.0]);
}

#[test]
fn figure_6_6_no_overlap_is_proposed_and_even_for_every_partitioner() {
    // As drawn: A keeps three partitions on two nodes, which is balanced for node partitioners alone.
    let drawn = cluster(r#"{"nodes":[1,2,3],"topics":{"A":[[1],[2],[2]],"B":[[3],[3]]}}"#);
    assert_eq!(overlaps(&drawn), []);
    assert_near(&load(&drawn, Spread::Nodes), &[0.5, 0.5, 1.0]);
    assert_near(
        &load(&drawn, Spread::Partitions),
        &[1.0 / 3.0, 2.0 / 3.0, 1.0],
    );
    let cluster = prototype(1.0, 1.0);
    let advice = Advice::of(&cluster, 3);
    let plan = advice
        .plans
        .iter()
        .find(|plan| plan.goal == Goal::NoOverlap)
        .unwrap();
    let after = plan.reassignment.applied_to(&cluster);
    assert_eq!(overlaps(&after), []);
    assert!(plan.after.is_balanced());
    assert!(plan.reassignment.added.is_empty());
    assert!(plan.after.peak.unwrap().1 < advice.before.peak.unwrap().1);
}
