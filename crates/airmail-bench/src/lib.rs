//! Workloads against a running node or one of its rivals, and what they measured.
//!
//! A measurement that does not count what is lost measures nothing: every message says who sent it,
//! which it is and when, and a [`ledger`] of each subscriber finds what is missing, doubled or out of
//! order. The rate and the latencies of a run that lost something are not a result.
//!
//! - [`run`]: publishers and subscribers, from publish to delivery.
//! - [`system`], [`target`]: what is measured, through its own client, and how a URL names it.
//! - [`settings`], [`progress`], [`part`], [`report`]: what was asked for, how far it is, what each
//!   process found, what came out.
//! - [`stamp`], [`chunk`], [`ledger`], [`latency`], [`pace`], [`clock`], [`alarm`], [`process`],
//!   [`counters`]: one message's identity, many messages in one buffer, the accounts, the times, the
//!   timetable, the clock, its timer, what a process uses, and what a node counts.
//! - [`bystander`], [`isolation`]: a subscriber that others are measured beside, and what it costs them.
//! - [`family`]: a run over several processes, and a node of its own; [`raw_stream`]: a stream without
//!   the SDK.
//! - [`spread`]: a figure over several rounds.
//! - [`csv`], [`html`]: a report for other programs, and for a browser.
//! - [`disk`]: the disk alone, beside which a durable latency is to be seen.

#![forbid(unsafe_code)]

pub mod alarm;
pub mod bystander;
pub mod chunk;
pub mod clock;
pub mod counters;
pub mod csv;
pub mod disk;
pub mod family;
pub mod html;
pub mod isolation;
pub mod latency;
pub mod ledger;
pub mod pace;
pub mod part;
pub mod process;
pub mod progress;
pub mod raw_stream;
pub mod report;
pub mod run;
pub mod settings;
pub mod spread;
pub mod stamp;
pub mod system;
pub mod target;

pub use isolation::IsolationReport;
pub use progress::Progress;
pub use report::Report;
pub use settings::{Settings, Workload};
pub use spread::Spread;
pub use target::Target;
