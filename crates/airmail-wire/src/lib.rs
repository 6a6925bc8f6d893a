//! The wire: what nodes of a cluster say to each other over a connection.
//!
//! A link ([`airmail_link`]) carries the contract of a log storage as values. Between shards of one process the
//! values themselves cross; between processes they cross as protobuf, in frames. This crate makes the one of
//! the other. It decides without I/O: bytes come and go through [`FrameReader`] and [`FrameWriter`], whoever
//! moves them.
//!
//! - [`link_v1`]: the messages, as `proto/airmail/link/v1/link.proto` says. They are kept in `generated/`;
//!   `tests/generated.rs` makes them, and says when they are stale.
//! - [`OnWire`]: a message of a link, to and from the wire.
//! - [`FrameWriter`], [`FrameReader`]: messages in frames.
//! - [`WirePort`], [`Carrier`]: the port of a link over a wire, and the end of whoever moves its bytes.
//! - [`handshake`]: who the two sides are, before a link begins.
//!
//! Invariants: what was put on the wire is what comes off it, or the connection ends ([`Malformed`]); a batch
//! that comes off it is checked again, so that everything behind goes by its type.

#![forbid(unsafe_code)]

mod batch;
mod frame;
mod from_host;
pub mod handshake;
mod malformed;
mod message;
mod port;
mod secret;
mod to_host;
mod values;

/// The generated messages. Documented in `proto/airmail/link/v1/link.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    clippy::all,
    clippy::pedantic,
    reason = "generated"
)]
pub mod link_v1 {
    include!("../generated/airmail.link.v1.rs");
}

pub use frame::{FRAME_BYTES_MAX, FrameReader, FrameWriter};
pub use malformed::Malformed;
pub use message::OnWire;
pub use port::{Carrier, PortLimits, WirePort, wire_port};
pub use secret::{SECRET_BYTES_MIN, SECRET_HASH_BYTES, Secret, SecretHash};
