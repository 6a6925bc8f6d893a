//! Return of disk space after deletion and retention, though nobody publishes any more.

use airmail_testkit::node::{self, Node, airmail};
use airmail_testkit::{scale, shards};
use std::fs;
use std::path::Path;

/// The smallest there is.
const SEGMENT: u64 = 4 << 20;
/// Space of each shard beside a namespace's segments: commands, and log 0, two of 1 MiB each; checkpoints;
/// indexes.
const BESIDE: u64 = 5 << 20;
/// Lines of 10 kB.
const LINES: usize = 4_000;

fn start(data: &Path) -> Node {
    let mut command = airmail();
    command.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.arg("--data").arg(data);
    command.env("AIRMAIL_STORAGE_SEGMENT_BYTES", "4MiB");
    Node::spawn(command)
}

fn beside() -> u64 {
    BESIDE * u64::from(scale::shards())
}

/// Size of the logs on the disk, in bytes.
fn held(data: &Path) -> u64 {
    let shards = shards::directories(data).into_iter();
    let files = shards.flat_map(|shard| fs::read_dir(shard).unwrap());
    // A file may go while one looks.
    let lengths = files.filter_map(|file| file.ok()?.metadata().ok());
    lengths.map(|found| found.len()).sum()
}

fn publish(node: &Node, namespace: &str) {
    let line = "x".repeat(10_000) + "\n";
    let input = line.repeat(LINES);
    let command = ["pub", "bulk", "--lines", "--namespace", namespace];
    node::run(&mut node.airmail(&command), input.as_bytes()).ok();
}

fn history(node: &Node, namespace: &str) -> usize {
    let command = ["history", "bulk", "--namespace", namespace];
    node.run(&command).ok().lines().count()
}

#[test]
fn a_deleted_namespace_and_one_that_keeps_little_leave_no_more_than_two_segments() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let node = start(data);
    let bounded = ["namespace", "create", "little", "--retention-bytes", "1MiB"];
    node.run(&bounded).ok();
    node.run(&["namespace", "create", "gone"]).ok();
    publish(&node, "gone");
    assert!(held(data) > LINES as u64 * 10_000, "it is all there");
    publish(&node, "little");
    node.run(&["namespace", "delete", "gone"]).ok();
    let bound = (1 << 20) + 2 * SEGMENT + beside();
    node::wait_until("the disk to be given back", || held(data) <= bound);
    let kept = history(&node, "little");
    assert!(kept > 0 && kept <= (1 << 20) / 10_000, "{kept}");
    assert!(node.stop().success());
    let node = start(data);
    node::wait_until("no more to be there after a start", || held(data) <= bound);
    assert_eq!(history(&node, "little"), kept);
    node.run(&["namespace", "delete", "little"]).ok();
    node::wait_until("both to be gone", || held(data) <= beside());
}

#[test]
fn what_is_deleted_just_before_a_stop_goes_at_the_next_start() {
    for kill in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        let node = start(data);
        node.run(&["namespace", "create", "gone"]).ok();
        publish(&node, "gone");
        node.run(&["namespace", "delete", "gone"]).ok();
        if kill {
            node.kill();
        } else {
            assert!(node.stop().success());
        }
        let node = start(data);
        node::wait_until("the disk to be given back", || held(data) <= beside());
        assert!(!node.run(&["namespace", "list"]).ok().contains("gone"));
    }
}
