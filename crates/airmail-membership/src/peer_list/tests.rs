//! Whole clusters with one list, over a network that loses, delays and cuts, each from a seed.

use super::said::{HEAD_BYTES, QUESTION};
use super::*;
use crate::simulated_network::{self, Core, SEEDS, address};
use airmail_wire::Secret;

/// A cluster of which all nodes have the list of all, each with its own address in it.
type Cluster = simulated_network::Cluster<PeerList>;

impl Core for PeerList {
    fn step(
        &mut self,
        now: Mono,
        come: Option<(SocketAddr, &[u8])>,
        out: &mut Vec<Datagram>,
    ) -> Result<Mono, SealError> {
        let input = come.map_or(PeerInput::Tick, |(from, bytes)| {
            PeerInput::Datagram(from, bytes)
        });
        PeerList::step(self, now, input, out)
    }

    fn known(&self) -> Vec<&Member> {
        self.members().collect()
    }
}

fn listed(node: usize) -> String {
    format!("n{node}.example.org:7402")
}

fn named(name: &str, node: usize, boot: u64, secret: u8, count: usize) -> PeerList {
    let id = MemberId::new(name, NodeId(node as u64), boot, address(node));
    let seal = Seal::new(9, Secret::new(vec![secret; 32]), name, boot);
    let card = Card {
        client_address: format!("{name}:7400"),
        ..Card::default()
    };
    PeerList::new(id, (0..count).map(listed), seal, card)
}

impl Cluster {
    fn new(count: usize, seed: u64, lost: u64) -> Cluster {
        let start = |node| named(&format!("n{node}"), node, 1, 7, count);
        let mut cluster = Cluster::of((0..count).map(start), seed, lost);
        (0..count).for_each(|node| cluster.find_all(node));
        cluster
    }

    /// Has the names in a node's list lead to where the nodes are.
    fn find_all(&mut self, node: usize) {
        for other in 0..self.nodes.len() {
            self.input(node, PeerInput::Found(Place(other as u16), address(other)));
        }
    }

    fn input(&mut self, node: usize, input: PeerInput<'_>) {
        self.happen(node, |list, now, out| list.step(now, input, out));
    }

    fn assert_all_live(&self) {
        for node in 0..self.nodes.len() {
            self.assert(node, 0..self.nodes.len(), Standing::Live);
            let members = self.nodes[node].core.members().count();
            assert_eq!(
                members,
                self.nodes.len() - 1,
                "its own address is no member"
            );
        }
    }

    fn kill(&mut self, node: usize) {
        self.nodes[node].frozen = Mono::NEVER;
    }

    fn restart(&mut self, node: usize) {
        let (boot, count) = (self.nodes[node].boot + 1, self.nodes.len());
        self.put(node, named(&format!("n{node}"), node, boot, 7, count));
        self.find_all(node);
    }
}

#[test]
fn every_node_knows_every_other_by_its_answer_and_leaves_its_own_address_out() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(5, seed, 0);
        cluster.run(1);
        cluster.assert_all_live();
        for at in 0..5 {
            for member in cluster.nodes[at].core.members() {
                let card = member.card.as_ref().unwrap();
                let expected = format!("{}:7400", member.id.name);
                assert_eq!(card.client_address, expected);
            }
        }
    }
}

#[test]
fn a_node_that_dies_is_suspect_then_down_within_five_seconds_and_live_when_started_again() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(4, seed, 20);
        cluster.run(3);
        let dies = (seed % 4) as usize;
        let others = || (0..4).filter(move |at| *at != dies);
        cluster.kill(dies);
        cluster.run(2);
        cluster.assert(dies, others(), Standing::Suspect);
        cluster.run(3);
        cluster.assert(dies, others(), Standing::Down);
        // For as long as it takes.
        cluster.run(60);
        cluster.assert(dies, others(), Standing::Down);
        cluster.restart(dies);
        cluster.run(2);
        cluster.assert_all_live();
        let name = format!("n{dies}");
        assert!(others().all(|at| cluster.member(&name, at).unwrap().id.boot == 2));
    }
}

