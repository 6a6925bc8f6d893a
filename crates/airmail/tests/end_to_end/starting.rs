//! Nodes that are not there yet, or for a while, or never answer: commands wait for those that
//! come, and give up in time on the others.

use airmail_testkit::lasting::lasting_address;
use airmail_testkit::node::{self, Node, airmail, wait_until};
use std::net::TcpListener;
use std::process::Stdio;

#[test]
fn a_command_begun_while_its_node_starts_waits_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let address = lasting_address();
    let url = format!("airmail://{address}");
    {
        let node = Node::start_at(directory.path(), &address);
        node.run(&["pub", "t", "x"]).ok();
        node.run(&["mailbox", "account", "create", "a"]).ok();
        assert!(node.stop().success());
    }
    let commands: [&[&str]; 6] = [
        &["pub", "t", "x", "--timeout", "5m"],
        &["history", "t", "--limit", "1", "--timeout", "5m"],
        &["topics", "--timeout", "5m"],
        &["namespace", "list", "--timeout", "5m"],
        &[
            "sub",
            "t",
            "--from",
            "earliest",
            "--count",
            "1",
            "--timeout",
            "5m",
        ],
        &["mailbox", "account", "list", "--timeout", "5m"],
    ];
    for round in 0..18 {
        let mut command = airmail();
        command.args(commands[round % commands.len()]);
        command.args(["--url", &url]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let node = Node::start_at(directory.path(), &address);
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{round}, {command:?}: {said}");
        assert!(node.stop().success());
    }
}

#[test]
fn a_subscriber_goes_on_whose_node_is_killed_and_started_again_and_again() {
    let directory = tempfile::tempdir().unwrap();
    let address = lasting_address();
    let mut node = Node::start_at(directory.path(), &address);
    let mut subscribe = node.airmail(&["sub", "t", "--from", "earliest", "--count", "6"]);
    let child = subscribe.stdout(Stdio::piped()).spawn().unwrap();
    for round in 0..6 {
        node.run(&["pub", "t", &round.to_string(), "--timeout", "5m"])
            .ok();
        node.kill();
        node = Node::start_at(directory.path(), &address);
    }
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "0\n1\n2\n3\n4\n5\n");
}

#[test]
fn every_command_whose_node_never_answers_ends_in_its_time_and_says_for_what_it_waited() {
    // Takes connections, and never says anything on them.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = mute.local_addr().unwrap().to_string();
    for arguments in [
        &["pub", "t", "x"][..],
        &["pub", "t", "--lines"],
        &["sub", "t"],
        &["history", "t"],
        &["topics"],
        &["namespace", "list"],
        &["mailbox", "ping"],
        &["mailbox", "receive", "q", "--as", "a", "--wait", "1h"],
        &["flow", "show"],
        &["flow", "watch", "--lines"],
    ] {
        let mut command = airmail();
        command.args(arguments);
        command.args(["--timeout", "300ms"]);
        command.args(["--url", &format!("airmail://{address}")]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        wait_until(&format!("{arguments:?} ends"), || {
            child.try_wait().unwrap().is_some()
        });
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.starts_with("airmail: DISCONNECTED"), "{said}");
        for word in [&address, "no answer within", "waited"] {
            assert!(said.contains(word), "{arguments:?}: no {word} in: {said}");
        }
    }
    let done = node::run(airmail().args(["topics", "--timeout", "0s"]), b"");
    assert!(done.failed(2).contains("more than 0"));
}
