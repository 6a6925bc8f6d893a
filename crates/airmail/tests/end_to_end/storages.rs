//! A node with several storages, over restarts with and without each of them.

use airmail_testkit::node::{self, Node};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A place for a node's directories.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn disk(&self, name: &str) -> String {
        format!("disk:{}", self.path(name).display())
    }

    /// A node whose first storage is on the disk, with further ones.
    fn start(&self, further: &[&str]) -> Node {
        Node::start_with(&self.path("data"), &flags(further))
    }

    /// Standard error of such a node that does not start.
    fn refused(&self, further: &[&str], code: i32) -> String {
        let mut command = node::serve(&self.path("data"));
        node::run(command.args(flags(further)), b"").failed(code)
    }
}

fn flags<'a>(further: &[&'a str]) -> Vec<&'a str> {
    further
        .iter()
        .flat_map(|storage| ["--log", storage])
        .collect()
}

fn publish(node: &Node, namespace: &str, text: &str) {
    node.run(&["pub", "t", text, "--namespace", namespace]).ok();
}

fn history(node: &Node, namespace: &str) -> String {
    node.run(&["history", "t", "--namespace", namespace]).ok()
}

/// A command that waits until the node says something else, and is not given the time for that.
fn refusal(node: &Node, arguments: &[&str]) -> String {
    let arguments = [arguments, &["--timeout", "1s"]].concat();
    let done = node.run(&arguments);
    assert_ne!(done.code, Some(0), "{done:#?}");
    done.stderr
}

fn create(node: &Node, name: &str, storage: &str) -> String {
    node.run(&["namespace", "create", name, "--storage", storage])
        .ok()
}

#[test]
fn a_namespace_in_memory_stands_beside_one_on_a_disk_and_is_empty_after_a_restart() {
    let place = Place::new();
    let node = place.start(&["fast=memory:"]);
    let said = create(&node, "ticks", "fast");
    assert!(
        said.contains("\tdurability memory\t") && said.contains("\tstorage fast\n"),
        "{said}"
    );
    publish(&node, "ticks", "tick");
    publish(&node, "default", "kept");
    assert_eq!(history(&node, "ticks"), "tick\n");
    let held = node.run(&[
        "namespace",
        "create",
        "x",
        "--storage",
        "fast",
        "--durability",
        "os",
    ]);
    let said = held.failed(1);
    assert!(
        said.contains("DURABILITY_UNAVAILABLE") && said.contains("memory"),
        "{said}"
    );
    assert!(node.stop().success());

    let node = place.start(&["fast=memory:"]);
    assert_eq!(history(&node, "default"), "kept\n");
    assert_eq!(history(&node, "ticks"), "", "a new life");
    publish(&node, "ticks", "tock");
    assert_eq!(history(&node, "ticks"), "tock\n");
    let json = node.run(&["namespace", "show", "ticks", "--json"]).ok();
    assert!(json.contains("\"storage\":\"fast\""), "{json}");
}

#[test]
fn two_disks_keep_each_its_own_over_a_kill() {
    let place = Place::new();
    let archive = format!("archive={}", place.disk("archive"));
    let node = place.start(&[&archive]);
    create(&node, "old", "archive");
    publish(&node, "old", "in the archive");
    publish(&node, "default", "in the first");
    node.kill();
    let node = place.start(&[&archive]);
    assert_eq!(history(&node, "old"), "in the archive\n");
    assert_eq!(history(&node, "default"), "in the first\n");
    assert!(node.stop().success());
    let holds = |name: &str, needle: &str| holds(&place.path(name), needle.as_bytes());
    assert!(holds("archive", "in the archive") && !holds("archive", "in the first"));
    assert!(holds("data", "in the first") && !holds("data", "in the archive"));
    for name in ["archive", "data"] {
        let mut check = node::airmail();
        let said = node::run(check.arg("check").arg(place.path(name)), b"").ok();
        assert!(said.contains("sound"), "{name}: {said}");
    }
}

/// Whether a file below a directory has these bytes.
fn holds(directory: &Path, needle: &[u8]) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, needle);
        }
        let bytes = fs::read(&path).unwrap();
        bytes.windows(needle.len()).any(|part| part == needle)
    })
}

