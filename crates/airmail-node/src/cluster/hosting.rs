//! Hosting: a node lets others of its cluster use its storage.
//!
//! Connections are accepted where the node was started, and greeted there. Whoever is let in is handed to the
//! thread of the shard that it asks for: what it says goes to that shard's storage through a port, which is
//! kept for the next one when the connection ends.
//!
//! A child in a tree asks for no shard: each of its links is to all logs, by one of the shards here. Whether it may be a
//! child is a matter of this node's place in the tree.

use super::credentials::Identity;
use super::greeting::Greeting;
use super::host_shard::{HostShard, HostShards};
use super::link_end::LinkEnd;
use super::tree::Tree;
use crate::logging_rate_limit::LoggingRateLimit;
use crate::metrics::Metrics;
use airmail_link::{Ancestor, ToHost};
use airmail_model::NodeId;
use airmail_wire::FrameReader;
use airmail_wire::handshake::{Between, Known, Offer, Refusal};
use airmail_wire::link_v1::refused::Why;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Connections at once: links, and those that have not said yet who they are.
pub(crate) const CONNECTIONS_MAX: usize = 256;
/// Pause after a connection could not be accepted.
const BREATH: Duration = Duration::from_millis(100);

/// Nodes that have links.
#[derive(Debug, Default)]
struct Peers {
    by_name: BTreeMap<String, Peer>,
    /// Links that there have been.
    links: u64,
}

/// A node that has links here.
#[derive(Debug)]
struct Peer {
    node: NodeId,
    boot: u64,
    is_child: bool,
    links: BTreeMap<Between, Link>,
}

/// A link of a node, between two shards.
#[derive(Debug)]
struct Link {
    number: u64,
    stop: CancellationToken,
    /// Cancelled when nothing of it comes any more.
    ended: CancellationToken,
}

/// A node that is let in, to a shard.
struct Admitted {
    shard: Arc<HostShard>,
    place: Place,
    stop: CancellationToken,
    /// The end of the link whose place it takes.
    before: Option<CancellationToken>,
}

/// Everything that links of others need.
#[derive(Debug)]
pub(crate) struct Hosting {
    identity: Identity,
    offer: Offer,
    shards: HostShards,
    tree: Tree,
    peers: Mutex<Peers>,
    refused: Mutex<LoggingRateLimit>,
    metrics: Arc<Metrics>,
}

/// A link's place among those of its node, until it is dropped.
struct Place {
    hosting: Arc<Hosting>,
    name: String,
    between: Between,
    number: u64,
    _ended: DropGuard,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut peers = self.hosting.peers.lock();
        if let Some(peer) = peers.by_name.get_mut(&self.name) {
            if peer
                .links
                .get(&self.between)
                .is_some_and(|link| link.number == self.number)
            {
                peer.links.remove(&self.between);
            }
            if peer.links.is_empty() {
                if peer.is_child {
                    self.hosting.tree.child_gone(&self.name);
                }
                peers.by_name.remove(&self.name);
            }
        }
    }
}

impl Hosting {
    /// Lets others use these shards' storages, which have what `offer` says.
    pub(crate) fn new(
        identity: Identity,
        offer: Offer,
        shards: HostShards,
        tree: Tree,
        metrics: Arc<Metrics>,
    ) -> Hosting {
        Hosting {
            identity,
            offer,
            shards,
            tree,
            peers: Mutex::default(),
            refused: Mutex::default(),
            metrics,
        }
    }

