//! Statements about logs: what begins from them, what is refused by them, and what removes them.

use super::node::{BEGIN, Node, after};
use crate::brokers::{Brokers, Failure, NewRecord, Partition, Token};
use crate::config::{KafkaConfig, StatementConfig};
use crate::layout::MapTopics;
use crate::marks::MarkBounds;
use crate::model::{Faults, ModelCluster};
use crate::place::Offset;
use crate::start::state_partition;
use crate::statements::StatementKey;
use airmail_log::conformance::{Maker, log};
use airmail_log::{Call, Completion, LogStorage, Refusal};
use airmail_model::{Incarnation, Now, Provisions, Sequence};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longer than it takes until something new is stated.
const STATED: Duration = Duration::from_secs(61);

struct World {
    now: Now,
    cluster: ModelCluster,
    config: KafkaConfig,
    provisions: Provisions,
    partition: Partition,
    nodes: Vec<Node>,
    appended: u64,
}

impl World {
    fn new() -> World {
        World::with(KafkaConfig {
            recent_bytes: 0,
            ..KafkaConfig::default()
        })
    }

    /// A node that has the log open.
    fn with(config: KafkaConfig) -> World {
        let cluster = ModelCluster::new(1, Faults::NONE);
        let mut node = Node::new(&cluster, config.clone());
        let mut now = BEGIN;
        let provisions = node.provision(&mut now, log(0), 1);
        let topics = MapTopics::decode(&provisions).unwrap();
        let mut world = World {
            now,
            cluster,
            partition: Partition::new(&topics.topic(&config, log(0)), 0),
            config,
            provisions,
            nodes: vec![node],
            appended: 0,
        };
        world.open(0);
        world
    }

    fn open(&mut self, n: usize) {
        let opened = self.try_open(n);
        assert!(matches!(opened, Completion::Opened { .. }), "{opened:?}");
    }

    fn try_open(&mut self, n: usize) -> Completion {
        loop {
            match self.nodes[n].open(&mut self.now, log(0), self.provisions) {
                Completion::Refused {
                    why: Refusal::Busy { .. },
                    ..
                } => self.pass(Duration::from_secs(1)),
                answer => return answer,
            }
        }
    }

