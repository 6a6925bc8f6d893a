//! The generated `airmail.v1` API and its translation to and from the model.

#![forbid(unsafe_code)]

/// The generated messages and services. Documented in `proto/airmail/v1/airmail.proto`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod v1 {
    tonic::include_proto!("airmail.v1");
}

/// The descriptors of `airmail.v1`, encoded, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/airmail.v1.bin"));
