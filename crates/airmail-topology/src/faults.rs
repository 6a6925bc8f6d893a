//! Faults that would unbalance a cluster: early detection (Kafka thesis, section 3.5.4).
//!
//! A fault is the loss of one node, or of two. Each partition that is led there is led by the next of its
//! replicas that is in sync and not down, as Kafka elects; and then the cluster is looked at again.
//! So it is known, before a node is lost, for which of the others that will be too much (figure
//! 2.2).
//!
//! The paper fears that this is not feasible on large clusters. Three things make it so: a fault is
//! computed from the topics that the lost nodes lead, not from all; overlaps are counted and not
//! listed; and of the pairs of nodes only those are looked at that can be among the worst, by a
//! bound that costs no look at any topic ([`pairs`]).

mod pairs;
mod survey;

use crate::cluster::Cluster;
use crate::node_set::Place;
use survey::{Harm, Survey};

/// Extent of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultSearch {
    /// Nodes that are lost at a time: 0, 1 or 2. More is taken for 2. Default: 1.
    pub losses_max: usize,
    /// Losses of two nodes that are reported, the worst ones; of one node all are. Default: 1,000.
    pub pairs_max: usize,
}

impl Default for FaultSearch {
    fn default() -> FaultSearch {
        FaultSearch {
            losses_max: 1,
            pairs_max: 1_000,
        }
    }
}

/// A fault that would unbalance something, and what.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The nodes that are lost, ascending.
    pub lost: Vec<Place>,
    /// Topics with partitions that nobody could lead any more, and how many.
    pub leaderless: Vec<(usize, u32)>,
    /// Topics that would become uneven, or whose partitions' counts would differ by more than before.
    pub uneven: Vec<usize>,
    /// Pairs of max groups that would overlap.
    pub overlaps: u64,
    /// Nodes on which groups would overlap, and do not now.
    pub overlapping_nodes: Vec<Place>,
    /// The node that would have the highest load, and that load; `None`: none is left.
    pub peak: Option<(Place, f64)>,
    /// The highest load divided by the mean of those that are left.
    pub imbalance: f64,
}

/// Findings of a search.
///
/// ```
/// use airmail_topology::{Cluster, FaultSearch, Faults};
///
/// // Figure 2.2: node 3 fails, and node 1 leads twice as much as node 2.
/// let text = r#"{"nodes": [1, 2, 3], "topics": {"A": [[1, 2], [2, 3], [3, 1]]}}"#;
/// let cluster = Cluster::new(serde_json::from_str(text)?)?;
/// let faults = Faults::of(&cluster, FaultSearch::default());
/// let third = faults.worst.iter().find(|fault| fault.lost == [2]).unwrap();
/// assert_eq!(third.peak, Some((0, 2.0 / 3.0)));
/// assert_eq!(third.uneven, [0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Those that unbalance something, the worst first: by partitions that nobody could lead, then by the
    /// highest load of a node, then by overlaps and uneven topics.
    pub worst: Vec<Fault>,
    /// Faults that there are.
    pub possible: u64,
    /// Pairs among these that are not reported, because others are worse.
    pub passed_over: u64,
    /// Pairs of which every topic concerned was looked at; the bound was enough for the others.
    pub pairs_computed: u64,
}

impl Faults {
    /// Looks for them.
    #[must_use]
    pub fn of(cluster: &Cluster, search: FaultSearch) -> Faults {
        let nodes: Vec<Place> = cluster.living().collect();
        let count = nodes.len() as u64;
        let mut faults = Faults::default();
        if search.losses_max == 0 {
            return faults;
        }
        let survey = Survey::of(cluster);
        let singles: Vec<Harm> = nodes.iter().map(|node| survey.harm(&[*node])).collect();
        faults.possible = count;
        let each = nodes.iter().map(|node| survey.fault(&[*node]));
        faults.worst = each.filter(|fault| survey.is_worse(fault)).collect();
        if search.losses_max > 1 {
            let all = count * count.saturating_sub(1) / 2;
            let found = pairs::worst(&survey, &nodes, &singles, search.pairs_max);
            faults.possible += all;
            faults.passed_over = all - found.worst.len() as u64;
            faults.pairs_computed = found.computed;
            let each = found.worst.iter().map(|pair| survey.fault(pair));
            faults
                .worst
                .extend(each.filter(|fault| survey.is_worse(fault)));
        }
        faults.worst.sort_by(|one, other| {
            let severity = Fault::severity;
            let worse = severity(other).partial_cmp(&severity(one));
            let fewer = (one.lost.len(), &one.lost).cmp(&(other.lost.len(), &other.lost));
            worse.unwrap_or(std::cmp::Ordering::Equal).then(fewer)
        });
        faults
    }
}

impl Fault {
    fn severity(&self) -> (u64, f64, u64, usize) {
        let leaderless = self.leaderless.iter().map(|(_, count)| u64::from(*count));
        let peak = self.peak.map_or(0.0, |(_, load)| load);
        (leaderless.sum(), peak, self.overlaps, self.uneven.len())
    }
}
