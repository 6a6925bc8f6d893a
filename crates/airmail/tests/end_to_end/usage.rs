//! Manners of the command line: exit codes, settings, and the words of errors.

use airmail_testkit::node::{self, Node, airmail};
use std::path::Path;

#[test]
fn wrong_usage_ends_with_2() {
    for arguments in [
        &["fly"][..],
        &["pub"],
        &["sub", "topic", "--count", "many"],
        &["serve", "--no-such"],
    ] {
        node::run(airmail().args(arguments), b"").failed(2);
    }
}

#[test]
fn no_node_ends_with_1_and_says_where_it_was_looked_for() {
    let mut publish = airmail();
    publish.args([
        "pub",
        "topic",
        "text",
        "--timeout",
        "1s",
        "--url",
        "airmail://127.0.0.1:1",
    ]);
    let said = node::run(&mut publish, b"").failed(1);
    assert!(said.starts_with("airmail: DISCONNECTED"), "{said}");
    assert!(said.contains("127.0.0.1:1"), "{said}");
}

#[test]
fn errors_name_field_value_and_limit_and_harm_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    node.run(&["pub", "kept", "before"]).ok();
    let refused = |arguments: &[&str], input: &[u8], words: &[&str]| {
        let done = node::run(&mut node.airmail(arguments), input);
        // Wrong usage where it is seen before a node is asked.
        assert!(matches!(done.code, Some(1 | 2)), "{arguments:?}: {done:?}");
        let said = done.stderr;
        for word in words {
            assert!(said.contains(word), "{arguments:?}: no {word} in: {said}");
        }
    };
    let large = vec![b'x'; (1 << 20) + 1];
    refused(
        &["pub", "large"],
        &large,
        &["MESSAGE_TOO_LARGE", "1048577", "1048576"],
    );
    let long = "t".repeat(1025);
    refused(
        &["pub", &long, "x"],
        b"",
        &["TOPIC_INVALID", "topic", "1025", "1024"],
    );
    refused(
        &["pub", "", "x"],
        b"",
        &["TOPIC_INVALID", "topic", "at least 1 byte"],
    );
    refused(&["pub", "a\tb", "x"], b"", &["TOPIC_INVALID", "control"]);
    refused(
        &["pub", "t", "x", "--namespace", "nowhere"],
        b"",
        &["NAMESPACE_NOT_FOUND", "nowhere"],
    );
    refused(
        &["sub", "t", "--namespace", "nowhere"],
        b"",
        &["NAMESPACE_NOT_FOUND", "nowhere"],
    );
    refused(
        &["history", "t", "--namespace", "nowhere"],
        b"",
        &["NAMESPACE_NOT_FOUND", "nowhere"],
    );
    refused(
        &["namespace", "create", "default"],
        b"",
        &["NAMESPACE_EXISTS", "default"],
    );
    refused(
        &["namespace", "create", "no spaces"],
        b"",
        &["NAMESPACE_INVALID", "no spaces"],
    );
    refused(
        &["namespace", "delete", "nowhere"],
        b"",
        &["NAMESPACE_NOT_FOUND", "nowhere"],
    );
    let attributes: Vec<String> = (0..65)
        .flat_map(|n| ["--attr".to_owned(), format!("k{n}=v")])
        .collect();
    let mut many: Vec<&str> = vec!["pub", "t", "x"];
    many.extend(attributes.iter().map(String::as_str));
    refused(&many, b"", &["ATTRIBUTES_INVALID", "65", "64"]);
    assert_eq!(node.run(&["history", "kept"]).ok(), "before\n");
    assert_eq!(node.run(&["topics"]).ok(), "kept\n");
}

#[test]
fn a_durability_that_the_storage_cannot_give_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start_with(directory.path(), &["--log", "memory:"]);
    let said = node
        .run(&["namespace", "create", "safe", "--durability", "fsync"])
        .failed(1);
    assert!(said.contains("DURABILITY_UNAVAILABLE"), "{said}");
}

#[test]
fn settings_come_from_flags_then_environment_then_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("airmail.toml");
    std::fs::write(&file, "[listen]\naddress = \"127.0.0.1:1111\"\n").unwrap();
    assert!(shown(&file, None, None).contains("\"127.0.0.1:1111\""));
    assert!(shown(&file, Some("127.0.0.1:2222"), None).contains("\"127.0.0.1:2222\""));
    assert!(
        shown(&file, Some("127.0.0.1:2222"), Some("127.0.0.1:3333")).contains("\"127.0.0.1:3333\"")
    );
}

fn shown(file: &Path, environment: Option<&str>, flag: Option<&str>) -> String {
    let mut serve = airmail();
    serve
        .args(["serve", "--print-config", "--config"])
        .arg(file);
    if let Some(address) = environment {
        serve.env("AIRMAIL_LISTEN_ADDRESS", address);
    }
    if let Some(address) = flag {
        serve.args(["--listen", address]);
    }
    node::run(&mut serve, b"").ok()
}

