//! The generated `airmail.v1` API and its translation to and from the model.
//!
//! - [`v1`]: what prost and tonic make of `proto/airmail/v1/*.proto`: messages and clients. It is kept in
//!   `generated/`; `tests/generated.rs` makes it, and says when it is stale.
//! - [`server`]: the services that tonic serves: all calls but Publish and Subscribe.
//! - [`error`]: the error table as messages and as gRPC statuses, both ways.
//! - [`framing`]: gRPC's framing below tonic's codec.
//! - [`hello`]: Hello, limits and maps.
//! - [`namespace`]: namespaces, retention, durability.
//! - [`message`]: plain messages, encoded into batches and taken out of them.
//! - [`publish`], [`subscribe`]: what travels on the two streams.
//! - [`mailbox`]: accounts, queues, and what is sent, asked for and handed out.
//!
//! Translation checks whatever a model type cannot hold: nothing unchecked gets past it.

#![forbid(unsafe_code)]

pub mod error;
mod fields;
pub mod framing;
pub mod hello;
pub mod mailbox;
pub mod message;
pub mod namespace;
pub mod publish;
pub mod subscribe;

/// The generated messages and services. Documented in `proto/airmail/v1/*.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    clippy::all,
    clippy::pedantic,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::too_many_lines,
    reason = "generated"
)]
pub mod v1 {
    include!("../generated/airmail.v1.rs");
}

/// The generated services, for a node. Publish and Subscribe are not among their calls: a node
/// answers them below tonic's codec.
#[allow(
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    clippy::all,
    clippy::pedantic,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::too_many_lines,
    reason = "generated"
)]
pub mod server {
    include!("../generated/server/airmail.v1.rs");
}

/// The descriptors of `airmail.v1`, encoded, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("../generated/airmail.v1.bin");

/// The descriptors of `google.rpc`'s error details, encoded, for reflection: with them a generic
/// client shows what a status carries.
pub const ERROR_DETAILS_DESCRIPTOR_SET: &[u8] = tonic_types::pb::FILE_DESCRIPTOR_SET;