#[test]
fn a_node_is_live_again_at_once_when_it_was_started_again_before_anyone_noticed() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(3, seed, 0);
        cluster.run(3);
        cluster.restart(1);
        cluster.run(1);
        cluster.assert_all_live();
        assert_eq!(cluster.member("n1", 0).unwrap().id.boot, 2);
    }
}

#[test]
fn a_network_that_loses_a_tenth_takes_nobody_down() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(4, seed, 100);
        for _ in 0..60 {
            cluster.run(1);
            for at in 0..4 {
                for member in cluster.nodes[at].core.members() {
                    assert_ne!(member.standing, Standing::Down, "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn a_cut_one_way_is_seen_from_both_ends_and_by_nobody_else_and_passes() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(3, seed, 0);
        cluster.run(3);
        cluster.cut.push((1, 2));
        cluster.run(6);
        cluster.assert(1, [2], Standing::Down);
        cluster.assert(2, [1], Standing::Down);
        // Each judges by itself.
        cluster.assert(1, [0], Standing::Live);
        cluster.assert(2, [0], Standing::Live);
        cluster.cut.clear();
        cluster.run(1);
        cluster.assert_all_live();
    }
}

#[test]
fn a_node_that_stood_still_takes_nobody_for_silent() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(3, seed, 0);
        cluster.run(3);
        let stopped = (seed % 3) as usize;
        let seconds = 2 + seed;
        cluster.nodes[stopped].frozen = cluster.now.plus(Duration::from_secs(seconds));
        let version = cluster.nodes[stopped].core.version();
        cluster.run(seconds + 1);
        cluster.assert_all_live();
        let now = cluster.nodes[stopped].core.version();
        assert_eq!(now, version, "nothing has changed for it, seed {seed}");
    }
}

#[test]
fn a_drain_is_told_at_once_and_whoever_stops_has_left_until_it_is_started_again() {
    for seed in 0..SEEDS {
        let mut cluster = Cluster::new(3, seed, 20);
        cluster.run(3);
        let version = cluster.nodes[0].core.version();
        let card = Card {
            draining: true,
            ..cluster.nodes[2].core.own().clone()
        };
        cluster.input(2, PeerInput::Card(card));
        cluster.run(1);
        for at in [0, 1] {
            let card = cluster.member("n2", at).unwrap().card.clone();
            assert!(card.unwrap().draining, "seed {seed}");
        }
        assert_ne!(cluster.nodes[0].core.version(), version);
        cluster.input(2, PeerInput::Leave);
        cluster.kill(2);
        cluster.run(20);
        cluster.assert(2, [0, 1], Standing::Left);
        cluster.restart(2);
        cluster.run(2);
        cluster.assert_all_live();
    }
}

#[test]
fn a_node_that_is_not_there_yet_is_down_by_its_address_and_by_its_name_once_it_was() {
    let mut cluster = Cluster::new(3, 1, 0);
    cluster.kill(2);
    cluster.run(2);
    assert!(
        cluster.member(&listed(2), 0).is_none(),
        "it has time to come"
    );
    cluster.run(4);
    let member = cluster.member(&listed(2), 0).unwrap();
    assert_eq!((member.standing, &member.card), (Standing::Down, &None));
    assert_eq!(member.id.address, address(2));
    cluster.restart(2);
    cluster.run(1);
    cluster.assert_all_live();
}

#[test]
fn another_node_at_an_address_takes_the_place_of_one_that_is_silent_there() {
    let mut cluster = Cluster::new(3, 1, 0);
    cluster.run(3);
    // Its clock is behind that of the one before.
    cluster.nodes[2].core = named("new", 12, 0, 7, 3);
    cluster.find_all(2);
    cluster.run(3);
    assert!(cluster.member("n2", 0).is_none());
    assert_eq!(cluster.member("new", 0).unwrap().standing, Standing::Live);
}

