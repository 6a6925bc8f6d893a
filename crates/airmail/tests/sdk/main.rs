//! The Rust SDK against a real node in the same process, over real sockets.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod connections;
#[path = "../end_to_end/lasting.rs"]
mod lasting;
mod mailbox;
mod many;
mod node;
mod porter;
mod publishing;
mod reading;
mod ready;
mod refusals;
mod waited_for;
#[path = "../end_to_end/waiting.rs"]
mod waiting;
