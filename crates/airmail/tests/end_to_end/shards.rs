//! A node with several shards: each client is on one of them, and each log; neither has to know where the
//! other is.

use crate::subscriber::Subscriber;
use airmail_testkit::node::{self, Node, airmail, wait_until};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const SHARDS: usize = 4;
/// Enough that each shard has some of their logs.
const NAMESPACES: usize = 8;

fn start(data: &Path) -> Node {
    with_shards(data, SHARDS)
}

fn with_shards(data: &Path, shards: usize) -> Node {
    Node::start_with(data, &["--shards", &shards.to_string()])
}

fn name(namespace: usize) -> String {
    format!("space-{namespace}")
}

/// Each command is on a connection of its own, and so each on the next shard.
fn create(node: &Node, namespace: usize) {
    node.run(&["namespace", "create", &name(namespace)]).ok();
}

fn publish(node: &Node, namespace: usize, text: &str) {
    node.run(&["pub", "topic", text, "--namespace", &name(namespace)])
        .ok();
}

fn history(node: &Node, namespace: usize) -> Vec<String> {
    let printed = node.run(&["history", "topic", "--namespace", &name(namespace)]);
    printed.ok().lines().map(str::to_owned).collect()
}

/// Streams open on each shard.
fn sessions(node: &Node) -> Vec<usize> {
    let page = node::page(&node.http, "/metrics");
    let of_shard = |line: &str| {
        let (_, count) = line
            .strip_prefix("airmail_shard_sessions{")?
            .split_once(' ')?;
        count.parse().ok()
    };
    page.lines().filter_map(of_shard).collect()
}

/// A subscriber on each shard, live.
fn one_on_each_shard(node: &Node, topic: &str) -> Vec<Subscriber> {
    let subscribers = (0..SHARDS)
        .map(|_| Subscriber::start(node, topic))
        .collect();
    wait_until("a subscriber on each shard", || {
        let live = node::metric(&node.http, "airmail_live_subscriptions");
        live == Some(SHARDS as f64) && sessions(node) == [1; SHARDS]
    });
    subscribers
}

/// The shards that have logs of namespaces, by the directory of a node that does not run.
fn homes(data: &Path) -> BTreeMap<String, u64> {
    let mut check = airmail();
    check.arg("check").arg(data).arg("--json");
    let report: serde_json::Value = serde_json::from_str(&node::run(&mut check, b"").ok()).unwrap();
    let logs = report["logs"].as_array().unwrap().iter();
    let home = |log: &serde_json::Value| {
        let name = log["log"].as_str().unwrap().to_owned();
        (name, log["shard"].as_u64().unwrap())
    };
    logs.map(home).collect()
}

#[test]
fn what_is_published_on_one_shard_is_delivered_on_every_other_in_order() {
    const EACH: usize = 500;
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path());
    let mut subscribers = one_on_each_shard(&node, "topic");
    let lines = |publisher: usize| (0..EACH).map(move |n| format!("{publisher} {n}"));
    std::thread::scope(|scope| {
        for publisher in 0..SHARDS {
            let mut command = node.airmail(&["pub", "--lines", "topic"]);
            let input: String = lines(publisher).map(|line| line + "\n").collect();
            scope.spawn(move || node::run(&mut command, input.as_bytes()).ok());
        }
    });
    let all: Vec<Vec<String>> = subscribers
        .iter_mut()
        .map(|subscriber| subscriber.take(SHARDS * EACH))
        .collect();
    for publisher in 0..SHARDS {
        let from = format!("{publisher} ");
        let of_publisher = all[0].iter().filter(|line| line.starts_with(&from));
        assert!(of_publisher.cloned().eq(lines(publisher)), "{publisher}");
    }
    assert!(all.iter().all(|lines| *lines == all[0]));
    drop(subscribers);
    assert!(node.stop().success());
}

#[test]
fn what_is_created_on_one_shard_is_published_to_on_another_and_read_there_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path());
    for namespace in 0..NAMESPACES {
        create(&node, namespace);
        let mut expected = Vec::new();
        for number in 0..SHARDS {
            publish(&node, namespace, &format!("message {number}"));
            expected.push(format!("message {number}"));
            assert_eq!(history(&node, namespace), expected);
        }
    }
    for namespace in 0..NAMESPACES {
        node.run(&["namespace", "delete", &name(namespace)]).ok();
        let gone = node.run(&["pub", "topic", "x", "--namespace", &name(namespace)]);
        assert!(gone.failed(1).contains("NAMESPACE_NOT_FOUND"));
    }
    assert!(node.stop().success());
}

#[test]
fn logs_are_on_all_shards_and_everything_is_there_after_a_stop_and_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path());
    for namespace in 0..NAMESPACES {
        create(&node, namespace);
        publish(&node, namespace, "before the stop");
    }
    let logs = SHARDS.to_string();
    node.run(&["namespace", "create", "wide", "--logs", &logs])
        .ok();
    assert!(node.stop().success());
    let before = homes(directory.path());
    let used: BTreeSet<u64> = before.values().copied().collect();
    assert_eq!(used, (0..SHARDS as u64).collect());
    let node = start(directory.path());
    for namespace in 0..NAMESPACES {
        assert_eq!(history(&node, namespace), ["before the stop"]);
        publish(&node, namespace, "before the kill");
    }
    node.kill();
    let node = start(directory.path());
    for namespace in 0..NAMESPACES {
        let all = ["before the stop", "before the kill"];
        assert_eq!(history(&node, namespace), all);
    }
    assert!(node.stop().success());
    assert_eq!(homes(directory.path()), before);
}

