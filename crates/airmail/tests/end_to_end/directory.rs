//! The data directory: one process at a time, a clean stop, and a look that changes nothing.

use airmail_testkit::node::{self, Node, airmail};
use airmail_testkit::shards;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[test]
fn a_second_process_on_a_data_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let said = refused(directory.path());
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

/// A node that is asked to run here, and must not.
fn refused(data: &Path) -> String {
    node::run(&mut node::serve(data), b"").failed(1)
}

#[test]
fn a_shard_whose_volume_is_not_mounted_is_refused_by_name_and_serves_again_when_it_is() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let node = Node::start(&data);
    node.run(&["pub", "kept", "before"]).ok();
    assert!(node.stop().success());
    let (shard, away) = (data.join("shard-0000"), temp.path().join("volume"));
    fs::rename(&shard, &away).unwrap();
    for mount_point in [false, true] {
        if mount_point {
            fs::create_dir(&shard).unwrap();
        }
        let said = refused(&data);
        for word in ["shard-0000", "not mounted", "restore"] {
            assert!(said.contains(word), "{said}");
        }
        let checked = node::run(airmail().arg("check").arg(&data), b"").failed(1);
        assert!(checked.contains("shard-0000"), "{checked}");
    }
    assert_eq!(fs::read_dir(&shard).unwrap().count(), 0);
    fs::remove_dir(&shard).unwrap();
    fs::rename(&away, &shard).unwrap();
    let node = Node::start(&data);
    assert_eq!(node.run(&["history", "kept"]).ok(), "before\n");
    drop(node);
    // Where it is really gone, this is what the refusal says to do.
    fs::remove_dir_all(&shard).unwrap();
    refused(&data);
    fs::rename(&data, &away).unwrap();
    let node = Node::start(&data);
    node.run(&["pub", "anew", "after"]).ok();
    assert_eq!(node.run(&["history", "anew"]).ok(), "after\n");
}

#[test]
fn a_lock_file_that_is_removed_keeps_nobody_out_less_and_is_made_anew_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let lock = directory.path().join("LOCK");
    fs::remove_file(&lock).unwrap();
    let said = refused(directory.path());
    assert!(said.contains("in use"), "{said}");
    node::wait_until("a lock file made anew, and told", || {
        lock.exists() && node.said().contains("LOCK was removed or replaced")
    });
    assert_eq!(
        fs::read_to_string(&lock).unwrap(),
        format!("{}\n", node.pid())
    );
    // Also a directory by another name, as a second container may have it.
    let other = tempfile::tempdir().unwrap();
    let link = other.path().join("link");
    std::os::unix::fs::symlink(directory.path(), &link).unwrap();
    fs::remove_file(&lock).unwrap();
    refused(&link);
    node.run(&["pub", "still", "here"]).ok();
    let (status, _) = node::get(&node.http, "/readyz");
    assert_eq!(status, 200);
}

