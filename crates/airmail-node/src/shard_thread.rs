//! A shard's thread: one runtime, which owns the listener, the connections, the shard and its
//! storage, from start to stop.
//!
//! A stop goes in this order: nothing new is accepted, health says so, streams are told and end
//! when what they sent is answered, the storage writes its last checkpoint. Each half has half of
//! `node.stop_timeout`; what does not end in it is abandoned, and the log says so.

use super::bugs;
use super::link::{Link, ToShard};
use super::listener::Connections;
use super::metrics::Metrics;
use super::service::Services;
use super::storage::Standing;
use super::turned_away::TurnedAway;
use super::turns::Turns;
use super::{Access, READY_STEP};
use crate::config::Config;
use airmail_broker::config::{FirstNamespace, ShardConfig};
use airmail_broker::{Authorizer, Node, UnfitStorage};
use airmail_log::LogStorage;
use airmail_mailbox::Mailboxes;
use airmail_model::Now;
use airmail_model::clock::Clock;
use airmail_proto::server::admin_server::AdminServer;
use airmail_proto::server::airmail_server::AirmailServer;
use airmail_proto::server::mailbox_server::MailboxServer;
use futures::FutureExt as _;
use std::net::TcpListener;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

/// What goes to the shard's thread.
pub(super) struct ShardThread {
    pub(super) config: Config,
    /// Connections at once.
    pub(super) connections: u32,
    pub(super) authorizer: Arc<dyn Authorizer>,
    pub(super) listener: TcpListener,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) link: Link,
    pub(super) receiver: mpsc::Receiver<ToShard>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) node: Node<Box<dyn LogStorage>>,
    pub(super) mailboxes: Mailboxes,
    /// Where connections go that ask for mailboxes.
    pub(super) mailbox_threads: Handle,
    /// Of the data directory, if the mailboxes are in it.
    pub(super) mailbox_standing: Option<Arc<Standing>>,
}

impl ShardThread {
    pub(super) fn run(self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        match runtime {
            Ok(runtime) => runtime.block_on(self.live().boxed_local()),
            Err(error) => tracing::error!(%error, "no runtime for the shard"),
        }
    }

    async fn live(self) {
        let tasks = TaskTracker::new();
        let (finish, abandon) = (CancellationToken::new(), CancellationToken::new());
        let link = self.link.clone();
        let services = Services {
            link: self.link.clone(),
            metrics: Arc::clone(&self.metrics),
            tasks: tasks.clone(),
            mailboxes: self.mailboxes.clone(),
            mailbox_standing: self.mailbox_standing.clone(),
            authorizer: self.authorizer,
        };
        let (routes, health) = routes(&services, &self.config);
        let connections = Connections {
            routes,
            services,
            most: self.connections,
            begin: self.config.begin.0,
            keep_alive: self.config.keep_alive.0,
            turned_away: TurnedAway::default(),
            abandon: abandon.clone(),
            mailbox_threads: self.mailbox_threads,
        };
        match listen(self.listener) {
            Ok(listener) => {
                tasks.spawn(connections.accept(listener));
            }
            Err(error) => {
                tracing::error!(%error, "cannot listen");
                return;
            }
        }
        let turns = Turns::new(self.node, self.link, self.receiver, self.clock);
        // One half for the streams, one for the storage.
        let patience = self.config.stop_timeout.0 / 2;
        let give_up = CancellationToken::new();
        let supervise = async {
            serving_when_ready(&link, &health).await;
            serving_until_stopped(&link, &health).await;
            self.mailboxes.end_waits();
            set_serving(&health, ServingStatus::NotServing).await;
            tasks.close();
            if tokio::time::timeout(patience, tasks.wait()).await.is_err() {
                let left = tasks.len();
                tracing::warn!(left, "streams abandoned: they did not end in time");
                abandon.cancel();
            }
            finish.cancel();
            tokio::time::sleep(patience).await;
            give_up.cancel();
            std::future::pending::<()>().await;
        };
        // As a task, which is woken as the connections' are: before the runtime would poll what
        // the thread blocks on, it looks for more from the sockets.
        let mut shard = JoinSet::new();
        shard.spawn(turns.run(finish.clone(), give_up.clone()));
        tokio::select! {
            ended = shard.join_next() => {
                if let Some(Err(error)) = ended {
                    tracing::error!(%error, "the shard broke");
                }
            }
            () = supervise => {}
        }
    }
}

fn listen(listener: TcpListener) -> std::io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

/// A shard on its storage, which it has asked for its logs.
pub(super) fn begin(
    config: &Config,
    seed: u64,
    storage: Box<dyn LogStorage>,
    access: Access,
    now: Now,
) -> Result<Node<Box<dyn LogStorage>>, UnfitStorage> {
    let config = shard_config(config, seed);
    let authorizer = Box::new(access.authorizer);
    Node::new(config, storage, authorizer, access.admission, now)
}

fn shard_config(config: &Config, seed: u64) -> ShardConfig {
    ShardConfig {
        seed,
        limits: config.limits.clone(),
        default_namespace: FirstNamespace {
            durability: config.durability,
            ..FirstNamespace::default()
        },
        mark_interval: config.mark_interval.0,
        caravans: config.readers as usize,
        pilot: config.flow.pilot(),
        copilot: config.flow.copilot(),
        ..ShardConfig::default()
    }
}

/// Every gRPC service of the node.
fn routes(services: &Services, config: &Config) -> (Routes, HealthReporter) {
    let frame_bytes = config.limits.frame_bytes as usize;
    let airmail = AirmailServer::new(services.clone())
        .max_decoding_message_size(frame_bytes)
        .max_encoding_message_size(usize::MAX);
    let admin = AdminServer::new(services.clone());
    let mailbox = MailboxServer::new(services.clone())
        .max_decoding_message_size(frame_bytes)
        .max_encoding_message_size(usize::MAX);
    let health = HealthReporter::new();
    let mut routes = Routes::new(airmail)
        .add_service(admin)
        .add_service(mailbox)
        .add_service(tonic_health::pb::health_server::HealthServer::new(
            tonic_health::server::HealthService::from_health_reporter(health.clone()),
        ));
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(airmail_proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(airmail_proto::ERROR_DETAILS_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    match (reflection().build_v1(), reflection().build_v1alpha()) {
        (Ok(v1), Ok(v1alpha)) => routes = routes.add_service(v1).add_service(v1alpha),
        (Err(error), _) | (_, Err(error)) => tracing::error!(%error, "no reflection"),
    }
    (routes.prepare(), health)
}

/// The services as gRPC health checks name them; the empty name is the whole node.
const HEALTH_NAMES: [&str; 4] = [
    "",
    "airmail.v1.Airmail",
    "airmail.v1.Admin",
    "airmail.v1.Mailbox",
];

async fn set_serving(health: &HealthReporter, status: ServingStatus) {
    for name in HEALTH_NAMES {
        health.set_service_status(name, status).await;
    }
}

async fn serving_when_ready(link: &Link, health: &HealthReporter) {
    set_serving(health, ServingStatus::NotServing).await;
    while !link.is_ready() && !link.stop().is_cancelled() {
        tokio::time::sleep(READY_STEP).await;
    }
    set_serving(health, ServingStatus::Serving).await;
}

/// Waits until the node is to stop. One that has met a bug is not ready, and works on.
async fn serving_until_stopped(link: &Link, health: &HealthReporter) {
    tokio::select! {
        () = link.stop().cancelled() => return,
        () = bugs::met() => {}
    }
    set_serving(health, ServingStatus::NotServing).await;
    link.stop().cancelled().await;
}
