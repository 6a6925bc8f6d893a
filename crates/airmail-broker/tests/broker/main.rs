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
mod expiry;
mod filters;
mod headers_only;
mod vec_storage;
mod world;

mod audience;
mod behind;
mod lanes;
mod live;
mod many_writers;
mod matching_turns;
mod namespaces;
mod new_incarnation;
mod overlapping;
mod positions;
mod provisions;
mod publish_gate;
mod publishing;
mod random;
mod real_journal;
mod selections;
mod sharing;
mod storage_requirements;
mod storages;
mod subscriptions;
