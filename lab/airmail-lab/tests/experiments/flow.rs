//! `airmail-lab flow` runs the limiters on a node of its own, and reports.

use airmail_testkit::node::{self, Node};
use airmail_testkit::waiting::waiting;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
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

fn has_files(out: &Path, names: &[&str]) {
    for name in names {
        assert!(out.join(name).exists(), "{name}");
    }
}

#[test]
fn every_case_has_its_row_and_its_curves() {
    let out = tempfile::tempdir().unwrap();
    let mut command = flow(
        "--topics 1,3 --distributions poisson --limiters last-three-points --storages memory,disk \
         --publishers 2 --messages 6000 --window 500 --initial 32 --delta 4 --repeat 1 --sweep 0s \
         --change 0s",
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
        assert_eq!(row["rate_share"], Value::Null, "{row}");
    }
    has_files(
        out.path(),
        &[
            "flow.json",
            "flow.csv",
            "flow-memory-publisher.csv",
            "flow-periods.csv",
            "flow-disk-last-three-points-poisson.png",
            "flow-memory-last-three-points-poisson-relation.svg",
            "flow-memory-last-three-points-delivery.png",
            "flow-disk-publisher-3-poisson.png",
        ],
    );
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
fn a_limiter_stands_beside_a_fixed_bound_at_the_knee() {
    let out = tempfile::tempdir().unwrap();
    let mut command = flow(
        "--topics 2 --distributions uniform --limiters gradient --storages memory --publishers 1 \
         --duration 1s --repeat 1 --sweep 200ms --sweep-runs 1 --change 0s",
    );
    let done = node::run(command.arg("--out").arg(out.path()), b"");
    let rows = rows(&done.ok());
    for place in ["publisher", "pilot"] {
        let of = |limiter: &str| {
            let mut rows = rows.iter();
            rows.find(|row| row["limiter"] == limiter && row["where"] == place)
                .unwrap_or_else(|| panic!("{limiter} in the {place}: {rows:?}"))
        };
        let (fixed, gradient) = (of("fixed"), of("gradient"));
        assert_eq!(fixed["rate_share"], 1.0, "{fixed}");
        assert_eq!(fixed["knee_bound"], gradient["knee_bound"]);
        assert!(
            fixed["bound_spread"]
                .as_f64()
                .is_some_and(|spread| spread < 1e-6),
            "{fixed}"
        );
        assert!(
            gradient["rate_share"]
                .as_f64()
                .is_some_and(|share| share > 0.0)
        );
        assert!(gradient["decisions"].as_u64().is_some_and(|made| made > 0));
    }
    let swept = fs::read_to_string(out.path().join("flow-sweep.csv")).unwrap();
    assert!(swept.lines().count() > 4, "{swept}");
    has_files(
        out.path(),
        &[
            "flow-memory-knee-publisher-1.png",
            "flow-memory-knee-pilot-1.png",
            "flow-memory-pilot-2-uniform.png",
            "flow-memory-pilot.csv",
            "flow-beside-the-knee-pilot.svg",
        ],
    );
    let json = fs::read_to_string(out.path().join("flow.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let drawn = &json["figures"]["memory-pilot-2-uniform"]["panels"];
    assert!(
        drawn[0]["series"]
            .as_array()
            .is_some_and(|series| series.len() == 3),
        "{drawn}"
    );
    let page = fs::read_to_string(out.path().join("flow.html")).unwrap();
    assert!(page.contains("Beside the knee"));
    assert!(page.contains("most power lies at half of the throughput"));
}

#[test]
fn a_capacity_that_changes_has_a_row_for_each_phase() {
    let out = tempfile::tempdir().unwrap();
    let mut command = flow(
        "--topics 1 --distributions uniform --limiters gradient --storages memory --publishers 1 \
         --side pilot --duration 500ms --repeat 1 --sweep 200ms --sweep-runs 1 --change 1s",
    );
    let done = node::run(command.arg("--out").arg(out.path()), b"");
    let rows = rows(&done.ok());
    let served: Vec<&Value> = rows
        .iter()
        .filter(|row| row["storage"] == "served")
        .collect();
    let phases: Vec<(&str, &str)> = served
        .iter()
        .filter_map(|row| Some((row["limiter"].as_str()?, row["capacity"].as_str()?)))
        .collect();
    let expected = ["fixed", "gradient"]
        .into_iter()
        .flat_map(|limiter| ["full", "halved", "doubled"].map(|phase| (limiter, phase)));
    assert_eq!(phases, expected.collect::<Vec<_>>());
    for row in served {
        assert_eq!(
            (&row["sound"], &row["limiters"]),
            (&true.into(), &1.into()),
            "{row}"
        );
        assert!(
            row["knee_bound"].as_u64().is_some_and(|knee| knee > 0),
            "{row}"
        );
        assert!(
            row["rate_share"].as_f64().is_some_and(|share| share > 0.0),
            "{row}"
        );
    }
    has_files(
        out.path(),
        &["flow-changed-served-pilot.png", "flow-served-pilot.csv"],
    );
}

#[test]
fn a_running_node_is_measured_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let mut command = flow(
        "--topics 2 --distributions normal --limiters fixed --messages 2000 --window 200 \
         --initial 200 --publishers 2 --repeat 2 --sweep 0s",
    );
    command.args(["--target", &format!("airmail://{}", node.grpc)]);
    let done = node::run(command.arg("--out").arg(directory.path().join("out")), b"");
    let rows = rows(&done.ok());
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["storage"], &rows[0]["rounds"]),
        (&"target".into(), &2.into())
    );
    let bound = rows[0]["bound"].as_f64();
    assert!(
        bound.is_some_and(|bound| (bound - 200.0).abs() < 1e-6),
        "{}",
        rows[0]
    );
    assert_eq!(rows[0]["knee_bound"], Value::Null);
}

#[test]
fn who_stops_it_has_a_report_that_says_so() {
    let out = tempfile::tempdir().unwrap();
    let mut command = flow("--storages memory --limiters fixed --duration 1h --sweep 0s");
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
        ("--side broker", "publishers, pilot"),
        ("--publishers 0", "--publishers"),
        ("--duration 0s", "--duration"),
    ] {
        let said = node::run(&mut flow(options), b"").failed(2);
        assert!(said.contains(name), "{said}");
    }
}
