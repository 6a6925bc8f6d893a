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

#![forbid(unsafe_code)]

mod bugs;
mod clock_jump_logger;
pub mod config;
pub mod descriptors;
pub mod environment;
mod event_loop;
mod first_request;
mod frontdoor;
mod listen_addresses;
mod logging_rate_limit;
pub mod mailboxes;
mod metrics;
mod peer_stall;
mod runtime;
mod send_queue;
mod shard_handle;
mod shard_thread;
pub mod storage;
#[cfg(feature = "test-switches")]
pub mod wrong_clock;

pub use frontdoor::http::same_origin;
pub use frontdoor::{
    FrontDoor, NamespaceNotFound, PublishRefusal, SessionError, SessionEvents, SessionHandle,
    SessionRequests, SubscribeRefusal, Unavailable,
};
pub use send_queue::{Event, NotAdded};

use crate::config::Config;
use airmail_broker::{Admission, AllowAll, Authorizer, UnfitStorage};
use airmail_log::Waker;
use airmail_model::clock::Clock;
use airmail_model::{Durability, Error, StorageName};
use frontdoor::grpc::listener;
use frontdoor::http::{self, HttpDoor};
use listen_addresses::Door;
use mailboxes::{MailboxUrl, NodeMailboxes};
use metrics::Metrics;
use same_origin::SameOrigin;
use shard_handle::ShardHandle;
use shard_thread::ShardThread;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use storage::StorageSet;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Time between two looks of a start whether the shard is ready.
const READY_STEP: Duration = Duration::from_millis(2);

/// Time that a stop waits for HTTP requests under way.
const HTTP_PATIENCE: Duration = Duration::from_secs(1);

/// Answers to the two questions that every action passes.
pub struct Access {
    /// Whether a principal may do it.
    pub authorizer: Arc<dyn Authorizer>,
    /// Whether there is room for it now.
    pub admission: Box<dyn Admission>,
}

