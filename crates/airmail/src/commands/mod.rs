//! One module for each command: its arguments and `run`, which gives the exit code.
//!
//! A command that is wrong usage in a way that clap cannot see returns
//! [`UsageError`](crate::cli::UsageError): exit code 2. Any other error is exit code 1.

pub mod bench;
pub mod check;
pub mod clock;
pub mod cluster;
pub mod collect;
pub mod context;
mod ending;
mod filter;
pub mod flow;
pub mod history;
pub mod input;
pub mod instant;
pub mod kafka;
mod lasting;
pub mod lines;
mod listening;
pub mod mailbox;
pub mod namespace;
pub mod plan;
pub mod publish;
pub mod role;
pub mod serve;
pub mod status_line;
pub mod subscribe;
pub mod target;
pub mod topics;
pub mod wanted;
