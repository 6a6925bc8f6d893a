//! The storage of a node, wherever it is: of its own, which other processes may use, or of another node.

use super::{OpenedStorages, Standing, StorageSet};
use crate::StartError;
use crate::cluster::credentials::{self, Identity};
use crate::cluster::dialing::{Dialer, NotFound, Remote};
use crate::cluster::hosting::{HostShard, Hosting};
use crate::cluster::membership::{self, Joined};
use crate::config::Config;
use crate::metrics::Metrics;
use airmail_link::LinkLimits;
use airmail_log::{LogStorage, Waker};
use airmail_model::clock::Clock;
use airmail_model::{Durability, Error, ErrorCode, NodeId, StorageName, bug, random};
use airmail_wire::handshake::{Offer, OfferedStorage};
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The storage of a node, opened.
pub(crate) struct NodeStorage {
    /// Each shard's, in order.
    pub(crate) shards: Vec<Box<dyn LogStorage>>,
    /// Further storages, with the strongest durability of each.
    pub(crate) further: BTreeMap<StorageName, Durability>,
    /// Whether the data directory is still this node's; `None` without one.
    pub(crate) standing: Option<Arc<Standing>>,
    /// Links of each shard, in order.
    pub(crate) links: Vec<ShardLinks>,
    /// Everything that links of others need, if they may connect.
    pub(crate) hosting: Option<Hosting>,
    /// The cluster's member that this node is, if it is of one.
    pub(crate) joined: Option<Joined>,
    /// Number of the node.
    pub(crate) node: NodeId,
}

/// Links of a shard to other processes.
#[derive(Debug, Default)]
pub(crate) struct ShardLinks {
    /// Those that it keeps to the node whose storage it uses.
    pub(crate) dialers: Vec<Dialer>,
    /// Those that others keep to it.
    pub(crate) host: Option<Arc<HostShard>>,
}

impl ShardLinks {
    /// Begins to keep them, on the runtime that this is called in; its own until `stop`.
    pub(crate) fn begin(self, stop: &CancellationToken) -> RunningLinks {
        let mut own = JoinSet::new();
        for dialer in self.dialers {
            own.spawn(dialer.keep(stop.clone()));
        }
        if let Some(host) = &self.host {
            host.begin();
        }
        RunningLinks {
            _own: own,
            host: self.host,
        }
    }
}

/// Links of a shard that runs. Its own end when this is dropped.
pub(crate) struct RunningLinks {
    _own: JoinSet<()>,
    host: Option<Arc<HostShard>>,
}

impl RunningLinks {
    /// Ends those that others keep to it: its storage is about to close.
    pub(crate) fn end_those_of_others(&self) {
        if let Some(host) = &self.host {
            host.end();
        }
    }
}

impl NodeStorage {
    /// Opens the storage that the settings name, or finds the node that has it; that may take as long as it
    /// takes.
    ///
    /// `cluster` is where other nodes connect.
    pub(crate) async fn open(
        config: &Config,
        seed: u64,
        wakers: Vec<Waker>,
        (clock, cluster, metrics): (&Arc<dyn Clock>, Option<SocketAddr>, &Arc<Metrics>),
    ) -> Result<NodeStorage, StartError> {
        // Before anything is made that a wrong one would leave behind.
        let secret = credentials::secret(config)?;
        if config.is_gateway() {
            // Nothing of it lasts: a number of its own at each start.
            let of = (0, NodeId(random::nth(seed, 1)));
            let identity = Identity::new(config, secret, of, clock.now());
            return NodeStorage::of_another(config, identity, &wakers, (cluster, metrics)).await;
        }
        let set = StorageSet::take(config, seed, clock, &wakers)?;
        let opened = set.open_all((config, seed), clock, wakers.clone())?;
        let further = config.further_storages();
        let joined = match cluster {
            Some(address) if !opened.arrivals.is_empty() => {
                let identity = Identity::new(config, secret, set.of(), clock.now());
                let socket = membership::bind(address, !config.cluster.peers.is_empty())?;
                Some(Joined { identity, socket })
            }
            _ => None,
        };
        let (hosting, links) = match &joined {
            None => (None, wakers.iter().map(|_| ShardLinks::default()).collect()),
            Some(joined) => {
                // Nodes with a fixed list take no news by gossip, and so do not offer it.
                let gossip = Some(&joined.socket).filter(|_| config.cluster.peers.is_empty());
                let parts = (joined.identity.clone(), gossip);
                let (hosting, links) = host(parts, &opened, &further, &wakers, metrics)?;
                (Some(hosting), links)
            }
        };
        Ok(NodeStorage {
            shards: opened.storages,
            further,
            standing: Some(set.standing()),
            links,
            hosting,
            joined,
            node: set.of().1,
        })
    }

