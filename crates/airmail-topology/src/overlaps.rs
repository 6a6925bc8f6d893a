//! Max groups that share nodes. The Kafka thesis, section 3.2, definition 3; section 3.5.2, algorithm 2;
//! and section 3.5.3, algorithm 3.
//!
//! R, which algorithm 3 builds (for each node the groups on it), is kept as a bit mask over groups. Then the
//! groups that overlap with one are the union of R over its nodes: a few words for each node, in place of
//! a comparison with every other group. So pairs are counted without being listed, and listed without
//! being kept: the paper's worst case on 16 nodes has 2,125,927,520 of them.

use crate::groups::{MaxGroup, MaxGroups};
use crate::node_set::{NodeSet, Place};

/// Two max groups that share nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Indices into the max groups, ascending.
    pub groups: [usize; 2],
    /// The nodes that they share: N(T) ∩ N(S).
    pub nodes: NodeSet,
}

/// The overlaps of a cluster's max groups.
///
/// ```
/// use airmail_topology::{Cluster, MaxGroups, Overlaps};
///
/// let text = r#"{"nodes": [1, 2], "topics": {"A": [[1], [2]], "B": [[2]]}}"#;
/// let cluster = Cluster::new(serde_json::from_str(text)?)?;
/// let groups = MaxGroups::of(&cluster);
/// let overlaps = Overlaps::of(&groups, cluster.nodes().len());
/// assert_eq!(overlaps.count(), 1);
/// assert_eq!(overlaps.pairs().next().unwrap().groups, [0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Overlaps<'a> {
    groups: &'a [MaxGroup],
    /// R: for each node, a bit for each group.
    on_node: Vec<Vec<u64>>,
}

impl<'a> Overlaps<'a> {
    /// Finds the overlaps of these groups, in a cluster of `nodes` nodes.
    #[must_use]
    pub fn of(groups: &'a MaxGroups, nodes: usize) -> Overlaps<'a> {
        let groups = groups.iter().as_slice();
        let words = groups.len().div_ceil(64);
        let mut on_node = vec![Vec::new(); nodes];
        for (index, group) in groups.iter().enumerate() {
            for place in group.nodes.iter() {
                let mask = &mut on_node[place as usize];
                mask.resize(words, 0);
                mask[index / 64] |= 1 << (index % 64);
            }
        }
        Overlaps { groups, on_node }
    }

    /// Number of pairs of groups that overlap.
    #[must_use]
    pub fn count(&self) -> u64 {
        let mut row = Row::default();
        let counts = (0..self.groups.len()).map(|group| {
            row.fill(self, group);
            row.len()
        });
        counts.sum()
    }

    /// Algorithm 2: the pairs, ascending, each with the nodes that it shares. They are found as they are
    /// asked for.
    pub fn pairs(&self) -> impl Iterator<Item = Overlap> + '_ {
        (0..self.groups.len()).flat_map(move |one| {
            let mut row = Row::default();
            row.fill(self, one);
            row.into_groups().map(move |other| Overlap {
                groups: [one, other],
                nodes: self.groups[one]
                    .nodes
                    .intersection(&self.groups[other].nodes),
            })
        })
    }

    /// Algorithm 3: each node with more than one group on it, with these groups, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = (Place, Vec<usize>)> + '_ {
        let places = (0..).zip(&self.on_node);
        let shared = places.filter(|(_, mask)| count_ones(mask) > 1);
        shared.map(|(place, mask)| (place, bits(0, mask.clone()).collect()))
    }

    /// The nodes with more than one group on them.
    #[must_use]
    pub fn shared(&self) -> NodeSet {
        let places = (0..).zip(&self.on_node);
        let shared = places.filter(|(_, mask)| count_ones(mask) > 1);
        shared.map(|(place, _)| place).collect()
    }
}

/// The groups behind one that overlap with it, as a bit mask.
#[derive(Clone, Debug, Default)]
struct Row {
    /// Index of the first word in the whole mask.
    first: usize,
    words: Vec<u64>,
}

impl Row {
    fn fill(&mut self, overlaps: &Overlaps<'_>, group: usize) {
        self.first = group / 64;
        let words = overlaps.groups.len().div_ceil(64) - self.first;
        self.words.clear();
        self.words.resize(words, 0);
        for place in overlaps.groups[group].nodes.iter() {
            let mask = &overlaps.on_node[place as usize][self.first..];
            for (word, more) in self.words.iter_mut().zip(mask) {
                *word |= more;
            }
        }
        // Not those before it, and not the group itself.
        self.words[0] &= (!1_u64) << (group % 64);
    }

    fn len(&self) -> u64 {
        count_ones(&self.words)
    }

    fn into_groups(self) -> impl Iterator<Item = usize> {
        bits(self.first, self.words)
    }
}

fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

fn bits(first: usize, words: Vec<u64>) -> impl Iterator<Item = usize> {
    (first..).zip(words).flat_map(|(index, word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros() as usize;
            (bit < 64).then(|| {
                rest &= rest - 1;
                index * 64 + bit
            })
        })
    })
}
