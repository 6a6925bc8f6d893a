//! The command line's manners: exit codes, settings, and what an error says.

use std::path::Path;

use crate::node::{self, Node, airmail};

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
    assert_eq!(node::get(&node.http, "/readyz").0, 200);
    let (status, page) = node::get(&node.http, "/metrics");
    assert_eq!(status, 200);
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