#[test]
fn a_directory_that_grows_to_more_shards_keeps_everything_and_spreads_what_is_new() {
    let directory = tempfile::tempdir().unwrap();
    let node = with_shards(directory.path(), 1);
    for namespace in 0..NAMESPACES {
        create(&node, namespace);
        publish(&node, namespace, "of one shard");
    }
    assert!(node.stop().success());
    let old = homes(directory.path());
    assert!(old.values().all(|shard| *shard == 0));
    let node = start(directory.path());
    for namespace in 0..NAMESPACES {
        assert_eq!(history(&node, namespace), ["of one shard"]);
        publish(&node, namespace, "of several");
        assert_eq!(history(&node, namespace), ["of one shard", "of several"]);
    }
    for namespace in NAMESPACES..2 * NAMESPACES {
        create(&node, namespace);
        publish(&node, namespace, "new");
    }
    assert!(node.stop().success());
    let new = homes(directory.path());
    assert!(old.iter().all(|(log, shard)| new[log] == *shard));
    assert!(new.values().collect::<BTreeSet<_>>().len() > 1);
    let node = start(directory.path());
    assert_eq!(history(&node, 0), ["of one shard", "of several"]);
    assert_eq!(history(&node, NAMESPACES), ["new"]);
    drop(node);
    // Never fewer.
    let mut serve = node::serve(directory.path());
    serve.args(["--shards", "3"]);
    let refused = node::run(&mut serve, b"");
    let told = refused.failed(1);
    assert!(told.contains("node.shards"), "{told}");
    assert!(told.contains("at least 4"), "{told}");
    let mut serve = node::serve(directory.path());
    serve.args(["--shards", "65"]);
    let told = node::run(&mut serve, b"").failed(2);
    assert!(told.contains("node.shards"), "{told}");
    assert!(told.contains("1 to 64"), "{told}");
}

#[test]
fn health_and_metrics_are_those_of_all_shards() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path());
    assert_eq!(
        node::get(&node.http, "/readyz"),
        (200, "ready\n".to_owned())
    );
    for number in 0..8 {
        node.run(&["pub", "topic", &number.to_string()]).ok();
    }
    let metric = |name| node::metric(&node.http, name);
    assert_eq!(metric("airmail_published_messages_total"), Some(8.0));
    assert_eq!(metric("airmail_namespaces"), Some(1.0));
    let page = node::page(&node.http, "/metrics");
    for shard in 0..SHARDS {
        let turns = format!("airmail_shard_turns_total{{shard=\"{shard}\"}}");
        assert!(page.contains(&turns), "{page}");
        let gate = format!("airmail_flow_bound{{gate=\"publish-{shard}\"}}");
        assert!(page.contains(&gate), "{page}");
    }
    let shown = node.run(&["flow", "show"]).ok();
    assert!(shown.contains("publish-3"), "{shown}");
    assert!(node.stop().success());
}

/// Connections that came before the shard was held, and the first to come after, are its own.
#[cfg(feature = "test-switches")]
#[test]
fn a_shard_that_is_held_stops_nobody_who_does_not_need_it() {
    const HELD: u64 = 1;
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path());
    // As in the log's name.
    let mut numbers = Vec::new();
    for namespace in 0..NAMESPACES {
        create(&node, namespace);
        publish(&node, namespace, "before");
        let shown = node.run(&["namespace", "show", &name(namespace), "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&shown.ok()).unwrap();
        numbers.push(shown["id"].as_u64().unwrap());
    }
    assert!(node.stop().success());
    let homes = homes(directory.path());
    let is_elsewhere = |namespace: &usize| {
        let of_namespace = format!("{}/", numbers[*namespace]);
        let mut logs = homes
            .iter()
            .filter(|(log, _)| log.starts_with(&of_namespace));
        logs.all(|(_, shard)| *shard != HELD)
    };
    let elsewhere: Vec<usize> = (0..NAMESPACES).filter(is_elsewhere).collect();
    assert!((1..NAMESPACES).contains(&elsewhere.len()), "{homes:?}");

    let hold = format!("{HELD}:1h@1s");
    let shards = SHARDS.to_string();
    let node = Node::start_with(
        directory.path(),
        &["--shards", &shards, "--hold-shard", &hold],
    );
    wait_until("the shard to be held, and health to name it", || {
        let (status, told) = node::get(&node.http, "/readyz");
        status == 503 && told.contains(&format!("shard {HELD} does not answer"))
    });
    // One of these is the held shard's, from which on that is passed over.
    let _early: Vec<Subscriber> = (0..SHARDS)
        .map(|_| Subscriber::start(&node, "early"))
        .collect();
    wait_until("the others of them", || {
        sessions(&node).iter().sum::<usize>() == SHARDS - 1
    });
    for round in 0..3 {
        for namespace in &elsewhere {
            publish(&node, *namespace, &format!("while it is held {round}"));
        }
    }
    for namespace in &elsewhere {
        assert_eq!(history(&node, *namespace).len(), 4);
    }
    node.kill();
}
