//! What tests of several crates share: processes of nodes and servers, waits that end, and addresses.
//!
//! - [`waiting`]: waits that end, and say what they waited for.
//! - [`scale`]: how much the tests do, and which tools they have.
//! - [`node`]: a node in a process of its own, and commands that talk to it.
//! - [`pages`]: pages of the documentation that are made from the code.
//! - [`postgres`]: a database server.
//! - [`lasting`]: addresses that a node can have again.
//!
//! For tests alone: no program depends on it, and what goes wrong in it panics.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "a test panics where something is wrong"
)]

pub mod lasting;
pub mod node;
pub mod pages;
pub mod postgres;
pub mod scale;
pub mod waiting;
