//! Logs that are not what they were: doubted, suspended, and begun again where somebody accepts that.

use super::node::{BEGIN, Node, after};
use crate::brokers::{Failure, Partition, Topic};
use crate::config::{KafkaConfig, StatementConfig};
use crate::model::{Faults, ModelCluster};
use crate::place::Offset;
use airmail_log::conformance::{Maker, log};
use airmail_log::{Bounds, Call, Completion, LogLoss, Refusal, Soundness};
use airmail_model::{Extent, Now, Provisions, Sequence};
use std::time::Duration;

struct World {
    now: Now,
    cluster: ModelCluster,
    node: Node,
    provisions: Provisions,
    appends: u64,
}

fn config() -> KafkaConfig {
    KafkaConfig {
        statements: StatementConfig {
            interval: Duration::from_secs(2),
            ..StatementConfig::default()
        },
        ..KafkaConfig::default()
    }
}

const SUSPENDED: Soundness = Soundness {
    cuts: 0,
    cut_at: Sequence(0),
    is_suspended: true,
};

impl World {
    /// A node with an open log of so many messages, the birth record aside.
    fn new(messages: u64) -> World {
        let cluster = ModelCluster::new(1, Faults::NONE);
        let mut node = Node::new(&cluster, config());
        let mut now = BEGIN;
        let provisions = node.provision(&mut now, log(0), 1);
        let mut world = World {
            now,
            cluster,
            node,
            provisions,
            appends: 0,
        };
        world.open((0, Soundness::default()));
        for _ in 0..messages {
            world.append().unwrap();
        }
        world
    }

    fn partition(&self) -> Partition {
        let topics = self.cluster.topics().into_iter();
        let mut normal = topics.filter(|topic| topic.as_str().contains(".normal."));
        Partition::new(&normal.next().unwrap(), 0)
    }

    fn topic(&self) -> Topic {
        self.partition().topic
    }

    fn try_open(&mut self, (as_of, soundness): (u64, Soundness)) -> Result<Bounds, Refusal> {
        let said = (Sequence(as_of), soundness);
        match self
            .node
            .open_as(&mut self.now, log(0), self.provisions, said)
        {
            Completion::Opened { bounds, .. } => Ok(bounds),
            Completion::Refused { why, .. } => Err(why),
            other => panic!("{other:?}"),
        }
    }

    fn open(&mut self, said: (u64, Soundness)) -> Bounds {
        self.try_open(said).unwrap()
    }

    /// Appends a message of a producer, the next of it; where it is.
    fn append(&mut self) -> Result<Extent, Refusal> {
        let batch = Maker::of(log(0), 7, 1).at(self.appends);
        let text = format!("m{}", self.appends);
        let batch = { batch }.batch(&[("a", &text)]);
        let t = self.node.call(|t| Call::Append {
            t,
            log: log(0),
            map: batch.map_epoch(),
            batch,
            sole: false,
        });
        match self.node.answer(&mut self.now, t) {
            Completion::Appended { extent, .. } => {
                self.appends += 1;
                Ok(extent)
            }
            Completion::Refused { why, .. } => Err(why),
            other => panic!("{other:?}"),
        }
    }

    /// All that a new reader is given: offsets and texts.
    fn history(&mut self) -> Vec<(u64, String)> {
        let r = self.node.read(log(0), u32::MAX);
        self.pass(Duration::from_secs(1), 3);
        let heard = &self.node.heard[&r];
        assert!(heard.losses.is_empty() && !heard.is_over, "{heard:?}");
        let messages = heard.messages.iter();
        messages
            .map(|(number, text)| ((number >> 12) - 1, text.clone()))
            .collect()
    }

    fn pass(&mut self, time: Duration, times: u32) {
        for _ in 0..times {
            self.now = after(self.now, time);
            self.node.poll(self.now);
        }
    }

    /// Waits until a log that is doubted was looked at.
    fn look(&mut self) -> Option<LogLoss> {
        self.pass(Duration::from_secs(1), 30);
        self.node.losses.last().copied()
    }

    fn restart(&mut self) {
        self.node = Node::new(&self.cluster, config());
    }

    /// A cut that is accepted at an offset.
    fn cut_at(offset: u64) -> Soundness {
        Soundness {
            cuts: 1,
            cut_at: Offset(offset).number(),
            is_suspended: false,
        }
    }
}

#[test]
fn a_log_that_was_cut_is_busy_for_a_while_and_then_suspended_with_what_is_lost() {
    let mut world = World::new(5);
    let life = world.open((0, Soundness::default())).incarnation;
    world.cluster.truncate(&world.partition(), Offset(3));
    world.pass(Duration::from_millis(1), 2);
    assert!(matches!(world.append(), Err(Refusal::Busy { .. })));
    assert_eq!(world.node.losses, []);
    let loss = world.look().unwrap();
    assert_eq!((loss.life, loss.at), (life, Some(Offset(3).number())));
    assert_eq!(loss.end, Offset(6).number());
    assert!(matches!(world.append(), Err(Refusal::Suspended(_))));
    assert!(matches!(
        world.try_open((1, SUSPENDED)),
        Err(Refusal::Suspended(_))
    ));
}

#[test]
fn a_doubt_about_a_log_that_has_all_that_was_read_of_it_passes() {
    let mut world = World::new(5);
    let failure = Failure::Cut("as an old leader says".into());
    world.cluster.end_consumers(&world.partition(), &failure);
    world.pass(Duration::from_millis(1), 2);
    assert!(matches!(world.append(), Err(Refusal::Busy { .. })));
    assert_eq!(world.look(), None);
    assert_eq!(world.append().unwrap().first, Offset(6).number());
    assert_eq!(world.history().len(), 6);
}

