//! Resolving: the addresses that the names of a fixed list lead to, now and as they change.

use crate::config::peers::PeerAddress;
use crate::logging_rate_limit::LoggingRateLimit;
use airmail_membership::{PEERS_MAX, Place};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Time between two looks at a name that has led to an address, and at one that has led to none.
const KNOWN_EVERY: Duration = Duration::from_secs(10);
const UNKNOWN_EVERY: Duration = Duration::from_secs(1);

/// Addresses as they are found. Dropped, it looks no more.
pub(super) struct Resolving {
    found: mpsc::Receiver<(Place, SocketAddr)>,
    _looking: JoinSet<()>,
}

impl Resolving {
    /// Looks for the addresses of peers to which a socket at `own` can send.
    pub(super) fn begin(peers: Vec<PeerAddress>, own: SocketAddr) -> Resolving {
        let (sender, found) = mpsc::channel(PEERS_MAX);
        let mut looking = JoinSet::new();
        for (place, peer) in (0..).map(Place).zip(peers) {
            looking.spawn(look(place, peer, own, sender.clone()));
        }
        Resolving {
            found,
            _looking: looking,
        }
    }

    /// The next address that was found, or that has changed.
    pub(super) async fn next(&mut self) -> (Place, SocketAddr) {
        match self.found.recv().await {
            Some(found) => found,
            // All of them stay as they are.
            None => std::future::pending().await,
        }
    }
}

/// Looks for the address of one peer, and says each that differs from the one before.
async fn look(
    place: Place,
    peer: PeerAddress,
    own: SocketAddr,
    found: mpsc::Sender<(Place, SocketAddr)>,
) {
    let is_number = peer.as_str().parse::<SocketAddr>().is_ok();
    let mut last = None;
    let mut troubles = LoggingRateLimit::default();
    loop {
        match resolve(&peer, own).await {
            Ok(address) if last == Some(address) => {}
            Ok(address) => {
                last = Some(address);
                if found.send((place, address)).await.is_err() || is_number {
                    return;
                }
            }
            Err(error) => {
                if let Some(times) = troubles.happened(Instant::now()) {
                    tracing::warn!(peer = peer.as_str(), %error, times, "cluster.peers: no address");
                }
            }
        }
        sleep(last.map_or(UNKNOWN_EVERY, |_| KNOWN_EVERY)).await;
    }
}

async fn resolve(peer: &PeerAddress, own: SocketAddr) -> io::Result<SocketAddr> {
    let mut all = lookup_host(peer.as_str()).await?;
    let reached = all.find(|address| address.is_ipv4() == own.is_ipv4());
    reached.ok_or_else(|| io::Error::other(format!("it has none that {own} can send to")))
}
