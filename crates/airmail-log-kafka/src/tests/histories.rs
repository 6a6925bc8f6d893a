//! Histories: nodes that append to one log and read it, on brokers that do what Kafka may do.
//!
//! Clients send in order, go back to the earliest batch without an answer after a refusal, begin a new epoch after an
//! unknown outcome, and go on at another node with the same batches when they lose theirs. In the end: what was
//! acknowledged is delivered, nothing is delivered twice, each client's messages are in its order, every reader of
//! every node has had the same, and nothing is told as lost. One seed is one history.

use super::node::{BEGIN, Heard, Node, after};
use crate::config::{KafkaConfig, StatementConfig};
use crate::model::{Faults, ModelCluster};
use airmail_log::conformance::{Maker, log};
use airmail_log::{Call, Completion, LogStorage, Refusal, Tag};
use airmail_model::{Now, Provisions, random};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

const NODES: u64 = 3;
const CLIENTS: u64 = 4;
const STEPS: u64 = 400;
/// Batches of a client under way.
const WINDOW: usize = 4;

/// A client, with the node it is at.
struct Client {
    id: u64,
    epoch: u32,
    node: usize,
    next: u64,
    count: u64,
    /// Without an ack: sequence and text.
    unanswered: VecDeque<(u64, String)>,
    /// Number of them that are sent at this node.
    sent: usize,
    under_way: BTreeMap<Tag, u64>,
    is_refused: bool,
    is_unknown: bool,
    /// Nothing of its epoch was sent at another node.
    is_sole: bool,
    acknowledged: BTreeSet<String>,
}

impl Client {
    fn new(id: u64, node: usize) -> Client {
        Client {
            id,
            epoch: 1,
            node,
            next: 0,
            count: 0,
            unanswered: VecDeque::new(),
            sent: 0,
            under_way: BTreeMap::new(),
            is_refused: false,
            is_unknown: false,
            is_sole: true,
            acknowledged: BTreeSet::new(),
        }
    }

    fn go_to(&mut self, node: usize) {
        self.node = node;
        self.sent = 0;
        self.under_way.clear();
        self.is_refused = false;
        self.is_sole = false;
    }

    fn hear(&mut self, node: &mut Node) {
        let answered = self
            .under_way
            .keys()
            .filter(|t| node.answers.contains_key(t));
        let answered: Vec<Tag> = answered.copied().collect();
        for t in answered {
            let sequence = self.under_way.remove(&t).unwrap();
            match node.answers.remove(&t).unwrap() {
                Completion::Appended { exact, .. } => {
                    assert!(
                        !exact && !self.is_unknown,
                        "acknowledged behind an unknown outcome"
                    );
                    let at = self.unanswered.iter().position(|(n, _)| *n == sequence);
                    if let Some((_, text)) = at.and_then(|at| self.unanswered.remove(at)) {
                        self.acknowledged.insert(text);
                        self.sent = self.sent.saturating_sub(1);
                    }
                }
                Completion::Refused { why, .. } => match why {
                    Refusal::Busy { .. } | Refusal::OutOfOrder { .. } => self.is_refused = true,
                    Refusal::OutcomeUnknown | Refusal::UnknownProducer => {
                        self.is_unknown = true;
                        self.is_sole = false;
                    }
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            }
        }
        if !self.under_way.is_empty() {
            return;
        }
        if self.is_unknown {
            self.epoch += 1;
            self.next = 0;
            self.is_sole = true;
            self.unanswered.clear();
        }
        if self.is_unknown || self.is_refused {
            self.sent = 0;
        }
        self.is_unknown = false;
        self.is_refused = false;
    }

    fn send(&mut self, node: &mut Node, makes_new: bool) {
        if self.is_refused || self.is_unknown || self.under_way.len() >= WINDOW {
            return;
        }
        if self.sent == self.unanswered.len() {
            if !makes_new {
                return;
            }
            let text = format!(
                "client {} epoch {:03} message {:05}",
                self.id, self.epoch, self.count
            );
            self.unanswered.push_back((self.next, text));
            self.count += 1;
            self.next += 1;
        }
        let (sequence, text) = &self.unanswered[self.sent];
        let maker = Maker::of(log(0), self.id, self.epoch).at(*sequence);
        let batch = maker.batch(&[("a", text)]);
        let sequence = *sequence;
        let is_sole = self.is_sole;
        let tag = node.call(|t| Call::Append {
            t,
            log: batch.log(),
            map: batch.map_epoch(),
            batch,
            sole: is_sole,
        });
        self.under_way.insert(tag, sequence);
        self.sent += 1;
    }
}

struct World {
    seed: u64,
    draws: u64,
    now: Now,
    cluster: ModelCluster,
    provisions: Provisions,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    /// Clients go to other nodes, and nodes die; else partitions stop.
    may_move: bool,
    /// Deliveries to readers of nodes that were restarted.
    heard: Vec<Heard>,
}

impl World {
    fn new(seed: u64, may_move: bool) -> World {
        let cluster = ModelCluster::new(seed, Faults::NONE);
        let mut world = World {
            seed,
            draws: 0,
            now: BEGIN,
            cluster,
            provisions: Provisions::NONE,
            nodes: Vec::new(),
            clients: Vec::new(),
            may_move,
            heard: Vec::new(),
        };
        for n in 0..NODES {
            let config = world.config();
            let mut node = Node::new(&world.cluster, config);
            if n == 0 {
                world.provisions = node.provision(&mut world.now, log(0), 1);
            }
            world.nodes.push(node);
            world.open(n as usize);
        }
        let clients = (0..CLIENTS).map(|n| Client::new(n + 1, (n % NODES) as usize));
        world.clients = clients.collect();
        world
    }

