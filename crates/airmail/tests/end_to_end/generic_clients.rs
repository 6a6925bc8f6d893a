//! Clients that are not ours: they know the API only from the node's own description of it.

use airmail_testkit::node::{self, Node};
use airmail_testkit::scale;
use airmail_testkit::waiting::waiting;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn python_without_an_sdk_lists_publishes_and_subscribes() {
    let Some(python) = scale::tool("python/bin/python") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python/publish_subscribe.py");
    let said = node::run(Command::new(python).arg(script).arg(&node.grpc), b"").ok();
    assert!(said.contains("airmail.v1.Airmail"), "{said}");
    assert!(said.contains("airmail.v1.Admin"), "{said}");
    for number in 0..3 {
        assert!(said.contains(&format!("greeting {number}")), "{said}");
    }
    let stored = node.run(&["history", "greetings"]).ok();
    assert_eq!(stored, "greeting 0\ngreeting 1\ngreeting 2\n");
}

#[test]
fn grpcurl_lists_publishes_and_subscribes() {
    let Some(grpcurl) = scale::tool("bin/grpcurl") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let call = |arguments: &[&str], input: &str| {
        let mut command = Command::new(&grpcurl);
        command
            .args(["-plaintext", "-max-time", "300"])
            .args(arguments);
        node::run(&mut command, input.as_bytes())
    };
    let services = call(&[&node.grpc, "list"], "").ok();
    for service in [
        "airmail.v1.Admin",
        "airmail.v1.Airmail",
        "grpc.health.v1.Health",
    ] {
        assert!(services.contains(service), "{services}");
    }
    let health = call(&[&node.grpc, "grpc.health.v1.Health/Check"], "").ok();
    assert!(health.contains("SERVING"), "{health}");

    let publish = "airmail.v1.Airmail/PublishOne";
    let message = r#"{"message": {"topic": "generic", "payload": "aGVsbG8="}}"#;
    let answer = call(&["-d", message, &node.grpc, publish], "").ok();
    assert!(answer.contains("sequence"), "{answer}");
    assert_eq!(node.run(&["history", "generic"]).ok(), "hello\n");

    let history = "airmail.v1.Airmail/History";
    let answer = call(&["-d", r#"{"topic": "generic"}"#, &node.grpc, history], "").ok();
    assert!(answer.contains("aGVsbG8="), "{answer}");

    // grpcurl half-closes after its input; it listens on until the message has come.
    let subscribe = "airmail.v1.Airmail/Subscribe";
    let requests = r#"{"hello": {}} {"add": {"topic": "generic", "start": {"earliest": true}}}"#;
    let mut command = Command::new(&grpcurl);
    command.args([
        "-plaintext",
        "-max-time",
        "300",
        "-d",
        requests,
        &node.grpc,
        subscribe,
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut listening = command.spawn().unwrap();
    let _waiting = waiting("grpcurl to print the message");
    let heard = BufReader::new(listening.stdout.take().unwrap()).lines();
    let comes = heard
        .map_while(Result::ok)
        .any(|line| line.contains("aGVsbG8="));
    assert!(comes, "the message does not come");
    listening.kill().unwrap();
    listening.wait().unwrap();

    // What is wrong is told in the status, with its details.
    let message = r#"{"message": {"topic": "", "payload": "aGVsbG8="}}"#;
    let refused = call(&["-d", message, &node.grpc, publish], "");
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("TOPIC_INVALID"), "{refused:?}");
}
