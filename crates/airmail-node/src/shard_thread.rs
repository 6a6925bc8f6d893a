//! A shard's thread: one runtime, which owns the listener, the connections, the shard and its
//! storage, from start to stop.
//!
//! A stop goes in this order: nothing new is accepted, health says so, streams are told and end
//! when what they sent is answered, the storage writes its last checkpoint. Each half has half of
//! `node.stop_timeout`; what does not end in it is abandoned, and the log says so.

use super::Access;
use super::event_loop::EventLoop;
use super::shard_handle::ToShard;
use super::storage::Standing;
use crate::config::Config;
use crate::frontdoor::FrontDoor;
use crate::frontdoor::grpc::listener::Connections;
use crate::frontdoor::grpc::turned_away::TurnedAway;
use crate::frontdoor::grpc::{Services, all_routes};
use airmail_broker::config::{FirstNamespace, ShardConfig};
use airmail_broker::{Authorizer, Engine, UnfitStorage};
use airmail_log::LogStorage;
use airmail_mailbox::Mailboxes;
use airmail_model::Now;
use airmail_model::clock::Clock;
use futures::FutureExt as _;
use std::net::TcpListener;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Everything that goes to the shard's thread.
pub(super) struct ShardThread {
    pub(super) config: Config,
    /// Connections at once.
    pub(super) connections: u32,
    pub(super) authorizer: Arc<dyn Authorizer>,
    pub(super) listener: TcpListener,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) door: FrontDoor,
    pub(super) receiver: mpsc::Receiver<ToShard>,
    pub(super) node: Engine<Box<dyn LogStorage>>,
    pub(super) mailboxes: Mailboxes,
    /// Where connections go that ask for mailboxes.
    pub(super) mailbox_threads: Handle,
    /// State of the data directory, if the mailboxes are in it.
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
        let tasks = self.door.tasks().clone();
        let (finish, abandon) = (CancellationToken::new(), CancellationToken::new());
        let handle = self.door.handle().clone();
        let services = Services {
            door: self.door,
            mailboxes: self.mailboxes.clone(),
            mailbox_standing: self.mailbox_standing.clone(),
            authorizer: self.authorizer,
        };
        let (routes, health) = all_routes(&services, &self.config);
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
        let event_loop = EventLoop::new(self.node, handle.clone(), self.receiver, self.clock);
        // One half for the streams, one for the storage.
        let patience = self.config.stop_timeout.0 / 2;
        let give_up = CancellationToken::new();
        let supervise = async {
            health.serve_when_ready(&handle).await;
            health.serve_until_stopped(&handle).await;
            self.mailboxes.end_waits();
            health.stop().await;
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
        shard.spawn(event_loop.run(finish.clone(), give_up.clone()));
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
) -> Result<Engine<Box<dyn LogStorage>>, UnfitStorage> {
    let config = shard_config(config, seed);
    let authorizer = Box::new(access.authorizer);
    Engine::new(config, storage, authorizer, access.admission, now)
}

fn shard_config(config: &Config, seed: u64) -> ShardConfig {
    ShardConfig {
        seed,
        limits: config.limits.clone(),
        default_namespace: FirstNamespace {
            durability: config.durability,
            ..FirstNamespace::default()
        },
        storages: config.further_storages(),
        mark_interval: config.mark_interval.0,
        catch_up_readers: config.readers as usize,
        publish_gate: config.flow.publish_gate(),
        delivery_gate: config.flow.delivery_gate(),
        ..ShardConfig::default()
    }
}
