//! Gossiping, or asking all of a fixed list: a node's membership over a socket, and what it makes of it for its shards
//! and its view.
//!
//! It runs where the node was started, not on a shard: a shard that has no turns says so itself, to its clients and
//! on its links. What has come is read before the time is looked at, so that a node that was itself stopped for a
//! while does not take others for silent.

use super::knowledge::{Event, Knowledge};
use super::resolving::Resolving;
use super::tree::Tree;
use super::view::{ClusterView, Seen};
use crate::config::peers::PeerAddress;
use crate::logging_rate_limit::LoggingRateLimit;
use crate::metrics::Metrics;
use crate::shards::Shards;
use airmail_membership::{Card, DATAGRAM_BYTES_MAX, Datagram, MemberId, Standing, TreeCard, Ways};
use airmail_model::Mono;
use airmail_model::clock::Clock;
use airmail_model::frame::{Nodes, ServingNode};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Time between two looks at what the node says of itself.
const CARD_EVERY: Duration = Duration::from_millis(500);
/// Time between two pieces of news of how clients are spread.
const SPREAD_EVERY: Duration = Duration::from_secs(5);
/// Share by which a node's connections differ from what was told before it is told again.
const SPREAD_TOLD: f64 = 0.05;
/// Datagrams that are read before anything else is done.
const AT_ONCE: usize = 64;

