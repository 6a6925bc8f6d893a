//! A cluster in a few numbers, to compare its present state with a proposal.

use crate::cluster::Cluster;
use crate::groups::MaxGroups;
use crate::load::{Load, Spread};
use crate::node_set::Place;
use crate::overlaps::Overlaps;
use crate::uneven::Uneven;

/// Balance of a cluster in numbers. Loads are those of producers that spread over partitions, the
/// worst case for a node that leads many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Max groups.
    pub max_groups: usize,
    /// Pairs of them that overlap.
    pub overlaps: u64,
    /// Topics whose partitions are led in unequal parts.
    pub uneven: usize,
    /// The node with the highest load, and that load in the unit of the rates; `None` without nodes.
    pub peak: Option<(Place, f64)>,
    /// The highest load divided by the mean; 1 is balanced.
    pub imbalance: f64,
}

impl Summary {
    /// Sums up a cluster as it is.
    #[must_use]
    pub fn of(cluster: &Cluster) -> Summary {
        let groups = MaxGroups::of(cluster);
        let load = Load::of(cluster, Spread::Partitions);
        Summary {
            max_groups: groups.iter().len(),
            overlaps: Overlaps::of(&groups, cluster.nodes().len()).count(),
            uneven: Uneven::of(cluster, &groups).len(),
            peak: load.peak(cluster.offline()),
            imbalance: load.imbalance(cluster.offline()),
        }
    }

    /// Whether no groups overlap and no topic is uneven.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.overlaps == 0 && self.uneven == 0
    }
}