impl Default for Access {
    /// Everyone may do everything, at any time.
    fn default() -> Access {
        Access {
            authorizer: Arc::new(AllowAll),
            admission: Box::new(AllowAll),
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
    /// The shard ended before it was ready.
    #[error("the shard ended before it was ready")]
    Ended,
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> StartError {
    move |error| StartError::System { what, error }
}

/// A node that runs.
#[derive(Debug)]
pub struct Running {
    /// Where clients connect.
    pub address: SocketAddr,
    /// Where health and metrics are.
    pub http_address: Option<SocketAddr>,
    door: FrontDoor,
    shutdown: CancellationToken,
    ended: oneshot::Receiver<()>,
    thread: Option<JoinHandle<()>>,
    http: TaskTracker,
    mailboxes: NodeMailboxes,
    /// Time that the mailboxes may take to end.
    patience: Duration,
}

impl Running {
    /// Sessions with the node, for a front door of one's own.
    #[must_use]
    pub fn front_door(&self) -> &FrontDoor {
        &self.door
    }

    /// Where the mailboxes are.
    #[must_use]
    pub fn mailboxes_url(&self) -> &MailboxUrl {
        self.mailboxes.url()
    }

    /// Waits until the node has stopped, which it does when its `shutdown` is cancelled.
    pub async fn wait(mut self) {
        // An error means that the thread is gone: stopped all the same.
        let _ = (&mut self.ended).await;
        self.shutdown.cancel();
        self.http.close();
        // A client that holds its connection open does not hold up the end.
        let _ = tokio::time::timeout(HTTP_PATIENCE, self.http.wait()).await;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the shard's thread panicked");
        }
        self.mailboxes.close(self.patience).await;
    }

    /// Stops the node in order and waits until it has.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.wait().await;
    }
}

/// Starts a node and waits until it takes requests.
///
/// # Errors
/// A wrong setting, a storage that cannot be opened, or what the system refused.
pub async fn start(options: NodeOptions) -> Result<Running, StartError> {
    options.config.validate()?;
    bugs::watch();
    let metrics = Arc::new(Metrics::default());
    let (address, http_address) = addresses(&options, &metrics)?;
    let durability = options.config.durability;
    let further = options.config.further_storages();
    let connections = descriptors::connections(&options.config)?;
    metrics.doors.connections_max.set(connections.into());
    let (handle, receiver) = ShardHandle::new(
        (options.config.name.clone(), options.seed),
        options.config.limits.clone(),
        Arc::clone(&options.clock),
        options.shutdown.clone(),
        options.config.flow.delivery_gate().is_some(),
    );
    let http = TaskTracker::new();
    if let (Some(listener), Some(address)) = (options.http, http_address) {
        let door = (handle.clone(), Arc::clone(&metrics), http.clone());
        serve_http(listener, http_door(address, &options.config, door))?;
    }
    let waker_handle = handle.clone();
    let waker: Waker = Arc::new(move || waker_handle.wake());
    let (config, seed, clock) = (&options.config, options.seed, &options.clock);
    let storages = StorageSet::take(config, seed, clock, &waker)?;
    let storage = storages.open(0, (config, seed), clock, &waker)?;
    let authorizer = Arc::clone(&options.access.authorizer);
    let (access, now) = (options.access, options.clock.now());
    let node = shard_thread::begin(&options.config, options.seed, storage, access, now)?;
    // After the storage, whose directory is its own to make.
    let mailboxes = NodeMailboxes::open(&options.config).await?;
    metrics.mailbox.watch(mailboxes.mailboxes());
    let patience = options.config.stop_timeout.0;
    let door = FrontDoor::new(handle.clone(), metrics);
    let shard = ShardThread {
        config: options.config,
        connections,
        authorizer,
        listener: options.listener,
        clock: options.clock,
        door: door.clone(),
        receiver,
        node,
        mailboxes: mailboxes.mailboxes(),
        mailbox_threads: mailboxes.threads(),
        mailbox_standing: mailboxes.in_data_directory().then(|| storages.standing()),
    };
    let (thread, ended) = spawn(shard)?;
    let running = Running {
        address,
        http_address,
        door,
        shutdown: options.shutdown,
        ended,
        thread: Some(thread),
        http,
        mailboxes,
        patience,
    };
    let running = wait_until_ready(running, &handle).await?;
    say_if_other(durability, &handle);
    say_if_elsewhere(&further, &handle);
    Ok(running)
}

/// The front door for HTTP at an address.
fn http_door(
    address: SocketAddr,
    config: &Config,
    (handle, metrics, tasks): (ShardHandle, Arc<Metrics>, TaskTracker),
) -> HttpDoor {
    HttpDoor {
        handle,
        metrics,
        own: SameOrigin::new(address, config.http_hosts.clone()),
        most: config.http_connections,
        begin: config.begin.0,
        tasks,
    }
}

/// Runs a shard on a thread of its own; says when it has ended.
fn spawn(shard: ShardThread) -> Result<(JoinHandle<()>, oneshot::Receiver<()>), StartError> {
    let (end, ended) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("shard-0".into())
        .spawn(move || {
            shard.run();
            // Nobody may be waiting.
            let _ = end.send(());
        })
        .map_err(system("the shard's thread"))?;
    Ok((thread, ended))
}

/// A setting that comes too late is not ignored in silence.
fn say_if_other(asked: Option<Durability>, handle: &ShardHandle) {
    let (Some(asked), Ok(entry)) = (asked, handle.namespace("")) else {
        return;
    };
    let held = entry.namespace.spec.durability;
    if asked != held {
        tracing::warn!(
            %asked,
            %held,
            "the default namespace exists and keeps its durability: airmail namespace update"
        );
    }
}

/// A storage that is not named any more is not forgotten in silence.
fn say_if_elsewhere(further: &BTreeMap<StorageName, Durability>, handle: &ShardHandle) {
    let mut missing: BTreeMap<StorageName, usize> = BTreeMap::new();
    for entry in handle.catalog().iter() {
        let storage = entry.namespace.spec.storage;
        if !storage.is_first() && !further.contains_key(&storage) {
            *missing.entry(storage).or_default() += 1;
        }
    }
    for (storage, namespaces) in missing {
        tracing::warn!(
            %storage,
            namespaces,
            "namespaces are in storages that this node has not, and what asks for them is refused as \
             ELSEWHERE: airmail serve --log NAME=URL"
        );
    }
}

async fn wait_until_ready(
    mut running: Running,
    handle: &ShardHandle,
) -> Result<Running, StartError> {
    while !handle.is_ready() && !running.shutdown.is_cancelled() {
        if !matches!(
            running.ended.try_recv(),
            Err(oneshot::error::TryRecvError::Empty)
        ) {
            return Err(StartError::Ended);
        }
        tokio::time::sleep(READY_STEP).await;
    }
    Ok(running)
}

/// Where its two listeners are, if the settings let them be there. Metrics say who reaches them.
fn addresses(
    options: &NodeOptions,
    metrics: &Metrics,
) -> Result<(SocketAddr, Option<SocketAddr>), StartError> {
    let grpc = options.listener.local_addr();
    let grpc = grpc.map_err(system("listener's address"))?;
    let http = options.http.as_ref().map(TcpListener::local_addr);
    let http = http.transpose().map_err(system("HTTP address"))?;
    let mut doors = vec![Door {
        name: listener::DOOR,
        setting: "listen.address",
        address: grpc,
    }];
    doors.extend(http.map(|address| Door {
        name: http::DOOR,
        setting: "http.address",
        address,
    }));
    listen_addresses::allow(&doors, &options.config)?;
    for door in doors {
        metrics.doors.is_open(door.name, door.is_open());
    }
    Ok((grpc, http))
}

fn serve_http(listener: TcpListener, door: HttpDoor) -> Result<(), StartError> {
    listener
        .set_nonblocking(true)
        .map_err(system("HTTP listener"))?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(system("HTTP listener"))?;
    let tasks = door.tasks.clone();
    tasks.spawn(door.accept(listener));
    Ok(())
}
