//! A tree of nodes: clients of every node see the same, a node that is gone costs those below it a moment, and who may
//! not be a child is told why.

use crate::cluster::{
    assert_clients_see_the_same, gateway_command, part_command, publish, refused, secret,
    subscribed, tower, tower_at, with,
};
use crate::subscriber::Subscriber;
use airmail_bench::late::{Backlog, Crowd, Wanted};
use airmail_testkit::lasting::lasting_address;
use airmail_testkit::node::{self, Node, airmail, wait_until};
use airmail_testkit::scale;
use airmail_testkit::waiting::waiting;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, Stdio};

/// The command of a child of the node at this address.
fn child_command(name: &str, parents: &str, flags: &[&str]) -> Command {
    child_command_at("127.0.0.1:0", name, parents, flags)
}

/// The same, where its own children reach it at an address.
fn child_command_at(cluster: &str, name: &str, parents: &str, flags: &[&str]) -> Command {
    let mut command = part_command(name, "all");
    command.args(["--cluster", cluster]);
    command.args(["--log", &format!("tree://{parents}")]);
    with(command, flags)
}

fn child(name: &str, parent: &Node, flags: &[&str]) -> Node {
    Node::spawn(child_command(name, &parent.address("nodes"), flags))
}

/// A node's place in the tree, as another one knows it.
fn place(asked: &Node, name: &str) -> Value {
    let done = asked.run(&["cluster", "status", "--json"]);
    let status: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
    let members = status["members"].as_array().cloned().unwrap_or_default();
    let member = members.into_iter().find(|member| member["name"] == name);
    member.map_or(Value::Null, |member| member["tree"].clone())
}

fn wait_for_place(asked: &Node, name: &str, parent: &str, depth: u64) {
    wait_until(&format!("{name} to be below {parent}"), || {
        let place = place(asked, name);
        place["parent"] == parent && place["depth"] == depth
    });
}

#[test]
fn clients_of_the_root_and_of_nodes_below_see_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let root = tower(directory.path(), &["--shards", "2"]);
    let inner = child("inner", &root, &["--shards", "3"]);
    let leaf = child("leaf", &inner, &[]);
    assert_clients_see_the_same([&root, &inner, &leaf]);
}

#[test]
fn who_is_below_a_node_that_is_gone_goes_on_at_the_next_above_and_comes_back_and_misses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let root = tower(directory.path(), &[]);
    let address = lasting_address();
    let inner = || {
        let above = root.address("nodes");
        Node::spawn(child_command_at(&address, "inner", &above, &[]))
    };
    let first = inner();
    let leaf = child("leaf", &first, &[]);
    let mut live = Subscriber::start(&leaf, "news");
    subscribed(&leaf);
    publish(&leaf, "news", "1");
    wait_for_place(&root, "leaf", "inner", 2);
    first.kill();
    publish(&leaf, "news", "2");
    publish(&root, "news", "3");
    assert_eq!(live.take(3), ["1", "2", "3"]);
    wait_for_place(&root, "leaf", "tower", 1);
    let _again = inner();
    wait_for_place(&root, "leaf", "inner", 2);
    publish(&leaf, "news", "4");
    assert_eq!(live.take(1), ["4"]);
}

#[test]
fn a_tree_whose_root_was_killed_goes_on_when_it_is_back_and_says_so_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let root = tower(directory.path(), &[]);
    let address = root.address("nodes");
    let inner = child("inner", &root, &[]);
    let leaf = child("leaf", &inner, &[]);
    let mut live = Subscriber::start(&leaf, "news");
    subscribed(&leaf);
    publish(&leaf, "news", "1");
    assert_eq!(live.take(1), ["1"]);
    root.kill();
    let said = leaf
        .run(&["pub", "news", "lost", "--timeout", "5s"])
        .failed(1);
    let is_said = said.contains("UNAVAILABLE") || said.contains("OUTCOME_UNKNOWN");
    assert!(is_said, "{said}");
    wait_until("a fault of each", || {
        let done = leaf.run(&["cluster", "status"]);
        let cut_off = |name: &str| {
            let fault = format!("node {name} has no way to the root of its tree");
            done.stdout.contains(&fault)
        };
        done.code == Some(1) && cut_off("inner") && cut_off("leaf")
    });
    let depth = |node: &Node| node::metric(&node.http, "airmail_tree_depth");
    assert_eq!(depth(&leaf), Some(-1.0));
    let _again = tower_at(directory.path(), &address, &[]);
    publish(&leaf, "news", "2");
    let stored = leaf.run(&["history", "news"]).ok();
    let stored: Vec<&str> = stored.lines().collect();
    assert_eq!(live.take(stored.len() - 1), stored[1..]);
    assert_eq!(stored.last(), Some(&"2"));
    wait_until("all to be well", || {
        leaf.run(&["cluster", "status"]).code == Some(0)
    });
    // Whichever of its ancestors it has tried first.
    assert!(depth(&leaf) >= Some(1.0));
}

