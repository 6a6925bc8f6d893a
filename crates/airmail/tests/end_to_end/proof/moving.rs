//! Namespaces moved from one storage to another under load, and `kill -9` of the node, or of a broker of Kafka, while they
//! are. Each round makes a namespace on the disk, and moves it: to another disk, or to Kafka.
//!
//! What must hold is what `kill` says, over both storages: each publisher's messages reach every subscriber as 0, 1, 2, …,
//! whether it was there before the move, came after it, or goes on from a position that it took before; every message is
//! acknowledged in the end, and stands in the history once, where its ack said.

use super::Plan;
#[cfg(feature = "kafka")]
use super::brokers::Brokers;
use super::load::{Load, Topic};
use super::victim::Victim;
use airmail_client::{Admin, ErrorCode};
use airmail_model::{Durability, StorageName};
use airmail_testkit::node::{self, Node, airmail};
use airmail_testkit::scale;
use airmail_testkit::waiting::waiting;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

const PUBLISHERS: u64 = 3;
/// Messages a second of each publisher.
const RATE: u64 = 1_500;
const TOPICS: u32 = 4;
/// Kills while a namespace is moved.
const KILLS_MAX: u32 = 3;
/// Time after the beginning of a move, or after a restart, in which the next kill comes.
const KILL_WITHIN_US: u64 = 250_000;

#[test]
fn nothing_is_lost_reordered_or_seen_twice_where_a_namespace_is_moved_over_kills() {
    let plan = Plan::new("move", 2);
    let directory = tempfile::tempdir().unwrap();
    let Some(mut stage) = Stage::new(directory.path()) else {
        // Input: a run without Kafka.
        return;
    };
    let mut kills = BTreeMap::new();
    for round in plan.rounds() {
        let _watch = plan.watch(round, directory.path());
        let messages = stage.round(round, &mut plan.choices(round), &mut kills);
        plan.tell(round, &format!("{messages} messages, kills {kills:?}"));
    }
    stage.end();
}

/// A node with two storages, and what may be killed.
struct Stage {
    victim: Victim,
    node: Option<Node>,
    /// The URL of the storage that namespaces are moved to.
    far: String,
    /// Directory of that, if it is on a disk.
    far_directory: Option<PathBuf>,
    #[cfg(feature = "kafka")]
    brokers: Option<Brokers>,
}

impl Stage {
    /// A node that runs; none where Kafka was left out, and is wanted.
    fn new(directory: &Path) -> Option<Stage> {
        let victim = Victim::new(&directory.join("data"));
        let far_directory = directory.join("far");
        let mut stage = Stage {
            victim,
            node: None,
            far: format!("disk:{}", far_directory.display()),
            far_directory: Some(far_directory),
            #[cfg(feature = "kafka")]
            brokers: None,
        };
        if scale::prove("KAFKA").is_some() {
            stage.move_to_kafka(directory)?;
        }
        stage.node = Some(stage.start());
        Some(stage)
    }

    #[cfg(feature = "kafka")]
    fn move_to_kafka(&mut self, directory: &Path) -> Option<()> {
        let brokers = Brokers::start(directory, None)?;
        brokers.wait_until_whole();
        self.far = brokers.url();
        self.far_directory = None;
        self.brokers = Some(brokers);
        Some(())
    }

    #[cfg(not(feature = "kafka"))]
    fn move_to_kafka(&mut self, _directory: &Path) -> Option<()> {
        None
    }

    fn start(&self) -> Node {
        let mut command = self.victim.command();
        command.arg("--log").arg(format!("far={}", self.far));
        Node::spawn(command)
    }

