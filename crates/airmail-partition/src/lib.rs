//! Choice of the partition of a Kafka topic for each record: the policies of `kafka-partitioners/`,
//! for our own producers.
//!
//! They come from the Kafka thesis, chapter 6. Kafka's default balances partitions; but the thing
//! that gets slow or full is a node. `node` and `sqf` give each of a topic's nodes an equal part;
//! [`Policy::Adaptive`], ours, gives each as much as it can take.
//!
//! ```text
//! Cluster ──arrange──▶ Partitioner ◀──arrived── (topic, partition, outcome)
//!                          │
//! (topic, key, bytes) ──place──▶ Place
//! ```
//!
//! The choices are computed when the cluster's layout changes (section 6.3), so a record costs an
//! index and a counter, and nothing is allocated for it. There is no clock and no entropy here: the
//! time is an argument, a seed a setting. Java and Rust pass the same `vectors/partitioners.json`;
//! the parts that only Java's threads and its client (which asks twice for a record) need are in
//! Java alone.

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
