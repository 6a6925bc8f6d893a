//! Advice on the moves that balance a cluster. Kafka thesis, section 6.4 and figures 6.5 and 6.6:
//! partial overlap is undone by no overlap or by complete overlap, with other assignments, more
//! partitions or more nodes.
//!
//! Three goals, as none is best for everybody:
//!
//! - **no overlap** ([`separate`]): nodes are divided among groups of topics; the paper's choice
//!   where it is possible. One group's burst is no other's trouble.
//! - **complete overlap** ([`join`]): every topic on every node. It may need more partitions.
//! - **within moves** ([`moves`]): the best of a few moves, because data has to be copied.
//!
//! Every plan leads all topics evenly, so it is good for producers that spread over partitions and
//! for those that spread over nodes. Each proposal is applied to the model and measured; nothing is
//! promised that was not computed. Racks are not known here, so replicas may end up in one rack.

mod join;
mod moves;
mod placement;
mod separate;

use crate::cluster::Cluster;
use crate::reassignment::Reassignment;
use crate::summary::Summary;

/// Goals of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    /// No two max groups share a node.
    NoOverlap,
    /// One max group on all nodes.
    CompleteOverlap,
    /// The best balance that a few moves make.
    WithinMoves,
}

impl Goal {
    /// A name that stays.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Goal::NoOverlap => "no-overlap",
            Goal::CompleteOverlap => "complete-overlap",
            Goal::WithinMoves => "within-moves",
        }
    }
}

/// A reassignment, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The goal.
    pub goal: Goal,
    /// The change of replicas.
    pub reassignment: Reassignment,
    /// The cluster's state after the change.
    pub after: Summary,
}

/// Reason for which there is no plan for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotOffered {
    /// Every node is down.
    #[error("no node is up")]
    NoNodes,
    /// Complete overlap would need too many new partitions.
    #[error("{needed} partitions would have to be added; at most {limit}, as many as there are")]
    TooManyPartitions {
        /// Partitions that are needed.
        needed: usize,
        /// Partitions that are allowed.
        limit: usize,
    },
    /// No move makes anything better.
    #[error("no move makes anything better")]
    NothingToGain,
}

/// Proposals for a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The cluster's present state, with preferred leaders elected.
    pub before: Summary,
    /// Plans in the order of goals.
    pub plans: Vec<Plan>,
    /// Goals without a plan.
    pub not_offered: Vec<(Goal, NotOffered)>,
}

impl Advice {
    /// Makes proposals for a cluster, with at most `moves_max` moves where moves are counted.
    ///
    /// ```
    /// use airmail_topology::{Advice, Cluster};
    ///
    /// // Section 6.4: topics A and B overlap on node 2, which gets the most.
    /// let text = r#"{"nodes": [1, 2, 3], "topics": {"A": [[1], [2], [2]], "B": [[2], [3]]}}"#;
    /// let cluster = Cluster::new(serde_json::from_str(text)?)?;
    /// let advice = Advice::of(&cluster, 5);
    /// assert_eq!(advice.before.overlaps, 1);
    /// assert!(advice.plans[0].after.is_balanced());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of(cluster: &Cluster, moves_max: usize) -> Advice {
        // Preferred leaders are elected anyhow once a plan is carried out.
        let elected = Reassignment::default().applied_to(cluster);
        let before = Summary::of(&elected);
        let mut advice = Advice {
            before,
            plans: Vec::new(),
            not_offered: Vec::new(),
        };
        let separated = separate::plan(&elected);
        let joined = join::plan(&elected);
        let whole = [&separated, &joined].map(|plan| plan.as_ref().ok().cloned());
        let moved = moves::plan(&elected, moves_max, whole.into_iter().flatten());
        for (goal, proposed) in [
            (Goal::NoOverlap, separated),
            (Goal::CompleteOverlap, joined),
            (Goal::WithinMoves, moved),
        ] {
            match proposed {
                Ok(reassignment) => {
                    let after = Summary::of(&reassignment.applied_to(&elected));
                    advice.plans.push(Plan {
                        goal,
                        reassignment,
                        after,
                    });
                }
                Err(reason) => advice.not_offered.push((goal, reason)),
            }
        }
        advice
    }
}
