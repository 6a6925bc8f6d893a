//! The papers' experiments with their node on one machine and their load on two, at tiny sizes; and on
//! a node that runs already.

use super::machines::{Machines, PROGRAM, THREE};
use airmail_testkit::node::{self, Done, Node};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// The load's machines alone: the node is a running one.
const LOADS: &str = "load me@two\nload me@three\n";
/// An overload that is over in a few seconds, each load long beside what a machine may stand still.
const OVERLOAD: &str = "--quick --ratios 3 --seconds 3 --streams 3 --delivery-rate 200 \
                        --quick-subscribers 2 --slow-subscribers 2";

/// Runs one.
fn run(machines: &Machines, hosts: &str, name: &str, options: &str) -> Done {
    let mut command = machines.experiment(PROGRAM, hosts, name);
    command.args(options.split_whitespace()).arg("--json");
    node::run(&mut command, b"")
}

/// Runs one; its rows.
#[track_caller]
fn rows(machines: &Machines, hosts: &str, name: &str, options: &str) -> Vec<Value> {
    rows_of(run(machines, hosts, name, options))
}

#[track_caller]
fn rows_of(done: Done) -> Vec<Value> {
    let lines = done.ok();
    let row =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    lines.lines().map(row).collect()
}

fn page(machines: &Machines, name: &str) -> String {
    fs::read_to_string(machines.path("out").join(name)).unwrap()
}

#[track_caller]
fn assert_zeros(row: &Value, keys: &[&str]) {
    for key in keys {
        assert_eq!(row[key], 0, "{key}: {row}");
    }
}

#[test]
fn an_overload_comes_from_two_machines_and_loses_nothing_that_was_acknowledged() {
    let machines = Machines::new();
    let options = format!("{OVERLOAD} --service-us 4000");
    let done = run(&machines, THREE, "overload", &options);
    let capacity_per_s = capacity_per_s(&done.stderr);
    let rows = rows_of(done);
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in &rows {
        assert_zeros(row, &["lost", "duplicates", "reordered", "errors"]);
        let figure = |key: &str| row[key].as_f64().unwrap();
        assert!(
            figure("goodput_per_s") > 0.0 && figure("rss_bytes") > 0.0,
            "{row}"
        );
        // Both processes together have the timetable of one: three times the capacity, as it was found.
        assert!(
            figure("offered_per_s") > 2.0 * capacity_per_s,
            "{capacity_per_s}: {row}"
        );
    }
    for (target, word, least) in [
        ("me@one", "node", 5),
        ("me@two", "offer", 3),
        ("me@three", "offer", 3),
        ("me@two", "bystander", 1),
        ("me@three", "bystander", 1),
        ("me@three", "part", 2),
    ] {
        let started = machines.started(target, word);
        assert!(started >= least, "{word}: {:?}", machines.reached());
    }
    let page = page(&machines, "overload.html");
    assert!(page.contains("The node is on me@one; the load comes from me@two, me@three."));
    machines.wait_until_nothing_is_left();
}

/// The node's capacity, from the output of an overload.
#[track_caller]
fn capacity_per_s(said: &str) -> f64 {
    let rest = said.split("capacity: ").nth(1);
    let number = rest.and_then(|rest| rest.split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no capacity: {said}"))
}

#[test]
fn a_running_node_is_overloaded_as_it_is_and_again() {
    let machines = Machines::new();
    let node = Node::start_with(&machines.path("own"), &["--log", "memory:?service_us=4000"]);
    let options = format!("{OVERLOAD} --target airmail://{}", node.grpc);
    // What the first one stored is not held against the second.
    for _ in 0..2 {
        let rows = rows(&machines, LOADS, "overload", &options);
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0]["flow_control"], "as it is");
        assert_zeros(&rows[0], &["lost", "duplicates", "reordered", "errors"]);
    }
    assert!(page(&machines, "overload.html").contains(&node.grpc));
}

#[test]
fn payloads_are_measured_on_a_running_node_as_it_is() {
    let machines = Machines::new();
    let node = Node::start(&machines.path("own"));
    let options = "--quick --sizes 16,1024 --run-ms 200 --rounds 2";
    let options = format!("{options} --target airmail://{}", node.grpc);
    let rows = rows(&machines, LOADS, "size", &options);
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in &rows {
        assert_eq!(
            (&row["storage"], &row["rounds"]),
            (&"target".into(), &2.into())
        );
        assert_zeros(row, &["lost", "duplicates", "reordered"]);
        assert_eq!(row["node_rss_bytes"], Value::Null);
    }
    assert_eq!(machines.started("me@two", "part"), 8);
}

