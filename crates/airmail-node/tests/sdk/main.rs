//! The Rust SDK against a real node in the same process, over real sockets.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod connections;
mod mailbox;
mod many;
mod node;
mod porter;
mod publishing;
mod reading;
mod ready;
mod refusals;
mod waited_for;
