//! Topics that are not as they have to be: refused, and by name.

use super::node::{BEGIN, Node, after};
use crate::brokers::{Partition, Topic};
use crate::config::KafkaConfig;
use crate::model::{Faults, ModelCluster};
use crate::place::Offset;
use airmail_log::conformance::{Maker, log};
use airmail_log::{Call, Completion, Origin, Refusal};
use airmail_model::{AppendTime, Now, Provisions, Sequence};
use std::time::Duration;

pub(super) struct World {
    pub(super) now: Now,
    pub(super) cluster: ModelCluster,
    pub(super) node: Node,
    pub(super) provisions: Provisions,
}

impl World {
    /// A node with two logs of one map that it has provisioned.
    pub(super) fn new() -> World {
        let cluster = ModelCluster::new(1, Faults::NONE);
        let mut node = Node::new(&cluster, KafkaConfig::default());
        let mut now = BEGIN;
        let provisions = node.provision(&mut now, log(0), 2);
        World {
            now,
            cluster,
            node,
            provisions,
        }
    }

    fn topic(&self) -> Topic {
        let topics = self.cluster.topics();
        let mut normal = topics
            .into_iter()
            .filter(|topic| topic.as_str().contains(".normal."));
        normal.next().unwrap()
    }

    fn open(&mut self, index: u16) -> Completion {
        self.node.open(&mut self.now, log(index), self.provisions)
    }

