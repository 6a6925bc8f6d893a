//! Workloads against a running node, and what they measured.
//!
//! A measurement that does not count what is lost measures nothing: every message says who sent it,
//! which it is and when, and a [`ledger`] of each subscriber finds what is missing, doubled or out of
//! order. The rate and the latencies of a run that lost something are not a result.
//!
//! - [`e2e`]: publishers and subscribers, from publish to delivery.
//! - [`settings`], [`progress`], [`report`]: what was asked for, how far it is, what came out.
//! - [`stamp`], [`ledger`], [`latency`], [`pace`]: one message's identity, the accounts, the times, and
//!   the timetable.

#![forbid(unsafe_code)]

pub mod e2e;
pub mod latency;
pub mod ledger;
pub mod pace;
pub mod progress;
pub mod report;
pub mod settings;
pub mod stamp;

pub use progress::Progress;
pub use report::Report;
pub use settings::Settings;
