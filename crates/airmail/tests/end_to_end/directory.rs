//! The data directory: one process at a time, a clean stop, and a look that changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::node::{self, Node, airmail};

#[test]
fn a_second_process_on_a_data_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut second = airmail();
    second.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--data",
    ]);
    let said = node::run(second.arg(directory.path()), b"").failed(1);
    assert!(said.contains("airmail: "), "{said}");
    assert!(
        said.contains(&directory.path().display().to_string()),
        "{said}"
    );
    // The first one is not disturbed.
    node.run(&["pub", "still", "here"]).ok();
    assert_eq!(node.run(&["history", "still"]).ok(), "here\n");
}

#[test]
fn a_port_in_use_is_told() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let node = Node::start(one.path());
    let mut second = airmail();
    second.args([
        "serve",
        "--listen",
        &node.grpc,
        "--http",
        "127.0.0.1:0",
        "--data",
    ]);
    let said = node::run(second.arg(other.path()), b"").failed(1);
    assert!(said.contains(&node.grpc), "{said}");
}

#[test]
fn a_clean_stop_ends_with_0_and_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    node.run(&["pub", "kept", "before"]).ok();
    assert!(node.stop().success());
    let node = Node::start(directory.path());
    assert_eq!(node.run(&["history", "kept"]).ok(), "before\n");
}

#[test]
fn check_reads_a_directory_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    node.run(&["pub", "checked", "once"]).ok();
    node.kill();
    let before = contents(directory.path());
    node::run(airmail().arg("check").arg(directory.path()), b"").ok();
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn check_of_a_damaged_directory_ends_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    node.run(&["pub", "damaged", "a payload that is easy to find"])
        .ok();
    node.run(&["pub", "sound", "another"]).ok();
    assert!(node.stop().success());
    let mut damaged = 0;
    for (path, mut bytes) in contents(directory.path()) {
        let needle = b"easy to find";
        if let Some(at) = bytes.windows(needle.len()).position(|part| part == needle) {
            bytes[at] ^= 1;
            fs::write(path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1);
    let done = node::run(airmail().arg("check").arg(directory.path()), b"");
    assert_eq!(done.code, Some(1), "{done:?}");

    // It is not served, it is told, and what stands beside it is served.
    let node = Node::start(directory.path());
    let done = node.run(&["history", "damaged"]);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("gap"), "{done:?}");
    assert_eq!(node.run(&["history", "sound"]).ok(), "another\n");
}

fn contents(directory: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}