#[test]
fn a_key_that_is_not_known_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("airmail.toml");
    std::fs::write(&file, "[limits]\nmesage = \"1MiB\"\n").unwrap();
    let mut serve = airmail();
    let done = node::run(
        serve
            .args(["serve", "--print-config", "--config"])
            .arg(&file),
        b"",
    );
    assert!(matches!(done.code, Some(1 | 2)), "{done:?}");
    assert!(done.stderr.contains("mesage"), "{done:?}");
}

#[test]
fn printed_settings_are_a_file_that_gives_the_same_settings() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("airmail.toml");
    let printed = node::run(airmail().args(["serve", "--print-config"]), b"").ok();
    std::fs::write(&file, &printed).unwrap();
    assert_eq!(shown(&file, None, None), printed);
}

#[test]
fn health_readiness_and_metrics_answer() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    assert_eq!(node::get(&node.http, "/healthz").0, 200);
    assert_eq!(node::page(&node.http, "/readyz"), "ready\n");
    let page = node::page(&node.http, "/metrics");
    assert!(page.contains("# TYPE airmail_"), "{page}");
}

#[test]
fn the_start_says_what_to_try() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    node::wait_until("two commands to try", || {
        node.said().contains("airmail sub") && node.said().contains("airmail pub")
    });
}

#[test]
fn whoever_reads_no_further_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let lines = "a line of some length\n".repeat(20_000);
    let publish = &mut node.airmail(&["pub", "t", "--lines"]);
    node::run(publish, lines.as_bytes()).ok();
    let data = directory.path().to_str().unwrap();
    for arguments in [
        &["history", "t"][..],
        &["history", "t", "--json"],
        &["sub", "t", "--from", "earliest"],
        &["topics"],
        &["topics", "--json"],
        &["namespace", "list"],
        &["check", data],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = node.airmail(arguments);
        command.stdout(writer).stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        drop(command);
        let done = node::output_of(child, "a command whose reader is gone");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{arguments:?}: {said}");
        assert!(!said.contains("pipe"), "{arguments:?}: {said}");
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let mut history = node.airmail(&["history", "t"]);
    let done = history.stdout(full.unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("writing standard output: "), "{said}");
}

#[test]
fn what_would_do_nothing_or_wait_for_ever_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let refused = |arguments: &[&str], words: &[&str]| {
        let said = node.run(arguments).failed(2);
        for word in words {
            assert!(said.contains(word), "{arguments:?}: no {word} in: {said}");
        }
    };
    refused(
        &["namespace", "create", "n", "--logs", "0"],
        &["--logs", "0", "1.."],
    );
    refused(
        &["namespace", "update", "default"],
        &["nothing to change", "--retention"],
    );
    refused(
        &["pub", "t", "x", "--timeout", "0s"],
        &["--timeout", "more than 0"],
    );
    let update = node.run(&["namespace", "update", "default", "--logs", "7"]);
    let said = update.failed(1);
    assert!(said.contains("(logs: 7, limit: 1)"), "{said}");
    // An empty name is the default namespace, everywhere.
    node.run(&["pub", "t", "x", "--namespace", ""]).ok();
    assert_eq!(node.run(&["history", "t", "--namespace", ""]).ok(), "x\n");
    assert_eq!(node.run(&["history", "t"]).ok(), "x\n");
}

#[test]
fn another_port_than_the_nodes_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut topics = airmail();
    topics.args(["topics", "--url", &format!("airmail://{}", node.http)]);
    let said = node::run(&mut topics, b"").failed(1);
    assert!(said.starts_with("airmail: PROTOCOL_UNSUPPORTED"), "{said}");
    assert!(said.contains("gRPC port"), "{said}");
}

#[test]
fn a_payload_may_be_any_bytes() {
    use std::os::unix::ffi::OsStrExt as _;
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut publish = node.airmail(&["pub", "a topic, ünï → 🚀"]);
    publish.arg(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    node::run(&mut publish, b"").ok();
    node.run(&["pub", "a topic, ünï → 🚀", ""]).ok();
    let said = node.run(&["history", "a topic, ünï → 🚀", "--json"]).ok();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains(r#""payload_base64":"//4=""#), "{said}");
    assert!(lines[1].contains(r#""payload":"""#), "{said}");
}

#[test]
fn a_wrong_file_of_settings_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("airmail.toml");
    let said = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let mut serve = airmail();
        serve
            .args(["serve", "--print-config", "--config"])
            .arg(&file);
        node::run(&mut serve, b"").failed(2)
    };
    for (text, words) in [
        ("[node]\nname = \n", &["--config", "line 2", "TOML"][..]),
        (
            "[limits]\ncredit_bytes = \"65MiB\"\n",
            &["limits.credit_bytes", "64MiB"],
        ),
        ("[log]\nlevel = \"loud\"\n", &["log.level", "loud", "debug"]),
    ] {
        let said = said(text);
        assert_eq!(said.lines().count(), 1, "{said}");
        for word in words {
            assert!(said.contains(word), "no {word} in: {said}");
        }
    }
}
