//! Whole clusters over a network that loses, delays and cuts, each from a seed.

use super::*;
use airmail_model::NodeId;
use airmail_model::random;
use airmail_wire::Secret;

/// A datagram on its way.
struct Flying {
    at: Mono,
    from: usize,
    to: usize,
    bytes: Vec<u8>,
}

struct Node {
    membership: Membership,
    wake: Mono,
    /// Not stepped until then: stopped, or dead for good.
    frozen: Mono,
    waiting: Vec<Vec<u8>>,
    boot: u64,
}

/// A cluster in a network of one's own making.
struct Cluster {
    nodes: Vec<Node>,
    flying: Vec<Flying>,
    now: Mono,
    state: u64,
    /// Datagrams that are lost, of a thousand.
    lost: u64,
    cut: Vec<(usize, usize)>,
}

const MS: u64 = 1_000_000;

fn address(node: usize) -> SocketAddr {
    ([10, 0, 0, 1], 7000 + node as u16).into()
}

fn started(node: usize, boot: u64, seed: u64) -> Membership {
    let name = format!("n{node}");
    let id = MemberId::new(&name, NodeId(node as u64), boot, address(node));
    let seal = Seal::new(9, Secret::new(vec![7; 32]), &name, boot);
    let card = Card {
        client_address: format!("{name}:7400"),
        ..Card::default()
    };
    Membership::new(MembershipConfig { id, seed }, seal, card)
}

impl Cluster {
    /// Nodes that all join by the first.
    fn new(count: usize, seed: u64, lost: u64) -> Cluster {
        let node = |node| Node {
            membership: started(node, 1, random::nth(seed, node as u64)),
            wake: Mono(0),
            frozen: Mono(0),
            waiting: Vec::new(),
            boot: 1,
        };
        let mut cluster = Cluster {
            nodes: (0..count).map(node).collect(),
            flying: Vec::new(),
            now: Mono(0),
            state: seed,
            lost,
            cut: Vec::new(),
        };
        (1..count).for_each(|node| cluster.join(node));
        cluster
    }

    fn join(&mut self, node: usize) {
        let first = self.nodes[0].membership.id().clone();
        self.step(node, Input::Join(first));
    }

    fn draw(&mut self, of: u64) -> u64 {
        self.state = self.state.wrapping_add(random::STEP);
        random::mixed(self.state) % of
    }

    fn step(&mut self, node: usize, input: Input<'_>) {
        let mut out = Vec::new();
        let next = self.nodes[node].membership.step(self.now, input, &mut out);
        if let Ok(next) = next {
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

    fn run(&mut self, seconds: u64) {
        let end = self.now.plus(Duration::from_secs(seconds));
        while self.now < end {
            let arrival = self.flying.iter().map(|flying| flying.at);
            let wake = self.nodes.iter().map(|node| node.wake.max(node.frozen));
            let next = arrival.chain(wake).min().unwrap();
            self.now = next.max(self.now).min(end);
            let due: Vec<Flying> = self
                .flying
                .extract_if(.., |flying| flying.at <= self.now)
                .collect();
            for Flying {
                from, to, bytes, ..
            } in due
            {
                if !self.cut.contains(&(from, to)) {
                    self.nodes[to].waiting.push(bytes);
                }
            }
            for node in 0..self.nodes.len() {
                if self.nodes[node].frozen > self.now {
                    continue;
                }
                for bytes in std::mem::take(&mut self.nodes[node].waiting) {
                    self.step(node, Input::Datagram(&bytes));
                }
                if self.nodes[node].wake <= self.now {
                    self.step(node, Input::Tick);
                }
            }
        }
    }

    fn standing(&self, of: usize, at: usize) -> Option<Standing> {
        let name = format!("n{of}");
        let mut members = self.nodes[at].membership.members();
        members
            .find(|member| member.id.name == name)
            .map(|member| member.standing)
    }

    /// Asserts how each of `at` sees a node.
    fn assert(&self, of: usize, at: impl IntoIterator<Item = usize>, expected: Standing) {
        for at in at {
            if at != of {
                let found = self.standing(of, at);
                assert_eq!(found, Some(expected), "n{of} at n{at}, seed {}", self.state);
            }
        }
    }

    fn restart(&mut self, node: usize) {
        let boot = self.nodes[node].boot + 1;
        let seed = self.draw(u64::MAX);
        let slot = &mut self.nodes[node];
        slot.boot = boot;
        slot.membership = started(node, boot, seed);
        slot.wake = self.now;
        slot.frozen = Mono(0);
        slot.waiting.clear();
    }
}

const SEEDS: u64 = 20;

#[test]
fn every_node_learns_of_every_other_and_what_it_says_of_itself() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(6, seed, 100);
        cluster.run(8);
        for node in 0..6 {
            for member in cluster.nodes[node].membership.members() {
                let card = member.card.as_ref();
                let address = card.map(|card| card.client_address.clone());
                assert_eq!(
                    address,
                    Some(format!("{}:7400", member.id.name)),
                    "seed {seed}"
                );
                assert_ne!(member.standing, Standing::Down, "seed {seed}");
            }
            assert_eq!(cluster.nodes[node].membership.members().count(), 5);
        }
    }
}

