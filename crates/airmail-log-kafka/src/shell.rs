//! The shell on librdkafka: [`LibrdkafkaBrokers`] carries the trait [`Brokers`](crate::brokers::Brokers) out on a
//! real cluster.
//!
//! librdkafka has threads of its own for connections. What it offers is of two kinds. Handing over a record and
//! taking what was fetched are quick, and are done on the owner's thread. Everything that waits for an answer (of a
//! broker, or of librdkafka's own main thread) is done by a thread of this shell, so that the owner never blocks:
//!
//! | thread | does |
//! |---|---|
//! | `kafka-reports` | has the only producer with the owner; takes its delivery reports, and flushes it at the end |
//! | `kafka-slot-N` | has the consumer of a slot; assigns and unassigns partitions |
//! | `kafka-finder` | asks for the leaders of partitions, and whether brokers are back |
//! | `kafka-asker-N` | asks one broker the questions that are for it, one at a time |
//! | `kafka-orders` | carries out orders, one at a time |
//!
//! They tell through one list (`news.rs`), which the owner empties by `poll`, and call its waker when there is
//! something in it. The list is bounded by what was handed over: a record, a question or an order puts one entry
//! into it, a consumer at most two.
//!
//! Invariants: never more records are under way, their untold reports included, than the settings allow; the
//! reports of a partition are told in the order in which one thread has met them; nothing is told of a consumer that was
//! stopped; after closing, no thread is left.

mod admin;
mod asker;
mod clock;
mod cluster;
mod consumer;
mod error;
mod finder;
mod librdkafka;
mod news;
mod producer;
mod properties;
mod removal;
mod routes;
mod settings;
mod slot;
mod topics;
mod turnstile;
mod wait;

pub use cluster::cluster_number;
pub use error::OpenError;
pub use librdkafka::LibrdkafkaBrokers;
pub use removal::remove_topics;
pub use settings::KafkaSettings;
