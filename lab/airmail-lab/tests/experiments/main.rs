//! The experiments end to end, at tiny sizes: the program `airmail-lab`, with nodes that it starts as the
//! program `airmail` beside it.
//!
//! - `flow`, `load`, `mailbox`: experiments of these names, and `clients`, `overload`, `size`.
//! - `modes`: one node and several as one service.
//! - `copilots`: copilots before a tower, and the bytes on their links.
//! - `limiters`: the table in virtual time, and the model of a node beside one that was measured.
//! - `hosts`: experiments over several machines, Ctrl-C, and what is left.
//! - `pages`: the page of its command line is fresh.
//! - `kafka_cluster`: reassignments, partitioners and their evaluation, with live brokers of Kafka.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test panics where something is wrong"
)]

mod copilots;
mod flow;
mod hosts;
mod kafka_cluster;
mod limiters;
mod load;
mod mailbox;
mod modes;
mod pages;

use std::process::Command;

/// `airmail-lab`, with nothing inherited that could change what it does.
fn lab() -> Command {
    airmail_testkit::node::program("airmail-lab")
}
