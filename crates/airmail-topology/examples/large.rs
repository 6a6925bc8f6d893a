//! Time that the large cases take: the paper's worst case on 16 nodes, and 10,000 topics at random
//! on 1,000 nodes.
//!
//! ```text
//! cargo run --release -p airmail-topology --example large
//! ```

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a measurement")]

use airmail_topology::{
    Advice, Cluster, DescribedPartition, Description, FaultSearch, Faults, MaxGroups, NodeId,
    Overlaps, Topics,
};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use std::time::Instant;

const SEED: u64 = 1;
const NODES: u32 = 1_000;
const TOPICS: usize = 10_000;
const PARTITIONS: usize = 12;
const REPLICAS: usize = 3;

fn main() {
    let worst = worst_case(16);
    println!("every set of 16 nodes:");
    look_at(&worst);
    faults(&worst, 1);
    faults(&worst, 2);
    let random = random();
    println!(
        "{TOPICS} topics with {PARTITIONS} partitions and {REPLICAS} replicas on {NODES} nodes:"
    );
    look_at(&random);
    timed("all pairs, one by one", || {
        let groups = MaxGroups::of(&random);
        let shared = Overlaps::of(&groups, random.nodes().len());
        let nodes = shared.pairs().map(|pair| pair.nodes.len()).sum::<usize>();
        format!("{nodes} nodes shared by all of them")
    });
    faults(&random, 1);
    faults(&random, 2);
    timed("advice", || {
        let advice = Advice::of(&random, 10);
        format!("{} plans", advice.plans.len())
    });
}

fn look_at(cluster: &Cluster) {
    timed("groups, count of overlaps, groups of each node", || {
        let groups = MaxGroups::of(cluster);
        let overlaps = Overlaps::of(&groups, cluster.nodes().len());
        let (count, nodes) = (overlaps.count(), overlaps.nodes().count());
        format!(
            "{} groups, {count} pairs, {nodes} nodes",
            groups.iter().len()
        )
    });
}

fn faults(cluster: &Cluster, losses_max: usize) {
    timed(&format!("faults of up to {losses_max}"), || {
        let search = FaultSearch {
            losses_max,
            ..FaultSearch::default()
        };
        let faults = Faults::of(cluster, search);
        format!(
            "{} told of {}, {} pairs computed",
            faults.worst.len(),
            faults.possible,
            faults.pairs_computed
        )
    });
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn timed(what: &str, work: impl FnOnce() -> String) {
    let began = Instant::now();
    let said = work();
    println!("  {:>9.3} s  {what}: {said}", began.elapsed().as_secs_f64());
}

/// A topic for each set of nodes but the empty one, with a follower on the next node.
fn worst_case(nodes: u32) -> Cluster {
    let topics = (1_u32..1 << nodes).map(|mask| {
        let led = (0..nodes).filter(|node| mask & (1 << node) != 0);
        let kept = led.map(|node| vec![NodeId(node), NodeId((node + 1) % nodes)]);
        (
            format!("{mask:b}"),
            kept.map(DescribedPartition::Replicas).collect(),
        )
    });
    described(nodes, topics.collect())
}

fn random() -> Cluster {
    let mut random = SmallRng::seed_from_u64(SEED);
    let mut partition = || {
        let mut replicas: Vec<NodeId> = Vec::new();
        while replicas.len() < REPLICAS {
            let node = NodeId(random.random_range(0..NODES));
            if !replicas.contains(&node) {
                replicas.push(node);
            }
        }
        DescribedPartition::Replicas(replicas)
    };
    let topics = (0..TOPICS).map(|topic| {
        let partitions = (0..PARTITIONS).map(|_| partition()).collect();
        (topic.to_string(), partitions)
    });
    let topics = topics.collect();
    described(NODES, topics)
}

fn described(nodes: u32, topics: Vec<(String, Vec<DescribedPartition>)>) -> Cluster {
    let description = Description {
        nodes: (0..nodes).map(NodeId).collect(),
        topics: Topics(topics),
        ..Description::default()
    };
    Cluster::new(description).expect("a cluster that was made by rule")
}
