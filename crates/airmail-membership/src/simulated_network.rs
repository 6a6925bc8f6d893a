//! A network for tests of whole clusters, which loses, delays and cuts, each from a seed.

use crate::member::{Member, Standing};
use crate::membership::{DATAGRAM_BYTES_MAX, Datagram};
use crate::seal::SealError;
use airmail_model::{Mono, random};
use std::net::SocketAddr;
use std::time::Duration;

/// Number of seeds that a claim is tried with.
pub(crate) const SEEDS: u64 = 20;
const MS: u64 = 1_000_000;

/// A core that knows the nodes of its cluster.
pub(crate) trait Core {
    /// Takes a datagram, or that time has passed; tells when to come back.
    fn step(
        &mut self,
        now: Mono,
        come: Option<(SocketAddr, &[u8])>,
        out: &mut Vec<Datagram>,
    ) -> Result<Mono, SealError>;

    /// The other nodes.
    fn known(&self) -> Vec<&Member>;
}

/// A datagram on its way.
struct Flying {
    at: Mono,
    from: usize,
    to: usize,
    bytes: Vec<u8>,
}

pub(crate) struct Node<C> {
    pub(crate) core: C,
    pub(crate) wake: Mono,
    /// Not stepped until then: stopped, or dead for good.
    pub(crate) frozen: Mono,
    pub(crate) boot: u64,
    waiting: Vec<(usize, Vec<u8>)>,
}

/// A cluster in a network of one's own making. Its nodes are `n0`, `n1` and so on.
pub(crate) struct Cluster<C> {
    pub(crate) nodes: Vec<Node<C>>,
    pub(crate) now: Mono,
    /// Ways on which everything is lost.
    pub(crate) cut: Vec<(usize, usize)>,
    /// State of the draws, which begins with the seed.
    pub(crate) state: u64,
    flying: Vec<Flying>,
    /// Datagrams that are lost, of a thousand.
    lost: u64,
}

pub(crate) fn address(node: usize) -> SocketAddr {
    ([10, 0, 0, 1], 7000 + node as u16).into()
}

impl<C: Core> Cluster<C> {
    /// A cluster of these nodes, of which none has been stepped.
    pub(crate) fn of(cores: impl IntoIterator<Item = C>, seed: u64, lost: u64) -> Cluster<C> {
        let node = |core| Node {
            core,
            wake: Mono(0),
            frozen: Mono(0),
            boot: 1,
            waiting: Vec::new(),
        };
        Cluster {
            nodes: cores.into_iter().map(node).collect(),
            now: Mono(0),
            cut: Vec::new(),
            state: seed,
            flying: Vec::new(),
            lost,
        }
    }

    pub(crate) fn draw(&mut self, of: u64) -> u64 {
        self.state = self.state.wrapping_add(random::STEP);
        random::mixed(self.state) % of
    }

    /// Has something happen to a node, and sends what comes of it.
    pub(crate) fn happen(
        &mut self,
        node: usize,
        what: impl FnOnce(&mut C, Mono, &mut Vec<Datagram>) -> Result<Mono, SealError>,
    ) {
        let mut out = Vec::new();
        if let Ok(next) = what(&mut self.nodes[node].core, self.now, &mut out) {
            self.nodes[node].wake = next;
        }
        for datagram in out {
            assert!(datagram.bytes.len() <= DATAGRAM_BYTES_MAX);
            let to = usize::from(datagram.to.port()) - 7000;
            let lost = self.draw(1_000) < self.lost || self.cut.contains(&(node, to));
            let delay = (1 + self.draw(20)) * MS;
            if !lost {
                self.flying.push(Flying {
                    at: self.now.plus(Duration::from_nanos(delay)),
                    from: node,
                    to,
                    bytes: datagram.bytes,
                });
            }
        }
    }

    pub(crate) fn run(&mut self, seconds: u64) {
        self.run_for(Duration::from_secs(seconds));
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now.plus(time);
        while self.now < end {
            let arrival = self.flying.iter().map(|flying| flying.at);
            let wake = self.nodes.iter().map(|node| node.wake.max(node.frozen));
            let next = arrival.chain(wake).min().unwrap();
            self.now = next.max(self.now).min(end);
            self.arrive();
            for node in 0..self.nodes.len() {
                if self.nodes[node].frozen > self.now {
                    continue;
                }
                for (from, bytes) in std::mem::take(&mut self.nodes[node].waiting) {
                    let come = Some((address(from), &bytes[..]));
                    self.happen(node, |core, now, out| core.step(now, come, out));
                }
                if self.nodes[node].wake <= self.now {
                    self.happen(node, |core, now, out| core.step(now, None, out));
                }
            }
        }
    }

    fn arrive(&mut self) {
        let now = self.now;
        let due = self.flying.extract_if(.., |flying| flying.at <= now);
        for flying in due.collect::<Vec<_>>() {
            if !self.cut.contains(&(flying.from, flying.to)) {
                let waiting = &mut self.nodes[flying.to].waiting;
                waiting.push((flying.from, flying.bytes));
            }
        }
    }

    /// A node as another one knows it.
    pub(crate) fn member(&self, of: &str, at: usize) -> Option<&Member> {
        let known = self.nodes[at].core.known();
        known.into_iter().find(|member| member.id.name == of)
    }

    pub(crate) fn standing(&self, of: usize, at: usize) -> Option<Standing> {
        let member = self.member(&format!("n{of}"), at);
        member.map(|member| member.standing)
    }

    /// Asserts how each of `at` sees a node.
    pub(crate) fn assert(
        &self,
        of: usize,
        at: impl IntoIterator<Item = usize>,
        expected: Standing,
    ) {
        for at in at {
            if at != of {
                let found = self.standing(of, at);
                assert_eq!(found, Some(expected), "n{of} at n{at}, seed {}", self.state);
            }
        }
    }

    /// Puts another start in the place of a node's, whatever that did.
    pub(crate) fn put(&mut self, node: usize, core: C) {
        let now = self.now;
        let slot = &mut self.nodes[node];
        slot.boot += 1;
        slot.core = core;
        (slot.wake, slot.frozen) = (now, Mono(0));
        slot.waiting.clear();
    }
}
