//! The binary's library: command line, configuration, and the node's shell.
//!
//! - [`cli`]: what can be typed, and which command runs.
//! - [`commands`]: one module for each command.
//! - [`config`]: a node's settings.
//! - [`environment`]: the one place where environment variables are read.
//! - [`node`]: the node itself, to be started by `airmail serve` or by a test.

#![forbid(unsafe_code)]

pub mod cli;
pub mod commands;
pub mod config;
pub mod environment;
pub mod node;