#[test]
fn a_node_that_two_addresses_of_the_list_lead_to_is_one_member() {
    let mut cluster = Cluster::new(3, 1, 0);
    cluster.kill(2);
    for node in 0..2 {
        cluster.input(node, PeerInput::Found(Place(2), address(1)));
    }
    cluster.run(6);
    let names: Vec<&str> = cluster.nodes[0]
        .core
        .members()
        .map(|member| &*member.id.name)
        .collect();
    assert_eq!(names, ["n1"]);
    // The second is its own address, too.
    let names: Vec<&str> = cluster.nodes[1]
        .core
        .members()
        .map(|member| &*member.id.name)
        .collect();
    assert_eq!(names, ["n0"]);
    cluster.assert(1, [0], Standing::Live);
}

#[test]
fn a_node_that_is_not_on_the_list_is_answered_and_no_member() {
    let mut cluster = Cluster::new(2, 1, 0);
    let mut third = named("n2", 2, 1, 7, 2);
    let (mut out, mut answers) = (Vec::new(), Vec::new());
    let found = PeerInput::Found(Place(0), address(0));
    third.step(Mono(0), found, &mut out).unwrap();
    let asked = PeerInput::Datagram(address(2), &out[0].bytes);
    cluster.nodes[0]
        .core
        .step(Mono(0), asked, &mut answers)
        .unwrap();
    let answer = answers
        .iter()
        .find(|answer| answer.to == address(2))
        .unwrap();
    let answer = PeerInput::Datagram(address(0), &answer.bytes);
    third.step(Mono(0), answer, &mut out).unwrap();
    assert_eq!(third.members().next().unwrap().id.name, "n0");
    cluster.run(6);
    assert_eq!(cluster.nodes[0].core.members().count(), 1);
}

#[test]
fn nobody_without_the_secret_is_answered_or_believed() {
    let mut cluster = Cluster::new(2, 1, 0);
    cluster.run(1);
    for secret in [8, 9] {
        let mut stranger = named("n1", 1, 5, secret, 2);
        let (mut out, mut answers) = (Vec::new(), Vec::new());
        let found = PeerInput::Found(Place(0), address(0));
        stranger.step(Mono(0), found, &mut out).unwrap();
        let asked = PeerInput::Datagram(address(1), &out[0].bytes);
        let now = cluster.now;
        let dropped = cluster.nodes[0].core.step(now, asked, &mut answers);
        assert_eq!(dropped, Err(SealError::Secret));
    }
    cluster.assert_all_live();
    assert_eq!(cluster.member("n1", 0).unwrap().id.boot, 1);
}

#[test]
fn an_answer_to_an_earlier_start_and_bytes_that_say_nothing_are_dropped() {
    let mut of = [named("n0", 0, 2, 7, 2), named("n1", 1, 1, 7, 2)];
    let said = |asker, place| Said {
        is_question: false,
        place: Place(place),
        asker,
        node: NodeId(1),
        card: of[1].own.clone(),
    };
    let said = [said(1, 1), said(2, 9), said(2, 1)].map(|said| said.encode());
    let [earlier, nowhere, now] = said.map(|said| of[1].seal.seal(&said));
    for (bytes, members) in [(earlier, 0), (nowhere, 0), (now, 1)] {
        let input = PeerInput::Datagram(address(1), &bytes);
        of[0].step(Mono(0), input, &mut Vec::new()).unwrap();
        assert_eq!(of[0].members().count(), members);
    }
    for bytes in [&b""[..], &[QUESTION; HEAD_BYTES], &[3; 40]] {
        let sealed = of[1].seal.seal(bytes);
        let input = PeerInput::Datagram(address(1), &sealed);
        let dropped = of[0].step(Mono(0), input, &mut Vec::new());
        assert_eq!(dropped, Err(SealError::Malformed));
    }
}
