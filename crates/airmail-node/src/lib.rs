//! The node: its settings, and the shell of threads, sockets and clocks around the cores, which have none.
//!
//! Whoever runs one reads a [`config::Config`], binds listeners, and calls [`start`]. Nothing here reads
//! the process's environment but [`environment`], and nothing handles signals: that is the program's.
//!
//! One shard is one OS thread with one current-thread runtime, which owns its connections for
//! life, the [`airmail_broker::Engine`] and its storage; front doors only translate (`frontdoor`), and the event
//! loop gives the shard its turns (`event_loop`). Connections that ask for mailboxes have nothing to do with
//! a shard, and move to threads of their own (`runtime`). HTTP runs where [`start`] was called, so that it
//! answers when a shard does not. Listeners, clock, seed and shutdown are passed in.
//!
//! A node without role tower has no storage: its shards use another node's, over links (`cluster`).
//!
//! The only shard of a node accepts connections itself and has its storage to itself. Of several, each is given
//! connections that were accepted where [`start`] was called, and reaches the logs of the others by links.

#![forbid(unsafe_code)]

mod bugs;
mod clock_jump_logger;
mod cluster;
pub mod config;
pub mod descriptors;
pub mod environment;
mod event_loop;
mod first_request;
mod frontdoor;
#[cfg(feature = "test-switches")]
pub mod held_shard;
mod life_signs;
mod listen_addresses;
mod logging_rate_limit;
pub mod mailboxes;
mod metrics;
mod peer_stall;
mod running;
mod runtime;
mod send_queue;
mod shard_handle;
mod shard_thread;
mod shards;
mod starting;
mod stopping;
pub mod storage;
#[cfg(feature = "test-switches")]
pub mod wrong_clock;

pub use frontdoor::http::same_origin;
pub use frontdoor::{
    FrontDoor, NamespaceNotFound, PublishRefusal, RolesNotBelieved, SessionError, SessionEvents,
    SessionHandle, SessionRequests, SubscribeRefusal, Unavailable, WrongRole,
};
pub use running::Running;
pub use send_queue::{Event, NotAdded};

use crate::config::Config;
use airmail_broker::{Admission, AllowAll, Authorizer, UnfitStorage};
use airmail_model::Error;
use airmail_model::clock::Clock;
use std::fmt;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time between two looks of a start whether the shards are ready.
const READY_STEP: Duration = Duration::from_millis(2);

/// Answers to the two questions that every action passes.
pub struct Access {
    /// Whether a principal may do it.
    pub authorizer: Arc<dyn Authorizer>,
    /// Makes what a shard asks whether there is room for it now. Called once for each shard: what counts for the
    /// whole node shares its count itself, and shards that need none share no lock.
    pub admission: Box<dyn Fn() -> Box<dyn Admission> + Send>,
}

impl Default for Access {
    /// Everyone may do everything, at any time.
    fn default() -> Access {
        Access {
            authorizer: Arc::new(AllowAll),
            admission: Box::new(|| Box::new(AllowAll)),
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

/// Everything that a node is given.
#[derive(Debug)]
pub struct NodeOptions {
    /// Its settings. Addresses in them are not looked at: listeners are given, on loopback unless the
    /// settings let anyone come.
    pub config: Config,
    /// Permission and room for every action.
    pub access: Access,
    /// Where clients connect (gRPC).
    pub listener: TcpListener,
    /// Where health and metrics are served; `None`: nowhere.
    pub http: Option<TcpListener>,
    /// Where other nodes connect that use this one's storage; `None`: nowhere. Beyond loopback only with a
    /// secret.
    pub cluster: Option<TcpListener>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Source of every random choice: ids, salts, jitter.
    pub seed: u64,
    /// When cancelled, the node stops in order.
    pub shutdown: CancellationToken,
}

/// The cause why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is wrong.
    #[error(transparent)]
    Setting(#[from] Error),
    /// The storage cannot be opened.
    #[error("storage {url}: {error}")]
    Storage {
        /// The storage's URL.
        url: String,
        /// The error that it gave.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The storage is one that a shard cannot honour.
    #[error(transparent)]
    Unfit(#[from] UnfitStorage),
    /// The mailboxes cannot be opened.
    #[error("mailboxes {url}: {error}")]
    Mailboxes {
        /// The store's URL, without its secrets.
        url: String,
        /// The error that it gave.
        error: Error,
    },
    /// The system refused a thread, a socket or a timer.
    #[error("{what}: {error}")]
    System {
        /// The thing that was asked for.
        what: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
    /// The system does not let the process have enough open files.
    #[error("open files: {limit}, limit: at least {needed} (ulimit -n, LimitNOFILE)")]
    OpenFiles {
        /// Open files that it lets the process have.
        limit: u64,
        /// Open files that a node with these settings needs.
        needed: u64,
    },
    /// A shard ended before it was ready.
    #[error("the shard ended before it was ready")]
    Ended,
}

/// Starts a node and waits until it takes requests.
///
/// # Errors
/// A wrong setting, a storage that cannot be opened, or what the system refused.
pub async fn start(options: NodeOptions) -> Result<Running, StartError> {
    starting::start(options).await
}
