//! The broker's core: one [`Shard`] is everything a node does, as a state machine without I/O.
//!
//! `step(now, input, out)` is total and deterministic; [`Engine`] couples a shard with its storage
//! for the async shell and for the simulator alike.
//!
//! A shard is three cores: gateway, tower and catalog. The shortest way to understand each is its transcripts,
//! inputs with their effects as text, in `tests/transcripts`.

#![forbid(unsafe_code)]

pub mod access;
pub mod catalog;
pub mod config;
pub mod engine;
mod gateway;
pub mod input;
mod keys;
mod link;
mod records_by_topic;
#[cfg(feature = "sabotage")]
pub mod sabotage;
pub mod shard;
pub mod stats;
mod storage_refusals;
mod storage_requirements;
mod tower;
#[cfg(test)]
mod transcript;

pub use access::{
    Action, Admission, Admit, AllowAll, Authorizer, Cost, Grant, MailboxAction, Principal,
};
pub use catalog::{Catalog, Entry, LogCut, LogLosses, Progress, RoleDirectory, needed_by};
pub use config::{FirstNamespace, Interest, ShardConfig, SweepSettings};
pub use engine::{Engine, TurnOutput};
pub use input::{ClientInput, Command, CommandId, Effects, Input, Outcome, SessionId};
pub use shard::{Flow, Shard};
pub use stats::Stats;
pub use storage_requirements::UnfitStorage;
