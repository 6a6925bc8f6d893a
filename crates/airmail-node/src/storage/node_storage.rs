//! The storage of a node, wherever it is: of its own, which other processes may use, of another node, or of a parent in
//! a tree, which children of its may use in turn.

use super::apart;
use super::of_towers::OfTowers;
use super::storage_set::{Arrivals, boxed, link_limits, shared};
use super::{Standing, StorageSet, TreeUrl};
use crate::StartError;
use crate::cluster::climbing::{Climber, Parent};
use crate::cluster::credentials::{self, Identity};
use crate::cluster::dialing::{Dialer, NotFound, Remote};
use crate::cluster::following::TowerFollower;
use crate::cluster::host_shard::{HostShard, HostShards};
use crate::cluster::hosting::Hosting;
use crate::cluster::meeting::Meeting;
use crate::cluster::membership::{self, Joined};
use crate::cluster::tower_desk::TowerDesk;
use crate::cluster::tree::Tree;
use crate::cluster::view::ClusterView;
use crate::config::Config;
use crate::metrics::Metrics;
use airmail_link::{
    Ancestor, CacheLimits, CachedStorage, HostPort, LinkLimits, LinkStorage, TowerLimits,
    TowerName, TreeLimits, TreeNode,
};
use airmail_log::{Capabilities, LogStorage, StorageTraits, Waker};
use airmail_model::clock::Clock;
use airmail_model::{Error, ErrorCode, NodeId, StorageName, bug, random};
use airmail_wire::handshake::{Offer, OfferedStorage};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The storage of a node, opened.
pub(crate) struct NodeStorage {
    /// Each shard's, in order.
    pub(crate) shards: Vec<Box<dyn LogStorage>>,
    /// Further storages.
    pub(crate) further: BTreeMap<StorageName, StorageTraits>,
    /// Whether the data directory is still this node's; `None` without one.
    pub(crate) standing: Option<Arc<Standing>>,
    /// Links of each shard, in order.
    pub(crate) links: Vec<ShardLinks>,
    /// Everything that links of others need, if they may connect.
    pub(crate) hosting: Option<Hosting>,
    /// The cluster's member that this node is, if it is of one.
    pub(crate) joined: Option<Joined>,
    /// The part that is to know of other towers, where several nodes may have the same logs.
    pub(crate) other_towers: Option<OtherTowers>,
    /// Number of the node.
    pub(crate) node: NodeId,
}

/// The part of a node that is to know of other towers.
pub(crate) enum OtherTowers {
    /// A gateway spreads its logs over them.
    Followed(Box<TowerFollower>),
    /// A tower joins them.
    Joined(Meeting),
}

impl OtherTowers {
    /// Learns of them by the node's view of its cluster, until `stop`.
    pub(crate) async fn learn(self, view: ClusterView, stop: CancellationToken) {
        match self {
            OtherTowers::Followed(follower) => follower.run(view, stop).await,
            OtherTowers::Joined(meeting) => meeting.run(view, stop).await,
        }
    }
}

/// Links of a shard to other processes.
#[derive(Default)]
pub(crate) struct ShardLinks {
    /// Those that it keeps to the node whose storage it uses.
    pub(crate) dialers: Vec<Dialer>,
    /// Where it hears of further towers.
    pub(crate) desk: Option<Arc<TowerDesk>>,
    /// The one that it keeps to its parent in a tree.
    pub(crate) climber: Option<Climber>,
    /// Those that others keep to it.
    pub(crate) hosts: Vec<Arc<HostShard>>,
}

impl ShardLinks {
    /// Begins to keep them, on the runtime that this is called in; its own until `stop`.
    pub(crate) fn begin(self, stop: &CancellationToken) -> RunningLinks {
        let mut own = JoinSet::new();
        let desk = self.desk.as_ref();
        let stop_dialers = desk.map_or_else(|| stop.clone(), |desk| desk.begin(stop));
        for dialer in self.dialers {
            own.spawn(dialer.keep(stop_dialers.clone()));
        }
        if let Some(climber) = self.climber {
            own.spawn(climber.keep(stop.clone()));
        }
        self.hosts.iter().for_each(|host| host.begin());
        RunningLinks {
            _own: own,
            hosts: self.hosts,
        }
    }
}