#[test]
fn a_node_is_either_a_machine_or_a_target() {
    let machines = Machines::new();
    let mut both = machines.experiment(PROGRAM, THREE, "overload");
    both.args(["--target", "airmail://127.0.0.1:1"]);
    let said = node::run(&mut both, b"").failed(2);
    assert!(
        said.contains("me@one") && said.contains("--target"),
        "{said}"
    );
    let mut neither = machines.experiment(PROGRAM, LOADS, "overload");
    let said = node::run(&mut neither, b"").failed(2);
    assert!(said.contains("ROLE: there is no node"), "{said}");
    let mut slowed = machines.experiment(PROGRAM, LOADS, "overload");
    slowed.args(["--target", "airmail://127.0.0.1:1", "--service-us", "9"]);
    let said = node::run(&mut slowed, b"").failed(2);
    assert!(said.contains("--service-us"), "{said}");
}

#[test]
fn clients_stand_on_two_machines_and_the_node_is_held_on_its_own() {
    let machines = Machines::new();
    let options = "--steps 5 --connections 4 --rounds 2 --interval-ms 100 --timeout-ms 60000";
    let rows = rows(&machines, THREE, "clients", options);
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_zeros(row, &["incomplete", "wrong", "timeouts"]);
    assert_eq!((&row["processes"], &row["rounds"]), (&2.into(), &2.into()));
    assert!(row["node_rss_bytes"].as_u64().unwrap() > 0, "{row}");
    for (target, word) in [
        ("me@one", "node"),
        ("me@one", "hold"),
        ("me@two", "rounds"),
        ("me@two", "crowd"),
        ("me@three", "crowd"),
    ] {
        assert_eq!(machines.started(target, word), 1, "{target} {word}");
    }
    let page = page(&machines, "clients.html");
    assert!(page.contains("The node is on me@one; the load comes from me@two, me@three."));
    // By a control group, or else the system did not let it.
    assert!(page.contains("0.5 of a core, period 10 ms: "));
    machines.wait_until_nothing_is_left();
}

#[test]
fn each_publisher_of_a_flow_is_on_a_machine_with_its_subscriber() {
    let machines = Machines::new();
    let options = "--topics 2 --distributions uniform --limiters gradient --storages memory,disk \
                   --publishers 2 --messages 3000 --window 200 --initial 32 --repeat 1 --sweep 0s";
    let rows = rows(&machines, THREE, "flow", options);
    // In the publishers and in the pilot.
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in &rows {
        assert_eq!(row["sound"], true, "{row}");
        let counts = (&row["messages"], &row["delivered"]);
        assert_eq!(counts, (&6_000.into(), &12_000.into()));
        assert_zeros(row, &["missing", "duplicates", "reordered", "failed"]);
    }
    for (target, word) in [
        ("me@one", "node"),
        ("me@two", "flight"),
        ("me@three", "flight"),
    ] {
        assert_eq!(
            machines.started(target, word),
            rows.len(),
            "{target} {word}"
        );
    }
    let windows = page(&machines, "flow-disk-publisher.csv");
    let publishers = windows.lines().filter_map(|line| line.split(',').nth(7));
    let publishers: BTreeSet<&str> = publishers.collect();
    assert_eq!(publishers, BTreeSet::from(["of", "0", "1"]), "{windows}");
    assert!(page(&machines, "flow.html").contains("The node is on me@one"));
    machines.wait_until_nothing_is_left();
}

#[test]
fn copilots_are_on_the_machines_of_their_lines_and_the_tower_on_its_own() {
    let machines = Machines::new();
    let hosts = format!("{THREE}copilot me@four 127.0.0.1\ncopilot me@five 127.0.0.1\n");
    let options =
        "--copilots 1,2 --series shared --subscribers 2 --topics 2 --seconds 0.5 --rounds 1";
    let rows = rows(&machines, &hosts, "copilots", options);
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in &rows {
        assert_zeros(row, &["lost", "duplicates", "reordered"]);
    }
    // A cluster for each number of copilots, as fast as there is room and at half of that.
    for (target, word, times) in [
        ("me@one", "node", 4),
        ("me@four", "node", 4),
        ("me@four", "hold", 4),
        ("me@five", "node", 2),
        ("me@two", "part", 6),
        ("me@three", "part", 4),
    ] {
        assert_eq!(machines.started(target, word), times, "{target} {word}");
    }
    let page = page(&machines, "copilots.html");
    assert!(page.contains("The node is on me@one") && page.contains("me@four, me@five, in turn"));
    machines.wait_until_nothing_is_left();
}

#[test]
fn a_machine_of_copilots_is_refused_where_there_are_none() {
    let machines = Machines::new();
    let hosts = format!("{THREE}copilot me@four\n");
    let said = run(&machines, &hosts, "size", "--quick").failed(2);
    assert!(said.contains("ROLE: me@four is a copilot"), "{said}");
}
