//! Verdicts are equal at all nodes, whatever statement each began from.
//!
//! Somebody appends batches and copies of them to a log; nodes begin to read it at drawn times, stop, and begin again,
//! while retention and trims take away its beginning and its producers are forgotten. What a reader of any node
//! is given is compared with the fold of the whole log since its first record, which no node has read as a whole. One
//! seed is one history.

use super::node::{BEGIN, Heard, Node, after};
use crate::brokers::{Brokers, Failure, NewRecord, Partition, Produced, Token, Told};
use crate::config::{KafkaConfig, StatementConfig};
use crate::layout::MapTopics;
use crate::marks::MarkBounds;
use crate::model::{Faults, ModelBrokers, ModelCluster};
use crate::producers::{KnownBounds, Producers, RecordFacts, STALE_MS};
use airmail_log::conformance::{EPOCH, Maker, log, spec};
use airmail_log::{Call, Completion, LogSpec, LogStorage, Refusal};
use airmail_model::{Batch, Checked, MapEpoch, Now, Provisions, Retention, Sequence, random};
use std::collections::BTreeMap;
use std::time::Duration;

const STEPS: u64 = 120;
const NODES: usize = 3;
const PRODUCERS: u64 = 8;
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Polls after each leap of time, in which brokers answer what was asked meanwhile.
const TURNS: u32 = 25;
/// Time for which records are kept in half of the histories; in the others only trims take them.
const KEPT: Duration = Duration::from_secs(2 * 60 * 60);

/// A life of the log, from its provisioning to its deletion.
struct Life {
    as_of: u64,
    provisions: Provisions,
    partition: Partition,
    /// The whole log, as its first reader would have it.
    producers: Producers,
    /// Messages that are not left out, by their numbers.
    messages: BTreeMap<u64, String>,
    batches: Vec<Checked<Batch>>,
}

struct World {
    seed: u64,
    draws: u64,
    now: Now,
    cluster: ModelCluster,
    appender: ModelBrokers,
    tokens: u64,
    nodes: Vec<Option<Node>>,
    config: KafkaConfig,
    life: Life,
    /// The next sequence of each producer.
    next: BTreeMap<u64, u64>,
    faults: Faults,
    /// Records are kept for [`KEPT`].
    is_short: bool,
}

/// The provisions, the partition and the fold of a life of the log that nobody has written to.
fn begin(node: &mut Node, now: &mut Now, config: &KafkaConfig, as_of: u64) -> Life {
    let provisions = node.provision(now, log(0), 1);
    let topics = MapTopics::decode(&provisions).unwrap();
    Life {
        as_of,
        provisions,
        partition: Partition::new(&topics.topic(config, log(0)), 0),
        producers: Producers::new(config.statements.known),
        messages: BTreeMap::new(),
        batches: Vec::new(),
    }
}

impl World {
    fn new(seed: u64, spoil: impl Fn(&mut KafkaConfig)) -> World {
        let cluster = ModelCluster::new(seed, Faults::NONE);
        let drawn = |n: u64, of: u64| random::nth(!seed, u64::MAX - n) % of;
        let mut config = KafkaConfig {
            seed,
            recent_bytes: [0, 500, 4 << 20][drawn(1, 3) as usize],
            catch_up_readers: 2,
            statements: StatementConfig {
                bytes: [300, 2_000, 256 << 20][drawn(2, 3) as usize],
                known: [KnownBounds { soft: 3, hard: 5 }, KnownBounds::default()]
                    [drawn(3, 2) as usize],
                marks: [
                    MarkBounds {
                        in_segment: 4,
                        segments: 2,
                    },
                    MarkBounds::default(),
                ][drawn(4, 2) as usize],
                ..StatementConfig::default()
            },
            ..KafkaConfig::default()
        };
        spoil(&mut config);
        let mut now = BEGIN;
        let mut node = Node::new(&cluster, config.clone());
        let life = begin(&mut node, &mut now, &config, 1);
        let mut world = World {
            seed,
            draws: 0,
            now,
            appender: cluster.client(),
            cluster,
            tokens: 0,
            nodes: Vec::new(),
            config,
            life,
            next: BTreeMap::new(),
            faults: Faults::NONE,
            is_short: drawn(5, 2) == 0,
        };
        world.nodes.resize_with(NODES, || None);
        world.nodes[0] = Some(node);
        world.open(0);
        if world.draw(2) == 0 {
            world.faults = Faults {
                delay_max: Duration::from_millis(40),
                old_answers: 50,
                unanswered: 20,
                full: 50,
                ..Faults::NONE
            };
            world.cluster.set_faults(world.faults);
        }
        world
    }

    fn draw(&mut self, bound: u64) -> u64 {
        self.draws += 1;
        random::nth(!self.seed, self.draws) % bound
    }

    fn ask(&mut self, n: usize, call: impl Fn(airmail_log::Tag) -> Call) -> Completion {
        loop {
            let node = self.nodes[n].as_mut().unwrap();
            let tag = node.call(&call);
            match node.answer(&mut self.now, tag) {
                Completion::Refused {
                    why: Refusal::Busy { .. },
                    ..
                } => self.pass(Duration::from_millis(300)),
                answer => return answer,
            }
        }
    }

