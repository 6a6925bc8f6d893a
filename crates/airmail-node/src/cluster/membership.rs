//! Membership of a node: its sockets, names and addresses, as its settings and its links say, made ready to run.

use super::credentials::Identity;
use super::gossiping::Gossiping;
use super::knowledge::Knowledge;
use super::tree::Tree;
use super::view::ClusterView;
use crate::StartError;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::shards::Shards;
use crate::starting::system;
use airmail_membership::{Card, MemberId, Membership, MembershipConfig, PeerList, Seal};
use airmail_model::clock::Clock;
use airmail_model::{Error, ErrorCode, Mono, NodeId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

/// An address that is nobody's (RFC 5737): a socket that is connected to it, and sends nothing, has the address by
/// which this machine is reached.
const NOBODY: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);
/// Most bytes of an address for clients.
const ADDRESS_BYTES_MAX: usize = 256;

/// Socket for datagrams of the node that other nodes connect to at `address`: of the same number if it is free, and of no
/// other where others have it in a list that `is_fixed`.
pub(crate) fn bind(address: SocketAddr, is_fixed: bool) -> Result<UdpSocket, StartError> {
    let socket = UdpSocket::bind(address).or_else(|error| {
        if is_fixed || error.kind() != std::io::ErrorKind::AddrInUse {
            return Err(error);
        }
        UdpSocket::bind(SocketAddr::new(address.ip(), 0))
    });
    let socket = socket.map_err(system("cluster datagrams"))?;
    socket
        .set_nonblocking(true)
        .map_err(system("cluster datagrams"))?;
    Ok(socket)
}

/// Everything of a node that its membership needs.
#[derive(Debug)]
pub(crate) struct Joined {
    /// The node, of a cluster.
    pub(crate) identity: Identity,
    /// Its socket.
    pub(crate) socket: UdpSocket,
    /// Its place in a tree, if others may connect.
    pub(crate) tree: Option<Tree>,
    /// Where others link to it, if they may.
    pub(crate) links: Option<SocketAddr>,
}

/// The view of a node that is of no cluster yet.
pub(crate) fn alone(
    config: &Config,
    clients: SocketAddr,
    (node, begun): (NodeId, Mono),
) -> ClusterView {
    ClusterView::alone(card(config, None, clients), node.0, begun)
}

/// The first card of a node; `address` is where clients connect.
fn card(config: &Config, identity: Option<&Identity>, address: SocketAddr) -> Card {
    let host = match config.cluster.host.as_str() {
        "" => rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        named => named.to_owned(),
    };
    let client_address = match config.advertised.as_str() {
        "" => address.to_string(),
        advertised => advertised.to_owned(),
    };
    Card {
        name: config.name.clone(),
        boot: identity.map_or(0, |identity| identity.node().boot),
        pilot: config.roles.pilot,
        copilot: config.roles.copilot,
        tower: config.roles.tower,
        zone: config.cluster.zone.clone(),
        host: host.chars().take(64).collect(),
        client_address: client_address.chars().take(ADDRESS_BYTES_MAX).collect(),
        shards: config.shards,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        ..Card::default()
    }
}

/// Parts of a node that its membership uses.
type Parts<'a> = (
    &'a ClusterView,
    &'a Shards,
    &'a Arc<Metrics>,
    &'a Arc<dyn Clock>,
);

/// Membership that is ready to run, of a node that is of a cluster, and whose clients connect at `clients`.
pub(crate) fn begin(
    joined: Option<Joined>,
    (config, seed): (&Config, u64),
    clients: SocketAddr,
    parts: Parts<'_>,
) -> Result<Option<Gossiping>, StartError> {
    let ready = joined.map(|joined| joined.ready((config, seed), clients, parts));
    ready.transpose()
}

impl Joined {
    /// Where other nodes link to this one: `HOST:PORT`, or nothing.
    fn link_address(&self, config: &Config) -> Result<String, StartError> {
        let address = self
            .links
            .map(|bound| advertised(config, bound))
            .transpose()?;
        let address = address.map(|address| address.to_string());
        Ok(address.unwrap_or_default())
    }

    /// Membership that is ready to run; the view shows this node in its cluster from now on.
    fn ready(
        self,
        (config, seed): (&Config, u64),
        clients: SocketAddr,
        (view, shards, metrics, clock): Parts<'_>,
    ) -> Result<Gossiping, StartError> {
        let bound = self
            .socket
            .local_addr()
            .map_err(system("cluster datagrams"))?;
        let address = advertised(config, bound)?;
        let clients = if clients.ip().is_unspecified() {
            SocketAddr::new(address.ip(), clients.port())
        } else {
            clients
        };
        if let Some(tree) = &self.tree {
            // Nobody else sets it.
            let _ = metrics.cluster.tree.set(tree.clone());
        }
        let mut card = card(config, Some(&self.identity), clients);
        card.ways.link_address = self.link_address(config)?;
        let node = self.identity.node();
        let id = MemberId::new(&*node.name, node.node, node.boot, address);
        let seal = Seal::new(
            node.cluster,
            self.identity.secret().cloned(),
            &node.name,
            node.boot,
        );
        let peers = config.cluster.others();
        let knowledge = if config.cluster.peers.is_empty() {
            let config = MembershipConfig { id, seed };
            Knowledge::Gossip(Box::new(Membership::new(config, seal, card)))
        } else {
            let listed = peers.iter().map(|peer| peer.as_str().to_owned());
            Knowledge::PeerList(Box::new(PeerList::new(id, listed, seal, card)))
        };
        view.update(|seen| {
            seen.own = knowledge.own().clone();
            seen.own_number = node.node.0;
            seen.own_address = address.to_string();
        });
        let socket = tokio::net::UdpSocket::from_std(self.socket);
        Ok(Gossiping {
            socket: socket.map_err(system("cluster datagrams"))?,
            knowledge,
            peers,
            tree: self.tree,
            view: view.clone(),
            shards: shards.clone(),
            metrics: Arc::clone(metrics),
            clock: Arc::clone(clock),
        })
    }
}

/// Where other nodes send datagrams to this one, which has bound `bound`.
pub(crate) fn advertised(config: &Config, bound: SocketAddr) -> Result<SocketAddr, StartError> {
    let advertised = config.cluster.advertised.as_str();
    if advertised.is_empty() {
        return Ok(if bound.ip().is_unspecified() {
            SocketAddr::new(own_address(bound.ip()), bound.port())
        } else {
            bound
        });
    }
    let found = advertised
        .to_socket_addrs()
        .ok()
        .and_then(|mut all| all.next());
    found.ok_or_else(|| {
        let error = Error::new(ErrorCode::InvalidArgument).field("cluster.advertised");
        error
            .value(advertised)
            .limit("HOST:PORT of a host that is known")
            .into()
    })
}

/// Address by which this machine is reached; loopback, if it is in no network.
fn own_address(bound: IpAddr) -> IpAddr {
    let loopback: IpAddr = match bound {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let found = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect(NOBODY)?;
        socket.local_addr()
    });
    found.map_or(loopback, |address| address.ip())
}
