//! A namespace that is moved to another storage of its node, through the real binary.

use super::cluster::subscribed;
use super::subscriber::Subscriber;
use airmail_testkit::node::{self, Node};
use std::path::PathBuf;
use tempfile::TempDir;

/// A node with two disks, whose second one is called far.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn far(&self) -> PathBuf {
        self.0.path().join("far")
    }

    fn start(&self) -> Node {
        let far = format!("far=disk:{}", self.far().display());
        Node::start_with(&self.data(), &["--log", &far])
    }
}

fn publish(node: &Node, topic: &str, text: &str) {
    node.run(&["pub", topic, text]).ok();
}

fn history(node: &Node, topic: &str, more: &[&str]) -> String {
    node.run(&[&["history", topic], more].concat()).ok()
}

fn move_to_far(node: &Node, name: &str) -> String {
    node.run(&["namespace", "move", name, "--storage", "far"])
        .ok()
}

/// The position after the last of a topic's messages.
fn position(node: &Node, topic: &str) -> String {
    let json = history(node, topic, &["--json"]);
    let last = json.lines().last().unwrap();
    let (_, rest) = last.split_once("\"position\":\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[test]
fn a_moved_namespace_goes_on_in_the_other_storage_and_its_history_is_one() {
    let place = Place::new();
    let node = place.start();
    publish(&node, "t", "one");
    let after_one = position(&node, "t");
    publish(&node, "t", "two");
    let after_two = position(&node, "t");
    let said = move_to_far(&node, "default");
    assert!(
        said.contains("\tstorage far\tkept in the first storage: logs 1\n"),
        "{said}"
    );
    publish(&node, "t", "three");
    let look = |node: &Node| {
        assert_eq!(history(node, "t", &[]), "one\ntwo\nthree\n");
        let since = |position: &str| history(node, "t", &["--since", position]);
        assert_eq!(since(&after_one), "two\nthree\n");
        assert_eq!(since(&after_two), "three\n");
        assert_eq!(since("1h"), "one\ntwo\nthree\n");
        assert_eq!(history(node, "t", &["--limit", "2"]), "one\ntwo\n");
        let topics = node.run(&["topics"]).ok();
        assert_eq!(topics, "t\n");
        let shown = node.run(&["namespace", "show", "default", "--json"]).ok();
        let earlier = r#""storage":"far","version":2,"map_epoch":2,"earlier":[{"storage":"","logs":1,"map_epoch":1}]"#;
        assert!(shown.contains(earlier), "{shown}");
    };
    look(&node);
    node.kill();
    let node = place.start();
    look(&node);
    publish(&node, "t", "four");
    assert_eq!(
        history(&node, "t", &["--since", &after_two]),
        "three\nfour\n"
    );
    assert!(node.stop().success());
    for directory in [place.data(), place.far()] {
        let said = node::run(node::airmail().arg("check").arg(&directory), b"").ok();
        assert!(said.contains("sound"), "{said}");
    }
}

#[test]
fn a_live_subscriber_goes_on_over_moves_there_and_back() {
    let place = Place::new();
    let node = place.start();
    let mut live = Subscriber::start(&node, "t");
    subscribed(&node);
    publish(&node, "t", "before");
    assert_eq!(live.take(1), ["before"]);
    move_to_far(&node, "default");
    publish(&node, "t", "there");
    node.run(&["namespace", "move", "default"]).ok();
    publish(&node, "t", "back");
    assert_eq!(live.take(2), ["there", "back"]);
    let shown = node.run(&["namespace", "list"]).ok();
    assert!(
        shown.contains("\tkept in the first storage: logs 1\tkept in far: logs 1\n"),
        "{shown}"
    );
    assert_eq!(history(&node, "t", &[]), "before\nthere\nback\n");
}

#[test]
fn a_move_that_cannot_be_is_refused_by_name() {
    let place = Place::new();
    let node = place.start();
    let refused = |arguments: &[&str]| {
        node.run(&[&["namespace", "move"], arguments].concat())
            .failed(1)
    };
    let nowhere = refused(&["default", "--storage", "nowhere"]);
    assert!(
        nowhere.contains("INVALID_ARGUMENT") && nowhere.contains("namespace.storage: nowhere"),
        "{nowhere}"
    );
    let there = refused(&["default"]);
    assert!(there.contains("another storage than it is in"), "{there}");
    let missing = refused(&["orders", "--storage", "far"]);
    assert!(missing.contains("NAMESPACE_NOT_FOUND"), "{missing}");
}
