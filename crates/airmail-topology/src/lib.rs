//! Kafka clusters as sets: whether a cluster is balanced, the faults that would unbalance it, and
//! the moves that mend it.
//!
//! The Kafka thesis, chapter 3. A topic's records go to the nodes that lead its partitions, N(t). Topics with the
//! same N(t) are a [max group](MaxGroups): among them a producer's rate does not matter, as each one's load is
//! spread over the same nodes. Where two groups share some nodes and not others they [overlap](Overlaps), and
//! a node in both gets more than one in either. [`Uneven`] topics load nodes unequally by themselves.
//!
//! ```text
//! Description ──▶ Cluster ──▶ MaxGroups ──▶ Overlaps     as it is
//!                    │  └───▶ Uneven, ReplicaFindings, Load
//!                    ├──────▶ Faults                     as it would be
//!                    └──────▶ Advice ──▶ Reassignment    as it should be
//! ```
//!
//! Nothing here does I/O or has a clock; one cluster gives one answer. `docs/kafka-balance.md` is
//! the guide for operators.

#![forbid(unsafe_code)]

mod advice;
mod cluster;
mod description;
mod drawing;
mod faults;
mod groups;
mod leaders;
mod load;
mod node_set;
mod overlaps;
mod reassignment;
mod replicas;
mod summary;
mod uneven;

pub use advice::{Advice, Goal, NotOffered, Plan};
pub use cluster::{Cluster, ClusterError, Partition, Places, Topic};
pub use description::{DescribedPartition, Description, NodeId, ToldPartition, Topics};
pub use drawing::drawing;
pub use faults::{Fault, FaultSearch, Faults};
pub use groups::{MaxGroup, MaxGroups};
pub use leaders::Leaders;
pub use load::{Load, Spread};
pub use node_set::{NodeSet, Place};
pub use overlaps::{Overlap, Overlaps};
pub use reassignment::{AddedPartitions, Reassigned, Reassignment};
pub use replicas::{PartitionIndex, ReplicaFindings};
pub use summary::Summary;
pub use uneven::Uneven;
