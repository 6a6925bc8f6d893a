//! Workloads against a running node or one of its rivals, and their measurements.
//!
//! A measurement that does not count lost messages measures nothing: every message names its
//! sender, its number and its time, and a [`ledger`] of each subscriber finds messages that are
//! missing, doubled or out of order. The rate and the latencies of a run that lost something are
//! not a result.
//!
//! - [`run`]: publishers and subscribers, from publish to delivery.
//! - [`system`], [`target`]: the measured system, through its own client, and the URL that names
//!   it.
//! - [`settings`], [`progress`], [`part`], [`report`]: a run's settings, its progress, each
//!   process's findings, the result.
//! - [`stamp`], [`chunk`], [`ledger`], [`latency`], [`pace`], [`clock`], [`alarm`], [`process`],
//!   [`counters`]: one message's identity, many messages in one buffer, the accounts, the times, the
//!   timetable, the clock, its timer, a process's use of resources, and a node's own counters.
//! - [`bystander`], [`isolation`]: a subscriber beside which others are measured, and its cost to
//!   them.
//! - [`late`]: many subscribers that begin behind, each elsewhere in one log.
//! - [`lanes`]: a flood of one lane beside the other.
//! - [`filters`]: one core that holds messages against very many filters.
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
pub mod filters;
pub mod html;
pub mod isolation;
pub mod lanes;
pub mod late;
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
