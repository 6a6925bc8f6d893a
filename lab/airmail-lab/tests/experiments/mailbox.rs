//! `airmail-lab mailbox`, at tiny sizes: that it accounts for every call, leaves its files, and
//! draws the same report again from its record.

use airmail_testkit::node::{self, Done};
use serde_json::Value;
use std::path::Path;

fn bench(out: &Path, arguments: &[&str]) -> Done {
    let mut command = crate::lab();
    command.args(["mailbox"]).args(arguments);
    // PostgreSQL's programs are found where a shell finds them.
    node::run(command.arg("--json").arg("--out").arg(out), b"")
}

fn rows(done: Done) -> Vec<Value> {
    let lines = done.ok();
    let row =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    lines.lines().map(row).collect()
}

#[test]
fn the_workload_is_measured_beside_pgbench_and_drawn_again_from_its_record() {
    let out = tempfile::tempdir().unwrap();
    // Long enough for both to answer something, also where the machine stands still for a while.
    let arguments = ["workload", "--quick", "--duration", "6s", "--rounds", "1"];
    let measured = rows(bench(out.path(), &arguments));
    let subjects: Vec<&Value> = measured.iter().map(|row| &row["subject"]).collect();
    assert_eq!(subjects, ["service", "statements"]);
    for row in &measured {
        assert!(row["requests_per_s"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["p99_us"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(
            (&row["failed"], &row["clients"]),
            (&0.into(), &10.into()),
            "{row}"
        );
    }
    for name in ["html", "json", "csv", "sqlite"] {
        let path = out.path().join(format!("mailbox-workload.{name}"));
        assert!(path.exists(), "{}", path.display());
    }
    let page = std::fs::read_to_string(out.path().join("mailbox-workload.html")).unwrap();
    assert!(
        page.contains("of the bare statements"),
        "the ratio that was asked for"
    );
    let again = tempfile::tempdir().unwrap();
    let record = out.path().join("mailbox-workload.sqlite");
    let drawn = rows(bench(again.path(), &["report", record.to_str().unwrap()]));
    assert_eq!(drawn, measured);
    let drawn = std::fs::read_to_string(again.path().join("mailbox-workload.html")).unwrap();
    assert_eq!(drawn, page);
}

#[test]
fn a_run_is_drawn_over_time_beside_a_transaction_that_is_held_open() {
    let out = tempfile::tempdir().unwrap();
    let arguments = ["stability", "--quick", "--duration", "2s"];
    let measured = rows(bench(out.path(), &arguments));
    let held: Vec<&Value> = measured.iter().map(|row| &row["held"]).collect();
    let of_each = [false, false, true, true].map(Value::from);
    assert_eq!(held, of_each.each_ref());
    assert!(
        measured.iter().all(|row| row["failed"] == 0),
        "{measured:?}"
    );
    for run in 1..=of_each.len() {
        let course = out.path().join(format!("mailbox-stability-run-{run}.csv"));
        let course = std::fs::read_to_string(course).unwrap();
        assert_eq!(course.lines().count(), 11, "{course}");
        let figure = format!("mailbox-stability-run-{run}.svg");
        assert!(out.path().join(figure).exists());
    }
    let page = std::fs::read_to_string(out.path().join("mailbox-stability.html")).unwrap();
    assert!(page.contains("in the first tenth") && page.contains("Tables and indexes"));
}

#[test]
fn what_is_no_record_is_not_drawn() {
    let out = tempfile::tempdir().unwrap();
    let other = out.path().join("other");
    std::fs::write(&other, "text").unwrap();
    let said = bench(out.path(), &["report", other.to_str().unwrap()]).failed(1);
    assert!(said.contains("other"), "{said}");
}
