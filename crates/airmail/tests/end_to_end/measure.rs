//! `airmail bench e2e` measures, and counts what is missing, doubled or out of order.

use crate::node::{self, Node, airmail};

fn report(stdout: &str) -> serde_json::Value {
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

#[test]
fn bench_without_a_target_starts_a_node_of_its_own() {
    let mut bench = airmail();
    bench.args([
        "bench",
        "e2e",
        "--messages",
        "2000",
        "--publishers",
        "2",
        "--subscribers",
        "2",
    ]);
    let report = report(&node::run(bench.args(["--topics", "3", "--json"]), b"").ok());
    assert_eq!(report["acknowledged"], 2000);
    assert_eq!(report["delivered"], 4000);
    for key in ["missing", "duplicates", "reordered"] {
        assert_eq!(report[key], 0, "{key}");
    }
    for key in ["p50", "p90", "p99", "p999", "p9999", "max"] {
        assert!(report["latency_us"][key].is_u64(), "{key}");
    }
    assert!(report["published_per_s"].as_f64().unwrap() > 0.0);
    assert!(report["delivered_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(report["settings"]["topics"], 3);
}

#[test]
fn bench_of_a_target_at_a_rate() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let url = format!("airmail://{}", node.grpc);
    let mut bench = airmail();
    bench.args([
        "bench",
        "e2e",
        "--messages",
        "500",
        "--rate",
        "1000",
        "--size",
        "200",
    ]);
    let report = report(&node::run(bench.args(["--json", "--target", &url]), b"").ok());
    assert_eq!(report["acknowledged"], 500);
    assert_eq!(report["delivered"], 500);
    assert_eq!(report["settings"]["rate"], 1000);
}

#[test]
fn bench_of_nobody_fails() {
    let mut bench = airmail();
    bench.args([
        "bench",
        "e2e",
        "--messages",
        "1",
        "--target",
        "airmail://127.0.0.1:1",
    ]);
    let said = node::run(&mut bench, b"").failed(1);
    assert!(said.contains("127.0.0.1:1"), "{said}");
}