    fn open(&mut self, n: usize) {
        let spec = LogSpec {
            as_of: Sequence(self.life.as_of),
            epoch: MapEpoch(EPOCH.0),
            provisions: self.life.provisions,
            retention: Retention {
                time_ms: self.is_short.then_some(KEPT.as_millis() as u64),
                ..Retention::default()
            },
            ..spec(self.config.durability())
        };
        let opened = self.ask(n, |t| Call::Open {
            t,
            log: log(0),
            spec: Box::new(spec),
        });
        assert!(matches!(opened, Completion::Opened { .. }), "{opened:?}");
        self.nodes[n].as_mut().unwrap().read(log(0), u32::MAX);
    }

    /// Lets time pass: little by little at first, so that everything is done that is due.
    fn pass(&mut self, time: Duration) {
        let end = after(self.now, time);
        let mut steps = 0;
        while self.now.mono < end.mono {
            let left = end.mono.since(self.now.mono);
            let step =
                [Duration::from_secs(10), Duration::from_secs(1200)][usize::from(steps > 15)];
            steps += 1;
            self.now = after(self.now, step.min(left));
            for _ in 0..TURNS {
                for node in self.nodes.iter_mut().flatten() {
                    node.poll(self.now);
                }
                self.now = after(self.now, Duration::from_millis(60));
            }
        }
    }

    fn running(&self) -> Vec<usize> {
        (0..NODES).filter(|n| self.nodes[*n].is_some()).collect()
    }

    /// Stores a batch, and folds it.
    fn store(&mut self, batch: &Checked<Batch>, age_ms: i64) {
        self.tokens += 1;
        let token = Token(self.tokens);
        let sent_ms = self.now.wall.0 / 1000 - age_ms;
        let record = NewRecord {
            key: None,
            value: Some(batch.bytes().clone()),
            sent_ms,
        };
        let partition = &self.life.partition;
        while self
            .appender
            .produce(token, partition, record.clone())
            .is_err()
        {}
        let mut told = Vec::new();
        let Produced {
            offset,
            appended_ms,
        } = loop {
            self.appender.poll(self.now, &mut told);
            if let Some(Told::Produced { result, .. }) = told.pop() {
                break result.unwrap();
            }
            self.now = after(self.now, Duration::from_millis(5));
        };
        let left_out = self.life.producers.take(&RecordFacts {
            offset,
            appended_ms,
            sent_ms,
            stamp: batch.producer(),
            messages: batch.numbers(),
        });
        for record in batch.iter().filter(|r| u32::from(r.index) >= left_out) {
            let number = offset.number().plus(record.index.into()).0;
            let text = String::from_utf8(record.payload.to_vec()).unwrap();
            self.life.messages.insert(number, text);
        }
    }

    fn append(&mut self) {
        let producer = 1 + self.draw(PRODUCERS);
        let hole = self.draw(6) / 5;
        let count = 1 + self.draw(3);
        let first = self.next.get(&producer).copied().unwrap_or(0) + hole;
        self.next.insert(producer, first + count);
        let texts: Vec<String> = (0..count)
            .map(|n| format!("producer {producer} message {:04}", first + n))
            .collect();
        let records: Vec<(&str, &str)> = texts.iter().map(|text| ("a", text.as_str())).collect();
        let batch = Maker::of(log(0), producer, 1).at(first).batch(&records);
        let age_ms = [0, STALE_MS + 60_000][usize::from(self.draw(12) == 0)];
        self.store(&batch, age_ms);
        self.life.batches.push(batch);
    }

    fn append_copy(&mut self) {
        let count = self.life.batches.len() as u64;
        if count > 0 {
            let back = self.draw(20).min(count - 1);
            let batch = self.life.batches[(count - 1 - back) as usize].clone();
            self.store(&batch, 0);
        }
    }

    /// A node of those that run, or one that begins.
    fn somebody(&mut self) -> usize {
        if self.running().is_empty() {
            self.start(0);
        }
        let running = self.running();
        running[self.draw(running.len() as u64) as usize]
    }

    fn start(&mut self, n: usize) {
        if self.nodes[n].is_none() {
            let config = KafkaConfig {
                seed: self.draw(u64::MAX),
                ..self.config.clone()
            };
            self.nodes[n] = Some(Node::new(&self.cluster, config));
            self.open(n);
        }
    }

    fn stop(&mut self, n: usize) {
        if let Some(node) = self.nodes[n].take() {
            for heard in node.heard.values() {
                self.compare(heard);
            }
        }
    }

    fn trim(&mut self) {
        let n = self.somebody();
        let high = self.cluster.high(&self.life.partition);
        let before = crate::place::Offset(self.draw(high.0 + 1)).number();
        let done = self.ask(n, |t| Call::Trim {
            t,
            log: log(0),
            before,
        });
        assert!(matches!(done, Completion::Done { .. }), "{done:?}");
    }

