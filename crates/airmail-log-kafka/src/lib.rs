//! Log storage on Apache Kafka: the project's storage contract on an engine for any number of machines.
//!
//! A log is a partition of a Kafka topic, and a batch is a record there. Airmail writes no distributed log for
//! this: Kafka orders, replicates and keeps; what is decided here is how its offsets become numbers, which
//! copies of a batch are left out when it is read, and what an answer of Kafka does and does not prove.
//!
//! ```text
//! Call ─▶ KafkaStorage ─▶ Brokers: produce, consume, ask, order
//! Completion ◀─┘      ◀─ Told
//! ```
//!
//! - [`brokers`]: the narrow trait over which everything with Kafka goes, values in and values out. A shell on a
//!   client library implements it, and so does a model in memory.
//! - [`place`]: offsets, places and numbers.
//! - [`producers`]: the rule by which copies are left out when they are read.
//! - [`marks`]: the records that are copies, for whoever reads them again.
//! - [`storage`]: the storage itself, and the list of its parts.
//! - [`KafkaAppender`], [`ApartStorage`]: a node that appends by a handle of its own, and reads elsewhere.
//! - `model`, with the feature of that name: brokers in memory, for tests and the simulator.
//! - `shell`, with the feature `kafka`: that trait over librdkafka, on a real cluster.
//!
//! But for the shell: no I/O, no clock, no thread; the time is an argument.

#![forbid(unsafe_code)]

mod apart;
mod appender;
mod appending;
mod asking;
mod bounds;
pub mod brokers;
mod changing;
pub mod config;
mod contents;
mod entry;
mod giving;
mod layout;
mod log;
mod looking;
pub mod marks;
#[cfg(any(test, feature = "model"))]
pub mod model;
mod opening;
mod owning;
pub mod place;
pub mod producers;
mod provisioning;
mod reader;
mod removing;
mod renewing;
mod resuming;
mod rows;
#[cfg(feature = "sabotage")]
pub mod sabotage;
mod scanning;
mod sending;
#[cfg(feature = "kafka")]
pub mod shell;
mod soundness;
mod start;
mod statement;
mod statements;
mod stating;
pub mod storage;
mod sweeping;
#[cfg(test)]
mod tests;
mod upkeep;
mod withdrawing;

pub use apart::ApartStorage;
pub use appender::KafkaAppender;
pub use config::{KafkaConfig, StatementConfig};
pub use storage::KafkaStorage;
