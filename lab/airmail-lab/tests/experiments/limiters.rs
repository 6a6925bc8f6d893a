//! `airmail-lab limiters --like`: what the model of a node predicts of one that was measured.

use airmail_testkit::node;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Measured: two publishers on a node on a disk, by the bound of each. M messages/s of both, and ms.
const DISK: [(u64, f64, f64); 9] = [
    (32, 0.17, 0.37),
    (128, 0.60, 0.41),
    (256, 0.69, 0.72),
    (512, 1.05, 0.94),
    (1_024, 1.70, 1.13),
    (2_048, 2.38, 1.54),
    (4_096, 2.62, 2.59),
    (8_192, 2.94, 4.3),
    (16_384, 3.25, 7.4),
];
/// Measured: the pilot of a node in memory, which answers within the turn.
const MEMORY: [(u64, f64, f64); 4] = [
    (545, 2.9, 0.09),
    (1_090, 3.0, 0.08),
    (2_180, 3.1, 0.0),
    (4_360, 3.0, 0.0),
];

/// Files as `airmail-lab flow` writes them, in which `gradient` had such a share in the pilot.
fn written(directory: &Path, pilots_share: f64) {
    let mut csv = "storage,where,publishers,topics,bound,rate_per_s,latency_s\n".to_owned();
    let mut add = |setup: &str, points: &[(u64, f64, f64)]| {
        for (bound, millions, latency_ms) in points {
            let (rate_per_s, latency_s) = (millions * 1e6, latency_ms / 1e3);
            writeln!(csv, "{setup},{bound},{rate_per_s},{latency_s}").unwrap();
        }
    };
    add("disk,publisher,2,1", &DISK);
    add("--log=memory:,pilot,2,1", &MEMORY);
    add("--log=memory:?service_us=1000,pilot,2,1", &MEMORY[..1]);
    let row = |limiter: &str, rate_share: Value| {
        json!({
            "topics": 1, "distribution": "uniform", "limiter": limiter, "storage": "memory",
            "where": "pilot", "publishers": 2, "rounds": 2, "messages": 6_000_000,
            "throughput_per_s": 3e6, "rate_share": rate_share,
        })
    };
    let rows = [
        row("fixed", json!(1.0)),
        row("gradient", json!(pilots_share)),
        row("ladder", Value::Null),
    ];
    fs::write(directory.join("flow-sweep.csv"), csv).unwrap();
    let document = json!({ "experiment": "flow", "rows": rows }).to_string();
    fs::write(directory.join("flow.json"), document).unwrap();
}

fn limiters(directory: &Path, options: &str) -> Command {
    let mut command = crate::lab();
    command.arg("limiters").args(options.split_whitespace());
    command.arg("--out").arg(directory.join("out"));
    command
}

fn like(directory: &Path, options: &str) -> Command {
    let mut command = limiters(directory, options);
    command.args(["--seeds", "3"]).arg("--like").arg(directory);
    command
}

#[test]
fn the_ends_of_a_measured_sweep_predict_its_knee_and_a_limiters_share() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), 1.0);
    let done = node::run(&mut like(directory.path(), "--json --judge"), b"");
    let rows: Vec<Value> = done
        .ok()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |quantity: &str| {
        let rows = rows.iter().filter(move |row| row["quantity"] == quantity);
        rows.collect::<Vec<_>>()
    };
    assert_eq!(of("rate_per_s").len(), DISK.len() - 2 + MEMORY.len() - 2);
    assert_eq!(
        (of("knee_rate_per_s").len(), of("knee_bound").len()),
        (2, 2)
    );
    let shares = of("rate_share");
    assert_eq!(
        (shares.len(), &shares[0]["limiter"]),
        (1, &json!("gradient"))
    );
    assert!(rows.iter().all(|row| row["within"] == true), "{rows:?}");
    for file in [
        "limiters-like.html",
        "limiters-like.json",
        "limiters-like.csv",
        "limiters-like-disk-publisher-2-1.png",
        "limiters-like-memory-pilot-2-1.svg",
    ] {
        assert!(directory.path().join("out").join(file).exists(), "{file}");
    }
}

#[test]
fn what_is_off_is_named_and_judged_only_where_that_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), 0.5);
    let table = node::run(&mut like(directory.path(), ""), b"").ok();
    assert!(
        table.contains("0 of 1") && table.contains("2 of 2"),
        "{table}"
    );
    let said = node::run(&mut like(directory.path(), "--judge"), b"").failed(1);
    let named = "memory, 1 topic, uniform, 2 publishers, in the pilot, gradient: a share of 1.00 predicted, \
                 0.50 measured";
    assert!(said.contains(named), "{said}");
}

#[test]
fn a_directory_without_a_run_is_refused_by_name_and_nothing_is_judged_alone() {
    let directory = tempfile::tempdir().unwrap();
    let said = node::run(&mut like(directory.path(), ""), b"").failed(1);
    assert!(said.contains("flow-sweep.csv"), "{said}");
    let said = node::run(&mut limiters(directory.path(), "--judge"), b"").failed(2);
    assert!(said.contains("--like"), "{said}");
}