#[test]
fn a_node_that_dies_is_down_everywhere_soon_and_live_again_when_it_was_started_again() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(5, seed, 20);
        cluster.run(5);
        // The one by which all have joined is no other than the rest.
        let dies = (seed % 5) as usize;
        cluster.nodes[dies].frozen = Mono::NEVER;
        cluster.run(8);
        cluster.assert(dies, (0..5).filter(|at| *at != dies), Standing::Down);
        cluster.restart(dies);
        if dies != 0 {
            cluster.join(dies);
        }
        cluster.run(8);
        cluster.assert(dies, 0..5, Standing::Live);
        for other in 0..5 {
            cluster.assert(other, [dies], Standing::Live);
        }
        let boots: Vec<u64> = cluster.nodes[(dies + 1) % 5]
            .membership
            .members()
            .filter(|member| member.id.name == format!("n{dies}"))
            .map(|member| member.id.boot)
            .collect();
        assert_eq!(boots, [2], "seed {seed}");
    }
}

#[test]
fn a_node_that_stops_for_a_while_comes_back_by_itself() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(4, seed, 20);
        cluster.run(5);
        let stopped = (seed % 4) as usize;
        let seconds = 1 + seed;
        cluster.nodes[stopped].frozen = cluster.now.plus(Duration::from_secs(seconds));
        cluster.run(seconds + 12);
        for node in 0..4 {
            cluster.assert(node, 0..4, Standing::Live);
        }
    }
}

#[test]
fn two_halves_that_were_cut_apart_are_one_again_after_the_cut() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(6, seed, 20);
        cluster.run(5);
        for a in 0..3 {
            for b in 3..6 {
                cluster.cut.extend([(a, b), (b, a)]);
            }
        }
        cluster.run(10);
        cluster.assert(4, 0..3, Standing::Down);
        cluster.assert(1, 3..6, Standing::Down);
        cluster.assert(1, 0..3, Standing::Live);
        cluster.cut.clear();
        cluster.run(15);
        for node in 0..6 {
            cluster.assert(node, 0..6, Standing::Live);
        }
    }
}

#[test]
fn a_cut_one_way_between_two_of_many_takes_nobody_down() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(5, seed, 0);
        cluster.run(5);
        cluster.cut.push((1, 2));
        for _ in 0..20 {
            cluster.run(1);
            for node in 0..5 {
                for at in (0..5).filter(|at| *at != node) {
                    assert_ne!(
                        cluster.standing(node, at),
                        Some(Standing::Down),
                        "seed {seed}"
                    );
                }
            }
        }
    }
}

#[test]
fn whoever_says_that_it_stops_has_left_and_is_not_down() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(4, seed, 100);
        cluster.run(5);
        cluster.step(2, Input::Leave);
        cluster.nodes[2].frozen = Mono::NEVER;
        cluster.run(8);
        cluster.assert(2, [0, 1, 3], Standing::Left);
    }
}

#[test]
fn whoever_did_not_hear_that_a_node_left_hears_it_later() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(5, seed, 20);
        cluster.run(5);
        let (cut, leaves) = (
            (seed % 5) as usize,
            ((seed + 1 + seed / 5 % 4) % 5) as usize,
        );
        for other in (0..5).filter(|other| *other != cut) {
            cluster.cut.extend([(cut, other), (other, cut)]);
        }
        cluster.step(leaves, Input::Leave);
        cluster.nodes[leaves].frozen = Mono::NEVER;
        cluster.run(8);
        cluster.cut.clear();
        cluster.run(30);
        cluster.assert(leaves, (0..5).filter(|at| *at != leaves), Standing::Left);
    }
}

#[test]
fn a_change_of_what_a_node_says_of_itself_is_known_within_two_seconds() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(6, seed, 20);
        cluster.run(5);
        let before = cluster.nodes[0].membership.version();
        let card = Card {
            draining: true,
            ..cluster.nodes[3].membership.own().clone()
        };
        cluster.step(3, Input::Card(card));
        cluster.run(2);
        for at in [0, 1, 2, 4, 5] {
            let mut members = cluster.nodes[at].membership.members();
            let member = members.find(|member| member.id.name == "n3").unwrap();
            assert!(
                member.card.as_ref().unwrap().draining,
                "at n{at}, seed {seed}"
            );
        }
        assert!(cluster.nodes[0].membership.version() > before);
    }
}

#[test]
fn what_is_known_does_not_change_where_nothing_does() {
    let mut cluster = Cluster::new(5, 1, 0);
    cluster.run(10);
    let before: Vec<u64> = cluster
        .nodes
        .iter()
        .map(|node| node.membership.version())
        .collect();
    cluster.run(30);
    let after: Vec<u64> = cluster
        .nodes
        .iter()
        .map(|node| node.membership.version())
        .collect();
    assert_eq!(before, after);
}

#[test]
fn one_seed_gives_one_history() {
    let history = |seed| {
        let mut cluster = Cluster::new(5, seed, 100);
        cluster.run(10);
        let versions = cluster.nodes.iter().map(|node| node.membership.version());
        (versions.collect::<Vec<_>>(), cluster.state)
    };
    assert_eq!(history(3), history(3));
    assert_ne!(history(3), history(4));
}