    fn config(&mut self) -> KafkaConfig {
        KafkaConfig {
            seed: self.draw(u64::MAX),
            recent_bytes: [0, 500, 4 << 20][self.draw(3) as usize],
            catch_up_readers: 2,
            statements: StatementConfig {
                bytes: [1_000, 5_000, 256 << 20][self.draw(3) as usize],
                ..StatementConfig::default()
            },
            ..KafkaConfig::default()
        }
    }

    fn draw(&mut self, bound: u64) -> u64 {
        self.draws += 1;
        random::nth(!self.seed, self.draws) % bound
    }

    fn open(&mut self, n: usize) {
        loop {
            match self.nodes[n].open(&mut self.now, log(0), self.provisions) {
                Completion::Opened { .. } => break,
                Completion::Refused {
                    why: Refusal::Busy { .. },
                    ..
                } => self.now = after(self.now, Duration::from_secs(1)),
                other => panic!("{other:?}"),
            }
        }
        self.nodes[n].read(log(0), u32::MAX);
    }

    /// A node dies, and is back; its clients have gone elsewhere.
    fn restart(&mut self, n: usize) {
        for client in &mut self.clients {
            if client.node == n {
                client.go_to((n + 1) % NODES as usize);
            }
        }
        let config = self.config();
        let fresh = Node::new(&self.cluster, config);
        let old = std::mem::replace(&mut self.nodes[n], fresh);
        self.heard.extend(old.heard.into_values());
        drop(old.storage);
        self.open(n);
    }

    fn faults(&self) -> Faults {
        Faults {
            delay_min: Duration::from_micros(100),
            delay_max: Duration::from_millis(40),
            unknown_stored: 10,
            unknown_lost: 20,
            twice: 50,
            leader_moves: 30,
            skew_ms: 2_500,
            old_answers: 50,
            unanswered: 20,
            full: 20,
            holes: 20,
        }
    }

    fn step(&mut self, makes_new: bool) {
        self.now = after(self.now, Duration::from_micros(self.draw(10_000)));
        for n in 0..self.nodes.len() {
            self.nodes[n].poll(self.now);
        }
        for client in &mut self.clients {
            let node = &mut self.nodes[client.node];
            client.hear(node);
            client.send(node, makes_new);
        }
    }

