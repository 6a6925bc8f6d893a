//! The halfway collector (Kafka thesis, section 6.5): takes records from producers, which know only a small
//! cluster nearby, and sends them to the main Kafka cluster with any policy of [`airmail_partition`].
//!
//! ```text
//! a small Kafka cluster ─┐                       ┌─ policy ─▶ the main Kafka cluster
//! topics of Airmail ─────┴─▶ Collector ─ Send ───┤                │
//!              ▲               │ Pause, Resume   └────── acks ◀───┘
//!              └─── Commit ────┘
//! ```
//!
//! A *source* is a stream of records that is collected in one order: a partition of the small
//! cluster, or a topic of Airmail.
//!
//! - **Nothing is lost.** A source's place is committed only up to the first record that the main
//!   cluster has not acknowledged. The next owner of a source begins there, so records may come
//!   twice.
//! - **Order.** [`Order::Pinned`] sends each source to one partition, where its records stand in
//!   order, the first of each counted. [`Order::Spread`] lets the policy choose; then order holds for
//!   the records of one key, and every record has headers ([`Stamp`]) from which [`Restorer`] gives
//!   each source's records back in order and once, whatever was repeated.
//! - **No single point of failure.** Instances share the sources as one consumer group, and take
//!   over from each other. The paper calls the collector a single point of failure; it need not be
//!   one.
//! - **Bounded.** Each source may have its part of a bound outstanding, and is paused beyond it. A
//!   source that makes no progress takes nothing from another.
//!
//! The core ([`Collector`], [`Placement`]) does no I/O; the shell, behind the feature `kafka`, is
//! threads around it.

#![forbid(unsafe_code)]

mod collector;
mod commits;
mod ledger;
mod placement;
mod restorer;
mod source;
mod stamp;

#[cfg(feature = "kafka")]
pub mod shell;

pub use collector::{Bounds, Collector, Effect, Event, Outstanding, Ticket};
pub use placement::{Order, OrderUnknown, Placement};
pub use restorer::Restorer;
pub use source::Source;
pub use stamp::{RANGE_HEADER, Range, RangeInvalid, SOURCE_HEADER, Stamp};