#[test]
fn one_child_too_many_is_sent_on_to_another_and_the_tree_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let most = ("AIRMAIL_TREE_CHILDREN_MAX", "1");
    let mut command = node::serve(directory.path());
    command.args(["--name", "tower", "--cluster", "127.0.0.1:0"]);
    let root = Node::spawn(with_setting(command, most));
    let below = |name: &str| {
        let command = child_command(name, &root.address("nodes"), &[]);
        Node::spawn(with_setting(command, most))
    };
    let first = below("first");
    let second = below("second");
    let third = below("third");
    wait_for_place(&first, "second", "first", 2);
    wait_for_place(&first, "third", "second", 3);
    wait_until("the root's child to be shown", || {
        place(&third, "tower")["children"] == 1
    });
    publish(&third, "t", "x");
    assert_eq!(second.run(&["history", "t"]).ok(), "x\n");
    let shown = root.run(&["cluster", "status"]).ok();
    let head = "ZONE  PARENT  DEPTH  CHILDREN  DELAY";
    assert!(shown.lines().next().unwrap().contains(head), "{shown}");
    let children = node::metric(&first.http, "airmail_tree_children");
    assert_eq!(children, Some(1.0));
}

fn with_setting(mut command: Command, (name, value): (&str, &str)) -> Command {
    command.env(name, value);
    command
}

#[test]
fn readers_of_one_history_have_it_from_the_root_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = tower(directory.path(), &[]);
    let leaf = child("leaf", &root, &[]);
    let lines = ("x".repeat(10_000) + "\n").repeat(400);
    let mut command = root.airmail(&["pub", "t", "--lines"]);
    node::run(&mut command, lines.as_bytes()).ok();
    for _ in 0..3 {
        assert_eq!(leaf.run(&["history", "t"]).ok(), lines);
    }
    let fetched = node::metric(&leaf.http, "airmail_cache_fetched_bytes_total");
    let fetched = fetched.unwrap() / lines.len() as f64;
    assert!(fetched < 2.5, "{fetched} times");
    let kept = node::metric(&leaf.http, "airmail_cache_bytes");
    assert!(kept.is_some(), "it is not told what is kept");
    assert_eq!(
        node::metric(&leaf.http, "airmail_tree_behind_ms"),
        Some(0.0)
    );
    let delay = node::metric(&leaf.http, "airmail_tree_delay_us");
    assert!(delay.is_some(), "the delay is not told");
}

/// Subscribers of a backlog, each of a topic and from a place of its own, at a gateway with a cache.
fn catch_up(gateways: &[(&str, &Node)], backlog: &Backlog) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let crowds = gateways.iter().map(|(host, node)| Crowd {
        target: format!("airmail://{}", node.grpc),
        host: Some((*host).to_owned()),
        connections: NonZeroU32::new(8).unwrap(),
        backlog: backlog.clone(),
    });
    let crowds = crowds.map(|crowd| runtime.spawn(async move { crowd.catch_up().await.unwrap() }));
    for crowd in crowds.collect::<Vec<_>>() {
        let caught_up = runtime.block_on(crowd).unwrap();
        assert!(caught_up.is_whole(backlog), "{caught_up:?}");
    }
}