    /// The node's place in a tree.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Accepts connections until `stop`.
    pub(crate) async fn accept(
        self: Arc<Self>,
        listener: TcpListener,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut troubles = LoggingRateLimit::default();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let place = Arc::clone(&places).try_acquire_owned();
            match (accepted, place) {
                (Ok((stream, address)), Ok(place)) => {
                    let hosting = Arc::clone(&self);
                    tasks.spawn(async move {
                        if let Err(end) = Arc::clone(&hosting).serve(stream, address).await {
                            hosting.tell_refused(address, &end);
                        }
                        drop(place);
                    });
                }
                (Ok((_, address)), Err(_)) => {
                    if let Some(times) = troubles.happened(Instant::now()) {
                        tracing::warn!(%address, times, "links are refused: there are {CONNECTIONS_MAX} already");
                    }
                }
                (Err(error), _) => {
                    if let Some(times) = troubles.happened(Instant::now()) {
                        tracing::warn!(%error, times, "links are not accepted");
                    }
                    sleep(BREATH).await;
                }
            }
        }
    }

    /// Greets whoever has connected, and hands it to the shard that it asks for. Ends when the link does.
    async fn serve(self: Arc<Self>, stream: TcpStream, address: SocketAddr) -> Result<(), LinkEnd> {
        let mut greeting = Greeting::new(stream)?;
        let known = greeting.known(&self.identity).await?;
        let admitted = self.admit(&known).map_err(LinkEnd::from);
        let Admitted {
            shard,
            place,
            stop,
            before,
        } = greeting.tell_refusal(admitted).await?;
        if let Some(before) = before {
            // What comes of the link before comes to the storage before anything of this one, or never: the other end
            // takes the order of its attempts for granted.
            before.cancelled().await;
        }
        let carrying = shard.carrying().map_err(LinkEnd::from);
        let carrying = greeting.tell_refusal(carrying).await?;
        let is_child = known.link.child_address.is_some();
        let (stream, reader) = match self.let_in(greeting, known).await {
            Ok(parts) => parts,
            Err(end) => {
                // The port is the next one's.
                shard.give_back(carrying);
                return Err(end);
            }
        };
        let runtime = shard.runtime().await;
        let meters = self.metrics.cluster.link_meters(&place.name);
        let carried = runtime.spawn(async move {
            let (name, Between { from, to }) = (&place.name, place.between);
            tracing::info!(name, from, to, %address, "a link has begun");
            let words = carrying.words();
            // One of a child's links is enough to know each other by.
            let tree = (is_child && from == 0).then_some(&place.hosting.tree);
            if let Some(tree) = tree {
                tree.child_linked(name, &words);
            }
            let hear = |message| match message {
                ToHost::Below { children, asked_us } => {
                    if let Some(tree) = tree {
                        tree.child_said(name, (children, asked_us), &words);
                    }
                    None
                }
                other => Some(other),
            };
            let end = match TcpStream::from_std(stream) {
                Ok(stream) => {
                    let connection = (stream, reader);
                    carrying.carry(connection, &meters, &hear, &stop).await
                }
                Err(error) => error.into(),
            };
            tracing::info!(name, from, to, %address, %end, "a link has ended");
            shard.give_back(carrying);
        });
        // An error says that the shard's thread has ended, and all its links with it.
        let _ = carried.await;
        Ok(())
    }

    /// Lets in who is known: its connection, registered nowhere, and what has come of it.
    async fn let_in(
        &self,
        mut greeting: Greeting,
        known: Known,
    ) -> Result<(std::net::TcpStream, FrameReader), LinkEnd> {
        greeting.welcome(known, &self.offer).await?;
        let (stream, reader) = greeting.into_parts();
        Ok((stream.into_std()?, reader))
    }

    /// Tells of a connection that has led to no link; whoever tries again and again does not fill the log.
    fn tell_refused(&self, address: SocketAddr, end: &LinkEnd) {
        if let Some(times) = self.refused.lock().happened(Instant::now()) {
            tracing::warn!(%address, %end, times, "a link was refused");
        }
    }

    /// Whether a node that has the secret is let in: to which shard, until when.
    fn admit(self: &Arc<Self>, known: &Known) -> Result<Admitted, Refusal> {
        let shard = self.shards.of(known)?;
        let (asks, child) = (&known.peer, &known.link.child_address);
        let mut peers = self.peers.lock();
        let Peers { by_name, links } = &mut *peers;
        let peer = by_name.entry(asks.name.clone()).or_insert_with(|| Peer {
            node: asks.node,
            boot: asks.boot,
            is_child: child.is_some(),
            links: BTreeMap::new(),
        });
        if peer.node != asks.node {
            let text = format!(
                "the name {} is that of node {:016x}, which lives: name each node otherwise",
                asks.name, peer.node
            );
            return Err(Refusal::new(Why::Name, text));
        }
        if peer.boot > asks.boot {
            let text = format!("node {} has been started again since", asks.name);
            return Err(Refusal::new(Why::Name, text));
        }
        let child_of = |address: &String| {
            self.tree.admit(&Ancestor {
                node: asks.node,
                name: asks.name.clone(),
                address: address.clone(),
            })
        };
        if let Some(Err(refusal)) = child.as_ref().map(child_of) {
            if peer.links.is_empty() {
                by_name.remove(&asks.name);
            }
            return Err(refusal);
        }
        if peer.boot < asks.boot {
            peer.boot = asks.boot;
            peer.links.values().for_each(|link| link.stop.cancel());
        }
        peer.is_child = child.is_some();
        let between = known.link.between;
        *links += 1;
        let number = *links;
        let (stop, ended) = (shard.link_stop(), CancellationToken::new());
        let link = Link {
            number,
            stop: stop.clone(),
            ended: ended.clone(),
        };
        let before = peer.links.insert(between, link).map(|before| {
            before.stop.cancel();
            before.ended
        });
        drop(peers);
        let place = Place {
            hosting: Arc::clone(self),
            name: asks.name.clone(),
            between,
            number,
            _ended: ended.drop_guard(),
        };
        Ok(Admitted {
            shard: Arc::clone(shard),
            place,
            stop,
            before,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use airmail_link::{HostPort, TreeInput, TreeLimits, TreeNode};
    use airmail_log::{LogStorage as _, memory};
    use airmail_model::clock::SystemClock;
    use airmail_model::{Mono, Now, Wall};
    use airmail_wire::handshake::{Asked, HandshakeError};
    use std::sync::mpsc::{Receiver, sync_channel};
    use tokio::io::AsyncReadExt as _;

    fn identity(name: &str, node: u64, boot: i64) -> Identity {
        let config = Config {
            name: name.to_owned(),
            ..Config::default()
        };
        Identity::new(&config, None, (5, NodeId(node)), now(boot))
    }

    fn now(wall: i64) -> Now {
        Now {
            mono: Mono(0),
            wall: Wall(wall),
        }
    }

    /// A node with one shard, whose storage nobody polls.
    struct Stage {
        address: SocketAddr,
        arrived: Receiver<HostPort>,
        stop: CancellationToken,
    }

    impl Stage {
        async fn new() -> Stage {
            let (arrivals, arrived) = sync_channel(8);
            let shard = Arc::new(HostShard::new(arrivals, Arc::new(|| {})));
            shard.begin();
            let offer = Offer {
                shards: 1,
                homes: Vec::new(),
                capabilities: memory::open(1, now(1)).unwrap().capabilities(),
                storages: Vec::new(),
                membership: None,
            };
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let own = Ancestor {
                node: NodeId(1),
                name: "tower".to_owned(),
                address: address.to_string(),
            };
            let mut place = TreeNode::root(own, 1, TreeLimits::default());
            place.step(Mono(1), TreeInput::Tick);
            let tree = Tree::new(place, Arc::new(SystemClock::new()));
            let hosting = Arc::new(Hosting::new(
                identity("tower", 1, 1),
                offer,
                HostShards {
                    own: vec![Arc::clone(&shard)],
                    all: vec![shard],
                },
                tree,
                Arc::default(),
            ));
            let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
            let accept = hosting.accept(listener, tasks.clone(), stop.clone());
            tasks.spawn(accept);
            Stage {
                address,
                arrived,
                stop,
            }
        }

        async fn ask(&self, who: &Identity, from: u16, to: u16) -> Result<TcpStream, LinkEnd> {
            let stream = TcpStream::connect(self.address).await?;
            let mut greeting = Greeting::new(stream)?;
            let asked = Asked {
                between: Between { from, to },
                child_address: None,
            };
            greeting.ask(who, &asked).await?;
            Ok(greeting.into_parts().0)
        }

        async fn refused(&self, who: &Identity, to: u16) -> Refusal {
            match self.ask(who, 0, to).await {
                Err(LinkEnd::Handshake(HandshakeError::Refused(refusal))) => refusal,
                other => panic!("not refused: {other:?}"),
            }
        }

        /// Ports that have arrived since the last look.
        fn arrived(&self) -> usize {
            self.arrived.try_iter().count()
        }
    }

    /// Waits until the other side has closed a connection.
    async fn closed(mut stream: TcpStream) {
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    }

    fn is_open(stream: &TcpStream) -> bool {
        stream.try_read(&mut [0; 8]).is_err()
    }

    #[tokio::test]
    async fn a_name_is_one_living_nodes_and_there_is_no_shard_beyond_the_last() {
        let stage = Stage::new().await;
        let one = identity("one", 7, 10);
        let link = stage.ask(&one, 0, 0).await.unwrap();
        assert_eq!(
            stage.refused(&identity("one", 8, 11), 0).await.why,
            Why::Name
        );
        assert_eq!(
            stage.refused(&identity("one", 7, 9), 0).await.why,
            Why::Name
        );
        assert_eq!(
            stage.refused(&identity("other", 9, 9), 1).await.why,
            Why::Shard
        );
        assert!(is_open(&link));
        stage.stop.cancel();
    }

    #[tokio::test]
    async fn a_link_takes_the_place_of_the_one_between_the_same_two_shards_alone() {
        let stage = Stage::new().await;
        let one = identity("one", 7, 10);
        let first = stage.ask(&one, 0, 0).await.unwrap();
        let beside = stage.ask(&one, 1, 0).await.unwrap();
        let second = stage.ask(&one, 0, 0).await.unwrap();
        closed(first).await;
        assert!(is_open(&beside) && is_open(&second));
        stage.stop.cancel();
    }

    #[tokio::test]
    async fn a_node_that_was_started_again_takes_the_place_of_all_that_it_had() {
        let stage = Stage::new().await;
        let before = identity("one", 7, 10);
        let links = [
            stage.ask(&before, 0, 0).await.unwrap(),
            stage.ask(&before, 1, 0).await.unwrap(),
        ];
        let again = stage.ask(&identity("one", 7, 11), 0, 0).await.unwrap();
        for link in links {
            closed(link).await;
        }
        assert!(is_open(&again));
        stage.stop.cancel();
    }

    #[tokio::test]
    async fn a_port_whose_connection_has_ended_is_there_for_the_next() {
        let stage = Stage::new().await;
        let one = identity("one", 7, 10);
        let first = stage.ask(&one, 0, 0).await.unwrap();
        assert_eq!(stage.arrived(), 1);
        // It is let in when the one before has ended, and not sooner.
        let second = stage.ask(&one, 0, 0).await.unwrap();
        assert_eq!(stage.arrived(), 0);
        closed(first).await;
        let third = stage.ask(&one, 1, 0).await.unwrap();
        assert!(is_open(&second) && is_open(&third));
        assert_eq!(stage.arrived(), 1);
        stage.stop.cancel();
    }
}