    /// Moves a new namespace; gives how many messages it has in the end.
    fn round(
        &mut self,
        round: u64,
        choices: &mut SmallRng,
        kills: &mut BTreeMap<&'static str, u32>,
    ) -> usize {
        let durability = match self.far_directory {
            Some(_) if choices.random() => Durability::FSYNC,
            _ => Durability::OS,
        };
        let topics = topics(round, durability);
        let namespace = topics[0].namespace;
        let mut load = Load::new(&self.victim, topics);
        let admin = load.connect().admin();
        let logs = choices.random_range(1..=4);
        let made = admin.create(namespace, Some(logs), None, Some(durability));
        load.runtime.block_on(made).unwrap();
        for _ in 0..PUBLISHERS {
            load.publish(choices.random(), RATE);
        }
        for topic in load.topics.clone() {
            load.follow(&topic, false);
            load.follow(&topic, false);
        }
        load.follow(&load.topics[0].clone(), true);
        load.wait_for_progress();
        let saved = load.stop_following(choices.random_range(0..2 * TOPICS as usize));
        load.wait_for_progress();

        let moved = load.runtime.spawn(moved(admin, namespace));
        for _ in 0..choices.random_range(1..=KILLS_MAX) {
            thread::sleep(Duration::from_micros(
                choices.random_range(0..KILL_WITHIN_US),
            ));
            *kills.entry(self.kill(choices)).or_insert(0) += 1;
        }
        let is_moving = waiting("a namespace to be moved");
        load.runtime.block_on(moved).unwrap();
        drop(is_moving);

        load.wait_for_progress();
        let saved = saved.expect("it had begun");
        load.resume(&saved);
        let topic = load.topics[choices.random_range(0..load.topics.len())].clone();
        load.follow(&topic, false);
        load.follow(&topic, true);
        load.wait_for_progress();
        if choices.random() {
            *kills.entry(self.kill(choices)).or_insert(0) += 1;
            load.wait_for_progress();
        }
        load.stop_publishing();
        load.wait_for_followers();
        load.check_history()
    }

    /// Kills one side, and starts it again; says which.
    fn kill(&mut self, choices: &mut SmallRng) -> &'static str {
        #[cfg(feature = "kafka")]
        if let Some(brokers) = &mut self.brokers
            && choices.random_ratio(1, 3)
        {
            let broker = choices.random_range(0..super::brokers::BROKERS);
            brokers.kill(broker);
            brokers.revive(broker);
            brokers.wait_until_whole();
            return "of a broker";
        }
        if let Some(node) = self.node.take() {
            node.kill();
        }
        if choices.random_ratio(1, 4) {
            let delay = Duration::from_micros(choices.random_range(0..60_000));
            let mut command = self.victim.command();
            command.arg("--log").arg(format!("far={}", self.far));
            super::victim::run_and_kill(command, delay);
        }
        self.node = Some(self.start());
        "of the node"
    }

    /// Stops the node, and looks into its directories.
    fn end(mut self) {
        if let Some(node) = self.node.take() {
            assert!(node.stop().success());
        }
        let directories = [Some(self.victim.data.clone()), self.far_directory.take()];
        for directory in directories.into_iter().flatten() {
            node::run(airmail().arg("check").arg(&directory), b"").ok();
        }
    }
}

/// Asks for the move until it is done. An answer may be lost with the node; whoever asks again is told that it is there.
async fn moved(admin: Admin, namespace: &'static str) {
    let far = StorageName::new("far").unwrap();
    loop {
        match admin.move_to(far, namespace, None).await {
            Ok(moved) => return assert_eq!(moved.spec.storage, far),
            Err(error) if error.code() == ErrorCode::InvalidArgument => return,
            Err(error) if error.code() == ErrorCode::NamespaceNotFound => panic!("{error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn topics(round: u64, durability: Durability) -> Vec<Topic> {
    // A few names, for as long as the test lives.
    let namespace: &'static str = Box::leak(format!("moved-{round}").into_boxed_str());
    let topics = (0..TOPICS).map(|index| Topic {
        namespace,
        name: format!("topic-{index}"),
        index,
        reserves: durability != Durability::FSYNC,
    });
    topics.collect()
}