    /// A node that begins now.
    fn begin(&mut self) -> usize {
        let node = Node::new(&self.cluster, self.config.clone());
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn pass(&mut self, time: Duration) {
        for _ in 0..20 {
            self.now = after(self.now, time / 20);
            for node in &mut self.nodes {
                node.poll(self.now);
            }
        }
    }

    fn append(&mut self, n: usize) {
        let text = format!("message {}", self.appended);
        let maker = Maker::of(log(0), 5, 1).at(self.appended);
        let batch = maker.batch(&[("a", &text)]);
        self.appended += 1;
        let tag = self.nodes[n].call(|t| Call::Append {
            t,
            log: batch.log(),
            map: batch.map_epoch(),
            batch,
            sole: false,
        });
        let answer = self.nodes[n].answer(&mut self.now, tag);
        assert!(matches!(answer, Completion::Appended { .. }), "{answer:?}");
    }

    /// Somebody stores a batch, be it for the first time or once more.
    fn store(&self, sequence: u64, text: &str) {
        let mut somebody = self.cluster.client();
        let batch = Maker::of(log(0), 5, 1).at(sequence).batch(&[("a", text)]);
        let record = NewRecord {
            key: None,
            value: Some(batch.bytes().clone()),
            sent_ms: self.now.wall.0 / 1000,
        };
        somebody.produce(Token(1), &self.partition, record).unwrap();
        somebody.poll(self.now, &mut Vec::new());
    }

    fn ask(&mut self, n: usize, call: impl FnOnce(airmail_log::Tag) -> Call) -> Completion {
        let tag = self.nodes[n].call(call);
        self.nodes[n].answer(&mut self.now, tag)
    }

    /// The messages that a new reader of everything is given, without their numbers.
    fn read(&mut self, n: usize) -> Vec<String> {
        let r = self.nodes[n].read(log(0), u32::MAX);
        self.pass(Duration::from_secs(1));
        let heard = &self.nodes[n].heard[&r];
        assert_eq!(heard.losses, []);
        let messages = heard.messages.iter();
        messages.map(|(_, text)| text.clone()).collect()
    }

    fn texts(range: std::ops::Range<u64>) -> Vec<String> {
        range.map(|n| format!("message {n}")).collect()
    }

    /// Lives about which there are statements, by the last record of each key.
    fn lives(&self) -> BTreeSet<u64> {
        let mut last = BTreeMap::new();
        for record in self.cluster.records(&state_partition(&self.config)) {
            let key = record.key.clone().unwrap_or_default();
            last.insert(key, record.value.is_some());
        }
        let there = last.into_iter().filter(|(_, is_there)| *is_there);
        let keys = there.filter_map(|(key, _)| StatementKey::decode(&key));
        keys.filter(|key| key.log == log(0))
            .map(|key| key.incarnation.0)
            .collect()
    }

    fn life(&self, n: usize) -> Incarnation {
        self.nodes[n].storage.logs[&log(0)].incarnation
    }
}

#[test]
fn a_start_reads_from_a_statement_on_and_gives_older_readers_no_copy_of_before() {
    let mut world = World::new();
    for _ in 0..10 {
        world.append(0);
    }
    world.store(3, "message 3");
    world.pass(STATED);
    world.append(0);
    world.store(3, "message 3");
    let n = world.begin();
    world.open(n);
    // A birth, ten messages and a copy.
    let scan = &world.nodes[n].storage.logs[&log(0)].scan;
    assert_eq!(
        scan.last.as_ref().map(|record| record.offset),
        Some(Offset(13))
    );
    assert_eq!(
        world.nodes[n].storage.left_out(),
        1,
        "the copy behind the statement"
    );
    assert_eq!(world.read(n), World::texts(0..11));
    assert_eq!(world.read(0), World::texts(0..11));
}

#[test]
fn a_copy_of_what_was_trimmed_is_left_out_by_a_node_that_has_never_read_it() {
    let mut world = World::new();
    for _ in 0..5 {
        world.append(0);
    }
    let before = Offset(4).number();
    let done = world.ask(0, |t| Call::Trim {
        t,
        log: log(0),
        before,
    });
    assert!(matches!(done, Completion::Done { .. }), "{done:?}");
    world.nodes.clear();
    world.store(1, "message 1");
    let n = world.begin();
    world.open(n);
    assert_eq!(world.read(n), World::texts(3..5));
}

#[test]
fn a_log_that_was_cut_below_a_statement_is_refused_by_name() {
    for goes_on in [false, true] {
        let mut world = World::new();
        for _ in 0..5 {
            world.append(0);
        }
        world.pass(STATED);
        world.nodes.clear();
        world.cluster.truncate(&world.partition, Offset(3));
        for n in 0..u64::from(goes_on) * 5 {
            world.store(10 + n, "another");
        }
        let n = world.begin();
        match world.try_open(n) {
            // Another record is in its place; or it only ends before, which is proof of nothing.
            Completion::Refused { why, .. } => {
                let is_suspended = matches!(why, Refusal::Suspended(_));
                assert_eq!(is_suspended, goes_on, "{why}");
                let why = why.to_string();
                assert!(why.contains("by an unclean election"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_known_of_a_life_is_stated_before_it_ends_and_removed_after() {
    let mut world = World::new();
    let n = world.begin();
    world.open(n);
    world.append(0);
    world.pass(STATED);
    let first = world.life(0);
    assert_eq!(world.lives(), [first.0].into());
    let renewed = world.ask(0, |t| Call::Renew { t, log: log(0) });
    let Completion::Opened { bounds, .. } = renewed else {
        panic!("{renewed:?}");
    };
    assert_ne!(bounds.incarnation, first);
    world.pass(Duration::from_secs(1));
    let gained: Vec<Incarnation> = world.nodes[n]
        .gained
        .iter()
        .map(|b| b.incarnation)
        .collect();
    assert_eq!(gained, [bounds.incarnation], "told to the other node");
    assert!(world.nodes[0].gained.is_empty());
    world.pass(STATED);
    assert_eq!(world.lives(), [bounds.incarnation.0].into());
    world.append(n);
    world.nodes.remove(n);
    let done = world.ask(0, |t| Call::Delete {
        t,
        log: log(0),
        as_of: Sequence(9),
        origin: Box::default(),
    });
    assert!(matches!(done, Completion::Done { .. }), "{done:?}");
    world.pass(Duration::from_secs(1));
    assert_eq!(world.lives(), BTreeSet::new());
}

#[test]
fn statements_about_a_log_whose_deletion_was_interrupted_are_removed_by_the_next_start() {
    let mut world = World::new();
    world.append(0);
    world.pass(STATED);
    let state = state_partition(&world.config);
    let stated = world.cluster.records(&state);
    let done = world.ask(0, |t| Call::Delete {
        t,
        log: log(0),
        as_of: Sequence(9),
        origin: Box::default(),
    });
    assert!(matches!(done, Completion::Done { .. }), "{done:?}");
    // They are there once more, as if nobody had removed them.
    let mut somebody = world.cluster.client();
    for record in stated {
        let again = NewRecord {
            key: record.key.clone(),
            value: record.value,
            sent_ms: 0,
        };
        if StatementKey::decode(record.key.as_deref().unwrap_or_default()).is_some() {
            somebody.produce(Token(1), &state, again).unwrap();
        }
    }
    somebody.poll(world.now, &mut Vec::new());
    assert_eq!(world.lives().len(), 1);
    world.begin();
    world.pass(Duration::from_secs(1));
    assert_eq!(world.lives(), BTreeSet::new());
}

#[test]
fn more_marks_than_there_is_room_for_take_the_beginning_away_and_bring_no_copy_back() {
    let mut world = World::with(KafkaConfig {
        recent_bytes: 0,
        statements: StatementConfig {
            marks: MarkBounds {
                in_segment: 3,
                segments: 2,
            },
            ..StatementConfig::default()
        },
        ..KafkaConfig::default()
    });
    for _ in 0..5 {
        world.append(0);
        world.append(0);
        let last = world.appended - 1;
        for _ in 0..3 {
            world.store(last, &format!("message {last}"));
        }
    }
    world.pass(STATED);
    let n = world.begin();
    world.open(n);
    for n in [0, n] {
        assert_eq!(world.read(n), World::texts(6..10), "node {n}");
        let heard = world.nodes[n].heard.values().next_back().unwrap();
        assert_eq!(heard.removed.len(), 1);
    }
}

#[test]
fn a_consumer_that_has_ended_is_begun_again_from_its_place_and_one_whose_topic_is_gone_is_not() {
    let mut world = World::new();
    for _ in 0..5 {
        world.append(0);
    }
    let r = world.nodes[0].read(log(0), 100);
    world.pass(Duration::from_millis(100));
    let why = Failure::Other("not now".into());
    world.cluster.end_consumers(&world.partition, &why);
    world.pass(Duration::from_millis(200));
    assert!(world.nodes[0].storage.logs[&log(0)].scan.consumer.is_none());
    world.pass(Duration::from_secs(2));
    world.append(0);
    let bytes = u32::MAX;
    world.nodes[0].storage.submit(Call::Credit { r, bytes });
    world.pass(Duration::from_secs(2));
    assert!(!world.nodes[0].heard[&r].is_over);
    assert_eq!(world.nodes[0].heard[&r].messages.len(), 6);
    assert_eq!(world.read(0), World::texts(0..6));
    let gone = Failure::NoTopic;
    world.cluster.end_consumers(&world.partition, &gone);
    world.pass(Duration::from_secs(2));
    assert!(world.nodes[0].heard[&r].is_over);
}

#[test]
fn a_log_that_was_cut_while_its_consumer_was_ended_stops() {
    let mut world = World::new();
    for _ in 0..5 {
        world.append(0);
    }
    let r = world.nodes[0].read(log(0), u32::MAX);
    world.pass(Duration::from_millis(100));
    let why = Failure::Other("not now".into());
    world.cluster.end_consumers(&world.partition, &why);
    world.cluster.truncate(&world.partition, Offset(3));
    for n in 0..5 {
        world.store(10 + n, "another");
    }
    world.pass(Duration::from_secs(3));
    assert!(world.nodes[0].heard[&r].is_over);
    assert_eq!(world.nodes[0].heard[&r].messages.len(), 5);
}
