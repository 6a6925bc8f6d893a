//! The command line: what can be typed, and what each command does.
//!
//! - [`cli`]: the parser, and which command runs.
//! - [`commands`]: one module for each command.
//!
//! The node itself is [`airmail_node`]; a workload that measures one is [`airmail_bench`].

#![forbid(unsafe_code)]

pub mod cli;
pub mod commands;