/// A node's membership, as it runs.
pub(crate) struct Gossiping {
    pub(crate) socket: UdpSocket,
    pub(crate) knowledge: Knowledge,
    /// The others of a fixed list.
    pub(crate) peers: Vec<PeerAddress>,
    /// Its place in a tree, if others may connect.
    pub(crate) tree: Option<Tree>,
    pub(crate) view: ClusterView,
    pub(crate) shards: Shards,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Things that clients and view were told last.
#[derive(Default)]
struct Told {
    version: u64,
    nodes: Nodes,
    spread_at: Mono,
    card_at: Mono,
}

impl Gossiping {
    /// Runs until `stop`, and says then that the node leaves.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut told = Told::default();
        let mut troubles = LoggingRateLimit::default();
        let mut out = Vec::new();
        let mut resolving = self.resolving();
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX + 1];
        loop {
            let now = self.clock.mono();
            // A step without a datagram drops none.
            let next = self
                .knowledge
                .step(now, Event::Tick, &mut out)
                .unwrap_or(now);
            self.say_of_itself(now, &mut told, &mut out);
            self.send(&mut out, &mut troubles).await;
            self.tell(now, &mut told);
            let wait = next.min(told.card_at.plus(CARD_EVERY)).since(now);
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.view.wanted() => told.card_at = Mono(0),
                (place, address) = resolving.next() => {
                    let found = Event::Found(place, address);
                    let _ = self.knowledge.step(self.clock.mono(), found, &mut out);
                }
                readable = self.socket.readable() => {
                    if let Err(error) = readable {
                        complain(&mut troubles, &error);
                    }
                    self.receive(&mut buffer, &mut out, &mut troubles);
                }
                () = sleep(wait) => self.receive(&mut buffer, &mut out, &mut troubles),
            }
        }
        let _ = self
            .knowledge
            .step(self.clock.mono(), Event::Leave, &mut out);
        self.send(&mut out, &mut troubles).await;
    }

    /// Looks for the addresses of peers.
    fn resolving(&mut self) -> Resolving {
        // A socket that cannot say where it is sends nothing either.
        let nowhere = (Ipv4Addr::UNSPECIFIED, 0).into();
        let own = self.socket.local_addr().unwrap_or(nowhere);
        Resolving::begin(std::mem::take(&mut self.peers), own)
    }

    /// Takes the datagrams that have come.
    fn receive(
        &mut self,
        buffer: &mut [u8],
        out: &mut Vec<Datagram>,
        troubles: &mut LoggingRateLimit,
    ) {
        for _ in 0..AT_ONCE {
            // An error says that there are no more, or that one which was sent did not arrive.
            let Ok((length, from)) = self.socket.try_recv_from(buffer) else {
                return;
            };
            let event = Event::Datagram(from, buffer.get(..length).unwrap_or_default());
            if let Err(error) = self.knowledge.step(self.clock.mono(), event, out) {
                self.metrics.cluster.dropped.inc();
                if let Some(times) = troubles.happened(Instant::now()) {
                    tracing::warn!(%from, %error, times, "a datagram of membership was dropped");
                }
            }
        }
    }

    async fn send(&self, out: &mut Vec<Datagram>, troubles: &mut LoggingRateLimit) {
        for Datagram { to, bytes } in out.drain(..) {
            if let Err(error) = self.socket.send_to(&bytes, to).await {
                complain(troubles, &error);
            }
        }
    }

    /// Says of the node what has changed.
    fn say_of_itself(&mut self, now: Mono, told: &mut Told, out: &mut Vec<Datagram>) {
        if now < told.card_at.plus(CARD_EVERY) && told.card_at != Mono(0) {
            return;
        }
        told.card_at = now;
        for met in self.metrics.cluster.links.met() {
            let is_it = |id: &MemberId| id.name == met.name && id.boot >= met.boot;
            let mut members = self.knowledge.members().into_iter();
            let is_known = members.any(|member| is_it(&member.id));
            if !is_known {
                let _ = self.knowledge.step(now, Event::Met(met), out);
            }
        }
        let own = self.knowledge.own();
        let connections = u32::try_from(self.metrics.connections.get()).unwrap_or(0);
        let card = Card {
            connections,
            draining: self.view.seen().drains,
            ways: Ways {
                unlinked: self.metrics.cluster.links.unlinked(),
                tree: self.tree.as_ref().map(Tree::card).filter(is_in_tree),
                link_address: own.ways.link_address.clone(),
            },
            ..own.clone()
        };
        // Who cannot be reached by whom is told at once.
        let urgent = |card: &Card| {
            let parent = card.ways.tree.as_ref().map(|tree| tree.parent.clone());
            (card.draining, card.ways.unlinked.clone(), parent)
        };
        let is_news = urgent(&card) != urgent(own);
        if card != *own {
            if is_news {
                told.version = 0;
            }
            let _ = self.knowledge.step(now, Event::Card(card), out);
        }
        self.view
            .update(|seen| seen.own = self.knowledge.own().clone());
    }

    /// Tells view, metrics and clients what has changed.
    fn tell(&mut self, now: Mono, told: &mut Told) {
        let is_news = told.version != self.knowledge.version() || told.version == 0;
        let is_time = now >= told.spread_at.plus(SPREAD_EVERY);
        if !is_news && !is_time {
            return;
        }
        if is_time {
            told.spread_at = now;
        }
        told.version = self.knowledge.version();
        let members = self.knowledge.members();
        let count = |standing| {
            let of_standing = members.iter().filter(|member| member.standing == standing);
            of_standing.count()
        };
        let standings = [Standing::Live, Standing::Suspect, Standing::Down];
        self.metrics.cluster.members(standings.map(count));
        self.view
            .update(|seen| seen.members = members.into_iter().cloned().collect());
        let seen: Seen = self.view.seen();
        let nodes = seen.serving();
        if !same_but_for_spread(&told.nodes, &nodes) || (is_time && spread(&told.nodes, &nodes)) {
            told.nodes = nodes.clone();
            let nodes = Arc::new(nodes);
            self.shards
                .iter()
                .for_each(|shard| shard.serve_nodes(&nodes));
        }
    }
}

/// Whether a node has to do with a tree: of one that has neither parent nor child nobody needs to know.
fn is_in_tree(card: &TreeCard) -> bool {
    card.is_child || card.children > 0
}

fn complain(troubles: &mut LoggingRateLimit, error: &std::io::Error) {
    if let Some(times) = troubles.happened(Instant::now()) {
        tracing::warn!(%error, times, "membership: the socket");
    }
}

/// Whether two lists differ in nothing but connections.
fn same_but_for_spread(one: &Nodes, other: &Nodes) -> bool {
    let unspread = |node: &ServingNode| ServingNode {
        connections: 0,
        ..node.clone()
    };
    let same = |(one, other): (&_, &_)| unspread(one) == unspread(other);
    one.leave == other.leave
        && one.nodes.len() == other.nodes.len()
        && one.nodes.iter().zip(&other.nodes).all(same)
}

/// Whether connections have become so different that clients are to know.
fn spread(told: &Nodes, now: &Nodes) -> bool {
    told.nodes.iter().zip(&now.nodes).any(|(told, now)| {
        let differ = f64::from(told.connections.abs_diff(now.connections));
        differ > 1.0 && differ > SPREAD_TOLD * f64::from(told.connections)
    })
}