    /// Deletes the log, and makes it anew: another topic under the same id.
    fn remake(&mut self) {
        let n = self.somebody();
        for other in self.running() {
            if other != n {
                self.stop(other);
            }
        }
        let as_of = Sequence(self.life.as_of + 1);
        let done = self.ask(n, |t| Call::Delete {
            t,
            log: log(0),
            as_of,
            origin: Box::default(),
        });
        assert!(matches!(done, Completion::Done { .. }), "{done:?}");
        let mut node = self.nodes[n].take().unwrap();
        for heard in node.heard.values() {
            self.compare(heard);
        }
        node.heard.clear();
        self.cluster.set_faults(Faults::NONE);
        self.life = begin(&mut node, &mut self.now, &self.config, as_of.0 + 1);
        self.cluster.set_faults(self.faults);
        self.next.clear();
        for _ in 0..self.draw(30) {
            self.append();
        }
        self.nodes[n] = Some(node);
        self.open(n);
    }

    fn step(&mut self) {
        let n = self.draw(NODES as u64) as usize;
        match self.draw(40) {
            0..12 => self.append(),
            12..22 => self.append_copy(),
            22..25 => self.start(n),
            25..27 => self.stop(n),
            27..32 => {
                let time = Duration::from_secs(self.draw(100));
                self.pass(time);
            }
            32..34 => {
                // Somebody has to read what is soon gone.
                if self.is_short {
                    self.somebody();
                }
                let time = HOUR * self.draw(30) as u32;
                self.pass(time);
            }
            34 => self.trim(),
            35 if self.draw(2) == 0 => {
                let why = Failure::Other("?".into());
                let state = crate::start::state_partition(&self.config);
                let one = [state, self.life.partition.clone()][self.draw(2) as usize].clone();
                self.cluster.end_consumers(&one, &why);
            }
            35 => {
                let skew = self.draw(5_001) as i64 - 2_500;
                self.cluster.move_leader(&self.life.partition, skew);
            }
            36 if self.draw(3) == 0 => self.remake(),
            37 => {
                let n = self.somebody();
                let renewed = self.ask(n, |t| Call::Renew { t, log: log(0) });
                assert!(matches!(renewed, Completion::Opened { .. }), "{renewed:?}");
            }
            _ => {
                let n = self.somebody();
                self.nodes[n].as_mut().unwrap().read(log(0), u32::MAX);
            }
        }
    }

    /// Whether a reader was given what the whole log says, but for what was removed.
    fn compare(&self, heard: &Heard) {
        let end = heard.next.unwrap_or(Sequence::FIRST).0;
        let is_removed = |number: u64| {
            let mut removed = heard.removed.iter();
            removed.any(|extent| extent.contains(Sequence(number)))
        };
        let messages = self.life.messages.range(..end);
        let expected: Vec<(u64, String)> = messages
            .filter(|(number, _)| !is_removed(**number))
            .map(|(number, text)| (*number, text.clone()))
            .collect();
        let differs = heard.messages.iter().zip(&expected).find(|(a, b)| a != b);
        assert_eq!(differs, None, "a reader and the whole log");
        assert_eq!(heard.messages.len(), expected.len(), "a reader's messages");
        assert_eq!(heard.losses, [], "told as lost");
    }

    fn end(&mut self) {
        self.cluster.set_faults(Faults::NONE);
        for n in 0..NODES {
            self.start(n);
            self.nodes[n].as_mut().unwrap().read(log(0), u32::MAX);
        }
        self.pass(Duration::from_secs(100));
        let high = self.cluster.high(&self.life.partition).number();
        for n in 0..NODES {
            let node = self.nodes[n].as_ref().unwrap();
            for heard in node.heard.values() {
                assert_eq!(heard.next, Some(high), "a reader that is not at the end");
            }
            assert_eq!(node.storage.damage(), 0);
            self.stop(n);
        }
    }
}

fn run(seed: u64, spoil: impl Fn(&mut KafkaConfig)) {
    let mut world = World::new(seed, spoil);
    for _ in 0..STEPS {
        world.step();
    }
    world.end();
}

#[test]
fn every_reader_of_every_node_gets_what_the_whole_log_says() {
    for seed in 0..50 {
        let caught = std::panic::catch_unwind(|| run(seed, |_| {}));
        if let Err(cause) = caught {
            let text = cause.downcast_ref::<String>().cloned().unwrap_or_default();
            panic!("seed {seed}: {text}");
        }
    }
}

/// The planted bugs of statements are each found within a hundred seeds.
#[cfg(feature = "sabotage")]
#[test]
fn planted_bugs_are_found() {
    use crate::sabotage::Bug;
    for bug in [Bug::StatementTrusted, Bug::ForgottenByTimer] {
        let finds = |seed: &u64| {
            let plant = |config: &mut KafkaConfig| config.bug = Some(bug);
            std::panic::catch_unwind(|| run(*seed, plant)).is_err()
        };
        let found = (0..100).find(finds);
        assert!(found.is_some(), "{bug:?} is not found");
    }
}
