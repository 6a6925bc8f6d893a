//! `airmail flow`: a node's bounds and messages in flight, as shown and as measured.

use airmail_testkit::node::{self, Node, airmail};
use std::path::Path;

fn start(data: &Path, settings: &[(&str, &str)]) -> Node {
    let mut command = airmail();
    command.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.arg("--data").arg(data);
    // Each shard has gates of its own, and names of its own for them.
    command.args(["--shards", "1"]);
    command.envs(settings.iter().copied());
    Node::spawn(command)
}

fn load(node: &Node) {
    let url = format!("airmail://{}", node.grpc);
    let bench = ["bench", "e2e", "--messages", "50000", "--target", &url];
    node.run(&bench).ok();
}

#[test]
fn every_decision_is_shown_once_with_what_it_was_taken_from() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(
        directory.path(),
        &[
            ("AIRMAIL_FLOW_PUBLISH_LIMITER", "last-three-points"),
            ("AIRMAIL_FLOW_PUBLISH_WINDOW", "100"),
        ],
    );
    load(&node);
    let watched = node.run(&["flow", "watch", "--json", "--count", "3"]).ok();
    let mut number = None;
    for line in watched.lines() {
        let decision: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(decision["gate"], "publish");
        let this = decision["number"].as_u64().unwrap();
        assert!(number.is_none_or(|before| this == before + 1), "{watched}");
        number = Some(this);
        for field in ["bound_before", "bound"] {
            assert!(decision[field].as_u64().unwrap() > 0, "{field}: {line}");
        }
        for field in ["in_flight", "latency_ms", "rate_per_s"] {
            assert!(decision[field].as_f64().unwrap() > 0.0, "{field}: {line}");
        }
        assert!(decision["rule"].is_string(), "{line}");
    }
    assert_eq!(watched.lines().count(), 3, "{watched}");
    let shown = node.run(&["flow", "show"]).ok();
    assert!(
        shown.contains("messages in flight by last-three-points"),
        "{shown}"
    );
    assert!(shown.contains("bytes in flight by gradient"), "{shown}");
    for name in ["airmail_flow_bound", "airmail_flow_decisions_total"] {
        assert!(node::metric(&node.http, name) > Some(0.0), "{name}");
    }
    // The bench has gone; the node may hear of it a moment later.
    node::wait_until("nothing to be in flight", || {
        node::metric(&node.http, "airmail_flow_in_flight") == Some(0.0)
    });
}

#[test]
fn limiters_that_are_off_bound_nothing_and_are_not_shown() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(
        directory.path(),
        &[
            ("AIRMAIL_FLOW_PUBLISH_LIMITER", "off"),
            ("AIRMAIL_FLOW_DELIVERY_LIMITER", "off"),
        ],
    );
    load(&node);
    assert_eq!(node.run(&["flow", "show"]).ok(), "no limiter is on\n");
    assert_eq!(node.run(&["flow", "show", "--json"]).ok(), "");
}

#[test]
fn a_limiter_that_there_is_not_keeps_a_node_from_starting() {
    let mut serve = airmail();
    serve.args(["serve", "--listen", "127.0.0.1:0"]);
    serve.env("AIRMAIL_FLOW_PUBLISH_LIMITER", "vegas");
    let said = node::run(&mut serve, b"").failed(2);
    for part in ["AIRMAIL_FLOW_PUBLISH_LIMITER", "vegas", "gradient"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
