//! Messages of lane high, by the command line; also from a gateway.

use crate::cluster::{gateway, subscribed, tower};
use crate::subscriber::Subscriber;
use airmail_testkit::node::Node;

fn publish(node: &Node, payload: &str, lane: &str) {
    node.run(&["pub", "orders", payload, "--lane", lane]).ok();
}

fn history(node: &Node) -> Vec<String> {
    let printed = node.run(&["history", "orders"]).ok();
    printed.lines().map(str::to_owned).collect()
}

#[test]
fn both_lanes_reach_who_subscribed_before_there_was_one_who_comes_later_and_who_reads_history() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(&directory.path().join("data"), &[]);
    let front = gateway("front", &tower, &[]);
    let mut live = Subscriber::start_with(&front, "orders", &[]);
    subscribed(&front);
    publish(&tower, "normal 1", "normal");
    assert_eq!(live.take(1), ["normal 1"]);
    publish(&front, "high 1", "high");
    assert_eq!(live.take(1), ["high 1"]);
    publish(&tower, "normal 2", "normal");
    assert_eq!(live.take(1), ["normal 2"]);
    let expected = ["normal 1", "high 1", "normal 2"];
    for node in [&tower, &front] {
        assert_eq!(history(node), expected, "by append time");
        let late = ["sub", "orders", "--from", "earliest", "--count", "3"];
        let printed = node.run(&late).ok();
        let mut printed: Vec<&str> = printed.lines().collect();
        printed.sort_unstable();
        assert_eq!(printed, ["high 1", "normal 1", "normal 2"]);
    }
}

#[test]
fn what_was_published_in_either_lane_is_there_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    for (payload, lane) in [("normal 1", "normal"), ("high 1", "high")] {
        publish(&node, payload, lane);
    }
    node.kill();
    let node = Node::start(directory.path());
    publish(&node, "high 2", "high");
    assert_eq!(history(&node), ["normal 1", "high 1", "high 2"]);
}

#[test]
fn a_position_goes_on_in_both_lanes() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(&directory.path().join("data"), &[]);
    for (payload, lane) in [("normal 1", "normal"), ("high 1", "high")] {
        publish(&tower, payload, lane);
    }
    let both = [
        "sub", "orders", "--from", "earliest", "--count", "2", "--json",
    ];
    let printed = tower.run(&both).ok();
    let last: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    let position = last["position"].as_str().unwrap();
    for (payload, lane) in [("high 2", "high"), ("normal 2", "normal")] {
        publish(&tower, payload, lane);
    }
    let on = ["sub", "orders", "--from", position, "--count", "2"];
    let printed = tower.run(&on).ok();
    let mut printed: Vec<&str> = printed.lines().collect();
    printed.sort_unstable();
    assert_eq!(printed, ["high 2", "normal 2"]);
}

#[test]
fn a_lane_that_there_is_not_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(&directory.path().join("data"), &[]);
    let refused = tower
        .run(&["pub", "orders", "x", "--lane", "fast"])
        .failed(2);
    assert!(refused.contains("normal or high"), "{refused}");
}
