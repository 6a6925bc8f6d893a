//! The node dies in the middle; publisher and subscribers are left running, and lose nothing.

use crate::lines::same_lines;
use crate::log_file;
use airmail_testkit::lasting::lasting_address;
use airmail_testkit::node::{self, Node};
use airmail_testkit::scale;
use std::io::Write;
use std::process::Stdio;
use std::thread;

#[test]
fn every_line_comes_back_in_order_over_kills_of_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let address = lasting_address();
    let mut node = Node::start_at(directory.path(), &address);
    let lines = log_file::lines(scale::lines());
    let topics = log_file::by_first_word(&lines);

    let subscribers: Vec<_> = topics
        .iter()
        .map(|(word, lines)| {
            let (topic, count) = (format!("log/{word}"), lines.len().to_string());
            node.airmail(&["sub", &topic, "--from", "earliest", "--count", &count])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    // Each is read from the start, or it would wait for its reader rather than for the node.
    let received: Vec<_> = subscribers
        .into_iter()
        .map(|child| {
            let wait = move || node::output_of(child, "a subscriber");
            thread::Builder::new().spawn(wait).unwrap()
        })
        .collect();

    let mut publisher = node
        .airmail(&["pub", "--lines", "log/{}"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = publisher.stdin.take().unwrap();
    let part = lines.len().div_ceil(scale::kills() + 1);
    for (number, lines) in lines.chunks(part).enumerate() {
        if number > 0 {
            // What was written just now is on its way: some of it was stored, and not acknowledged.
            node.kill();
            node = Node::start_at(directory.path(), &address);
        }
        input
            .write_all(format!("{}\n", lines.join("\n")).as_bytes())
            .unwrap();
    }
    drop(input);
    assert!(node::end_of(&mut publisher, "the publisher").success());

    for ((word, lines), received) in topics.iter().zip(received) {
        let received = received.join().unwrap();
        assert!(received.status.success());
        same_lines(
            &format!("sub log/{word}"),
            &String::from_utf8(received.stdout).unwrap(),
            lines,
        );
        let stored = node.run(&["history", &format!("log/{word}")]).ok();
        same_lines(&format!("history log/{word}"), &stored, lines);
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..3 {
        let node = Node::start(directory.path());
        node.run(&["pub", "kept", &format!("message {number}")])
            .ok();
        node.kill();
    }
    let node = Node::start(directory.path());
    assert_eq!(
        node.run(&["history", "kept"]).ok(),
        "message 0\nmessage 1\nmessage 2\n"
    );
}