/// Links of a shard that runs. Its own end when this is dropped.
pub(crate) struct RunningLinks {
    _own: JoinSet<()>,
    hosts: Vec<Arc<HostShard>>,
}

impl RunningLinks {
    /// Ends those that others keep to it: its storage is about to close.
    pub(crate) fn end_those_of_others(&self) {
        self.hosts.iter().for_each(|host| host.end());
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
            let shards = (&*wakers, seed);
            return NodeStorage::of_another(config, identity, shards, (cluster, metrics)).await;
        }
        if let Some((url, address)) = config.parents().zip(cluster) {
            let of = (0, NodeId(random::nth(seed, 1)));
            let identity = Identity::new(config, secret, of, clock.now());
            let parts = (clock, address, metrics);
            return NodeStorage::of_parent((config, &url, seed), identity, wakers, parts).await;
        }
        let set = StorageSet::take(config, seed, clock, &wakers)?;
        let opened = set.open_all((config, seed), clock, wakers.clone())?;
        let further = config.further_storages();
        let joined = match cluster {
            Some(address) if !opened.arrivals.own.is_empty() => {
                let identity = Identity::new(config, secret, set.of(), clock.now());
                let socket = membership::bind(address, !config.cluster.peers.is_empty())?;
                let own = ancestor(config, &identity, address)?;
                let (boot, limits) = (identity.node().boot, tree_limits(config));
                let place = TreeNode::root(own, boot, limits);
                let tree = Some(Tree::new(place, Arc::clone(clock)));
                Some(Joined {
                    identity,
                    socket,
                    tree,
                    links: Some(address),
                })
            }
            _ => None,
        };
        let tree = joined.as_ref().and_then(|joined| joined.tree.clone());
        let (hosting, links) = match joined.as_ref().zip(tree) {
            None => (None, wakers.iter().map(|_| ShardLinks::default()).collect()),
            Some((joined, tree)) => {
                let offer = Offer {
                    homes: opened.homes.clone(),
                    ..offer(config, joined, &opened.storages, &further)?
                };
                let parts = (joined.identity.clone(), offer, &tree, metrics);
                let (hosting, links) = host(parts, &opened.arrivals, &wakers);
                (Some(hosting), links)
            }
        };
        let meeting = joined.as_ref().filter(|_| !config.cluster.join.is_empty());
        let meeting = meeting.map(|joined| Meeting {
            addresses: config.cluster.towers(),
            identity: joined.identity.clone(),
            metrics: Arc::clone(metrics),
        });
        Ok(NodeStorage {
            shards: opened.storages,
            further,
            standing: Some(set.standing()),
            links,
            hosting,
            joined,
            other_towers: meeting.map(OtherTowers::Joined),
            node: set.of().1,
        })
    }

    /// All logs are those of a parent, and children have them from here.
    async fn of_parent(
        (config, url, seed): (&Config, &TreeUrl, u64),
        identity: Identity,
        wakers: Vec<Waker>,
        (clock, address, metrics): (&Arc<dyn Clock>, SocketAddr, &Arc<Metrics>),
    ) -> Result<NodeStorage, StartError> {
        let own = ancestor(config, &identity, address)?;
        let parent = Parent::find(&url.parents, &identity, &own.address, metrics).await;
        let parent = parent.map_err(|not_found| cannot_join("log.url", &not_found))?;
        let identity = identity.of_cluster(parent.peer.cluster);
        let (boot, own_address) = (identity.node().boot, own.address.clone());
        let parents = url.parents.clone();
        let place = TreeNode::below(own, boot, parents, tree_limits(config), seed);
        let tree = Tree::new(place, Arc::clone(clock));
        let of_parent = Arc::new(parent.offer);
        let limits = link_limits(&config.of_one_shard(), true);
        let cache = CacheLimits {
            bytes: url.cache.0 / u64::from(config.shards),
            fetch_bytes: u32::try_from(url.window.0).unwrap_or(u32::MAX),
            ..CacheLimits::default()
        };
        let of_shard = |(from, waker): (u16, &Waker)| {
            let (node, of) = ((&tree, from, waker), (&identity, &*own_address));
            let (port, climber) = Climber::new(node, of, &of_parent, metrics);
            let link = LinkStorage::to_parents(port, of_parent.capabilities, limits);
            let cached = CachedStorage::new(link, cache);
            tree.add_cache(cached.state());
            metrics.cluster.add_cache(cached.state());
            (boxed(cached), climber)
        };
        let (storages, climbers): (Vec<_>, Vec<_>) = (0..).zip(&wakers).map(of_shard).unzip();
        let (storages, arrivals) =
            shared(storages, &[], wakers.clone(), (limits, true)).map_err(|error| {
                StartError::Storage {
                    url: url.to_string(),
                    error,
                }
            })?;
        let further = of_parent.storages.iter();
        let further: BTreeMap<_, _> = further.map(|one| (one.name, one.traits)).collect();
        let socket = membership::bind(address, !config.cluster.peers.is_empty())?;
        let joined = Joined {
            identity,
            socket,
            tree: Some(tree.clone()),
            links: Some(address),
        };
        let offer = offer(config, &joined, &storages, &further)?;
        let parts = (joined.identity.clone(), offer, &tree, metrics);
        let (hosting, mut links) = host(parts, &arrivals, &wakers);
        for (links, climber) in links.iter_mut().zip(climbers) {
            links.climber = Some(climber);
        }
        let node = joined.identity.node().node;
        Ok(NodeStorage {
            shards: storages,
            further,
            standing: None,
            links,
            hosting: Some(hosting),
            joined: Some(joined),
            other_towers: None,
            node,
        })
    }

    async fn of_another(
        config: &Config,
        identity: Identity,
        (wakers, seed): (&[Waker], u64),
        (cluster, metrics): (Option<SocketAddr>, &Arc<Metrics>),
    ) -> Result<NodeStorage, StartError> {
        let is_fixed = !config.cluster.peers.is_empty();
        let addresses = config.cluster.towers();
        let remote = Remote::find(&addresses, identity.clone(), metrics).await;
        let remote = remote.map_err(|not_found| {
            let setting = if is_fixed {
                "cluster.peers"
            } else {
                "cluster.join"
            };
            cannot_join(setting, &not_found)
        })?;
        let limits = LinkLimits {
            append_bytes: config.of_one_shard().pending.0,
            ..LinkLimits::default()
        };
        let capabilities = remote.offer().capabilities;
        // What has one writer has one tower.
        let may_have_several = capabilities.many_writers;
        let of_shard = |(from, waker)| {
            let (storage, links) = if may_have_several {
                let towers = (capabilities, tower_limits(config));
                of_towers(&remote, (from, waker), (limits, towers))
            } else {
                let (storage, dialers) = remote.storage(from, waker, limits);
                let links = ShardLinks {
                    dialers,
                    ..ShardLinks::default()
                };
                (storage, links)
            };
            (with_cache(config, storage, metrics), links)
        };
        let (shards, links): (_, Vec<ShardLinks>) = (0..).zip(wakers).map(of_shard).unzip();
        let shards = apart::beside(shards, (config, seed), &remote, wakers)?;
        let desks: Vec<_> = links
            .iter()
            .filter_map(|links| links.desk.clone())
            .collect();
        let follower =
            may_have_several.then(|| TowerFollower::new(remote.clone(), desks, limits, metrics));
        let further = remote.offer().storages.iter();
        let node = identity.node().node;
        let joined = if is_fixed || remote.offer().membership.is_some() {
            let address = cluster.unwrap_or((remote.local(), 0).into());
            Some(Joined {
                identity: identity.of_cluster(remote.peer().cluster),
                socket: membership::bind(address, is_fixed)?,
                tree: None,
                links: None,
            })
        } else {
            None
        };
        Ok(NodeStorage {
            shards,
            further: further
                .map(|storage| (storage.name, storage.traits))
                .collect(),
            standing: None,
            links,
            hosting: None,
            joined,
            other_towers: follower.map(Box::new).map(OtherTowers::Followed),
            node,
        })
    }
}

