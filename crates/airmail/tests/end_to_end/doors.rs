//! A node whose clients use all of its connections: open files are kept for its storage.

use airmail_testkit::node::{self, Node};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// `airmail serve` on free ports, by a shell that first sets limits.
fn serve_limited(limits: &str, data: &Path) -> Command {
    let mut serve = node::serve(data);
    // Each shard sets open files aside.
    serve.args(["--shards", "1"]);
    node::after_shell(limits, &serve)
}

#[test]
fn what_is_stored_goes_on_when_clients_have_taken_every_connection_that_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut serve = serve_limited("ulimit -n 300", directory.path());
    serve.env("AIRMAIL_STORAGE_SEGMENT_BYTES", "4MiB");
    serve.env("AIRMAIL_LISTEN_BEGIN", "1h");
    let node = Node::spawn(serve);
    let metric = |name: &str| node::metric(&node.http, name);
    // There is not room for all that the settings allow, and the node says so.
    let most = metric("airmail_connections_max").unwrap();
    assert!((16.0..300.0).contains(&most), "{most}");
    assert!(node.said().contains("ulimit -n"), "{}", node.said());
    let mut publish = node.airmail(&["pub", "topic", "--lines"]);
    publish.stdin(Stdio::piped());
    let mut publish = publish.spawn().unwrap();
    let mut lines = publish.stdin.take().unwrap();
    lines.write_all(b"first\n").unwrap();
    lines.flush().unwrap();
    node::wait_until("the first message", || {
        metric("airmail_published_messages_total") == Some(1.0)
    });
    let crowd: Vec<TcpStream> = (0..400)
        .map(|_| TcpStream::connect(&node.grpc).unwrap())
        .collect();
    node::wait_until("no place is left", || {
        metric("airmail_connections") == Some(most)
    });
    // Segment after segment.
    let line = [&[b'x'; 10_000][..], b"\n"].concat();
    for _ in 0..2_000 {
        lines.write_all(&line).unwrap();
    }
    drop(lines);
    assert!(publish.wait().unwrap().success());
    assert_eq!(metric("airmail_published_messages_total"), Some(2_001.0));
    assert_eq!(metric("airmail_storage_failing"), Some(0.0));
    assert!(metric("airmail_connections_turned_away_total") > Some(0.0));
    assert_eq!(metric("airmail_connections_not_accepted_total"), None);
    drop(crowd);
    node::wait_until("there is room again", || {
        metric("airmail_connections") < Some(most)
    });
    let history = node.run(&["history", "topic"]).ok();
    assert_eq!(history.lines().count(), 2_001);
}

#[test]
fn a_node_that_has_too_few_open_files_does_not_start_and_says_how_many_it_needs() {
    let directory = tempfile::tempdir().unwrap();
    let mut serve = serve_limited("ulimit -n 100", directory.path());
    let said = node::run(&mut serve, b"").failed(1);
    for words in ["open files: 100", "at least", "ulimit -n"] {
        assert!(said.contains(words), "no {words} in: {said}");
    }
}

#[test]
fn a_node_takes_as_many_open_files_as_the_system_lets_it_have() {
    let directory = tempfile::tempdir().unwrap();
    let limits = "ulimit -Sn 100 && ulimit -Hn 1024";
    let node = Node::spawn(serve_limited(limits, directory.path()));
    let most = node::metric(&node.http, "airmail_connections_max").unwrap();
    assert!((700.0..1_024.0).contains(&most), "{most}");
}
