//! `kill -9` of the node, over and over: under load, while it starts and recovers, when it has just
//! begun a segment or a checkpoint, and while it stops in order. Publishers and subscribers are left
//! running; others join from the first message, from a saved position, and from the end.
//!
//! What must hold: each publisher's messages to a topic reach every subscriber as 0, 1, 2, …: none
//! lost, none twice, none reordered. Every message is acknowledged in the end; its history holds it
//! once, under the number of its ack.

use super::Plan;
use super::load::{Load, Saved, Topic};
use super::victim::Victim;
use airmail_client::Client;
use airmail_model::Durability;
use airmail_testkit::node::{self, Node, airmail};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

const PUBLISHERS: u64 = 4;
/// Messages a second of each publisher.
const RATE: u64 = 3_000;
/// Subscribers beyond the lasting ones.
const JOINERS: usize = 6;
/// Each namespace with its logs and what an ack means there. After a `kill -9`, `os` must have kept
/// as much as `fsync`.
const NAMESPACES: [(&str, u16, Durability); 3] = [
    ("one", 1, Durability::FSYNC),
    ("four", 4, Durability::FSYNC),
    ("os", 2, Durability::OS),
];
const TOPICS_OF_EACH: u32 = 3;

#[test]
fn nothing_acknowledged_is_lost_reordered_or_seen_twice_over_kills_at_any_moment() {
    let plan = Plan::new("kill", 4);
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let victim = Victim::new(&data);
    let mut choices = plan.choices(u64::MAX);
    let mut node = Some(victim.start());
    let mut load = Load::new(&victim, topics());
    load.runtime.block_on(make_namespaces(&load.connect()));
    for _ in 0..PUBLISHERS {
        load.publish(choices.random(), RATE);
    }
    for topic in load.topics.clone() {
        load.follow(&topic, false);
    }
    let lasting = load.followers();
    let mut kills = BTreeMap::new();
    let mut saved = Vec::new();
    for round in plan.rounds() {
        let _watch = plan.watch(round, &data);
        let mut choices = plan.choices(round);
        join_and_leave(&mut load, lasting, &mut saved, &mut choices);
        let how = kill(&victim, node.take().unwrap(), &mut choices);
        *kills.entry(how).or_insert(0) += 1;
        node = Some(victim.start());
        load.wait_for_progress();
        if round % 10 == 9 {
            let (acknowledged, received) = (&load.tally.acknowledged, &load.tally.received);
            plan.tell(
                round,
                &format!("{acknowledged:?} acknowledged, {received:?} received, kills {kills:?}"),
            );
        }
    }
    let last = plan.rounds().end;
    let _watch = plan.watch(last, &data);
    load.stop_publishing();
    load.wait_for_followers();
    load.check_history();
    assert!(node.take().unwrap().stop().success());
    node::run(airmail().arg("check").arg(&data), b"").ok();
    let _node = victim.start();
    let messages = load.check_history();
    plan.tell(
        last,
        &format!("clean: {messages} messages, kills {kills:?}"),
    );
}

fn topics() -> Vec<Topic> {
    let names = NAMESPACES
        .iter()
        .flat_map(|namespace| (0..TOPICS_OF_EACH).map(move |number| (namespace, number)));
    let topics = names.enumerate();
    let topics = topics.map(|(index, ((namespace, _, durability), number))| Topic {
        namespace,
        name: format!("topic-{number}"),
        index: index as u32,
        reserves: *durability != Durability::FSYNC,
    });
    topics.collect()
}

async fn make_namespaces(client: &Client) {
    let admin = client.admin();
    for (name, logs, durability) in NAMESPACES {
        let made = admin.create(name, Some(logs), None, Some(durability));
        made.await.unwrap();
    }
}

/// Lets a subscriber come, or one that came earlier go.
fn join_and_leave(load: &mut Load, lasting: usize, saved: &mut Vec<Saved>, choices: &mut SmallRng) {
    let topic = load.topics[choices.random_range(0..load.topics.len())].clone();
    match choices.random_range(0..4) {
        0 => load.follow(&topic, false),
        1 => load.follow(&topic, true),
        2 if !saved.is_empty() => {
            let which = choices.random_range(0..saved.len());
            load.resume(&saved.swap_remove(which));
        }
        _ => {}
    }
    if load.followers() > lasting + JOINERS {
        let which = choices.random_range(lasting..load.followers());
        saved.extend(load.stop_following(which));
    }
}

/// Kills the node in one of the ways, and says in which.
fn kill(victim: &Victim, node: Node, choices: &mut SmallRng) -> &'static str {
    let how = choices.random_range(0..10);
    match how {
        0..4 => {
            thread::sleep(Duration::from_micros(choices.random_range(0..400_000)));
            node.kill();
            "under load"
        }
        4..6 => {
            node.kill();
            for _ in 0..choices.random_range(1..4) {
                victim.start_and_kill(Duration::from_micros(choices.random_range(0..60_000)));
            }
            "while starting"
        }
        6..9 => {
            let kind = ["seg-", "checkpoint-", "idx-"][how - 6];
            wait_for_a_new_file(victim, kind);
            node.kill();
            "at a new file"
        }
        _ => {
            node.ask_to_stop();
            thread::sleep(Duration::from_micros(choices.random_range(0..30_000)));
            node.kill();
            "while stopping"
        }
    }
}

/// Waits until the node makes a file of that kind, or some time has passed without one.
fn wait_for_a_new_file(victim: &Victim, kind: &str) {
    let of_kind = |name: &String| name.starts_with(kind);
    let before = victim.files();
    for _ in 0..4_000 {
        let new = victim.files().into_iter().filter(of_kind);
        if new.into_iter().any(|name| !before.contains(&name)) {
            return;
        }
        thread::sleep(Duration::from_micros(100));
    }
}
