//! `airmail-lab flow` runs the limiters on a node of its own, and reports.

use airmail_testkit::node::{self, Node};
use airmail_testkit::waiting::waiting;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

fn rows(stdout: &str) -> Vec<Value> {
    let row =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    stdout.lines().map(row).collect()
}

fn flow(options: &str) -> Command {
    let mut command = crate::lab();
    command.args(["flow", "--json"]);
    command.args(options.split_whitespace());
    command
}

#[test]
fn every_case_has_its_row_and_its_curves() {
    let out = tempfile::tempdir().unwrap();
    let mut command = flow(
        "--topics 1,3 --distributions poisson --limiters last-three-points --storages memory,disk \
         --messages 6000 --window 500 --initial 32 --delta 4 --repeat 1 --sweep 0s",
    );
    let done = node::run(command.arg("--out").arg(out.path()), b"");
    let rows = rows(&done.ok());
    let in_publishers = rows.iter().filter(|row| row["where"] == "publisher");
    assert_eq!(in_publishers.count(), 2 * 2);
    for row in &rows {
        assert_eq!(row["sound"], true, "{row}");
        assert_eq!(
            (&row["messages"], &row["delivered"]),
            (&12_000.into(), &24_000.into())
        );
        for count in ["missing", "duplicates", "reordered", "failed"] {
            assert_eq!(row[count], 0, "{row}");
        }
        for figure in ["bound", "in_flight", "latency_ms", "throughput_per_s"] {
            let positive = row[figure].as_f64().is_some_and(|figure| figure > 0.0);
            assert!(positive || row["where"] == "pilot", "{figure}: {row}");
        }
        assert!(row["delivery_p99_ms"].as_f64() >= row["delivery_p50_ms"].as_f64());
        assert!(
            row.as_object()
                .is_some_and(|row| row.contains_key("windows_to_optimum"))
        );
    }
    for file in [
        "flow.json",
        "flow.csv",
        "flow-memory-publisher.csv",
        "flow-disk-last-three-points-poisson.png",
        "flow-memory-last-three-points-poisson-relation.svg",
        "flow-memory-last-three-points-delivery.png",
        "flow-disk-compared-3-poisson.png",
    ] {
        assert!(out.path().join(file).exists(), "{file}");
    }
    let page = fs::read_to_string(out.path().join("flow.html")).unwrap();
    for heading in [
        "Figures A.2, A.4, A.6: last-three-points, memory",
        "Figure 5.8: last-three-points, memory",
        "Figures A.20, A.22, A.24 (disk in Kafka's place)",
    ] {
        assert!(page.contains(heading), "{heading}");
    }
}

#[test]
fn a_limiter_is_held_against_the_best_fixed_bound() {
    let out = tempfile::tempdir().unwrap();
    let mut command = flow(
        "--topics 2 --distributions uniform --limiters gradient --storages memory \
         --messages 6000 --window 200 --repeat 1 --sweep 500ms",
    );
    let done = node::run(command.arg("--out").arg(out.path()), b"");
    let row = &rows(&done.ok())[0];
    assert!(
        row["power_ratio"].as_f64().is_some_and(|ratio| ratio > 0.0),
        "{row}"
    );
    let swept = fs::read_to_string(out.path().join("flow-sweep.csv")).unwrap();
    assert!(swept.lines().count() > 2, "{swept}");
    assert!(
        out.path()
            .join("flow-memory-optimum-publisher.png")
            .exists()
    );
    let page = fs::read_to_string(out.path().join("flow.html")).unwrap();
    assert!(
        page.contains("As figure 3.6: throughput and latency against messages in flight, memory")
    );
}

#[test]
fn a_running_node_is_measured_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut command = flow(
        "--topics 2 --distributions normal --limiters fixed --messages 2000 --window 200 \
         --repeat 2 --sweep 0s",
    );
    command.args(["--target", &format!("airmail://{}", node.grpc)]);
    let done = node::run(command.arg("--out").arg(directory.path().join("out")), b"");
    let rows = rows(&done.ok());
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["storage"], &rows[0]["rounds"]),
        (&"target".into(), &2.into())
    );
    assert_eq!(rows[0]["bound"], 200.0);
    assert_eq!(rows[0]["power_ratio"], Value::Null);
}

#[test]
fn who_stops_it_has_a_report_that_says_so() {
    let out = tempfile::tempdir().unwrap();
    let mut command = flow("--storages memory --limiters fixed --messages 1000000000 --sweep 0s");
    command.arg("--out").arg(out.path());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    let _waiting = waiting("a first line, and the end after Ctrl-C");
    said.read_line(&mut line).unwrap();
    assert!(line.contains("Ctrl-C"), "{line}");
    node::signal(&child, rustix::process::Signal::INT);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    let page = fs::read_to_string(out.path().join("flow.html")).unwrap();
    assert!(page.contains("It was stopped before all was measured."));
}

#[test]
fn parameters_that_make_no_sense_are_refused_by_name() {
    for (options, name) in [
        ("--topics 0", "--topics"),
        ("--distributions zipf", "uniform, normal, poisson"),
        ("--limiters vegas", "last-three-points"),
        ("--storages tape", "memory, disk"),
        ("--size 8", "--size"),
    ] {
        let said = node::run(&mut flow(options), b"").failed(2);
        assert!(said.contains(name), "{said}");
    }
}
