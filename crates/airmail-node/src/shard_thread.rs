//! A shard's thread: one runtime, which owns the listener (if it is the only shard), the connections, the
//! shard and its storage, from start to stop.
//!
//! A stop goes in this order: nothing new is accepted, health says so, streams are told and end
//! when what they sent is answered, on all shards; then each storage writes its last checkpoint. Each half has
//! half of `node.stop_timeout`; what does not end in it is abandoned, and the log says so.

use super::Access;
use super::event_loop::EventLoop;
use super::shard_handle::ToShard;
use super::storage;
use super::storage::node_storage::ShardLinks;
use crate::config::Config;
use crate::frontdoor::grpc::acceptor::Accepted;
use crate::frontdoor::grpc::listener::{Connections, Crowded};
use crate::frontdoor::grpc::{Services, all_routes};
use crate::stopping::Arrival;
use airmail_broker::config::{FirstNamespace, ShardConfig};
use airmail_broker::{Engine, Interest, UnfitStorage};
use airmail_log::{LogStorage, StorageTraits};
use airmail_model::clock::Clock;
use airmail_model::{Now, StorageName};
use futures::FutureExt as _;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Where a shard's connections come from.
pub(super) enum Source {
    /// It is the only one, and accepts.
    Listener(TcpListener, Crowded),
    /// They are accepted for it.
    Accepted(mpsc::Receiver<Accepted>),
}

/// Everything that goes to a shard's thread.
pub(super) struct ShardThread {
    pub(super) shard: u16,
    /// The node's settings.
    pub(super) config: Config,
    pub(super) source: Source,
    pub(super) services: Services,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) receiver: mpsc::Receiver<ToShard>,
    pub(super) node: Engine<Box<dyn LogStorage>>,
    /// Links of its storage to other processes.
    pub(super) links: ShardLinks,
    /// Where connections go that ask for mailboxes.
    pub(super) mailbox_threads: Handle,
    /// Where it meets the other shards when they stop.
    pub(super) arrival: Arrival,
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
        let services = self.services;
        let (tasks, shards) = (
            services.door.tasks().clone(),
            services.door.shards().clone(),
        );
        let (finish, abandon) = (CancellationToken::new(), CancellationToken::new());
        let (handle, mailboxes) = (services.door.handle().clone(), services.mailboxes.clone());
        let (routes, health) = all_routes(&services, &self.config);
        let connections = Connections {
            routes,
            services,
            begin: self.config.begin.0,
            keep_alive: self.config.keep_alive.0,
            abandon: abandon.clone(),
            mailbox_threads: self.mailbox_threads,
        };
        if let Err(error) = begin_to_serve(self.source, connections) {
            tracing::error!(%error, "cannot listen");
            return;
        }
        #[cfg(feature = "test-switches")]
        if let Some(held) = self.config.held_shard {
            tasks.spawn(held.hold(self.shard));
        }
        let event_loop = EventLoop::new(
            self.node,
            handle,
            self.receiver,
            self.clock,
            self.shard == 0,
        );
        // One half for the streams, one for the storage.
        let patience = self.config.stop_timeout.0 / 2;
        let give_up = CancellationToken::new();
        let links = self.links.begin(&give_up);
        let supervise = async {
            health.serve_when_ready(&shards).await;
            health.serve_until_stopped(&shards).await;
            let until = Instant::now() + patience;
            mailboxes.end_waits();
            health.stop().await;
            tasks.close();
            if tokio::time::timeout_at(until, tasks.wait()).await.is_err() {
                let left = tasks.len();
                tracing::warn!(left, "streams abandoned: they did not end in time");
                abandon.cancel();
            }
            // One that has no turns does not come, and is not waited for any longer.
            let _ = tokio::time::timeout_at(until, self.arrival.meet()).await;
            links.end_those_of_others();
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

/// Has a shard take its connections from now on.
fn begin_to_serve(source: Source, connections: Connections) -> std::io::Result<()> {
    let tasks = connections.services.door.tasks().clone();
    match source {
        Source::Accepted(accepted) => tasks.spawn(connections.take_accepted(accepted)),
        Source::Listener(listener, crowded) => {
            tasks.spawn(connections.accept(listen(listener)?, crowded))
        }
    };
    Ok(())
}

/// A listener of the runtime that this is called in.
pub(super) fn listen(listener: TcpListener) -> std::io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

/// Each shard on its storage, which it has asked for its logs.
pub(super) fn begin(
    config: &Config,
    seed: u64,
    (storages, further): (
        Vec<Box<dyn LogStorage>>,
        &BTreeMap<StorageName, StorageTraits>,
    ),
    access: Access,
    now: Now,
) -> Result<Vec<Engine<Box<dyn LogStorage>>>, UnfitStorage> {
    let engine = |(shard, storage)| {
        let config = ShardConfig {
            storages: further.clone(),
            ..shard_config(config, storage::seed_of_shard(seed, shard))
        };
        let authorizer = Box::new(Arc::clone(&access.authorizer));
        Engine::new(config, storage, authorizer, (access.admission)(), now)
    };
    (0..).zip(storages).map(engine).collect()
}

/// A shard's part of the node's settings.
fn shard_config(config: &Config, seed: u64) -> ShardConfig {
    let (part, defaults) = (config.of_one_shard(), ShardConfig::default());
    ShardConfig {
        seed,
        default_namespace: FirstNamespace {
            durability: part.durability,
            ..FirstNamespace::default()
        },
        // On a wire, what nobody wants is left out.
        interest: if config.is_gateway() {
            Interest::Wanted
        } else {
            Interest::All
        },
        mark_interval: part.mark_interval.0,
        catch_up_readers: part.readers as usize,
        publish_gate: part.flow.publish_gate(),
        publish_waiting_bytes: defaults.publish_waiting_bytes / usize::from(config.shards),
        delivery_gate: part.flow.delivery_gate(),
        limits: part.limits,
        ..defaults
    }
}
