//! Starts a node: its parts are made in order, each with what it needs of those before.

use crate::cluster::gossiping::Gossiping;
use crate::cluster::hosting::Hosting;
use crate::cluster::membership;
use crate::cluster::view::ClusterView;
use crate::config::Config;
use crate::config::hosts::is_loopback;
use crate::frontdoor::FrontDoor;
use crate::frontdoor::grpc::Services;
use crate::frontdoor::grpc::acceptor::{Acceptor, Ways};
use crate::frontdoor::grpc::listener::{self, Crowded};
use crate::frontdoor::http::{self, HttpDoor};
use crate::listen_addresses::{self, Door};
use crate::mailboxes::NodeMailboxes;
use crate::metrics::Metrics;
use crate::running::{Running, RunningShard};
use crate::same_origin::SameOrigin;
use crate::shard_handle::{ShardHandle, ToShard};
use crate::shard_thread::{self, ShardThread, Source};
use crate::shards::Shards;
use crate::stopping::arrivals;
use crate::storage;
use crate::storage::node_storage::{NodeStorage, OtherTowers};
use crate::{NodeOptions, READY_STEP, StartError, bugs, descriptors};
use airmail_log::StorageTraits;
use airmail_model::{Durability, Error, ErrorCode, StorageName};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> StartError {
    move |error| StartError::System { what, error }
}

/// See [`crate::start`].
pub(crate) async fn start(mut options: NodeOptions) -> Result<Running, StartError> {
    options.config.validate()?;
    bugs::watch();
    let metrics = Arc::new(Metrics::default());
    let (address, http_address) = addresses(&options, &metrics)?;
    let (cluster, cluster_address) = cluster_listener(&mut options)?.unzip();
    let connections = descriptors::connections(&options.config)?;
    metrics.doors.connections_max.set(connections.into());
    let (shards, receivers) = handles(&options);
    let (config, clock, seed) = (options.config, options.clock, options.seed);
    let tasks = TaskTracker::new();
    let parts = (&shards, &metrics, &tasks);
    serve_http(options.http.zip(http_address), &config, parts)?;
    let parts = (&clock, cluster_address, &metrics);
    let storage = NodeStorage::open(&config, seed, shards.wakers(), parts).await?;
    let view = membership::alone(&config, address, (storage.node, clock.mono()));
    let parts = (&view, &shards, &metrics, &clock);
    let gossiping = membership::begin(storage.joined, (&config, seed), address, parts)?;
    let of_storage = (storage.shards, &storage.further);
    let authorizer = Arc::clone(&options.access.authorizer);
    let engines = shard_thread::begin(&config, seed, of_storage, options.access, clock.now())?;
    // After the storage, whose directory is its own to make.
    let mailboxes = NodeMailboxes::open(&config).await?;
    metrics.mailbox.watch(mailboxes.mailboxes());
    let standing = storage.standing.filter(|_| mailboxes.in_data_directory());
    let services = |handle: &ShardHandle| Services {
        door: FrontDoor::new(handle, &shards, &config, &metrics),
        cluster: view.clone(),
        mailboxes: mailboxes.mailboxes(),
        mailbox_standing: standing.clone(),
        serves_mailboxes: mailboxes.are_served(),
        authorizer: Arc::clone(&authorizer),
    };
    let first = services(shards.first());
    let crowded = Crowded::beyond(connections);
    let sources = sources(options.listener, crowded, &first, &tasks)?;
    let (door, patience) = (first.door.clone(), config.stop_timeout.0);
    let all = std::iter::once(first).chain(shards.iter().skip(1).map(services));
    let parts = receivers.into_iter().zip(engines).zip(sources).zip(all);
    let parts = parts.zip(arrivals(shards.count())).zip(storage.links);
    let threads = parts.map(
        |(((((receiver, node), source), services), arrival), links)| ShardThread {
            shard: 0,
            config: config.clone(),
            source,
            services,
            clock: Arc::clone(&clock),
            receiver,
            node,
            links,
            mailbox_threads: mailboxes.threads().clone(),
            arrival,
        },
    );
    let running = Running {
        address,
        http_address,
        cluster_address,
        door,
        shards: spawn_all(threads, &options.shutdown)?,
        shutdown: options.shutdown,
        tasks,
        mailboxes,
        patience,
    };
    serve_links(storage.hosting.zip(cluster.flatten()), &running)?;
    let others = (storage.other_towers, view);
    let running = wait_until_ready(running, &shards, (gossiping, others)).await?;
    say_what_differs(config.durability, &storage.further, shards.first());
    Ok(running)
}

/// Settings that are not as the node's namespaces have them are not ignored in silence.
fn say_what_differs(
    durability: Option<Durability>,
    further: &BTreeMap<StorageName, StorageTraits>,
    handle: &ShardHandle,
) {
    say_if_other(durability, handle);
    say_if_elsewhere(further, handle);
}

/// Handles of all shards, and where each takes what is sent to it.
fn handles(options: &NodeOptions) -> (Shards, Vec<mpsc::Receiver<ToShard>>) {
    let handle = |shard| {
        ShardHandle::new(
            (
                options.config.name.clone(),
                options.config.roles,
                storage::seed_of_shard(options.seed, shard),
            ),
            options.config.limits.clone(),
            Arc::clone(&options.clock),
            options.shutdown.clone(),
            options.config.flow.delivery_gate().is_some(),
        )
    };
    let (first, receiver) = handle(0);
    let (others, receivers): (Vec<_>, Vec<_>) = (1..options.config.shards).map(handle).unzip();
    let receivers = std::iter::once(receiver).chain(receivers).collect();
    (Shards::new(first, others), receivers)
}

