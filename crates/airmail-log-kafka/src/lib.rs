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
//! - `shell`, with the feature `kafka`: that trait over librdkafka, on a real cluster.
//!
//! But for the shell: no I/O, no clock, no thread; the time is an argument.

#![forbid(unsafe_code)]

pub mod brokers;
pub mod place;
#[cfg(feature = "kafka")]
pub mod shell;
