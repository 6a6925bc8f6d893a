//! `airmail-lab overload|clients|size`, at tiny sizes: their accounts of messages, and the files
//! that they leave. Loads last for seconds, so that a machine may stand still meanwhile.

use airmail_testkit::node::{self, Done, Node, airmail};
use airmail_testkit::waiting::waiting;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

fn experiment(out: &Path, arguments: &[&str]) -> Done {
    let mut command = crate::lab();
    command.args(arguments);
    node::run(command.arg("--json").arg("--out").arg(out), b"")
}

fn rows(done: Done) -> Vec<serde_json::Value> {
    let lines = done.ok();
    let row =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    lines.lines().map(row).collect()
}

#[track_caller]
fn has_files(out: &Path, names: &[&str]) {
    for name in names {
        assert!(out.join(name).exists(), "{name}");
    }
}

#[test]
fn overload_loses_nothing_that_was_acknowledged() {
    let out = tempfile::tempdir().unwrap();
    let arguments = [
        &["overload", "--quick", "--ratios", "0.5,3", "--seconds", "3"][..],
        &[
            "--service-us",
            "4000",
            "--streams",
            "2",
            "--delivery-rate",
            "200",
        ],
        &["--quick-subscribers", "1", "--slow-subscribers", "1"],
    ];
    let rows = rows(experiment(out.path(), &arguments.concat()));
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in &rows {
        for key in ["lost", "duplicates", "reordered", "errors"] {
            assert_eq!(row[key], 0, "{key}: {row}");
        }
        for key in ["offered_ratio", "goodput_per_s", "refused_per_s", "p99_us"] {
            assert!(row[key].is_f64(), "{key}: {row}");
        }
        assert!(row["goodput_per_s"].as_f64().unwrap() > 0.0, "{row}");
    }
    for flow in ["on", "off"] {
        assert!(rows.iter().any(|row| row["flow_control"] == flow));
    }
    let deliveries = std::fs::read_to_string(out.path().join("overload-deliveries.csv")).unwrap();
    assert_eq!(deliveries.lines().count(), 3, "{deliveries}");
    has_files(
        out.path(),
        &[
            "overload.json",
            "overload.html",
            "overload-goodput.png",
            "overload-latency.svg",
        ],
    );
}

#[test]
fn clients_beyond_the_connections_are_streams_on_these() {
    let out = tempfile::tempdir().unwrap();
    let arguments = [
        &["clients", "--steps", "2,5", "--connections", "3"][..],
        &[
            "--rounds",
            "2",
            "--interval-ms",
            "100",
            "--timeout-ms",
            "60000",
        ],
    ];
    let rows = rows(experiment(out.path(), &arguments.concat()));
    let counts = |row: &serde_json::Value| {
        let count = |key: &str| row[key].as_u64().unwrap();
        (count("clients"), count("connections"), count("rounds"))
    };
    let found: Vec<_> = rows.iter().map(counts).collect();
    assert_eq!(found, [(2, 2, 2), (5, 3, 2)]);
    for row in &rows {
        for key in ["incomplete", "wrong", "timeouts"] {
            assert_eq!(row[key], 0, "{key}: {row}");
        }
        assert!(row["round_ms_mean"].as_f64().unwrap() > 0.0);
        assert!(row["node_cpu_share"].is_f64());
    }
    has_files(
        out.path(),
        &["clients.csv", "clients-rounds.png", "clients-rounds.csv"],
    );
}

#[test]
fn size_measures_payloads_that_have_no_room_for_a_whole_stamp() {
    let out = tempfile::tempdir().unwrap();
    let arguments = ["size", "--quick", "--sizes", "16,1024", "--run-ms", "2000"];
    let rows = rows(experiment(out.path(), &arguments));
    let named: Vec<(&str, u64)> = rows
        .iter()
        .map(|row| {
            (
                row["storage"].as_str().unwrap(),
                row["size_bytes"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("memory", 16),
        ("memory", 1024),
        ("disk", 16),
        ("disk", 1024),
    ];
    assert_eq!(named, expected);
    for row in &rows {
        for key in ["lost", "duplicates", "reordered"] {
            assert_eq!(row[key], 0, "{key}: {row}");
        }
        for key in ["messages_per_s", "mb_per_s", "p50_us", "p99_us"] {
            assert!(row[key].as_f64().unwrap() > 0.0, "{key}: {row}");
        }
    }
    has_files(
        out.path(),
        &["size.html", "size-throughput.png", "size-latency.png"],
    );
}

#[test]
fn an_experiment_that_is_stopped_still_reports() {
    let out = tempfile::tempdir().unwrap();
    let mut command = crate::lab();
    command.args(["size", "--sizes", "64"]);
    command.args([
        "--storages",
        "memory",
        "--run-ms",
        "200",
        "--rounds",
        "100000",
    ]);
    let mut child = command
        .arg("--out")
        .arg(out.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let _waiting = waiting("a round, and the end after Ctrl-C");
    said.find(|line| line.as_ref().unwrap().contains("round 1"))
        .unwrap()
        .unwrap();
    node::signal(&child, rustix::process::Signal::INT);
    said.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let page = std::fs::read_to_string(out.path().join("size.html")).unwrap();
    assert!(page.contains("stopped before its end"));
}

#[test]
fn a_storage_with_a_service_time_stores_and_one_with_another_parameter_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start_with(directory.path(), &["--log", "memory:?service_us=2000"]);
    node.run(&["pub", "slowly", "stored"]).ok();
    assert_eq!(node.run(&["history", "slowly"]).ok(), "stored\n");
    let mut serve = airmail();
    serve.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "memory:?speed=2",
    ]);
    let said = node::run(serve.arg("--data").arg(directory.path()), b"").stderr;
    assert!(
        said.contains("service_us") && said.contains("speed"),
        "{said}"
    );
}
