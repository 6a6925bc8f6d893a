//! Survey of the cluster as it is, kept so that a fault costs only the parts that it touches.

use super::Fault;
use crate::cluster::Cluster;
use crate::groups::MaxGroups;
use crate::leaders::Leaders;
use crate::load::{Load, Spread};
use crate::node_set::{NodeSet, Place};
use crate::overlaps::Overlaps;

/// Difference between sums of the same numbers in another order that counts as none.
const ROUNDING: f64 = 1e-9;

/// Harm of a fault, as far as it is known without looking at groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Harm {
    /// Partitions that nobody could lead any more.
    pub(super) leaderless: u64,
    /// The highest load of those that are left.
    pub(super) peak: f64,
}

/// Facts known before any fault.
#[derive(Debug)]
pub(super) struct Survey<'a> {
    pub(super) cluster: &'a Cluster,
    leaders: Vec<Leaders>,
    sets: Vec<NodeSet>,
    /// Topics of which each node leads partitions, ascending.
    topics_on: Vec<Vec<usize>>,
    load: Load,
    overlaps: u64,
    overlapping: NodeSet,
    imbalance: f64,
}

/// Changes that a fault makes.
struct Aftermath {
    down: NodeSet,
    /// Topics whose leaders have changed, ascending.
    changed: Vec<(usize, Leaders)>,
    load: Load,
}

impl<'a> Survey<'a> {
    pub(super) fn of(cluster: &'a Cluster) -> Survey<'a> {
        let topics = cluster.topics().iter();
        let leaders: Vec<Leaders> = topics
            .map(|topic| Leaders::without(topic, cluster.offline()))
            .collect();
        let mut topics_on = vec![Vec::new(); cluster.nodes().len()];
        for (topic, leaders) in leaders.iter().enumerate() {
            for (place, _) in leaders.counts() {
                topics_on[*place as usize].push(topic);
            }
        }
        let load = Load::of(cluster, Spread::Partitions);
        let mut survey = Survey {
            cluster,
            sets: leaders.iter().map(Leaders::nodes).collect(),
            leaders,
            topics_on,
            imbalance: load.imbalance(cluster.offline()),
            load,
            overlaps: 0,
            overlapping: NodeSet::new(),
        };
        (survey.overlaps, survey.overlapping) = survey.overlapping(&[]);
        survey
    }

    /// Harm of losing these nodes.
    pub(super) fn harm(&self, lost: &[Place]) -> Harm {
        let after = self.after(lost);
        let leaderless = after.changed.iter().map(|(topic, leaders)| {
            u64::from(leaders.leaderless() - self.leaders[*topic].leaderless())
        });
        Harm {
            leaderless: leaderless.sum(),
            peak: after
                .load
                .peak(&after.down)
                .map_or(0.0, |(_, load)| load.max(0.0)),
        }
    }

    /// All that it would do.
    pub(super) fn fault(&self, lost: &[Place]) -> Fault {
        let after = self.after(lost);
        let mut leaderless = Vec::new();
        let mut uneven = Vec::new();
        for (topic, leaders) in &after.changed {
            let before = &self.leaders[*topic];
            if leaders.leaderless() > before.leaderless() {
                leaderless.push((*topic, leaders.leaderless() - before.leaderless()));
            }
            if leaders.difference() > before.difference() {
                uneven.push(*topic);
            }
        }
        let (overlaps, overlapping) = self.overlapping(&after.changed);
        let new = overlapping
            .iter()
            .filter(|node| !self.overlapping.contains(*node));
        Fault {
            lost: lost.to_vec(),
            leaderless,
            uneven,
            overlaps,
            overlapping_nodes: new.collect(),
            peak: after.load.peak(&after.down),
            imbalance: after.load.imbalance(&after.down),
        }
    }

    /// Whether anything is worse than before.
    pub(super) fn is_worse(&self, fault: &Fault) -> bool {
        !fault.leaderless.is_empty()
            || !fault.uneven.is_empty()
            || !fault.overlapping_nodes.is_empty()
            || fault.overlaps > self.overlaps
            || fault.imbalance > self.imbalance * (1.0 + ROUNDING)
    }

    fn after(&self, lost: &[Place]) -> Aftermath {
        let down: NodeSet = self
            .cluster
            .offline()
            .iter()
            .chain(lost.iter().copied())
            .collect();
        let mut touched: Vec<usize> = Vec::new();
        for place in lost {
            touched.extend(&self.topics_on[*place as usize]);
        }
        touched.sort_unstable();
        touched.dedup();
        let mut load = self.load.clone();
        let each = touched.into_iter().map(|index| {
            let topic = &self.cluster.topics()[index];
            let leaders = Leaders::without(topic, &down);
            load.add(topic, &self.leaders[index], Spread::Partitions, -1.0);
            load.add(topic, &leaders, Spread::Partitions, 1.0);
            (index, leaders)
        });
        let changed = each.collect();
        Aftermath {
            down,
            changed,
            load,
        }
    }

    /// Number of pairs that overlap, and the nodes on which they do, with some topics' leaders
    /// changed.
    fn overlapping(&self, changed: &[(usize, Leaders)]) -> (u64, NodeSet) {
        let mut changed = changed.iter().peekable();
        let sets = self.sets.iter().enumerate().map(|(topic, set)| {
            let new = changed.next_if(|(index, _)| *index == topic);
            new.map_or_else(|| set.clone(), |(_, leaders)| leaders.nodes())
        });
        let groups = MaxGroups::of_sets(sets);
        let overlaps = Overlaps::of(&groups, self.cluster.nodes().len());
        (overlaps.count(), overlaps.shared())
    }
}
