//! The Rust SDK against a real node in the same process, over real sockets.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

#[path = "../apart/mod.rs"]
mod apart;
mod audience;
mod connections;
mod expiry;
mod faulty_proxy;
mod filters;
mod headers_only;
mod lanes;
mod mailbox;
mod many_topics;
mod node;
mod publishing;
mod reading;
mod refusals;
mod retries;
mod selections;
mod sets;
mod subscription_ready;
