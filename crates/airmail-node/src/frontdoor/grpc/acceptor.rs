//! Accepts connections for several shards, and gives each to one of them.
//!
//! A node with one shard has none: its shard accepts for itself ([`super::listener`]). Here it is done where
//! the node was started, and a connection goes as it is to the thread of the shard that serves it: only
//! there is it registered with a runtime that reads it.
//!
//! The shard with the fewest connections gets the next. One that has not taken what it was given before is
//! passed over as long as there is another: it may have no turns. No shard can hold up the others: each has
//! a bounded number of connections that wait for it, and if all are full the next stays with the system.

use super::Services;
use super::listener::{BREATH, Crowded, DOOR};
use crate::logging_rate_limit::LoggingRateLimit;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

/// Connections that wait for a shard to take them.
const WAITING: usize = 64;
/// Pause after which shards that are all full are tried again.
const PAUSE: Duration = Duration::from_millis(5);

/// A place among a shard's connections, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Place {
    fn among(connections: &Arc<AtomicUsize>) -> Place {
        connections.fetch_add(1, Ordering::Relaxed);
        Place(Arc::clone(connections))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection on its way to a shard.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// Registered nowhere.
    pub(crate) stream: std::net::TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) place: Place,
}

/// The way to a shard.
#[derive(Debug)]
struct Way {
    connections: Arc<AtomicUsize>,
    sender: mpsc::Sender<Accepted>,
}

impl Way {
    /// Connections that it has not taken, and those that it has in all.
    fn load(&self) -> (usize, usize) {
        let untaken = WAITING - self.sender.capacity();
        (untaken, self.connections.load(Ordering::Relaxed))
    }
}

/// Ways to all shards.
#[derive(Debug)]
pub(crate) struct Ways {
    ways: Vec<Way>,
    /// Where the search begins: equals get connections in turn.
    next: usize,
}

impl Ways {
    /// Ways to so many shards, and where each takes its connections from.
    pub(crate) fn to(shards: usize) -> (Ways, Vec<mpsc::Receiver<Accepted>>) {
        let way = |_| {
            let (sender, receiver) = mpsc::channel(WAITING);
            let connections = Arc::new(AtomicUsize::new(0));
            (
                Way {
                    connections,
                    sender,
                },
                receiver,
            )
        };
        let (ways, receivers) = (0..shards).map(way).unzip();
        (Ways { ways, next: 0 }, receivers)
    }

    /// Gives a connection to a shard; gives it back if none has room.
    fn give(
        &mut self,
        stream: std::net::TcpStream,
        peer: SocketAddr,
    ) -> Result<(), std::net::TcpStream> {
        let count = self.ways.len();
        let mut order: Vec<usize> = (0..count).map(|n| (self.next + n) % count).collect();
        // Stable: equals stay in turn.
        order.sort_by_key(|&shard| self.ways[shard].load());
        let mut stream = stream;
        for shard in order {
            let way = &self.ways[shard];
            let place = Place::among(&way.connections);
            let accepted = Accepted {
                stream,
                peer,
                place,
            };
            match way.sender.try_send(accepted) {
                Ok(()) => {
                    self.next = (shard + 1) % count;
                    return Ok(());
                }
                Err(TrySendError::Full(back) | TrySendError::Closed(back)) => stream = back.stream,
            }
        }
        Err(stream)
    }
}

/// Accepts for all shards of a node.
pub(crate) struct Acceptor {
    pub(crate) services: Services,
    pub(crate) crowded: Crowded,
    pub(crate) ways: Ways,
}

impl Acceptor {
    /// Accepts until the node stops.
    pub(crate) async fn accept(mut self, listener: TcpListener) {
        let stop = self.services.door.shards().stop().clone();
        let mut troubles = LoggingRateLimit::default();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let handed = match accepted {
                Ok((stream, peer)) if self.crowded.is_full(&self.services) => {
                    self.crowded.turn_away(stream, peer, &self.services);
                    continue;
                }
                Ok((stream, peer)) => self.hand_over(stream, peer).await,
                Err(error) => Err(error),
            };
            if let Err(error) = handed {
                self.services.metrics().doors.not_accepted(DOOR);
                if let Some(times) = troubles.happened(Instant::now()) {
                    tracing::warn!(%error, times, "connections are not accepted");
                }
                tokio::time::sleep(BREATH).await;
            }
        }
    }

    /// Gives a connection to a shard, as soon as one has room or until the node stops.
    async fn hand_over(&mut self, stream: TcpStream, peer: SocketAddr) -> std::io::Result<()> {
        let mut stream = stream.into_std()?;
        Crowded::count(&self.services);
        while let Err(back) = self.ways.give(stream, peer) {
            if self.services.door.shards().stop().is_cancelled() {
                break;
            }
            stream = back;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener as Listener;

    struct Stage {
        listener: Listener,
        ways: Ways,
        shards: Vec<mpsc::Receiver<Accepted>>,
        /// Taken by shards.
        open: Vec<Vec<Accepted>>,
    }

    impl Stage {
        fn of(shards: usize) -> Stage {
            let (ways, receivers) = Ways::to(shards);
            Stage {
                listener: Listener::bind("127.0.0.1:0").unwrap(),
                ways,
                shards: receivers,
                open: (0..shards).map(|_| Vec::new()).collect(),
            }
        }

        /// A connection comes; whether it has found a shard.
        fn comes(&mut self) -> bool {
            let address = self.listener.local_addr().unwrap();
            let stream = std::net::TcpStream::connect(address).unwrap();
            // The other end is of no interest.
            drop(self.listener.accept().unwrap());
            self.ways.give(stream, address).is_ok()
        }

        fn takes(&mut self, shard: usize) {
            while let Ok(accepted) = self.shards[shard].try_recv() {
                self.open[shard].push(accepted);
            }
        }

        fn counts(&self) -> Vec<usize> {
            self.open.iter().map(Vec::len).collect()
        }
    }

    #[test]
    fn the_shard_with_the_fewest_gets_the_next_and_equals_in_turn() {
        let mut stage = Stage::of(3);
        for _ in 0..6 {
            assert!(stage.comes());
            (0..3).for_each(|shard| stage.takes(shard));
        }
        assert_eq!(stage.counts(), [2, 2, 2]);
        stage.open[1].clear();
        for _ in 0..2 {
            assert!(stage.comes());
            (0..3).for_each(|shard| stage.takes(shard));
        }
        assert_eq!(stage.counts(), [2, 2, 2]);
    }

    #[test]
    fn a_shard_that_takes_nothing_is_passed_over() {
        let mut stage = Stage::of(2);
        for _ in 0..20 {
            assert!(stage.comes());
            stage.takes(1);
        }
        assert_eq!(stage.counts(), [0, 19]);
        stage.takes(0);
        assert_eq!(stage.counts(), [1, 19]);
    }

    #[test]
    fn what_no_shard_has_room_for_is_given_back_and_leaves_no_place() {
        let mut stage = Stage::of(2);
        for _ in 0..2 * WAITING {
            assert!(stage.comes());
        }
        assert!(!stage.comes());
        let load = |stage: &Stage| stage.ways.ways.iter().map(Way::load).collect::<Vec<_>>();
        assert_eq!(load(&stage), [(WAITING, WAITING); 2]);
        stage.takes(0);
        stage.open[0].clear();
        assert_eq!(load(&stage), [(0, 0), (WAITING, WAITING)]);
        assert!(stage.comes());
    }
}