    fn refused(&mut self, index: u16) -> String {
        match self.open(index) {
            Completion::Refused { why, .. } => why.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn append(&mut self, index: u16) -> Completion {
        let batch = Maker::new(log(index)).batch(&[("a", "x")]);
        let tag = self.node.call(|t| Call::Append {
            t,
            log: batch.log(),
            map: batch.map_epoch(),
            batch,
            sole: false,
        });
        self.node.answer(&mut self.now, tag)
    }

    fn pass(&mut self, time: Duration) {
        self.now = after(self.now, time);
        self.node.poll(self.now);
    }
}

#[test]
fn provisioning_makes_both_lanes_with_a_birth_in_each_partition() {
    let world = World::new();
    let names: Vec<String> = world
        .cluster
        .topics()
        .iter()
        .map(Topic::to_string)
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for lane in [".7.normal.1.", ".7.high.1."] {
        let name = names.iter().find(|name| name.contains(lane)).unwrap();
        for number in [0, 1] {
            let partition = Partition::new(&Topic::new(name), number);
            assert_eq!(world.cluster.high(&partition), Offset(1));
        }
    }
}

#[test]
fn a_topic_with_other_settings_is_refused_by_name() {
    let mut world = World::new();
    world
        .cluster
        .set(&world.topic(), "cleanup.policy", "compact");
    let why = world.refused(0);
    assert!(why.contains("cleanup.policy is compact"), "{why}");
    assert!(why.contains(world.topic().as_str()), "{why}");
    world
        .cluster
        .set(&world.topic(), "cleanup.policy", "delete");
    world
        .cluster
        .set(&world.topic(), "min.insync.replicas", "1");
    let why = world.refused(0);
    assert!(why.contains("min.insync.replicas is 1"), "{why}");
}

#[test]
fn a_topic_that_is_not_there_is_refused_and_never_made() {
    let mut world = World::new();
    let topic = world.topic();
    world.cluster.delete(&topic);
    let why = world.refused(0);
    assert!(
        why.contains("is not there") && why.contains(topic.as_str()),
        "{why}"
    );
    assert!(!world.cluster.topics().contains(&topic));
}

#[test]
fn a_topic_that_was_made_again_by_hand_is_refused() {
    let mut world = World::new();
    assert!(matches!(world.open(0), Completion::Opened { .. }));
    world.append(0);
    world.cluster.remake(&world.topic());
    // Another node, which comes after that.
    world.node = Node::new(&world.cluster, KafkaConfig::default());
    world.append_foreign();
    let why = world.refused(0);
    assert!(why.contains("made again"), "{why}");
}

impl World {
    /// Somebody writes to the topic without knowing of it.
    fn append_foreign(&mut self) {
        use crate::brokers::{Brokers, NewRecord, Token};
        let mut foreign = self.cluster.client();
        let partition = Partition::new(&self.topic(), 0);
        let record = NewRecord {
            key: None,
            value: Some("x".into()),
            sent_ms: 0,
        };
        foreign.produce(Token(1), &partition, record).unwrap();
        foreign.poll(self.now, &mut Vec::new());
    }
}

#[test]
fn bytes_that_are_no_batch_are_a_loss_of_that_place_alone() {
    let mut world = World::new();
    assert!(matches!(world.open(0), Completion::Opened { .. }));
    world.append(0);
    world.append_foreign();
    world.append(0);
    let r = world.node.read(log(0), u32::MAX);
    world.pass(Duration::from_millis(1));
    let heard = &world.node.heard[&r];
    assert_eq!(heard.messages.len(), 2);
    assert_eq!(heard.losses, [Offset(2).numbers()]);
}

#[test]
fn an_unclean_election_stops_the_log_and_tells_no_number_twice() {
    let mut world = World::new();
    assert!(matches!(world.open(0), Completion::Opened { .. }));
    world.append(0);
    world.append(0);
    let r = world.node.read(log(0), u32::MAX);
    world.pass(Duration::from_millis(1));
    let partition = Partition::new(&world.topic(), 0);
    world.cluster.truncate(&partition, Offset(2));
    world.pass(Duration::from_millis(1));
    world.pass(Duration::from_millis(1));
    assert!(world.node.heard[&r].is_over);
    match world.append(0) {
        Completion::Refused { why, .. } => assert!(matches!(why, Refusal::Busy { .. }), "{why}"),
        other => panic!("{other:?}"),
    }
    for _ in 0..20 {
        world.pass(Duration::from_secs(1));
    }
    match world.append(0) {
        Completion::Refused {
            why: Refusal::Suspended(why),
            ..
        } => assert!(why.contains("unclean"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_old_leader_that_says_less_makes_no_loss() {
    let mut world = World::new();
    assert!(matches!(world.open(0), Completion::Opened { .. }));
    for _ in 0..5 {
        world.append(0);
    }
    world.cluster.set_faults(Faults {
        old_answers: 1000,
        ..Faults::NONE
    });
    for _ in 0..20 {
        let tag = world.node.call(|t| Call::Bounds { t, log: log(0) });
        match world.node.answer(&mut world.now, tag) {
            Completion::Bounds { bounds, .. } => {
                assert_eq!(bounds.next, Offset(6).number());
                assert_eq!(bounds.reach, Sequence::MAX, "no position is beyond the log");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_partition_that_does_not_answer_is_busy_and_leaves_the_other_alone() {
    let mut world = World::new();
    for index in [0, 1] {
        assert!(matches!(world.open(index), Completion::Opened { .. }));
    }
    let partition = Partition::new(&world.topic(), 0);
    world.cluster.stop(&partition, Duration::from_secs(20));
    for (index, is_there) in [(0, false), (1, true), (0, false), (1, true)] {
        let tag = world.node.call(|t| Call::Bounds { t, log: log(index) });
        let answer = world.node.answer(&mut world.now, tag);
        let is_answered = matches!(answer, Completion::Bounds { .. });
        assert_eq!(is_answered, is_there, "{answer:?}");
        if !is_there {
            let is_busy = matches!(
                answer,
                Completion::Refused {
                    why: Refusal::Busy { .. },
                    ..
                }
            );
            assert!(is_busy, "{answer:?}");
        }
    }
    assert!(matches!(world.append(1), Completion::Appended { .. }));
}

#[test]
fn a_topic_goes_with_the_last_of_its_logs() {
    let mut world = World::new();
    for index in [0, 1] {
        assert!(matches!(world.open(index), Completion::Opened { .. }));
        world.append(index);
    }
    let topic = world.topic();
    for (index, is_there) in [(0, true), (1, false)] {
        let tag = world.node.call(|t| Call::Delete {
            t,
            log: log(index),
            as_of: Sequence(5),
            origin: Box::default(),
        });
        let answer = world.node.answer(&mut world.now, tag);
        assert!(matches!(answer, Completion::Done { .. }), "{answer:?}");
        assert_eq!(world.cluster.topics().contains(&topic), is_there);
        assert!(world.refused(index).contains("not open"));
    }
    assert!(world.lanes().is_empty(), "the lane that was never used");
}

impl World {
    /// Topics of logs.
    fn lanes(&self) -> Vec<Topic> {
        let mut topics = self.cluster.topics();
        topics.retain(|topic| topic.as_str().contains(".7."));
        topics
    }

    fn origin(&self) -> Box<Origin> {
        Box::new(Origin {
            provisions: self.provisions,
            ..Origin::default()
        })
    }

    /// Another node in place of the one before, which has ended.
    fn restart(&mut self) {
        self.node = Node::new(&self.cluster, KafkaConfig::default());
    }

    /// Deletes both logs, by what log 0 says of them.
    fn delete_logs(&mut self) {
        for index in [0, 1] {
            let origin = self.origin();
            let tag = self.node.call(|t| Call::Delete {
                t,
                log: log(index),
                as_of: Sequence(5),
                origin,
            });
            let answer = self.node.answer(&mut self.now, tag);
            assert!(matches!(answer, Completion::Done { .. }), "{answer:?}");
        }
    }
}

#[test]
fn the_topics_of_deleted_logs_go_though_the_node_was_restarted() {
    let mut world = World::new();
    for index in [0, 1] {
        assert!(matches!(world.open(index), Completion::Opened { .. }));
    }
    world.restart();
    world.delete_logs();
    assert!(world.lanes().is_empty(), "{:?}", world.lanes());
    world.delete_logs();
}

#[test]
fn a_topic_that_is_left_of_logs_that_are_written_down_as_deleted_goes_when_they_are_deleted_again()
{
    let mut world = World::new();
    let left = world.topic();
    assert!(matches!(world.open(0), Completion::Opened { .. }));
    world.delete_logs();
    world.cluster.remake(&left);
    world.restart();
    world.delete_logs();
    assert!(world.lanes().is_empty(), "{:?}", world.lanes());
}

#[test]
fn what_is_withdrawn_is_deleted_in_both_lanes() {
    let mut world = World::new();
    let withdraw = |world: &mut World, logs| {
        let origin = world.origin();
        let log = log(0);
        let tag = world.node.call(|t| Call::Withdraw {
            t,
            log,
            logs,
            origin,
        });
        world.node.answer(&mut world.now, tag)
    };
    assert!(matches!(world.open(0), Completion::Opened { .. }));
    for logs in [1, 2] {
        let answer = withdraw(&mut world, logs);
        let is_refused = matches!(answer, Completion::Refused { .. });
        assert!(is_refused, "other logs, and then open ones: {answer:?}");
    }
    assert_eq!(world.lanes().len(), 2);
    world.restart();
    for _ in 0..2 {
        let answer = withdraw(&mut world, 2);
        assert!(matches!(answer, Completion::Done { .. }), "{answer:?}");
        assert!(world.lanes().is_empty(), "{:?}", world.lanes());
    }
}

#[test]
fn a_reader_whose_beginning_is_gone_waits_for_the_answer_where_the_log_begins() {
    let mut world = World::new();
    let config = KafkaConfig {
        recent_bytes: 0,
        ..KafkaConfig::default()
    };
    world.node = Node::new(&world.cluster, config);
    assert!(matches!(world.open(0), Completion::Opened { .. }));
    for _ in 0..5 {
        world.append(0);
    }
    world.pass(Duration::from_secs(1));
    world.cluster.set(&world.topic(), "retention.bytes", "200");
    world.cluster.set_faults(Faults {
        unanswered: 1000,
        ..Faults::NONE
    });
    let r = world.node.read(log(0), u32::MAX);
    let mut polls = 0;
    loop {
        world.node.poll(world.now);
        polls += 1;
        let next = world.node.storage.brokers().next();
        if next.is_none_or(|next| next > world.now.mono) {
            break;
        }
        assert!(polls < 100, "it is out of range over and over");
    }
    world.cluster.set_faults(Faults::NONE);
    for _ in 0..5 {
        world.pass(Duration::from_secs(1));
    }
    let heard = &world.node.heard[&r];
    assert!(!heard.messages.is_empty() && heard.losses.is_empty());
}

#[test]
fn a_time_is_found_before_what_comes_while_the_logs_end_is_asked() {
    let mut world = World::new();
    assert!(matches!(world.open(0), Completion::Opened { .. }));
    // The birth record is too old to be found.
    world.pass(Duration::from_secs(60));
    let delay = Duration::from_millis(10);
    world.cluster.set_faults(Faults {
        delay_min: delay,
        delay_max: delay,
        ..Faults::NONE
    });
    let at = AppendTime(world.now.wall.0);
    let found = world.node.call(|t| Call::FindTime { t, log: log(0), at });
    // The leader has been asked for the time, and answers that there is nothing.
    world.pass(Duration::ZERO);
    world.pass(delay);
    let batch = Maker::new(log(0)).batch(&[("a", "x")]);
    let appended = world.node.call(|t| Call::Append {
        t,
        log: batch.log(),
        map: batch.map_epoch(),
        batch,
        sole: false,
    });
    world.pass(Duration::ZERO);
    match world.node.answer(&mut world.now, found) {
        Completion::Found { at, .. } => assert_eq!(at, Offset(1).number()),
        other => panic!("{other:?}"),
    }
    match world.node.answer(&mut world.now, appended) {
        Completion::Appended { extent, .. } => assert_eq!(extent.first, Offset(1).number()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_that_stops_answers_at_once_what_is_under_way() {
    let mut world = World::new();
    assert!(matches!(world.open(0), Completion::Opened { .. }));
    world.append(0);
    world.append(0);
    world.pass(Duration::from_secs(1));
    let partition = Partition::new(&world.topic(), 0);
    world.cluster.stop(&partition, Duration::from_secs(20));
    let batch = Maker::new(log(0)).batch(&[("a", "x")]);
    let tag = world.node.call(|t| Call::Append {
        t,
        log: batch.log(),
        map: batch.map_epoch(),
        batch,
        sole: false,
    });
    world.pass(Duration::ZERO);
    world.cluster.truncate(&partition, Offset(2));
    for _ in 0..2 {
        world.pass(Duration::ZERO);
    }
    match world.node.answers.get(&tag) {
        Some(Completion::Refused { why, .. }) => assert_eq!(*why, Refusal::OutcomeUnknown),
        other => panic!("{other:?}"),
    }
}
