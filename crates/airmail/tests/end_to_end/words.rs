//! Words of the command line about features that it lacks: it refuses, and does nothing else
//! instead.

use airmail_testkit::node::{self, Node, airmail};
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

#[test]
fn a_number_that_is_too_large_for_an_attribute_is_refused_and_nothing_is_published() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let pair = "i:=9223372036854775808";
    let said = node.run(&["pub", "t", "x", "--attr", pair]).failed(2);
    for word in ["--attr", "i: 9223372036854775808", "9223372036854775807"] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
    assert_eq!(node.run(&["topics"]).ok(), "");
    let pair = "i:=9223372036854775807";
    node.run(&["pub", "t", "x", "--attr", pair]).ok();
    let line = node.run(&["history", "t", "--json"]).ok();
    assert!(line.contains("\"i\":9223372036854775807"), "{line}");
}

#[test]
fn a_line_whose_word_is_no_text_is_told_with_its_number_and_what_was_stored() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let publish = &mut node.airmail(&["pub", "--lines", "t/{}"]);
    let said = node::run(publish, b"a 1\nb 2\n\xff 3\n\xfe 4\nc 5\n").failed(1);
    for word in ["line 3", "after 2 messages stored", "t/\\xff", "UTF-8"] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
    assert_eq!(node.run(&["topics"]).ok(), "t/a\nt/b\n");
}

#[test]
fn an_argument_that_is_no_text_is_told() {
    for arguments in [&["pub"][..], &["sub"], &["topics", "--prefix"]] {
        let mut command = airmail();
        command.args(arguments).arg(OsStr::from_bytes(b"t/\xff"));
        let said = node::run(&mut command, b"").failed(2);
        assert!(said.contains("not UTF-8: \"t/\\xFF\""), "{said}");
    }
}

#[test]
fn a_place_beyond_all_time_is_refused_or_has_nothing_behind_it() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    node.run(&["pub", "t", "x"]).ok();
    let since = |place: &str| node.run(&["history", "t", "--since", place]);
    assert_eq!(since("9999-01-01T00:00:00Z").ok(), "");
    assert_eq!(since("1000y").ok(), "x\n");
    assert_eq!(since("0001-01-01T00:00:00Z").ok(), "x\n");
    assert_eq!(since("18446744073709551615").ok(), "");
    for place in [
        "9999-12-31T23:59:59Z",
        "10000-01-01T00:00:00Z",
        "99999999999999999999",
    ] {
        let said = since(place).failed(2);
        assert!(said.contains(place) && said.contains("--since"), "{said}");
    }
    let said = since("9999-12-31T23:59:59Z").failed(2);
    assert!(said.contains("9999-12-30T22:00:00"), "{said}");
}

#[test]
fn what_cannot_be_printed_ends_with_1_and_says_so_whatever_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let node = Node::start(&data);
    node.run(&["pub", "t", "x"]).ok();
    let cluster = directory.path().join("cluster.json");
    std::fs::write(
        &cluster,
        r#"{"nodes": [1,2], "topics": {"A": [[1,2],[2,1]]}}"#,
    )
    .unwrap();
    let (data, cluster) = (data.to_str().unwrap(), cluster.to_str().unwrap());
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["help", "pub"],
        &["pub", "--help"],
        &["mailbox", "queue", "--help"],
        &["serve", "--print-config"],
        &["history", "t"],
        &["history", "t", "--json"],
        &["sub", "t", "--from", "earliest"],
        &["topics"],
        &["namespace", "list"],
        &["namespace", "show", "default", "--json"],
        &["flow", "show"],
        &["check", data],
        &["mailbox", "ping"],
        &["kafka", "topology", "--file", cluster],
        &["bench", "disk", "--duration", "10ms"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = node.airmail(arguments);
        let done = command
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let code = match arguments[0] {
            // 1 would say that something was found.
            "kafka" => 2,
            _ => 1,
        };
        assert_eq!(done.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(
            said.contains("airmail: writing standard output: "),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_cluster_that_does_not_answer_is_told_by_its_address() {
    let refused = node::run(
        airmail().args(["kafka", "topology", "--bootstrap", "127.0.0.1:1"]),
        b"",
    );
    let said = refused.failed(2);
    assert!(said.contains("--bootstrap 127.0.0.1:1: "), "{said}");
    assert!(!said.contains("standard output"), "{said}");
    // One that hangs up is no reader of ours who has had enough.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let hang_up = std::thread::Builder::new().spawn(move || drop(listener.accept()));
    let closed = node::run(
        airmail().args(["kafka", "topology", "--bootstrap", &address]),
        b"",
    );
    let said = closed.failed(2);
    assert!(said.contains(&format!("--bootstrap {address}: ")), "{said}");
    hang_up.unwrap().join().unwrap();
}

#[test]
fn commands_that_ask_no_node_take_no_node() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let commands: [&[&str]; 6] = [
        &["serve"],
        &["check", path],
        &["context", "list"],
        &["kafka", "topology", "--file", path],
        &["bench", "disk"],
        &[
            "collect",
            "--source",
            "kafka://a:1",
            "--target",
            "kafka://b:1",
            "--topic",
            "T",
        ],
    ];
    for command in commands {
        for given in [["--url", "airmail://a"], ["--context", "b"]] {
            for arguments in [[command, &given].concat(), [&given, command].concat()] {
                let said = node::run(airmail().args(&arguments), b"").failed(2);
                assert!(said.contains(given[0]), "{arguments:?}: {said}");
            }
        }
        let help = node::run(airmail().args(command).arg("--help"), b"").ok();
        assert!(!help.contains("--context"), "{help}");
    }
    let help = node::run(airmail().args(["serve", "--help"]), b"").ok();
    assert!(!help.contains("--url"), "{help}");
}

#[test]
fn a_node_may_be_named_before_the_command_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    node.run(&["pub", "t", "x"]).ok();
    let url = format!("airmail://{}", node.grpc);
    for arguments in [
        &["--url", &url, "topics"][..],
        &["topics", "--url", &url],
        &["--url", "airmail://127.0.0.1:1", "topics", "--url", &url],
    ] {
        assert_eq!(node::run(airmail().args(arguments), b"").ok(), "t\n");
    }
    // So with every command that asks one.
    for command in [
        &["pub", "t", "y"][..],
        &["sub", "t", "--from", "earliest", "--count", "1"],
        &["history", "t"],
        &["namespace", "list"],
        &["mailbox", "ping"],
        &["flow", "show"],
        &["clock"],
    ] {
        node::run(airmail().args(["--url", &url]).args(command), b"").ok();
    }
}

#[test]
fn a_url_without_a_port_means_7400() {
    // An address of this machine at which nobody listens.
    let mut topics = airmail();
    topics.args([
        "topics",
        "--timeout",
        "100ms",
        "--url",
        "airmail://127.99.7.1",
    ]);
    let said = node::run(&mut topics, b"").failed(1);
    assert!(said.contains("127.99.7.1:7400"), "{said}");
}
