//! The shard, driven through [`airmail_broker::Engine`] over a storage of vectors, with clients that
//! hold it to the protocol.

#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "the whole binary is a test"
)]

mod client;
mod delivery_gate;
mod vec_storage;
mod world;

mod behind;
mod fitness;
mod journal;
mod live;
mod namespaces;
mod positions;
mod publish_gate;
mod publishing;
mod random;
mod renewal;
mod subscriptions;