/// A shard's storage of several towers, which begins with the one that was found.
fn of_towers(
    first: &Remote,
    (from, waker): (u16, &Waker),
    (links, towers): (LinkLimits, (Capabilities, TowerLimits)),
) -> (Box<dyn LogStorage>, ShardLinks) {
    let name = TowerName::new(&first.peer().name);
    let desk = Arc::new(TowerDesk::new(Arc::clone(waker), name.clone()));
    let (tower, dialers) = first.tower(from, waker, links);
    let storage = OfTowers::new(towers, (name, tower), Arc::clone(&desk));
    let links = ShardLinks {
        dialers,
        desk: Some(desk),
        ..ShardLinks::default()
    };
    (boxed(storage), links)
}

/// Limits of a gateway's storage of several towers.
fn tower_limits(config: &Config) -> TowerLimits {
    TowerLimits {
        towers_per_log: config.cluster.towers_per_log.get(),
        ..TowerLimits::default()
    }
}

/// A shard's storage of another node, behind the cache that the settings want.
fn with_cache(
    config: &Config,
    storage: Box<dyn LogStorage>,
    metrics: &Metrics,
) -> Box<dyn LogStorage> {
    if config.link_cache.0 == 0 {
        return storage;
    }
    let limits = CacheLimits {
        bytes: config.link_cache.0 / u64::from(config.shards),
        ..CacheLimits::default()
    };
    let cached = CachedStorage::new(storage, limits);
    metrics.cluster.add_cache(cached.state());
    boxed(cached)
}

