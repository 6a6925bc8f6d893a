//! Permissions of the files that a node and its commands make: open to their own user alone,
//! whatever the process's mask says; files that are open to others are reported.

use airmail_testkit::node::{self, Node, after_shell, airmail};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// A mask that takes nothing from any mode.
const OPEN: &str = "umask 000";
/// Lines of 10 kB, of more than one segment.
const LINES: usize = 1_500;

/// A node with small segments, begun under the open mask.
fn start(data: &Path) -> Node {
    let mut serve = node::serve(data);
    serve.env("AIRMAIL_STORAGE_SEGMENT_BYTES", "4MiB");
    Node::spawn(after_shell(OPEN, &serve))
}

/// Asserts the mode of a directory and of all that is in it; gives the names of its files, without their
/// numbers.
#[track_caller]
fn assert_closed(directory: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    assert_eq!(mode(directory), Some(0o700), "{}", directory.display());
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(assert_closed(&path));
            continue;
        }
        // A file may go while one looks.
        let mode = mode(&path).unwrap_or(0o600);
        assert_eq!(mode, 0o600, "{}: {mode:o}", path.display());
        let name = path.file_name().unwrap().to_str().unwrap();
        let kind = name.split_once('-').map_or(name, |(kind, _)| kind);
        let whole = !["seg", "idx", "checkpoint", "free"].contains(&kind);
        names.insert(if whole { name } else { kind }.to_owned());
    }
    names
}

fn mode(path: &Path) -> Option<u32> {
    let about = fs::metadata(path).ok()?;
    Some(about.permissions().mode() & 0o7777)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn all_that_a_node_makes_is_for_its_own_user_under_any_mask() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let node = start(&data);
    let mut seen = assert_closed(&data);
    let create = ["namespace", "create", "little", "--retention-bytes", "1MiB"];
    node.run(&create).ok();
    let input = ("x".repeat(10_000) + "\n").repeat(LINES);
    for namespace in ["default", "little"] {
        let mut publish = node.airmail(&["pub", "t", "--lines", "--namespace", namespace]);
        node::run(&mut publish, input.as_bytes()).ok();
    }
    node.run(&["mailbox", "queue", "create", "q"]).ok();
    fs::remove_file(data.join("LOCK")).unwrap();
    node::wait_until("a lock file made anew, and an index", || {
        let names = assert_closed(&data);
        seen.extend(names.iter().cloned());
        names.contains("LOCK") && names.contains("idx")
    });
    node.kill();
    let node = start(&data);
    node.run(&["pub", "t", "after a crash"]).ok();
    seen.extend(assert_closed(&data));
    assert!(node.stop().success());
    let mut repair = airmail();
    repair.arg("check").arg(&data).arg("--repair-identity");
    fs::remove_file(data.join("identity")).unwrap();
    node::run(&mut after_shell(OPEN, &repair), b"").ok();
    seen.extend(assert_closed(&data));
    let node = start(&data);
    node.run(&["pub", "t", "in a new life"]).ok();
    assert!(node.stop().success());
    seen.extend(assert_closed(&data));
    for name in [
        "LOCK",
        "checkpoint",
        "clock",
        "ends",
        "identity",
        "identity.copy",
        "idx",
        "mailboxes.sqlite",
        "mailboxes.sqlite-wal",
        "new-life",
        "seg",
        "shard",
    ] {
        assert!(seen.contains(name), "no {name} in {seen:?}");
    }
}

#[test]
fn a_database_beside_the_data_and_saved_contexts_are_for_their_own_user_under_any_mask() {
    let temp = tempfile::tempdir().unwrap();
    let (data, mail) = (temp.path().join("data"), temp.path().join("mail.sqlite"));
    let mut serve = node::serve(&data);
    let url = format!("sqlite:{}", mail.display());
    serve.args(["--mailbox", &url]);
    let node = Node::spawn(after_shell(OPEN, &serve));
    node.run(&["mailbox", "queue", "create", "q"]).ok();
    let journal = temp.path().join("mail.sqlite-wal");
    assert_eq!((mode(&mail), mode(&journal)), (Some(0o600), Some(0o600)));
    assert!(!node.said().contains("chmod"), "{}", node.said());
    assert!(node.stop().success());
    set_mode(&mail, 0o644);
    let node = Node::spawn(serve);
    let command = format!("chmod go= {}", mail.display());
    node::wait_until("a warning", || node.said().contains(&command));

    let settings = temp.path().join("config/here");
    for name in ["one", "two"] {
        let mut add = airmail();
        add.env("XDG_CONFIG_HOME", &settings);
        add.args(["context", "add", name, "airmail://127.0.0.1:7400"]);
        node::run(&mut after_shell(OPEN, &add), b"").ok();
        let names = assert_closed(&temp.path().join("config"));
        assert_eq!(names, BTreeSet::from(["contexts.toml".to_owned()]));
        // Of an older version: it is closed when it is written again.
        set_mode(&settings.join("airmail/contexts.toml"), 0o644);
    }
}

#[test]
fn a_directory_that_others_may_open_is_told_at_each_start_with_the_command_that_closes_it() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("the data");
    let node = Node::start(&data);
    assert!(!node.said().contains("chmod"), "{}", node.said());
    node.run(&["pub", "t", "x"]).ok();
    assert!(node.stop().success());
    set_mode(&data, 0o755);
    set_mode(&data.join("identity"), 0o644);
    let command = format!("chmod -R go= '{}'", data.display());
    for _ in 0..2 {
        let node = Node::start(&data);
        assert_eq!(node.run(&["history", "t"]).ok(), "x\n");
        node::wait_until("a warning", || node.said().contains(&command));
        assert!(node.stop().success());
    }
    let check = || node::run(airmail().arg("check").arg(&data), b"");
    let done = check();
    assert!(done.stderr.contains(&command), "{done:?}");
    assert!(done.ok().contains("sound"));
    let mut shell = Command::new("sh");
    node::run(shell.args(["-c", &command]), b"").ok();
    assert_closed(&data);
    assert!(!check().stderr.contains("chmod"));
    let node = Node::start(&data);
    node.run(&["pub", "t", "y"]).ok();
    assert!(!node.said().contains("chmod"), "{}", node.said());
}