#[test]
fn a_crowd_far_back_has_each_block_asked_for_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = tower(directory.path(), &[]);
    let bytes = scale::backlog_bytes() as u64;
    let wanted = Wanted {
        namespace: "late".to_owned(),
        topics: NonZeroU32::new((bytes / 80_000).clamp(200, 5_000) as u32).unwrap(),
        bytes,
        size: 100,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let url = format!("airmail://{}", root.grpc);
    let backlog = runtime.block_on(Backlog::store(&url, &wanted)).unwrap();
    let stored = segment_bytes(directory.path());
    let gateway = |name: &str, of: &Node| {
        let mut command = gateway_command(name, &of.address("nodes"), &[]);
        command.env("AIRMAIL_CACHE_BYTES", "2GiB");
        command.env("AIRMAIL_CLUSTER_HOST", name);
        Node::spawn(command)
    };
    // No batch comes for a second time to whoever reads everything. Those who come before it is known that there is a crowd
    // are read for by topic.
    let beforehand = stored / 50.0 + f64::from(8 << 20);
    let times_fetched = |node: &Node| {
        let bytes = node::metric(&node.http, "airmail_cache_fetched_bytes_total").unwrap();
        assert!(bytes <= stored + beforehand, "{bytes} bytes of {stored}");
        bytes / stored
    };
    let (one, other) = (gateway("one", &root), gateway("other", &root));
    catch_up(&[("one", &one), ("other", &other)], &backlog);
    let alone = [&one, &other].map(times_fetched);
    // Two gateways have it from one node of a tree.
    let parent = root.address("nodes") + "?cache=2GiB";
    let between = Node::spawn(child_command("between", &parent, &[]));
    let (one, other) = (gateway("first", &between), gateway("second", &between));
    catch_up(&[("first", &one), ("second", &other)], &backlog);
    let shared = times_fetched(&between);
    scale::say(&format!(
        "a crowd of {} at each of two gateways, {} messages in {stored} bytes of files: fetched by each {alone:.3?}, by one for \
         both {shared:.3}\n",
        wanted.topics,
        backlog.messages(),
    ));
}

/// Bytes of the files that have a node's batches.
fn segment_bytes(data: &Path) -> f64 {
    let files = fs::read_dir(data.join("shard-0000")).unwrap();
    let files = files.map(Result::unwrap);
    let segments = files.filter(|file| file.file_name().to_string_lossy().starts_with("seg-"));
    let bytes: u64 = segments.map(|file| file.metadata().unwrap().len()).sum();
    bytes as f64
}

#[test]
fn who_may_not_be_a_child_is_told_why() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let right = secret(at, "right", &"r".repeat(32), 0o600);
    let wrong = secret(at, "wrong", &"w".repeat(40), 0o600);
    let right = ["--secret-file", right.to_str().unwrap()];
    let root = tower(&at.join("data"), &right);
    let address = root.address("nodes");
    let said = refused(child_command("one", &address, &[]), 1);
    assert!(
        said.contains("has a secret, and node one has none"),
        "{said}"
    );
    let flags = ["--secret-file", wrong.to_str().unwrap()];
    let said = refused(child_command("one", &address, &flags), 1);
    assert!(said.contains("have different secrets"), "{said}");
    let one = child("one", &root, &right);
    let said = refused(child_command("one", &address, &right), 1);
    assert!(said.contains("the name one is that of node"), "{said}");
    let said = refused(child_command("tower", &one.address("nodes"), &right), 1);
    assert!(
        said.contains("the name tower is that of a node above"),
        "{said}"
    );
}

#[test]
fn a_child_of_a_node_as_deep_as_may_be_waits_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let most = ("AIRMAIL_TREE_DEPTH_MAX", "2");
    let root = tower(directory.path(), &[]);
    let first = child_command("first", &root.address("nodes"), &[]);
    let first = Node::spawn(with_setting(first, most));
    let mut second = child_command("second", &first.address("nodes"), &[]);
    second
        .env(most.0, most.1)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut process = second.spawn().unwrap();
    let waiting = waiting("a child that says why it is none");
    let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
    let is_said = said.any(|line| line.unwrap().contains("tree.depth_max"));
    drop(waiting);
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(is_said, "it does not say why it waits");
}

#[test]
fn what_a_child_cannot_have_is_wrong_usage() {
    let parent = "tree://127.0.0.1:1";
    for (flags, field) in [
        (
            &["--log", parent, "--cluster", "127.0.0.1:0"][..],
            "node.name",
        ),
        (&["--log", parent, "--name", "c"], "cluster.listen"),
        (&["--log", "tree://", "--name", "c"], "log.url"),
        (
            &["--log", "tree://a:1?cache=much", "--name", "c"],
            "log.url",
        ),
        (
            &[
                "--log",
                parent,
                "--log",
                "fast=memory:",
                "--name",
                "c",
                "--cluster",
                "127.0.0.1:0",
            ],
            "storage.fast.url",
        ),
        (
            &["--log", parent, "--name", "c", "--cluster", "127.0.0.1:1"],
            "log.url",
        ),
        (&["--log", "far=tree://127.0.0.1:1"], "storage.far.url"),
    ] {
        let mut command = airmail();
        command.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        let said = refused(with(command, flags), 2);
        assert!(said.contains(field), "{flags:?}: {said}");
    }
}
