//! The command line: its grammar, and its commands.
//!
//! - [`cli`]: the parser, and the choice of the command.
//! - [`commands`]: one module for each command.
//!
//! The node itself is [`airmail_node`]; a workload that measures one is [`airmail_bench`].

#![forbid(unsafe_code)]

pub mod cli;
pub mod commands;
