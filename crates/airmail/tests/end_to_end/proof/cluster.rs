//! A cluster of two pilots, two copilots and a tower, each of them killed, stopped, cut off from all others (both ways
//! or one), drained, and joined by another, over and over, with publishers and subscribers left running. Or a tree of a
//! root, two nodes below it and four below those, with clients at all of them. Or two towers, two pilots and two copilots
//! whose logs are on three brokers of Kafka, which are hurt like them.
//!
//! What must hold is what `kill` says, for whatever node it is that is hurt: none lost, none twice, none reordered. How
//! long clients wait is told: for a gateway from the fault on, and for the only tower from when it is back. With
//! `AIRMAIL_PROVE_JUDGE` it is judged.

use super::Plan;
use super::load::{Load, Topic};
use super::nodes::{Nodes, Plot, Who};
use super::times::Times;
use super::victim::SETTINGS;
use airmail_testkit::network::Cut;
use airmail_testkit::scale;
use rand::Rng;
use rand::rngs::SmallRng;
use std::path::Path;
use std::thread;
use std::time::Duration;
use tokio::time::Instant;

const NAMES: [&str; 4] = ["pilot-1", "pilot-2", "copilot-1", "copilot-2"];
/// Nodes of a tree below its root: two, and two below each of these.
const TREE: [(&str, Who); 6] = [
    ("inner-1", Who::Tower),
    ("inner-2", Who::Tower),
    ("leaf-1", Who::Gateway(0)),
    ("leaf-2", Who::Gateway(0)),
    ("leaf-3", Who::Gateway(1)),
    ("leaf-4", Who::Gateway(1)),
];
/// Nodes whose logs are on Kafka.
const ON_KAFKA: [&str; 6] = [
    "tower-1",
    "tower-2",
    "pilot-1",
    "pilot-2",
    "copilot-1",
    "copilot-2",
];
const PUBLISHERS: u64 = 4;
/// Messages a second of each publisher.
const RATE: u64 = 3_000;
const TOPICS: u32 = 4;
/// Subscribers of each topic.
const FOLLOWERS: u32 = 2;

/// Hurts of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Stop,
    Cut(Cut),
    Drain,
    Join,
    /// Nothing is read from the storage; all else goes on.
    HoldReading,
}

#[test]
fn nothing_acknowledged_is_lost_reordered_or_seen_twice_when_nodes_of_a_cluster_fail() {
    if scale::prove("TREE").is_none() && scale::prove("KAFKA").is_none() {
        let plots = NAMES.map(|name| Plot::gateway(name, ""));
        hold(&plots, |directory| {
            Some(Nodes::start(directory, &plots, &SETTINGS))
        });
    }
}

#[cfg(feature = "kafka")]
#[test]
fn nothing_acknowledged_is_lost_reordered_or_seen_twice_when_nodes_and_brokers_of_kafka_fail() {
    let is_run = scale::prove("ROUNDS").is_some();
    if scale::prove("KAFKA").is_some() || !is_run {
        let plots = ON_KAFKA.map(|name| Plot::gateway(name, ""));
        hold(&plots, |directory| {
            Nodes::start_on_kafka(directory, &plots, &SETTINGS)
        });
    }
}

#[test]
fn nothing_acknowledged_is_lost_reordered_or_seen_twice_when_nodes_of_a_tree_fail() {
    let is_run = scale::prove("ROUNDS").is_some();
    if scale::prove("TREE").is_some() || !is_run {
        let plots = TREE.map(|(name, parent)| Plot {
            parent: Some(parent),
            ..Plot::gateway(name, "")
        });
        hold(&plots, |directory| {
            Some(Nodes::start(directory, &plots, &SETTINGS))
        });
    }
}

/// Hurts these nodes, and those that they have their logs from, and checks what clients saw.
fn hold(plots: &[Plot], start: impl FnOnce(&Path) -> Option<Nodes>) {
    let is_sample = scale::prove("ROUNDS").is_none();
    let plan = Plan::new("cluster", 2);
    let directory = tempfile::tempdir().unwrap();
    let Some(mut nodes) = start(directory.path()) else {
        return;
    };
    let topics: Vec<Topic> = (0..TOPICS)
        .map(|index| Topic {
            namespace: "default",
            name: format!("topic-{index}"),
            index,
            reserves: false,
        })
        .collect();
    let mut choices = plan.choices(u64::MAX);
    let mut load = Load::at(nodes.addresses(), topics);
    for _ in 0..PUBLISHERS {
        load.publish(choices.random(), RATE);
    }
    for topic in load.topics.clone() {
        (0..FOLLOWERS).for_each(|_| load.follow(&topic, false));
    }
    load.wait_for_all();
    let mut times = Times::default();
    for round in plan.rounds() {
        let _watch = plan.watch(round, directory.path());
        let mut choices = plan.choices(round);
        let (who, fault) = drawn(round, plots, &nodes, &mut choices);
        let hold = match (is_sample, round % 10) {
            (true, _) => Duration::from_secs(2),
            (false, 9) => Duration::from_secs(20),
            (false, _) => Duration::from_secs(5),
        };
        hurt(&mut nodes, &load, (who, fault), hold, &mut times);
        nodes.wait_until_well();
        let alone = nodes.wait_of_librdkafka();
        let alone = alone.map(|wait| format!(" (librdkafka alone: {} ms)", wait.as_millis()));
        let alone = alone.unwrap_or_default();
        plan.tell(round, &format!("{who:?} {fault:?}{alone}: {times}"));
    }
    let last = plan.rounds().end;
    let _watch = plan.watch(last, directory.path());
    load.stop_publishing();
    load.wait_for_followers();
    let messages = load.check_history();
    plan.tell(last, &format!("clean: {messages} messages; {times}"));
    if scale::prove("JUDGE").is_some() {
        times.judge();
    }
}