#[test]
fn a_directory_that_is_moved_away_is_stored_in_no_more_until_it_is_back() {
    let temp = tempfile::tempdir().unwrap();
    let (data, away) = (temp.path().join("data"), temp.path().join("away"));
    let node = Node::start(&data);
    node.run(&["pub", "kept", "before"]).ok();
    for name in ["", "shard-0000", "identity"] {
        let (at, away) = (data.join(name), away.with_extension(name));
        fs::rename(&at, &away).unwrap();
        node::wait_until("a node that is not ready", || {
            node::get(&node.http, "/readyz").0 == 503
        });
        let (_, body) = node::get(&node.http, "/readyz");
        assert!(body.contains("moved or removed"), "{body}");
        let done = node.run(&["pub", "kept", "meanwhile", "--timeout", "2s"]);
        let said = done.failed(1);
        assert!(said.contains("STORAGE_FAILED"), "{said}");
        assert!(said.contains("moved or removed"), "{said}");
        let done = node.run(&["mailbox", "queue", "create", "q", "--timeout", "2s"]);
        let said = done.failed(1);
        assert!(said.contains("moved or removed"), "{said}");
        // What there is can be read, and no file is made where nobody looks for it.
        assert_eq!(node.run(&["history", "kept"]).ok(), "before\n");
        assert!(!at.exists());
        fs::rename(&away, &at).unwrap();
        node::wait_until("a node that is ready", || {
            node::get(&node.http, "/readyz").0 == 200
        });
    }
    // All that is in a shard goes, as `rm -rf shard-0000/*` would have it.
    let shard = data.join("shard-0000");
    fs::create_dir(&away).unwrap();
    let moved = |from: &Path, to: &Path| {
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::rename(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    moved(&shard, &away);
    node::wait_until("a node that is not ready", || {
        node::get(&node.http, "/readyz").0 == 503
    });
    moved(&away, &shard);
    node::wait_until("a node that is ready", || {
        node::get(&node.http, "/readyz").0 == 200
    });
    node.run(&["pub", "kept", "after"]).ok();
    assert_eq!(node.run(&["history", "kept"]).ok(), "before\nafter\n");
    node.kill();
    let node = Node::start(&data);
    assert_eq!(node.run(&["history", "kept"]).ok(), "before\nafter\n");
}

#[test]
fn nothing_is_acknowledged_that_is_not_in_the_directory_when_it_is_moved_under_load() {
    let temp = tempfile::tempdir().unwrap();
    let (data, away) = (temp.path().join("data"), temp.path().join("away"));
    let node = Node::start(&data);
    let lines: Vec<String> = (0..20_000).map(|n| format!("line {n}")).collect();
    let mut publish = node.airmail(&["pub", "--lines", "load"]);
    let done = std::thread::scope(|scope| {
        let input = lines.join("\n");
        let publishing = scope.spawn(move || node::run(&mut publish, input.as_bytes()));
        node::wait_until("some lines that are stored", || {
            node::metric(&node.http, "airmail_published_messages_total") > Some(0.0)
        });
        for _ in 0..3 {
            fs::rename(&data, &away).unwrap();
            node::wait_until("a node that is not ready", || {
                node::get(&node.http, "/readyz").0 == 503
            });
            fs::rename(&away, &data).unwrap();
            node::wait_until("a node that is ready", || {
                node::get(&node.http, "/readyz").0 == 200
            });
        }
        publishing.join().unwrap()
    });
    let stored = node::metric(&node.http, "airmail_published_messages_total").unwrap();
    let duplicates = node::metric(&node.http, "airmail_publish_duplicates_total").unwrap();
    node.kill();
    node::run(airmail().arg("check").arg(&data), b"").ok();
    let node = Node::start(&data);
    let history = node.run(&["history", "load"]).ok();
    let found: Vec<&str> = history.lines().collect();
    // In order, none twice, and every line if the command says that all are stored. A batch that was being
    // written when the directory went may be missing: of that one it is told that its outcome is not known.
    let mut expected = lines.iter();
    let is_next = |line: &&str| expected.any(|expected| expected == line);
    assert!(found.iter().all(is_next), "{done:?}: {found:?}");
    assert!(
        found.len() as f64 + duplicates >= stored,
        "{} of {stored}",
        found.len()
    );
    assert!(
        done.code != Some(0) || found.len() == lines.len(),
        "{done:?}"
    );
}

#[test]
fn check_of_a_directory_without_its_newest_segments_says_what_is_lost_and_the_node_says_it_too() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("small.toml");
    fs::write(&config, "[storage]\nsegment_bytes = \"4MiB\"\n").unwrap();
    let data = directory.path().join("data");
    let arguments = ["--config", config.to_str().unwrap()];
    let node = Node::start_with(&data, &arguments);
    let lines: String = (0..12_000)
        .map(|n| format!("{n} {}\n", "x".repeat(2000)))
        .collect();
    node::run(
        &mut node.airmail(&["pub", "--lines", "many"]),
        lines.as_bytes(),
    )
    .ok();
    // Where a commit is to two segments the node notes only afterwards how far they go, and what it has not noted when it is
    // killed is missed by nobody. A commit to one brings the note along.
    node.run(&["pub", "many", "the last"]).ok();
    node.kill();
    let shard = shards::fullest(&data);
    let names = fs::read_dir(&shard)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> = names
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("seg-")
        })
        .collect();
    segments.sort();
    assert!(segments.len() > 4, "{segments:?}");
    for segment in segments.iter().rev().take(3) {
        fs::remove_file(segment).unwrap();
    }
    let done = node::run(airmail().args(["check", "--json"]).arg(&data), b"");
    assert_eq!(done.code, Some(1), "{done:?}");
    let report: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(report["sound"], false);
    let logs = report["logs"].as_array().unwrap();
    let pairs = logs.iter().flat_map(|log| log["lost"].as_array().unwrap());
    let numbers =
        |pair: &serde_json::Value| pair[1].as_u64().unwrap() + 1 - pair[0].as_u64().unwrap();
    let lost: u64 = pairs.map(numbers).sum();
    assert!((1..12_001).contains(&lost), "{report:#}");
    let problems = report["problems"].as_array().unwrap();
    let missing = problems
        .iter()
        .filter(|one| one["reason"] == "the file is missing");
    assert!(missing.count() > 0, "{report:#}");

    let node = Node::start_with(&data, &arguments);
    let found = node.run(&["history", "many"]);
    assert_eq!(
        found.stdout.lines().count() as u64,
        12_001 - lost,
        "{}",
        found.stderr
    );
    let said = node.said();
    assert!(
        said.contains("WARN") && said.contains("the file is missing"),
        "{said}"
    );
    assert!(
        said.contains("seg-") && said.contains("restore the directory"),
        "{said}"
    );
    let told = node::metric(&node.http, "airmail_storage_damage_total");
    assert!(told > Some(1.0), "{told:?}");
}
