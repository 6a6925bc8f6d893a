//! A log file goes in by one process and comes out by others, whole and in order.

use crate::log_file;
use airmail_testkit::node::{self, Node};
use airmail_testkit::scale;
use std::process::Stdio;

#[test]
fn every_line_of_a_log_file_comes_back_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let lines = log_file::lines(scale::lines());
    let topics = log_file::by_first_word(&lines);

    let subscribers: Vec<_> = topics
        .iter()
        .map(|(word, lines)| {
            let topic = format!("log/{word}");
            let count = lines.len().to_string();
            node.airmail(&["sub", &topic, "--from", "earliest", "--count", &count])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let input = format!("{}\n", lines.join("\n"));
    node::run(
        &mut node.airmail(&["pub", "--lines", "log/{}"]),
        input.as_bytes(),
    )
    .ok();

    for ((word, lines), subscriber) in topics.iter().zip(subscribers) {
        let received = node::output_of(subscriber, "a subscriber");
        assert!(received.status.success());
        same_lines(
            &format!("sub log/{word}"),
            &String::from_utf8(received.stdout).unwrap(),
            lines,
        );
        let stored = node.run(&["history", &format!("log/{word}")]).ok();
        same_lines(&format!("history log/{word}"), &stored, lines);
    }
    let listed = node.run(&["topics", "--prefix", "log/"]).ok();
    let names: Vec<_> = topics.keys().map(|word| format!("log/{word}")).collect();
    same_lines("topics", &listed, &names);
}

#[test]
fn a_message_is_what_standard_input_holds() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let payload = b"two\nlines, and a byte that is no text: \xff";
    node::run(&mut node.airmail(&["pub", "raw"]), payload).ok();
    let line = node.run(&["history", "raw", "--json"]).ok();
    let message: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        message["payload_base64"],
        "dHdvCmxpbmVzLCBhbmQgYSBieXRlIHRoYXQgaXMgbm8gdGV4dDog/w=="
    );
    assert_eq!(message["payload"], serde_json::Value::Null);
}

#[test]
fn a_json_line_has_all_that_is_known_of_a_message() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    node.run(&["pub", "known", "text", "--attr", "lang=en"])
        .ok();
    node.run(&["pub", "known", "after"]).ok();
    let line = node
        .run(&[
            "sub", "known", "--from", "earliest", "--count", "1", "--json",
        ])
        .ok();
    let message: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(message["namespace"], "default");
    assert_eq!(message["topic"], "known");
    assert_eq!(message["lane"], "normal");
    assert_eq!(message["payload"], "text");
    assert_eq!(message["attributes"]["lang"], "en");
    assert!(message["sequence"].is_u64());
    assert!(message["appended_at"].as_str().unwrap().ends_with('Z'));

    let position = message["position"].as_str().unwrap();
    let next = node
        .run(&["sub", "known", "--from", position, "--count", "1"])
        .ok();
    assert_eq!(next, "after\n");
    let sequence = message["sequence"].to_string();
    let same = node
        .run(&["sub", "known", "--from", &sequence, "--count", "1"])
        .ok();
    assert_eq!(same, "text\n");
}

/// Fails with the first difference, not with thousands of lines.
#[track_caller]
pub(crate) fn same_lines(what: &str, found: &str, expected: &[impl AsRef<str>]) {
    let mut found = found.lines();
    for (number, expected) in expected.iter().enumerate() {
        let found = found.next();
        assert_eq!(found, Some(expected.as_ref()), "{what}: line {number}");
    }
    assert_eq!(found.next(), None, "{what}: more than was published");
}