#[test]
fn a_storage_that_the_node_has_not_is_refused_with_those_that_it_has() {
    let place = Place::new();
    let node = place.start(&["fast=memory:", "tier-2=memory:"]);
    let create = ["namespace", "create", "x", "--storage", "slow"];
    let said = node.run(&create).failed(1);
    for part in [
        "INVALID_ARGUMENT",
        "namespace.storage: slow",
        "fast, tier-2",
    ] {
        assert!(said.contains(part), "no {part} in: {said}");
    }
    let update = ["namespace", "update", "default", "--storage", "fast"];
    let said = node.run(&update).failed(1);
    assert!(
        said.contains("UNIMPLEMENTED") && said.contains("namespace.storage"),
        "{said}"
    );
}

#[test]
fn without_one_of_its_storages_a_node_serves_the_others_and_says_elsewhere() {
    let place = Place::new();
    let archive = format!("archive={}", place.disk("archive"));
    let node = place.start(&[&archive]);
    create(&node, "old", "archive");
    create(&node, "gone", "archive");
    publish(&node, "old", "once");
    publish(&node, "default", "kept");
    assert!(node.stop().success());

    for others in [&[][..], &["fast=memory:"]] {
        let node = place.start(others);
        assert_eq!(history(&node, "default"), "kept\n");
        let listed = node.run(&["namespace", "list"]).ok();
        assert!(
            listed.contains("old\t") && listed.contains("storage archive"),
            "{listed}"
        );
        for arguments in [
            &["pub", "t", "x", "--namespace", "old"][..],
            &["topics", "--namespace", "old"],
            &["namespace", "update", "old", "--retention", "7d"],
        ] {
            let said = refusal(&node, arguments);
            assert!(said.contains("ELSEWHERE"), "{arguments:?}: {said}");
        }
        let told = node.said();
        assert!(
            told.contains("namespaces are in storages that this node has not"),
            "{told}"
        );
        if !others.is_empty() {
            node.run(&["namespace", "delete", "gone"]).ok();
        }
        assert!(node.stop().success());
    }

    let node = place.start(&[&archive]);
    assert_eq!(history(&node, "old"), "once\n");
    let listed = node.run(&["namespace", "list"]).ok();
    assert!(!listed.contains("gone"), "{listed}");
}

#[test]
fn directories_are_not_taken_for_one_another() {
    let place = Place::new();
    let disk = |name: &str, at: &str| format!("{name}={}", place.disk(at));
    let node = place.start(&[&disk("archive", "archive")]);
    create(&node, "old", "archive");
    publish(&node, "old", "once");
    assert!(node.stop().success());
    let another = Node::start(&place.path("another"));
    assert!(another.stop().success());
    for (storage, part) in [
        (
            disk("other", "archive"),
            "is storage archive of its node, and is named as storage other",
        ),
        (
            disk("archive", "another"),
            "is the first storage of its node",
        ),
        (disk("archive", "data"), "a path of its own"),
    ] {
        let code = if part == "a path of its own" { 2 } else { 1 };
        let said = place.refused(&[&storage], code);
        assert!(said.contains(part), "no {part} in: {said}");
    }
    // The first one, begun anew, is of another cluster.
    fs::rename(place.path("data"), place.path("away")).unwrap();
    let said = place.refused(&[&disk("archive", "archive")], 1);
    assert!(said.contains("log 0, which tells of its logs"), "{said}");
    fs::remove_dir_all(place.path("data")).unwrap();
    fs::rename(place.path("away"), place.path("data")).unwrap();
    let mut swapped = node::serve(&place.path("archive"));
    let said = node::run(&mut swapped, b"").failed(1);
    assert!(said.contains("is storage archive of its node"), "{said}");
    let node = place.start(&[&disk("archive", "archive")]);
    assert_eq!(history(&node, "old"), "once\n");
}

#[test]
fn storages_that_do_not_fit_are_refused_before_the_start() {
    let place = Place::new();
    let disk = format!("archive={}", place.disk("archive"));
    for (further, part) in [
        (&["memory:", disk.as_str()][..], "storage.archive.url"),
        (&["fast=memory:", "fast=memory:"], "each storage once"),
        (&["memory:", "memory:"], "each storage once"),
        (&["Fast=memory:"], "a-z, 0-9 and -"),
        (&["fast=raft:x"], "UNIMPLEMENTED"),
    ] {
        let said = place.refused(further, 2);
        assert!(said.contains(part), "{further:?}: no {part} in: {said}");
    }
    assert!(!place.path("archive").exists(), "nothing was made");
}