#[test]
fn an_old_leader_that_ends_before_what_was_read_is_no_proof_however_long_it_says_so() {
    let mut world = World::new(5);
    let failure = Failure::Cut("nobody says from where on".into());
    let partition = world.partition();
    world
        .cluster
        .isolate_leader(&partition, Duration::from_secs(25));
    world.append().ok();
    world.cluster.end_consumers(&partition, &failure);
    assert_eq!(world.look(), None);
    world.cluster.calm();
    assert_eq!(world.look(), None);
    assert!(world.history().len() >= 5);
}

#[test]
fn an_accepted_loss_begins_a_life_that_has_what_is_left_and_goes_on_at_the_cut() {
    let mut world = World::new(5);
    let before = world.open((0, Soundness::default())).incarnation;
    world.cluster.truncate(&world.partition(), Offset(3));
    let loss = world.look().unwrap();
    let refused = world.try_open((1, SUSPENDED));
    assert!(matches!(refused, Err(Refusal::Suspended(_))), "{refused:?}");
    let bounds = world.open((2, World::cut_at(3)));
    assert_eq!(bounds.incarnation, loss.next_life);
    assert_ne!(bounds.incarnation, before);
    assert_eq!(bounds.next, Offset(3).number());
    assert_eq!(world.node.gained, [bounds], "whoever has read it is told");
    // What was lost of a producer may come again, and is no copy of anything.
    world.appends = 2;
    assert_eq!(world.append().unwrap().first, Offset(3).number());
    let left = [(1, "m0"), (2, "m1"), (3, "m2")].map(|(at, text)| (at, text.to_owned()));
    assert_eq!(world.history(), left);
}

#[test]
fn whoever_has_slept_opens_a_log_in_the_life_that_its_cut_has_begun() {
    let mut world = World::new(5);
    let partition = world.partition();
    world.cluster.truncate(&partition, Offset(3));
    let loss = world.look().unwrap();
    assert!(world.try_open((1, SUSPENDED)).is_err());
    world.open((2, World::cut_at(3)));
    world.restart();
    // Its log 0 says nothing of it yet.
    let bounds = world.open((0, Soundness::default()));
    assert_eq!(bounds.incarnation, loss.next_life);
    let again = world.open((2, World::cut_at(3)));
    assert_eq!(again.incarnation, loss.next_life);
}

#[test]
fn a_node_that_reads_a_log_stops_when_another_has_begun_it_again() {
    let mut world = World::new(5);
    let mut other = Node::new(&world.cluster, config());
    let opened = other.open(&mut world.now, log(0), world.provisions);
    assert!(matches!(opened, Completion::Opened { .. }));
    let r = other.read(log(0), u32::MAX);
    other.poll(world.now);
    world.cluster.truncate(&world.partition(), Offset(3));
    world.look().unwrap();
    assert!(world.try_open((1, SUSPENDED)).is_err());
    world.open((2, World::cut_at(3)));
    world.appends = 2;
    for _ in 0..5 {
        world.append().unwrap();
    }
    for _ in 0..30 {
        world.now = after(world.now, Duration::from_secs(1));
        other.poll(world.now);
    }
    let heard = &other.heard[&r];
    assert!(heard.is_over);
    assert!(
        heard
            .messages
            .iter()
            .all(|(_, text)| text < &"m5".to_owned()),
        "nothing of the new life: {heard:?}"
    );
    let opened = other.open_as(
        &mut world.now,
        log(0),
        world.provisions,
        (Sequence(2), World::cut_at(3)),
    );
    assert!(matches!(opened, Completion::Opened { .. }), "{opened:?}");
}

#[test]
fn a_suspended_log_stays_so_for_a_new_node_and_for_an_older_word() {
    let mut world = World::new(2);
    world.restart();
    for as_of in [5, 4, 0] {
        let said = if as_of == 5 {
            SUSPENDED
        } else {
            Soundness::default()
        };
        let refused = world.try_open((as_of, said));
        assert!(matches!(refused, Err(Refusal::Suspended(_))), "{refused:?}");
    }
    world.open((6, World::cut_at(2)));
}

#[test]
fn a_topic_that_is_deleted_leaves_nothing_of_its_log() {
    let mut world = World::new(3);
    world.cluster.delete(&world.topic());
    let loss = world.look().unwrap();
    assert_eq!((loss.at, loss.end), (None, Offset(4).number()));
    assert!(matches!(world.append(), Err(Refusal::Suspended(_))));
}

#[test]
fn a_topic_that_is_not_there_when_its_log_is_opened_is_gone_if_it_does_not_come() {
    let mut world = World::new(3);
    world.cluster.delete(&world.topic());
    world.restart();
    assert!(matches!(
        world.try_open((0, Soundness::default())),
        Err(Refusal::Io(_))
    ));
    assert_eq!(world.node.losses, []);
    world.pass(Duration::from_secs(1), 11);
    assert!(world.try_open((0, Soundness::default())).is_err());
    let loss = world.node.losses.last().unwrap();
    assert_eq!((loss.at, loss.end), (None, Sequence::MAX));
}

#[test]
fn a_topic_that_was_made_again_by_hand_leaves_nothing_of_its_log() {
    for records in [0, 2] {
        let mut world = World::new(3);
        world.cluster.remake_badly(&world.topic(), records);
        let loss = world.look().unwrap();
        assert_eq!(loss.at, None, "{records} records");
        assert!(matches!(world.append(), Err(Refusal::Suspended(_))));
    }
}
