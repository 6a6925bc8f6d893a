//! Search for the few moves that help most.
//!
//! A move gives the leadership of one partition to another node. Each step takes the move after which fewest
//! groups overlap and topics' counts differ least, and of equals the one that brings the loads nearest to one
//! another (by the sum of their squares), and of these one that copies no data. No move may raise the highest
//! load: else the way to fewest overlaps would be all topics on one node. It ends when no move helps.
//!
//! On a large cluster a step looks only at moves from the most loaded nodes to the least loaded ones, as many
//! as a budget of comparisons allows. If a whole plan is within the moves and better, that is taken.

use super::NotOffered;
use super::placement::led_by;
use crate::cluster::{Cluster, Partition};
use crate::groups::MaxGroups;
use crate::leaders::Leaders;
use crate::load::{Load, Spread};
use crate::node_set::{NodeSet, Place};
use crate::reassignment::{Reassigned, Reassignment};
use crate::replicas::PartitionIndex;
use crate::summary::Summary;
use std::collections::BTreeSet;

/// Comparisons of node sets in one step; some tenths of a second.
const COMPARISONS_MAX: usize = 20_000_000;
/// Relative differences of loads below this are rounding.
const ROUNDING: f64 = 1e-9;

pub(super) fn plan(
    cluster: &Cluster,
    moves_max: usize,
    whole: impl Iterator<Item = Reassignment>,
) -> Result<Reassignment, NotOffered> {
    if cluster.living().next().is_none() {
        return Err(NotOffered::NoNodes);
    }
    let before = Summary::of(cluster);
    let mut search = Search::new(cluster);
    while search.moved.len() < moves_max {
        let Some(step) = search.best() else {
            break;
        };
        search.take(&step);
    }
    let stepwise = search.reassignment();
    let fits = |plan: &Reassignment| plan.added.is_empty() && plan.moves() <= moves_max;
    let ranked = [stepwise]
        .into_iter()
        .chain(whole.filter(fits))
        .map(|plan| {
            let after = Summary::of(&plan.applied_to(cluster));
            (rank(&after), plan)
        });
    let better = ranked.filter(|(after, plan)| {
        let peak = after.1 <= rank(&before).1 * (1.0 + ROUNDING);
        plan.moves() > 0 && peak && *after < rank(&before)
    });
    let best = better.min_by(|(one, plan), (other, other_plan)| {
        let balance = one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal);
        balance.then(plan.moves().cmp(&other_plan.moves()))
    });
    best.map_or(Err(NotOffered::NothingToGain), |(_, plan)| Ok(plan))
}

/// Findings, then the highest load.
fn rank(summary: &Summary) -> (u64, f64) {
    let peak = summary.peak.map_or(0.0, |(_, load)| load);
    (summary.overlaps + summary.uneven as u64, peak)
}

/// A partition's leadership to another node.
#[derive(Clone, Debug)]
struct Step {
    partition: PartitionIndex,
    to: Place,
}

/// Worth of a step, the least being best: overlaps and differences, loads, whether data moves.
type Gain = (i64, i64, bool);

struct Search {
    cluster: Cluster,
    leaders: Vec<Leaders>,
    /// The distinct node sets, each with the number of topics that have it.
    sets: Vec<(NodeSet, usize)>,
    load: Vec<f64>,
    moved: Vec<Reassigned>,
    fixed: BTreeSet<PartitionIndex>,
}

impl Search {
    fn new(cluster: &Cluster) -> Search {
        let topics = cluster.topics().iter();
        let leaders: Vec<Leaders> = topics
            .map(|topic| Leaders::without(topic, cluster.offline()))
            .collect();
        let mut search = Search {
            cluster: cluster.clone(),
            sets: Vec::new(),
            load: Load::of(cluster, Spread::Partitions).by_node().to_vec(),
            moved: Vec::new(),
            fixed: BTreeSet::new(),
            leaders,
        };
        for group in MaxGroups::of(cluster).iter() {
            search.sets.push((group.nodes.clone(), group.topics.len()));
        }
        search
    }

