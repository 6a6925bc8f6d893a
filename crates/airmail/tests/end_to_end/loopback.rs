//! Reach of a node: this machine alone, unless it is told that anyone may reach it.

use airmail_testkit::node::{self, Node, airmail};
use std::fs;
use std::process::Command;

/// Text of the warning that a port is open.
const WARNING: &str = "anyone who reaches this address";

/// `airmail serve` with its data where there is nothing yet.
fn serve(data: &std::path::Path, addresses: &[&str]) -> Command {
    let mut command = airmail();
    command.arg("serve").arg("--data").arg(data).args(addresses);
    command
}

#[test]
fn a_listener_beyond_loopback_is_refused_by_its_flag_before_anything_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let refused = |command: &mut Command, words: &[&str]| {
        let said = node::run(command, b"").failed(2);
        for word in words.iter().chain(&["--allow-anyone"]) {
            assert!(said.contains(word), "no {word} in: {said}");
        }
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!data.exists());
    };
    for address in [
        "0.0.0.0:0",
        "[::]:0",
        "192.0.2.1:7400",
        "[::ffff:192.0.2.1]:7400",
    ] {
        let grpc = ["--listen", address, "--http", "127.0.0.1:0"];
        refused(&mut serve(&data, &grpc), &["--listen", address]);
        let http = ["--listen", "127.0.0.1:0", "--http", address];
        refused(&mut serve(&data, &http), &["--http", address]);
    }
    let mut by_variable = serve(&data, &["--http", "127.0.0.1:0"]);
    by_variable.env("AIRMAIL_LISTEN_ADDRESS", "0.0.0.0:0");
    refused(&mut by_variable, &["--listen", "0.0.0.0:0"]);
    let file = directory.path().join("airmail.toml");
    fs::write(&file, "[http]\naddress = \"[::]:0\"\n").unwrap();
    let mut by_file = serve(&data, &["--listen", "127.0.0.1:0", "--config"]);
    refused(by_file.arg(&file), &["--http", "[::]:0"]);
}

#[test]
fn where_anyone_may_come_a_node_listens_everywhere_and_warns_at_each_start_and_in_its_metrics() {
    let directory = tempfile::tempdir().unwrap();
    let open = [
        "--listen",
        "0.0.0.0:0",
        "--http",
        "0.0.0.0:0",
        "--allow-anyone",
    ];
    for _ in 0..2 {
        let node = Node::spawn(serve(directory.path(), &open));
        node.run(&["pub", "t", "x"]).ok();
        node::wait_until("two warnings", || {
            let said = node.said();
            said.matches(WARNING).count() == 2 && said.contains("WARN")
        });
        for door in ["grpc", "http"] {
            let metric = format!("airmail_open_to_anyone{{door=\"{door}\"}} 1");
            assert!(node::page(&node.http, "/metrics").contains(&metric));
        }
        assert!(node.stop().success());
    }
    // Set by a file, and of one port alone.
    let file = directory.path().join("airmail.toml");
    fs::write(&file, "[listen]\nallow_anyone = true\n").unwrap();
    let one = ["--listen", "127.0.0.1:0", "--http", "0.0.0.0:0", "--config"];
    let mut command = serve(directory.path(), &one);
    command.arg(&file);
    let node = Node::spawn(command);
    let metrics = node::page(&node.http, "/metrics");
    for told in ["{door=\"grpc\"} 0", "{door=\"http\"} 1"] {
        assert!(metrics.contains(&format!("airmail_open_to_anyone{told}")));
    }
    node::wait_until("a warning", || node.said().contains(WARNING));
    assert_eq!(node.said().matches(WARNING).count(), 1, "{}", node.said());
}

#[test]
fn on_loopback_nothing_is_asked_for_and_nothing_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    for address in ["localhost:0", "127.9.8.7:0"] {
        let addresses = ["--listen", "127.0.0.1:0", "--http", address];
        let mut command = serve(directory.path(), &addresses);
        command.arg("--print-config");
        node::run(&mut command, b"").ok();
        let node = Node::spawn(serve(directory.path(), &addresses));
        assert_eq!(node::get(&node.http, "/metrics").0, 200);
        let said = node.said();
        assert!(
            !said.contains(WARNING) && !said.contains("anyone"),
            "{said}"
        );
        assert!(node.stop().success());
    }
    let node = Node::start_with(directory.path(), &["--allow-anyone"]);
    node::wait_until("a warning that it is not needed", || {
        node.said().contains("--allow-anyone is not needed")
    });
}

#[test]
#[cfg(feature = "kafka")]
fn a_collectors_metrics_are_as_closed_as_a_nodes() {
    let mut command = airmail();
    command.args(["collect", "--source", "kafka://127.0.0.1:1"]);
    command.args(["--target", "kafka://127.0.0.1:1", "--topic", "T"]);
    command.args(["--metrics", "0.0.0.0:0"]);
    let said = node::run(&mut command, b"").failed(2);
    for word in ["--metrics 0.0.0.0:0", "--allow-anyone"] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
}