/// A node whose logs this one was to have is not there, or does not let it.
fn cannot_join(setting: &str, NotFound { address, end }: &NotFound) -> StartError {
    let error = Error::new(ErrorCode::InvalidArgument).field(setting);
    StartError::Setting(error.value(address).limit(end.to_string()))
}

/// This node, as it stands on the way from the root of a tree.
fn ancestor(
    config: &Config,
    identity: &Identity,
    address: SocketAddr,
) -> Result<Ancestor, StartError> {
    Ok(Ancestor {
        node: identity.node().node,
        name: identity.node().name.clone(),
        address: membership::advertised(config, address)?.to_string(),
    })
}

fn tree_limits(config: &Config) -> TreeLimits {
    TreeLimits {
        depth_max: config.tree.depth_max as usize,
        children_max: config.tree.children_max as usize,
        ..TreeLimits::default()
    }
}

/// Everything of a node that others may use, but for where its logs are.
fn offer(
    config: &Config,
    joined: &Joined,
    storages: &[Box<dyn LogStorage>],
    further: &BTreeMap<StorageName, StorageTraits>,
) -> Result<Offer, StartError> {
    let (Some(first), Ok(shards)) = (storages.first(), u16::try_from(storages.len())) else {
        bug!("{} shards", storages.len());
        return Err(StartError::Ended);
    };
    let storages = further.iter().map(|(name, traits)| OfferedStorage {
        name: *name,
        traits: *traits,
    });
    // Nodes with a fixed list take no news by gossip, and so do not offer it.
    let gossip = Some(&joined.socket).filter(|_| config.cluster.peers.is_empty());
    Ok(Offer {
        shards,
        homes: Vec::new(),
        capabilities: first.capabilities(),
        storages: storages.collect(),
        membership: gossip
            .and_then(|socket| socket.local_addr().ok())
            .map(|address| address.port()),
    })
}

/// Lets others use storages of this node.
fn host(
    (identity, offer, tree, metrics): (Identity, Offer, &Tree, &Arc<Metrics>),
    arrivals: &Arrivals,
    wakers: &[Waker],
) -> (Hosting, Vec<ShardLinks>) {
    let shards = |arrivals: &[SyncSender<HostPort>]| -> Vec<Arc<HostShard>> {
        let shards = arrivals.iter().zip(wakers);
        let shards =
            shards.map(|(arrivals, waker)| HostShard::new(arrivals.clone(), Arc::clone(waker)));
        shards.map(Arc::new).collect()
    };
    let (own, all) = (shards(&arrivals.own), shards(&arrivals.all));
    let links = own.iter().zip(&all).map(|(own, all)| ShardLinks {
        hosts: vec![Arc::clone(own), Arc::clone(all)],
        ..ShardLinks::default()
    });
    let links = links.collect();
    let shards = HostShards { own, all };
    let hosting = Hosting::new(identity, offer, shards, tree.clone(), Arc::clone(metrics));
    (hosting, links)
}