/// Where each shard gets its connections: the only one accepts, for several it is done here.
fn sources(
    listener: TcpListener,
    crowded: Crowded,
    services: &Services,
    tasks: &TaskTracker,
) -> Result<Vec<Source>, StartError> {
    let shards = services.door.shards().count();
    if shards == 1 {
        return Ok(vec![Source::Listener(listener, crowded)]);
    }
    let (ways, accepted) = Ways::to(shards);
    let acceptor = Acceptor {
        services: services.clone(),
        crowded,
        ways,
    };
    let listener = shard_thread::listen(listener).map_err(system("listener"))?;
    tasks.spawn(acceptor.accept(listener));
    Ok(accepted.into_iter().map(Source::Accepted).collect())
}

/// Runs each shard on a thread of its own.
fn spawn_all(
    threads: impl Iterator<Item = ShardThread>,
    shutdown: &CancellationToken,
) -> Result<Vec<RunningShard>, StartError> {
    let mut running = Vec::new();
    for (shard, thread) in (0..).zip(threads) {
        match spawn(ShardThread { shard, ..thread }) {
            Ok(shard) => running.push(shard),
            Err(error) => {
                shutdown.cancel();
                return Err(error);
            }
        }
    }
    Ok(running)
}

/// Runs a shard on a thread of its own, which says when it has ended.
fn spawn(shard: ShardThread) -> Result<RunningShard, StartError> {
    let (end, ended) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name(format!("shard-{}", shard.shard))
        .spawn(move || {
            shard.run();
            // Nobody may be waiting.
            let _ = end.send(());
        })
        .map_err(system("the shard's thread"))?;
    Ok(RunningShard { thread, ended })
}

/// The front door for HTTP at an address.
fn http_door(
    address: SocketAddr,
    config: &Config,
    (shards, metrics, tasks): (Shards, Arc<Metrics>, TaskTracker),
) -> HttpDoor {
    HttpDoor {
        shards,
        metrics,
        own: SameOrigin::new(address, config.http_hosts.clone()),
        most: config.http_connections,
        begin: config.begin.0,
        tasks,
    }
}

/// Waits until the node serves, and lets its cluster know of it then.
async fn wait_until_ready(
    mut running: Running,
    shards: &Shards,
    (gossiping, others): (Option<Gossiping>, (Option<OtherTowers>, ClusterView)),
) -> Result<Running, StartError> {
    while !shards.are_ready() && !running.shutdown.is_cancelled() {
        if running.has_lost_a_shard() {
            running.shutdown.cancel();
            return Err(StartError::Ended);
        }
        tokio::time::sleep(READY_STEP).await;
    }
    if let Some(gossiping) = gossiping {
        running.tasks.spawn(gossiping.run(running.shutdown.clone()));
    }
    if let (Some(others), view) = others {
        running
            .tasks
            .spawn(others.learn(view, running.shutdown.clone()));
    }
    Ok(running)
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
fn say_if_elsewhere(further: &BTreeMap<StorageName, StorageTraits>, handle: &ShardHandle) {
    let mut missing: BTreeMap<StorageName, usize> = BTreeMap::new();
    for entry in handle.catalog().iter() {
        let earlier = entry.namespace.earlier.iter().map(|of| of.storage);
        for storage in earlier.chain([entry.namespace.spec.storage]) {
            if !storage.is_first() && !further.contains_key(&storage) {
                *missing.entry(storage).or_default() += 1;
            }
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

/// Where other nodes connect: where this machine alone reaches it, or whoever has the secret. A gateway takes datagrams
/// alone there: whoever tries to use its logs is told at once that nobody listens.
fn cluster_listener(
    options: &mut NodeOptions,
) -> Result<Option<(Option<TcpListener>, SocketAddr)>, StartError> {
    let Some(listener) = options.cluster.take() else {
        return Ok(None);
    };
    let address = listener.local_addr().map_err(system("cluster address"))?;
    let has_secret = !options.config.cluster.secret_file.as_os_str().is_empty();
    if !has_secret && !is_loopback(address.ip()) {
        let error = Error::new(ErrorCode::InvalidArgument).field("cluster.listen");
        let limit = "a loopback address, or cluster.secret_file";
        return Err(error.value(address).limit(limit).into());
    }
    let listener = Some(listener).filter(|_| options.config.roles.tower);
    Ok(Some((listener, address)))
}

/// Lets other nodes use the storage.
fn serve_links(
    hosting: Option<(Hosting, TcpListener)>,
    running: &Running,
) -> Result<(), StartError> {
    let Some((hosting, listener)) = hosting else {
        return Ok(());
    };
    let listener = shard_thread::listen(listener).map_err(system("cluster listener"))?;
    let (tasks, stop) = (running.tasks.clone(), running.shutdown.clone());
    tasks.spawn(hosting.tree().clone().run(stop.clone()));
    running
        .tasks
        .spawn(Arc::new(hosting).accept(listener, tasks, stop));
    Ok(())
}

fn serve_http(
    listener: Option<(TcpListener, SocketAddr)>,
    config: &Config,
    (shards, metrics, tasks): (&Shards, &Arc<Metrics>, &TaskTracker),
) -> Result<(), StartError> {
    let Some((listener, address)) = listener else {
        return Ok(());
    };
    let parts = (shards.clone(), Arc::clone(metrics), tasks.clone());
    let door = http_door(address, config, parts);
    listener
        .set_nonblocking(true)
        .map_err(system("HTTP listener"))?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(system("HTTP listener"))?;
    let tasks = door.tasks.clone();
    tasks.spawn(door.accept(listener));
    Ok(())
}
