//! Which partition of a Kafka topic a record goes to: the policies of `kafka-partitioners/`, for producers
//! of ours.
//!
//! The Kafka thesis, chapter 6. Kafka's default balances partitions; what gets slow or full is a node. `node` and
//! `sqf` give each of a topic's nodes its part, [`Policy::Adaptive`], ours, as much as it can take.
//!
//! ```text
//! Cluster ──arrange──▶ Partitioner ◀──arrived── (topic, partition, outcome)
//!                          │
//! (topic, key, bytes) ──place──▶ Place
//! ```
//!
//! What is chosen from is computed when the cluster's layout changes (section 6.3), so a record costs an
//! index and a counter, and nothing is allocated for it. There is no clock and no entropy here: the time is
//! an argument, a seed a setting. Java and Rust pass the same `vectors/partitioners.json`; what follows from
//! Java's threads and from its client, which asks twice for a record, is only there.

#![forbid(unsafe_code)]

mod answer_rate;
mod cluster;
mod flight;
mod flight_board;
mod key_hash;
mod layout;
mod partitioner;
mod peak_latency;
mod policy;
mod queue_board;
mod record_bytes;
mod rotation;
mod settings;
mod stops;

pub use cluster::{Cluster, NodeId, PartitionId};
pub use flight_board::Outcome;
pub use key_hash::partition_of_key;
pub use partitioner::{Partitioner, Place, TopicId, TopicUnknown};
pub use policy::{Policy, PolicyUnknown};
pub use queue_board::QueueBoard;
pub use record_bytes::record_bytes;
pub use settings::{SettingInvalid, Settings};
