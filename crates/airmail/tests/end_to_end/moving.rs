//! A namespace that is moved to another storage of its node, through the real binary.

use super::cluster::subscribed;
use super::small_disk::SmallDisk;
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

#[test]
fn a_namespace_can_be_moved_away_from_a_disk_that_is_full() {
    const MEBIBYTES: usize = 64;
    let place = Place::new();
    std::fs::create_dir(place.far()).unwrap();
    let Some(disk) = SmallDisk::mount(&place.far(), MEBIBYTES) else {
        return;
    };
    let node = place.start();
    let made = ["namespace", "create", "n", "--storage", "far"];
    node.run(&made).ok();
    let publish = |text: &str| node.run(&["pub", "t", text, "--namespace", "n"]);
    publish("one").ok();
    let ballast = disk.fill();
    let payload = vec![b'x'; 1 << 20];
    let refused = (0..MEBIBYTES).find_map(|_| {
        // Long enough for a busy machine to be told why.
        let mut publish = node.airmail(&["pub", "bulk", "--namespace", "n", "--timeout", "20s"]);
        let done = node::run(&mut publish, &payload);
        (done.code != Some(0)).then_some(done)
    });
    let said = refused.expect("more was stored than the disk holds");
    assert!(said.failed(1).contains("STORAGE_FULL"));
    ballast.grow();
    node.run(&["namespace", "move", "n"]).ok();
    publish("two").ok();
    drop(ballast);
    publish("three").ok();
    let history = node.run(&["history", "t", "--namespace", "n"]).ok();
    assert_eq!(history, "one\ntwo\nthree\n");
}