    fn fault(&mut self) {
        let n = self.draw(NODES) as usize;
        match self.draw(60) {
            0 if self.may_move => self.restart(n),
            1..=3 if self.may_move => {
                let client = self.draw(CLIENTS) as usize;
                self.clients[client].go_to(n);
            }
            4 | 5 => {
                let credit = [0, 300, u32::MAX][self.draw(3) as usize];
                self.nodes[n].read(log(0), credit);
            }
            6 => {
                let readers: Vec<_> = self.nodes[n].heard.keys().copied().collect();
                for r in readers {
                    let bytes = 1000;
                    self.nodes[n].storage.submit(Call::Credit { r, bytes });
                }
            }
            7 if !self.may_move => {
                let topics = self.cluster.topics();
                let mine = topics
                    .iter()
                    .find(|topic| topic.as_str().contains(".normal."));
                let time = Duration::from_secs(self.draw(90));
                let partition = crate::brokers::Partition::new(mine.unwrap(), 0);
                self.cluster.stop(&partition, time);
            }
            _ => {}
        }
    }

    /// Nothing goes wrong any more; everything comes to its end.
    fn settle(&mut self) {
        self.cluster.set_faults(Faults::NONE);
        for n in 0..self.nodes.len() {
            let readers: Vec<_> = self.nodes[n].heard.keys().copied().collect();
            for r in readers {
                let bytes = u32::MAX;
                self.nodes[n].storage.submit(Call::Credit { r, bytes });
            }
        }
        for turn in 0..4_000 {
            self.step(false);
            if turn % 10 == 0 {
                self.now = after(self.now, Duration::from_millis(500));
            }
        }
        for client in &self.clients {
            assert!(
                client.unanswered.is_empty(),
                "client {} waits for ever",
                client.id
            );
        }
    }

    fn check(&self) {
        let first = &self.nodes[0].heard.values().next().unwrap().messages;
        let texts: BTreeSet<&String> = first.iter().map(|(_, text)| text).collect();
        assert_eq!(texts.len(), first.len(), "something is delivered twice");
        for client in &self.clients {
            for text in &client.acknowledged {
                assert!(
                    texts.contains(text),
                    "{text} is acknowledged, and not delivered"
                );
            }
            let own = format!("client {} ", client.id);
            let mine = first.iter().filter(|(_, text)| text.starts_with(&own));
            let mine: Vec<&String> = mine.map(|(_, text)| text).collect();
            assert!(
                mine.is_sorted(),
                "client {} out of order: {mine:?}",
                client.id
            );
        }
        for node in &self.nodes {
            for heard in node.heard.values() {
                assert_eq!(&heard.messages, first, "two readers differ");
                assert_eq!(heard.losses, [], "told as lost");
            }
            assert_eq!(node.storage.damage(), 0);
        }
        for heard in &self.heard {
            let had = first.get(..heard.messages.len());
            assert_eq!(Some(&heard.messages[..]), had, "a node before its restart");
        }
    }
}

/// Runs a history; messages acknowledged, and copies left out.
fn run(seed: u64, may_move: bool) -> (usize, u64) {
    let mut world = World::new(seed, may_move);
    let faults = world.faults();
    world.cluster.set_faults(faults);
    for _ in 0..STEPS {
        world.step(true);
        world.fault();
    }
    world.settle();
    world.check();
    let acknowledged = world.clients.iter().map(|client| client.acknowledged.len());
    let left_out = world.nodes.iter().map(|node| node.storage.left_out()).sum();
    (acknowledged.sum(), left_out)
}

fn run_all(seeds: std::ops::Range<u64>, may_move: bool) {
    let mut all = (0, 0);
    for seed in seeds {
        let caught = std::panic::catch_unwind(|| run(seed, may_move));
        let (acknowledged, left_out) = match caught {
            Ok(counts) => counts,
            Err(cause) => {
                let text = cause.downcast_ref::<String>().cloned().unwrap_or_default();
                panic!("seed {seed}: {text}");
            }
        };
        all.0 += acknowledged;
        all.1 += left_out;
    }
    assert!(all.0 > 0 && all.1 > 0, "nothing happens: {all:?}");
}

#[test]
fn clients_that_go_from_node_to_node_lose_nothing_and_get_nothing_twice() {
    run_all(0..40, true);
}

#[test]
fn partitions_that_stop_leave_nothing_acknowledged_undelivered() {
    run_all(0..40, false);
}
