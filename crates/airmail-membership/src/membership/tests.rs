//! Whole clusters over a network that loses, delays and cuts, each from a seed.

use super::*;
use crate::simulated_network::{self, Core, SEEDS, address};
use airmail_model::NodeId;
use airmail_model::random;
use airmail_wire::Secret;

type Cluster = simulated_network::Cluster<Membership>;

impl Core for Membership {
    fn step(
        &mut self,
        now: Mono,
        come: Option<(SocketAddr, &[u8])>,
        out: &mut Vec<Datagram>,
    ) -> Result<Mono, SealError> {
        let input = come.map_or(Input::Tick, |(_, bytes)| Input::Datagram(bytes));
        Membership::step(self, now, input, out)
    }

    fn known(&self) -> Vec<&Member> {
        self.members().collect()
    }
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
        let start = |node| started(node, 1, random::nth(seed, node as u64));
        let mut cluster = Cluster::of((0..count).map(start), seed, lost);
        (1..count).for_each(|node| cluster.join(node));
        cluster
    }

    fn join(&mut self, node: usize) {
        let first = self.nodes[0].core.id().clone();
        self.input(node, Input::Join(first));
    }

    fn input(&mut self, node: usize, input: Input<'_>) {
        self.happen(node, |core, now, out| core.step(now, input, out));
    }

    fn restart(&mut self, node: usize) {
        let boot = self.nodes[node].boot + 1;
        let seed = self.draw(u64::MAX);
        self.put(node, started(node, boot, seed));
    }
}

#[test]
fn every_node_learns_of_every_other_and_what_it_says_of_itself() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(6, seed, 100);
        cluster.run(8);
        for node in 0..6 {
            for member in cluster.nodes[node].core.members() {
                let card = member.card.as_ref();
                let address = card.map(|card| card.client_address.clone());
                assert_eq!(
                    address,
                    Some(format!("{}:7400", member.id.name)),
                    "seed {seed}"
                );
                assert_ne!(member.standing, Standing::Down, "seed {seed}");
            }
            assert_eq!(cluster.nodes[node].core.members().count(), 5);
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
            .core
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
fn a_node_that_is_stopped_or_cut_off_or_deaf_is_down_to_the_others_within_five_seconds() {
    for seed in 0..SEEDS / 4 {
        let mut cluster = Cluster::new(5, seed, 0);
        cluster.run(5);
        // What was before may have left its traces.
        for round in 0..8 {
            let hurt = cluster.draw(5) as usize;
            let others = (0..5).filter(|other| *other != hurt);
            let kind = cluster.draw(4);
            for other in others.clone() {
                match kind {
                    0 => cluster.cut.push((other, hurt)),
                    1 => cluster.cut.push((hurt, other)),
                    2 => cluster.cut.extend([(hurt, other), (other, hurt)]),
                    _ => cluster.nodes[hurt].frozen = cluster.now.plus(Duration::from_secs(5)),
                }
            }
            let mut unaware: Vec<usize> = others.collect();
            for _ in 0..50 {
                cluster.run_for(Duration::from_millis(100));
                unaware.retain(|at| cluster.standing(hurt, *at) != Some(Standing::Down));
            }
            let found = format!("n{hurt}, round {round} of seed {seed}, kind {kind}");
            assert_eq!(unaware, [0; 0], "{found}");
            cluster.cut.clear();
            cluster.run(15);
            for node in 0..5 {
                cluster.assert(node, 0..5, Standing::Live);
            }
        }
    }
}

#[test]
fn whoever_says_that_it_stops_has_left_and_is_not_down() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(4, seed, 100);
        cluster.run(5);
        cluster.input(2, Input::Leave);
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
        cluster.input(leaves, Input::Leave);
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
        let before = cluster.nodes[0].core.version();
        let card = Card {
            draining: true,
            ..cluster.nodes[3].core.own().clone()
        };
        cluster.input(3, Input::Card(card));
        cluster.run(2);
        for at in [0, 1, 2, 4, 5] {
            let mut members = cluster.nodes[at].core.members();
            let member = members.find(|member| member.id.name == "n3").unwrap();
            assert!(
                member.card.as_ref().unwrap().draining,
                "at n{at}, seed {seed}"
            );
        }
        assert!(cluster.nodes[0].core.version() > before);
    }
}

#[test]
fn what_is_known_does_not_change_where_nothing_does() {
    let mut cluster = Cluster::new(5, 1, 0);
    cluster.run(10);
    let before: Vec<u64> = cluster
        .nodes
        .iter()
        .map(|node| node.core.version())
        .collect();
    cluster.run(30);
    let after: Vec<u64> = cluster
        .nodes
        .iter()
        .map(|node| node.core.version())
        .collect();
    assert_eq!(before, after);
}

#[test]
fn one_seed_gives_one_history() {
    let history = |seed| {
        let mut cluster = Cluster::new(5, seed, 100);
        cluster.run(10);
        let versions = cluster.nodes.iter().map(|node| node.core.version());
        (versions.collect::<Vec<_>>(), cluster.state)
    };
    assert_eq!(history(3), history(3));
    assert_ne!(history(3), history(4));
}
