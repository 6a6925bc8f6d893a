//! The worst losses of two nodes, without looking at every one.
//!
//! On 1,000 nodes there are 499,500 pairs. The number of partitions left without a leader is known
//! exactly for each, by counting once the partitions with one or two replicas that may lead. For
//! the highest load there is a bound: when *a* and *b* are lost, a third node has at most its load
//! without *a*, and the most that *b* alone would hand to any one node, and the loads that the two
//! would have handed to each other:
//!
//! ```text
//! peak(a, b) ≤ min(peak(a) + most handed by b, peak(b) + most handed by a) + a→b + b→a
//! ```
//!
//! Where partitions are left without a leader, producers send more to the others, and the bound is
//! infinite. A pair whose bound is below the worst that are known already is passed over.

use super::survey::{Harm, Survey};
use crate::cluster::Partition;
use crate::leaders::Leaders;
use crate::node_set::{NodeSet, Place};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The worst pairs, and how many were looked at.
#[derive(Debug, Default)]
pub(super) struct WorstPairs {
    pub(super) worst: Vec<[Place; 2]>,
    pub(super) computed: u64,
}

/// Loads that nodes would hand to one another.
#[derive(Debug, Default)]
struct Heirs {
    /// The load that a loss hands from one node to another.
    handed: BTreeMap<[Place; 2], f64>,
    /// The most that each one's loss hands to any one node.
    most: Vec<f64>,
    /// Partitions that only these two may lead, the lower node first.
    only_two: BTreeMap<[Place; 2], u64>,
}

/// Severity, ascending, and the pair: of equals the earlier one is kept.
type Ranked = (u64, u64, Reverse<[Place; 2]>);

/// Finds the worst pairs of `nodes`, given the harm of each one's loss alone.
pub(super) fn worst(
    survey: &Survey<'_>,
    nodes: &[Place],
    singles: &[Harm],
    kept_max: usize,
) -> WorstPairs {
    let heirs = Heirs::of(survey);
    // The worst first, so that the bar is high early.
    let mut order: Vec<(Place, Harm)> =
        nodes.iter().copied().zip(singles.iter().copied()).collect();
    order.sort_by(|(_, one), (_, other)| other.peak.total_cmp(&one.peak));
    let mut kept: BTreeSet<Ranked> = BTreeSet::new();
    let mut computed = 0;
    for (index, one) in order.iter().enumerate() {
        for other in &order[index + 1..] {
            let pair = [one.0.min(other.0), one.0.max(other.0)];
            let (leaderless, bound) = heirs.bound(one, other, pair);
            let most = (leaderless, bound.to_bits(), Reverse(pair));
            let full = kept.len() >= kept_max;
            if full && kept.first().is_none_or(|least| most <= *least) {
                continue;
            }
            let harm = survey.harm(&pair);
            computed += 1;
            kept.insert((harm.leaderless, harm.peak.to_bits(), Reverse(pair)));
            if kept.len() > kept_max {
                kept.pop_first();
            }
        }
    }
    let worst = kept.into_iter().rev().map(|(_, _, Reverse(pair))| pair);
    WorstPairs {
        worst: worst.collect(),
        computed,
    }
}

impl Heirs {
    fn of(survey: &Survey<'_>) -> Heirs {
        let cluster = survey.cluster;
        let mut heirs = Heirs {
            most: vec![0.0; cluster.nodes().len()],
            ..Heirs::default()
        };
        for topic in cluster.topics() {
            let led = Leaders::without(topic, cluster.offline()).led();
            let share = topic.rate / f64::from(led.max(1));
            for partition in &topic.partitions {
                heirs.add(partition, cluster.offline(), share);
            }
        }
        for ([from, _], load) in &heirs.handed {
            let most = &mut heirs.most[*from as usize];
            *most = most.max(*load);
        }
        heirs
    }

    fn add(&mut self, partition: &Partition, offline: &NodeSet, share: f64) {
        let Some(leader) = partition.leader else {
            return;
        };
        let down: NodeSet = offline.iter().chain([leader]).collect();
        let Some(heir) = partition.leader_without(&down) else {
            return;
        };
        *self.handed.entry([leader, heir]).or_default() += share;
        let neither: NodeSet = down.iter().chain([heir]).collect();
        if partition.leader_without(&neither).is_none() {
            let pair = [leader.min(heir), leader.max(heir)];
            *self.only_two.entry(pair).or_default() += 1;
        }
    }

    /// Partitions that nobody could lead, exactly, and a load that no node would exceed.
    fn bound(&self, one: &(Place, Harm), other: &(Place, Harm), pair: [Place; 2]) -> (u64, f64) {
        let only_two = self.only_two.get(&pair).copied().unwrap_or(0);
        let leaderless = one.1.leaderless + other.1.leaderless + only_two;
        if leaderless > 0 {
            return (leaderless, f64::INFINITY);
        }
        let most = |node: Place| self.most[node as usize];
        let handed = |from: Place, to: Place| self.handed.get(&[from, to]).copied().unwrap_or(0.0);
        let peak = (one.1.peak + most(other.0)).min(other.1.peak + most(one.0));
        let between = handed(one.0, other.0) + handed(other.0, one.0);
        // So that rounding does not pass one over.
        (0, (peak + between) * (1.0 + 1e-9))
    }
}