    /// The best step, if any is an improvement.
    fn best(&self) -> Option<Step> {
        let mut nodes: Vec<Place> = self.cluster.living().collect();
        nodes.sort_by(|one, other| self.load(*other).total_cmp(&self.load(*one)));
        let peak = self.load(*nodes.first()?) * (1.0 + ROUNDING);
        let mut comparisons = COMPARISONS_MAX;
        let mut best: Option<(Gain, Step)> = None;
        for &from in &nodes {
            let led: Vec<usize> = (0..self.leaders.len())
                .filter(|topic| self.leads(from, *topic))
                .collect();
            for &to in nodes.iter().rev().filter(|to| **to != from) {
                for &topic in &led {
                    if self.load(to) + self.share(topic) > peak {
                        continue;
                    }
                    let spent = 2 * self.sets.len() + self.leaders[topic].counts().len();
                    let Some(left) = comparisons.checked_sub(spent) else {
                        return best.map(|(_, step)| step);
                    };
                    comparisons = left;
                    let Some((gain, step)) = self.step(topic, from, to) else {
                        continue;
                    };
                    let none = (0, 0, false);
                    if gain < best.as_ref().map_or(none, |(gain, _)| *gain) {
                        best = Some((gain, step));
                    }
                }
            }
        }
        best.map(|(_, step)| step)
    }

    fn take(&mut self, step: &Step) {
        let index = step.partition;
        let topic = index.topic;
        let partition = &mut self.cluster.topics_mut()[topic].partitions[index.partition];
        let Some(from) = partition.leader.replace(step.to) else {
            return;
        };
        let moved = led_by(index, partition, step.to);
        partition.replicas.clone_from(&moved.replicas);
        self.moved.push(moved);
        self.fixed.insert(index);
        let share = self.share(topic);
        self.load[from as usize] -= share;
        self.load[step.to as usize] += share;
        let old = self.leaders[topic].nodes();
        self.leaders[topic].remove(from);
        self.leaders[topic].add(step.to);
        let new = self.leaders[topic].nodes();
        if let Some(found) = self.sets.iter().position(|(nodes, _)| *nodes == old) {
            self.sets[found].1 -= 1;
            if self.sets[found].1 == 0 {
                self.sets.swap_remove(found);
            }
        }
        match self.sets.iter_mut().find(|(nodes, _)| *nodes == new) {
            Some((_, topics)) => *topics += 1,
            None => self.sets.push((new, 1)),
        }
    }

    fn reassignment(self) -> Reassignment {
        let mut partitions = self.moved;
        partitions.sort_unstable_by_key(|moved| moved.partition);
        Reassignment {
            partitions,
            added: Vec::new(),
        }
    }

    /// Judges the move of one of a topic's partitions from one node to another.
    fn step(&self, topic: usize, from: Place, to: Place) -> Option<(Gain, Step)> {
        let partitions = self.cluster.topics()[topic].partitions.iter();
        let led = (0..).zip(partitions).filter(|(partition, kept)| {
            let partition = *partition;
            kept.leader == Some(from) && !self.fixed.contains(&PartitionIndex { topic, partition })
        });
        let copies = |kept: &Partition| !kept.replicas.contains(&to);
        let (partition, kept) = led.min_by_key(|(partition, kept)| (copies(kept), *partition))?;
        let mut after = self.leaders[topic].clone();
        after.remove(from);
        after.add(to);
        let difference =
            i64::from(after.difference()) - i64::from(self.leaders[topic].difference());
        let overlaps = self.overlaps(&self.leaders[topic].nodes(), &after.nodes());
        let share = self.share(topic);
        let (high, low) = (self.load(from), self.load(to));
        let squares = 2.0 * share * (low - high + share);
        // In parts of what they are now, so that rounding is no gain.
        let loads = (squares / (high * high + low * low).max(f64::MIN_POSITIVE) / ROUNDING).round();
        let gain = (difference + overlaps, loads as i64, copies(kept));
        let partition = PartitionIndex { topic, partition };
        Some((gain, Step { partition, to }))
    }

