//! Parts that tests of several crates use: processes of nodes and servers, waits that end, and
//! addresses.
//!
//! - [`waiting`]: waits that end, and say what they waited for.
//! - [`scale`]: the amount of testing, and the tools that there are.
//! - [`network`]: machines with addresses of their own, whose packets can be lost.
//! - [`slow_way`]: connections as over a distance.
//! - [`node`]: a node in a process of its own, and commands that talk to it.
//! - [`shards`]: the directories of a node's shards.
//! - [`pages`]: pages of the documentation that are made from the code.
//! - `postgres`: a database server, with the feature of that name.
//! - `kafka`: clusters of Kafka, with the feature of that name; `bare_publisher`: a publisher of librdkafka alone.
//! - [`transcript`]: what happens to a core, as text that can be read without the code.
//! - [`lasting`]: addresses that a node can have again.
//!
//! For tests alone: no program depends on it, and it panics at any failure. Without features it has no runtime in
//! its tree, so that the cores' tests can use it.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "a test panics where something is wrong"
)]

#[cfg(feature = "kafka")]
pub mod bare_publisher;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod lasting;
pub mod network;
pub mod node;
pub mod pages;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod scale;
pub mod shards;
pub mod slow_way;
pub mod transcript;
pub mod waiting;
