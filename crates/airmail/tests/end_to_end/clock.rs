//! A wall clock that jumps: the jump is reported, and removes no message.

use airmail_testkit::node::{self, Node};
use std::fs;
use std::path::Path;

/// A node whose clock is wrong by what the file says.
pub(crate) fn start(data: &Path, file: &Path) -> Node {
    let file = file.to_str().unwrap();
    Node::start_with(data, &["--clock-offset-file", file])
}

fn publish(node: &Node, namespace: &str, payload: &str) {
    let command = ["pub", "t", payload, "--namespace", namespace];
    node.run(&command).ok();
}

fn history(node: &Node, namespace: &str) -> Vec<String> {
    let found = node.run(&["history", "t", "--namespace", namespace]).ok();
    found.lines().map(str::to_owned).collect()
}

/// Waits until retention has been applied since now: to a namespace that keeps two kilobytes.
fn retention_is_applied(node: &Node) {
    let long = "y".repeat(1_500);
    (0..3).for_each(|_| publish(node, "little", &long));
    node::wait_until("retention to be applied", || {
        history(node, "little").len() < 2
    });
}

/// Whether it holds a jump of its clock.
pub(crate) fn held(node: &Node) -> bool {
    node::metric(&node.http, "airmail_clock_held") == Some(1.0)
}

fn create(node: &Node) {
    node.run(&["namespace", "create", "hour", "--retention", "1h"])
        .ok();
    let little = ["namespace", "create", "little", "--retention-bytes", "2KiB"];
    node.run(&little).ok();
    for payload in ["one", "two", "three"] {
        publish(node, "hour", payload);
    }
}

#[test]
fn a_clock_that_jumps_a_day_takes_nothing_before_it_is_accepted_and_nothing_on_its_way_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("offset");
    fs::write(&file, "0s").unwrap();
    let node = start(&directory.path().join("data"), &file);
    create(&node);
    let shown = node.run(&["clock"]).ok();
    assert!(shown.contains("jump     none"), "{shown}");

    fs::write(&file, "+1d").unwrap();
    node::wait_until("the jump to be noticed", || held(&node));
    let warned = |direction: &str| {
        let said = node.said();
        let mut warnings = said.lines().filter(|line| line.contains("WARN"));
        warnings.any(|line| line.contains("clock has jumped") && line.contains(direction))
    };
    node::wait_until("the jump to be told", || warned("ahead"));
    retention_is_applied(&node);
    assert_eq!(history(&node, "hour"), ["one", "two", "three"]);
    let json = node.run(&["clock", "--json"]).ok();
    let clock: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(
        clock["held"]["by_us"].as_i64() > Some(86_000_000_000),
        "{json}"
    );

    let shown = node.run(&["clock", "accept"]).ok();
    assert!(shown.contains("jump     none"), "{shown}");
    node::wait_until("what is a day old to go", || {
        history(&node, "hour").is_empty()
    });
    assert!(!held(&node));

    publish(&node, "hour", "tomorrow");
    fs::write(&file, "0s").unwrap();
    node::wait_until("the way back to be told", || warned("back"));
    publish(&node, "hour", "today");
    retention_is_applied(&node);
    assert_eq!(history(&node, "hour"), ["tomorrow", "today"]);
    let jumps = node::metric(&node.http, "airmail_clock_jumps_total");
    assert_eq!(jumps, Some(2.0));
}

#[test]
fn a_start_with_a_clock_that_is_a_day_ahead_takes_nothing_and_one_that_is_right_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (data, file) = (
        directory.path().join("data"),
        directory.path().join("offset"),
    );
    fs::write(&file, "0s").unwrap();
    let node = start(&data, &file);
    create(&node);
    assert!(node.stop().success());
    // What was stored a day ahead tells the next start nothing.
    fs::write(&file, "+1d").unwrap();
    for clean in [true, false] {
        let node = start(&data, &file);
        assert!(held(&node));
        publish(&node, "hour", "ahead");
        retention_is_applied(&node);
        assert_eq!(history(&node, "hour")[..3], ["one", "two", "three"]);
        if clean {
            assert!(node.stop().success());
        } else {
            node.kill();
        }
    }
    fs::write(&file, "0s").unwrap();
    let node = start(&data, &file);
    assert!(!held(&node), "{}", node.said());
    retention_is_applied(&node);
    let found = history(&node, "hour");
    assert_eq!(found, ["one", "two", "three", "ahead", "ahead"]);
}