    /// Change in the number of overlapping pairs when one topic's nodes change.
    fn overlaps(&self, old: &NodeSet, new: &NodeSet) -> i64 {
        if old == new {
            return 0;
        }
        let (mut before, mut after) = (0, 0);
        let vanishes = self
            .sets
            .iter()
            .any(|(nodes, topics)| nodes == old && *topics == 1);
        let is_there = self.sets.iter().any(|(nodes, _)| nodes == new);
        for (nodes, _) in &self.sets {
            let other = nodes != old;
            before += i64::from(vanishes && other && nodes.intersects(old));
            after += i64::from(!is_there && (other || !vanishes) && nodes.intersects(new));
        }
        after - before
    }

    fn load(&self, place: Place) -> f64 {
        self.load[place as usize]
    }

    /// Rate that each of a topic's partitions gets.
    fn share(&self, topic: usize) -> f64 {
        self.cluster.topics()[topic].rate / f64::from(self.leaders[topic].led().max(1))
    }

    fn leads(&self, place: Place, topic: usize) -> bool {
        let counts = self.leaders[topic].counts();
        counts
            .binary_search_by_key(&place, |(node, _)| *node)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlaps::Overlaps;
    use proptest::prelude::*;

    /// Node `leaders[topic][partition]` leads, the next one follows.
    fn cluster(nodes: u32, leaders: &[Vec<u32>]) -> Cluster {
        let ids: Vec<u32> = (0..nodes).collect();
        let topics = leaders.iter().enumerate().map(|(topic, leaders)| {
            let kept = leaders
                .iter()
                .map(|leader| vec![*leader, (leader + 1) % nodes]);
            (topic.to_string(), kept.collect::<Vec<_>>())
        });
        let topics: std::collections::BTreeMap<_, _> = topics.collect();
        let text = serde_json::json!({ "nodes": ids, "topics": topics });
        Cluster::new(serde_json::from_value(text).unwrap()).unwrap()
    }

    fn overlaps(cluster: &Cluster) -> i64 {
        let groups = MaxGroups::of(cluster);
        let count = Overlaps::of(&groups, cluster.nodes().len()).count();
        i64::try_from(count).unwrap()
    }

    proptest! {
        #[test]
        fn what_a_step_gains_is_what_counting_anew_gives(
            leaders in prop::collection::vec(prop::collection::vec(0_u32..5, 1..5), 1..8),
        ) {
            let mut search = Search::new(&cluster(5, &leaders));
            while let Some(step) = search.best() {
                let before = search.cluster.clone();
                let topic = step.partition.topic;
                let old = search.leaders[topic].nodes();
                search.take(&step);
                let told = {
                    let counted = Search::new(&before);
                    counted.overlaps(&old, &search.leaders[topic].nodes())
                };
                prop_assert_eq!(overlaps(&before) + told, overlaps(&search.cluster));
                let load = Load::of(&search.cluster, Spread::Partitions);
                for (counted, kept) in load.by_node().iter().zip(&search.load) {
                    prop_assert!((counted - kept).abs() < 1e-9);
                }
            }
        }

        #[test]
        fn few_moves_never_raise_the_highest_load_and_are_not_exceeded(
            leaders in prop::collection::vec(prop::collection::vec(0_u32..5, 1..5), 1..8),
            moves_max in 0_usize..6,
        ) {
            let cluster = cluster(5, &leaders);
            if let Ok(plan) = plan(&cluster, moves_max, std::iter::empty()) {
                let (before, after) = (Summary::of(&cluster), Summary::of(&plan.applied_to(&cluster)));
                prop_assert!(plan.moves() <= moves_max);
                prop_assert!(rank(&after) < rank(&before));
                prop_assert!(after.peak.unwrap().1 <= before.peak.unwrap().1 + 1e-9);
            }
        }
    }
}
