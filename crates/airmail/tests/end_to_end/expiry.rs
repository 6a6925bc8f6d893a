//! Messages that expire, by the command line; and by the clock of the node that stores them, whatever those of the
//! nodes show that clients talk to.

use crate::cluster::{gateway, subscribed, tower};
use crate::subscriber::Subscriber;
use airmail_testkit::node::{Node, wait_until};
#[cfg(feature = "test-switches")]
use {crate::clock, std::fs, std::path::Path};

fn publish(node: &Node, payload: &str, ttl: &str) {
    node.run(&["pub", "news", payload, "--ttl", ttl]).ok();
}

fn history(node: &Node) -> Vec<String> {
    let found = node.run(&["history", "news"]).ok();
    found.lines().map(str::to_owned).collect()
}

#[test]
fn a_message_is_printed_by_nobody_from_its_time_to_live_on_and_told_to_who_asks() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    publish(&node, "old", "50ms");
    publish(&node, "young", "1h");
    wait_until("a message to expire", || history(&node) == ["young"]);
    let late = ["sub", "news", "--from", "earliest", "--count", "1"];
    let json = node.run(&[&late[..], &["--json"]].concat()).ok();
    assert!(
        json.contains(r#""ttl_ms":3600000,"payload":"young""#),
        "{json}"
    );
    for command in [&["history", "news"][..], &late] {
        let done = node.run(&[command, &["--tell-expired"]].concat());
        assert_eq!(done.stderr, "airmail: expired 1\n", "{command:?}");
        assert_eq!(done.stdout, "young\n", "{command:?}");
    }
    // A restart changes nothing.
    assert!(node.stop().success());
    let node = Node::start(directory.path());
    assert_eq!(history(&node), ["young"]);
}

#[test]
fn a_time_to_live_that_cannot_be_is_wrong_usage() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    for ttl in ["0s", "50d", "soon"] {
        let said = node.run(&["pub", "news", "x", "--ttl", ttl]).failed(2);
        assert!(said.contains("--ttl"), "{said}");
    }
    assert_eq!(history(&node), [""; 0]);
}

#[cfg(feature = "test-switches")]
#[test]
fn what_expires_does_so_by_the_clock_of_the_tower_whatever_a_gateways_shows() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(&directory.path().join("data"), &[]);
    let behind = gateway("behind", &tower, &["--clock-offset", "-2s"]);
    let ahead = gateway("ahead", &tower, &["--clock-offset", "+1h"]);
    let mut subscribers = [&behind, &ahead].map(|node| Subscriber::start(node, "news"));
    [&behind, &ahead].into_iter().for_each(subscribed);
    // By the clock that is ahead it would have expired when it comes.
    publish(&behind, "young", "30m");
    for subscriber in &mut subscribers {
        assert_eq!(subscriber.take(1), ["young"]);
    }
    // By the clock that is behind it would live for two seconds more.
    publish(&behind, "old", "50ms");
    wait_until("a message to expire", || history(&tower) == ["young"]);
    for node in [&behind, &ahead] {
        assert_eq!(history(node), ["young"]);
    }
}

/// Sets the clock of the node that has the logs, and waits until it knows.
#[cfg(feature = "test-switches")]
fn set(file: &Path, offset: &str, node: &Node) {
    fs::write(file, offset).unwrap();
    wait_until("the jump of a clock to be noticed", || {
        clock::held(node) == (offset != "0s")
    });
}

#[cfg(feature = "test-switches")]
#[test]
fn a_clock_set_a_day_ahead_and_right_again_takes_nothing_that_is_published_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("offset");
    fs::write(&file, "0s").unwrap();
    let flags = ["--clock-offset-file", file.to_str().unwrap()];
    let tower = tower(&directory.path().join("data"), &flags);
    let front = gateway("front", &tower, &[]);
    let mut subscriber = Subscriber::start(&front, "news");
    subscribed(&front);
    publish(&front, "before", "1h");
    assert_eq!(subscriber.take(1), ["before"]);
    set(&file, "+1d", &tower);
    publish(&front, "meanwhile", "1h");
    assert_eq!(subscriber.take(1), ["meanwhile"]);
    set(&file, "0s", &tower);
    publish(&front, "after", "1h");
    assert_eq!(subscriber.take(1), ["after"]);
    publish(&front, "short", "50ms");
    // What was there before the clock was set is a day older for it.
    for node in [&front, &tower] {
        wait_until("a message to expire", || {
            history(node) == ["meanwhile", "after"]
        });
    }
}

#[cfg(feature = "test-switches")]
#[test]
fn what_is_published_while_the_clock_is_set_back_a_day_expires_in_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("offset");
    fs::write(&file, "0s").unwrap();
    let node = clock::start(&directory.path().join("data"), &file);
    publish(&node, "before", "1h");
    set(&file, "-1d", &node);
    publish(&node, "short", "50ms");
    publish(&node, "young", "1h");
    wait_until("a message to expire", || {
        history(&node) == ["before", "young"]
    });
}