/// The node that is hurt in a round, and how.
fn drawn(round: u64, plots: &[Plot], nodes: &Nodes, choices: &mut SmallRng) -> (Who, Fault) {
    // One after the other, so that as many rounds are of each.
    let beside = nodes.brokers().max(1);
    let who = match round as usize % (plots.len() + beside) {
        gateway if gateway < plots.len() => Who::Gateway(gateway),
        _ if nodes.brokers() == 0 => Who::Tower,
        broker => Who::Broker(broker - plots.len()),
    };
    let is_tree = plots.iter().any(|plot| plot.parent.is_some());
    let faults = if nodes.has_network() { 10 } else { 7 };
    let fault = match choices.random_range(0..faults) {
        0..3 => Fault::Kill,
        3..5 => Fault::Stop,
        5 => Fault::Drain,
        6 => Fault::Join,
        7 => Fault::Cut(Cut::Both),
        8 => Fault::Cut(Cut::Sent),
        _ => Fault::Cut(Cut::Received),
    };
    match (who, fault) {
        (_, fault) if nodes.brokers() > 0 && nodes.is_tower(who) => {
            match choices.random_range(0..5) {
                0 => (who, Fault::HoldReading),
                _ => (who, fault),
            }
        }
        // The only tower has nobody to give its logs to.
        (Who::Tower, Fault::Drain | Fault::Join) => (who, Fault::Kill),
        (Who::Broker(_), Fault::Drain | Fault::Join) => (who, Fault::Stop),
        (_, Fault::Join) if is_tree => (who, Fault::Kill),
        other => other,
    }
}

/// Hurts a node, keeps it so for a while, and has it be well again.
fn hurt(
    nodes: &mut Nodes,
    load: &Load,
    (who, fault): (Who, Fault),
    hold: Duration,
    times: &mut Times,
) {
    let name = nodes.name(who);
    let is_broker = matches!(who, Who::Broker(_));
    load.mark();
    nodes.mark();
    match fault {
        _ if is_broker => {
            hurt_broker(nodes, who, fault, hold);
            load.wait_for_all();
            times.take_beside_broker(load.waits(), nodes.wait_of_librdkafka().unwrap_or_default());
            return;
        }
        Fault::Kill => {
            nodes.kill(who);
            if let Who::Gateway(_) = who {
                nodes.wait_for_fault(&name, hold);
            }
        }
        Fault::Stop => {
            nodes.set_still(who, true);
            nodes.wait_for_fault(&name, hold);
        }
        Fault::Cut(cut) => {
            nodes.cut(who, cut, true);
            nodes.wait_for_fault(&name, hold);
        }
        Fault::HoldReading => {
            nodes.hold_reading(who, true);
            thread::sleep(hold);
            load.wait_for_all();
            times.take("tower held in its reading", load.waits(), None);
        }
        Fault::Drain => {
            nodes.drain(who);
            load.wait_for_all();
            times.take("drained", load.waits(), None);
            nodes.stop(who);
        }
        Fault::Join => {
            nodes.join_and_leave(hold.min(Duration::from_secs(2)));
            load.wait_for_all();
            times.take("joined and left", load.waits(), None);
            return;
        }
    }
    if let (Who::Gateway(_), Fault::Kill | Fault::Stop | Fault::Cut(_)) = (who, fault) {
        let what = match (nodes.is_tower(who), fault) {
            (true, Fault::Kill) => "tower killed",
            (true, _) => "tower stopped or cut",
            (false, Fault::Kill) => "gateway killed",
            (false, _) => "gateway stopped or cut",
        };
        load.wait_for_all();
        times.take(what, load.waits(), None);
    }
    match fault {
        Fault::Kill | Fault::Drain => nodes.start_again(who),
        Fault::Stop => nodes.set_still(who, false),
        Fault::Cut(cut) => nodes.cut(who, cut, false),
        Fault::HoldReading => nodes.hold_reading(who, false),
        Fault::Join => {}
    }
    if who == Who::Tower {
        let back = Instant::now();
        load.mark();
        load.wait_for_all();
        times.take("tower, from when it is back", load.waits(), Some(back));
    }
    // A moment of peace, so that one fault is not another's.
    thread::sleep(Duration::from_millis(500));
}

/// Hurts a broker for a while, and has it be well again.
fn hurt_broker(nodes: &mut Nodes, who: Who, fault: Fault, hold: Duration) {
    match fault {
        Fault::Cut(cut) => nodes.cut(who, cut, true),
        Fault::Kill => nodes.kill(who),
        _ => nodes.set_still(who, true),
    }
    thread::sleep(hold);
    match fault {
        Fault::Cut(cut) => nodes.cut(who, cut, false),
        Fault::Kill => nodes.start_again(who),
        _ => nodes.set_still(who, false),
    }
}
