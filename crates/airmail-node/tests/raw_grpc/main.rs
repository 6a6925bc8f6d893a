//! The node as any gRPC client sees it: raw messages of the API, no SDK.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

#[path = "../apart/mod.rs"]
mod apart;
mod audience;
mod browsers;
mod doors;
mod error_table;
mod errors;
mod expiry;
mod filters;
mod headers_only;
mod history;
mod lanes;
mod limits;
mod mailbox;
mod malformed;
mod node;
mod publish;
mod selections;
mod services;
mod stop;
mod subscribe;
mod vectors;