    async fn of_another(
        config: &Config,
        identity: Identity,
        wakers: &[Waker],
        (cluster, metrics): (Option<SocketAddr>, &Arc<Metrics>),
    ) -> Result<NodeStorage, StartError> {
        let is_fixed = !config.cluster.peers.is_empty();
        let addresses = config.cluster.towers();
        let remote = Remote::find(&addresses, identity.clone(), metrics).await;
        let remote = remote.map_err(|NotFound { address, end }| {
            let setting = if is_fixed {
                "cluster.peers"
            } else {
                "cluster.join"
            };
            let error = Error::new(ErrorCode::InvalidArgument).field(setting);
            StartError::Setting(error.value(address).limit(end.to_string()))
        })?;
        let limits = LinkLimits {
            append_bytes: config.of_one_shard().pending.0,
            ..LinkLimits::default()
        };
        let of_shard = |(from, waker)| {
            let (storage, dialers) = remote.storage(from, waker, limits);
            let links = ShardLinks {
                dialers,
                host: None,
            };
            (storage, links)
        };
        let (shards, links) = (0..).zip(wakers).map(of_shard).unzip();
        let further = remote.offer().storages.iter();
        let node = identity.node().node;
        let joined = if is_fixed || remote.offer().membership.is_some() {
            let address = cluster.unwrap_or((remote.local(), 0).into());
            Some(Joined {
                identity: identity.of_cluster(remote.peer().cluster),
                socket: membership::bind(address, is_fixed)?,
            })
        } else {
            None
        };
        Ok(NodeStorage {
            shards,
            further: further
                .map(|storage| (storage.name, storage.strongest))
                .collect(),
            standing: None,
            links,
            hosting: None,
            joined,
            node,
        })
    }
}

/// Lets others use storages of this node.
fn host(
    (identity, gossip): (Identity, Option<&UdpSocket>),
    opened: &OpenedStorages,
    further: &BTreeMap<StorageName, Durability>,
    wakers: &[Waker],
    metrics: &Arc<Metrics>,
) -> Result<(Hosting, Vec<ShardLinks>), StartError> {
    let (Some(first), Ok(shards)) = (
        opened.storages.first(),
        u16::try_from(opened.storages.len()),
    ) else {
        bug!("{} shards", opened.storages.len());
        return Err(StartError::Ended);
    };
    let storages = further.iter().map(|(name, strongest)| OfferedStorage {
        name: *name,
        strongest: *strongest,
    });
    let offer = Offer {
        shards,
        homes: opened.homes.clone(),
        capabilities: first.capabilities(),
        storages: storages.collect(),
        membership: gossip
            .and_then(|socket| socket.local_addr().ok())
            .map(|address| address.port()),
    };
    let shard = |(arrivals, waker): (&_, &Waker)| {
        Arc::new(HostShard::new(Clone::clone(arrivals), Arc::clone(waker)))
    };
    let shards: Vec<Arc<HostShard>> = opened.arrivals.iter().zip(wakers).map(shard).collect();
    let links = shards.iter().map(|shard| ShardLinks {
        dialers: Vec::new(),
        host: Some(Arc::clone(shard)),
    });
    let links = links.collect();
    let hosting = Hosting::new(identity, offer, shards, Arc::clone(metrics));
    Ok((hosting, links))
}
