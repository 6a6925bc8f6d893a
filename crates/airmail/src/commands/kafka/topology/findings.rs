//! All findings of one look at a cluster, before they are printed.

use super::TopologyArgs;
use airmail_topology::{
    Advice, Cluster, FaultSearch, Faults, Load, MaxGroups, Overlaps, ReplicaFindings, Spread,
    Uneven,
};

/// Most overlapping pairs that a JSON object lists, if it is not asked for all.
const PAIRS_MAX: u64 = 100_000;

/// Findings about a cluster.
pub(super) struct Findings<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) groups: MaxGroups,
    /// Pairs of groups that overlap.
    pub(super) overlaps: u64,
    /// Whether each of them is to be listed: all or none.
    pub(super) lists_overlaps: bool,
    /// Whether they are to be listed however many they are.
    pub(super) lists_all: bool,
    pub(super) uneven: Vec<Uneven>,
    pub(super) replicas: ReplicaFindings,
    /// Loads by node, for producers that spread over partitions, and for those that spread over
    /// nodes.
    pub(super) loads: [Load; 2],
    pub(super) faults: Faults,
    pub(super) advice: Option<Advice>,
}

impl<'a> Findings<'a> {
    pub(super) fn of(cluster: &'a Cluster, args: &TopologyArgs) -> Findings<'a> {
        let groups = MaxGroups::of(cluster);
        let overlaps = Overlaps::of(&groups, cluster.nodes().len()).count();
        let search = FaultSearch {
            losses_max: usize::from(args.faults),
            ..FaultSearch::default()
        };
        Findings {
            cluster,
            overlaps,
            lists_overlaps: args.pairs || overlaps <= PAIRS_MAX,
            lists_all: args.pairs,
            uneven: Uneven::of(cluster, &groups),
            groups,
            replicas: ReplicaFindings::of(cluster),
            loads: [Spread::Partitions, Spread::Nodes].map(|spread| Load::of(cluster, spread)),
            faults: Faults::of(cluster, search),
            advice: args
                .advise
                .then(|| Advice::of(cluster, args.moves as usize)),
        }
    }

    /// The overlaps themselves.
    pub(super) fn overlapping(&self) -> Overlaps<'_> {
        Overlaps::of(&self.groups, self.cluster.nodes().len())
    }

    /// Whether nothing was found that speaks against the cluster as it is.
    pub(super) fn is_balanced(&self) -> bool {
        self.overlaps == 0 && self.uneven.is_empty() && self.replicas.is_empty()
    }

    /// Whether there is nothing to tell of faults either, as far as they were looked at.
    pub(super) fn is_empty(&self) -> bool {
        self.is_balanced() && self.faults.worst.is_empty()
    }
}
