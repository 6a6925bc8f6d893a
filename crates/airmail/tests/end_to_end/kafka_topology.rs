//! `airmail kafka topology`, as operators and scripts call it.

use airmail_testkit::node::{self, Done, airmail};
use airmail_testkit::waiting::waiting;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Section 6.4's prototype: A on nodes 1 and 2, B on 2 and 3.
const PROTOTYPE: &str =
    r#"{"nodes": [1, 2, 3], "topics": {"A": [[1], [2], [2]], "B": [[2], [3]]}}"#;
const BALANCED: &str = r#"{"nodes": [1, 2], "topics": {"A": [[1, 2], [2, 1]]}}"#;

fn written(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("cluster.json");
    fs::write(&path, text).unwrap();
    path
}

fn topology(file: &Path, arguments: &[&str]) -> Done {
    let mut command = airmail();
    command
        .args(["kafka", "topology", "--file"])
        .arg(file)
        .args(arguments);
    node::run(&mut command, b"")
}

fn object(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:#?}"))
}

#[test]
fn what_is_found_is_told_by_index_and_by_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), PROTOTYPE);
    let done = topology(&file, &["--json"]);
    assert_eq!(done.code, Some(1), "{done:#?}");
    let found = object(&done);
    assert_eq!(found["balanced"], json!(false));
    let groups = json!([{"topics": ["A"], "nodes": [1, 2]}, {"topics": ["B"], "nodes": [2, 3]}]);
    assert_eq!(found["max_groups"], groups);
    assert_eq!(found["overlaps"], json!([{"groups": [0, 1], "nodes": [2]}]));
    assert_eq!(
        found["overlapping_nodes"],
        json!([{"node": 2, "groups": [0, 1]}])
    );
    let uneven = json!([{"group": 0, "topic": "A", "partitions_per_node": {"1": 1, "2": 2}}]);
    assert_eq!(found["uneven"], uneven);
    assert_eq!(found["faults"], json!([]));
    assert_eq!(found.get("advice"), None);
}

#[test]
fn a_balanced_cluster_ends_with_0_and_its_faults_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), BALANCED);
    let said = topology(&file, &[]).ok();
    assert!(
        said.starts_with("balanced: 2 nodes, 1 topic, 1 max group, 0 overlaps\n"),
        "{said}"
    );
    // With two replicas on two nodes either one takes over all, evenly.
    topology(&file, &["--faults", "1"]).ok();
    let done = topology(&file, &["--faults", "2", "--json"]);
    assert_eq!(done.code, Some(1), "{done:#?}");
    let found = object(&done);
    assert_eq!(found["balanced"], json!(true));
    assert_eq!(found["faults"][0]["lost"], json!([1, 2]));
    assert_eq!(
        found["faults"][0]["leaderless"],
        json!([{"topic": "A", "partitions": 2}])
    );
    assert_eq!(found["faults"][0]["peak"], Value::Null);
}

#[test]
fn what_cannot_be_read_ends_with_2_and_names_field_and_value() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.json");
    let said = topology(&missing, &[]).failed(2);
    assert!(said.contains("missing.json"), "{said}");
    let file = written(
        directory.path(),
        r#"{"nodes": [1], "topics": {"A": [[7]]}}"#,
    );
    let said = topology(&file, &["--json"]).failed(2);
    assert!(
        said.contains("topics.A[0]: node 7 is not in nodes"),
        "{said}"
    );
    let file = written(directory.path(), PROTOTYPE);
    let said = topology(&file, &["--rate", "C=1"]).failed(2);
    assert!(said.contains("\"C\" is not in topics"), "{said}");
    for arguments in [
        &["--faults", "3"][..],
        &["--rate", "A"],
        &["--plan", "best"],
    ] {
        topology(&file, arguments).failed(2);
    }
    node::run(airmail().args(["kafka", "topology"]), b"").failed(2);
}

#[test]
fn a_plan_is_what_kafka_takes_and_gives_what_was_promised() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), PROTOTYPE);
    let advice = object(&topology(&file, &["--advise", "--json"]))["advice"].clone();
    assert_eq!(advice["before"]["overlap_count"], json!(1));
    let plan = &advice["plans"][0];
    assert_eq!(plan["goal"], json!("no-overlap"));
    let printed: Value =
        serde_json::from_str(&topology(&file, &["--plan", "no-overlap"]).ok()).unwrap();
    assert_eq!(plan["reassignment"], printed);
    assert_eq!(printed["version"], json!(1));
    let mut cluster: Value = serde_json::from_str(PROTOTYPE).unwrap();
    for partition in printed["partitions"].as_array().unwrap() {
        let (topic, number) = (
            partition["topic"].as_str().unwrap(),
            partition["partition"].as_u64(),
        );
        let number = usize::try_from(number.unwrap()).unwrap();
        cluster["topics"][topic][number] = partition["replicas"].clone();
    }
    let file = written(directory.path(), &cluster.to_string());
    let after = object(&topology(&file, &["--json"]));
    assert_eq!(after["balanced"], json!(true));
    let groups = after["max_groups"].as_array().unwrap().len();
    assert_eq!(plan["after"]["max_groups"], json!(groups));
}

#[test]
fn many_overlaps_are_counted_and_listed_only_where_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    // Every set of 10 nodes: 1,023 groups, more pairs than are listed unasked.
    let topics = (1_u32..1 << 10).map(|mask| {
        let led = (0..10).filter(|node| mask & (1 << node) != 0);
        (
            mask.to_string(),
            led.map(|node| vec![node]).collect::<Vec<_>>(),
        )
    });
    let topics: std::collections::BTreeMap<_, _> = topics.collect();
    let nodes: Vec<u32> = (0..10).collect();
    let text = json!({"nodes": nodes, "topics": topics}).to_string();
    let file = written(directory.path(), &text);
    let count = 1_023 * 1_022 / 2 - (59_049 + 1 - 2_048) / 2;
    let counted = object(&topology(&file, &["--json"]));
    assert_eq!(counted["overlap_count"], json!(count));
    assert_eq!(counted["overlaps"], Value::Null);
    let listed = object(&topology(&file, &["--json", "--pairs"]));
    assert_eq!(listed["overlaps"].as_array().unwrap().len(), count);
}

#[test]
fn a_drawing_has_every_node_and_partition() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), PROTOTYPE);
    let picture = directory.path().join("cluster.svg");
    let done = topology(&file, &["--svg", picture.to_str().unwrap()]);
    assert_eq!(done.code, Some(1), "{done:#?}");
    let svg = fs::read_to_string(&picture).unwrap();
    for text in ["Node 1", "Node 3", "A 2", "B 1", "max group 1: B on 2, 3"] {
        assert!(svg.contains(text), "{text} is not in {svg}");
    }
}

#[test]
fn watching_tells_again_when_the_cluster_has_changed_and_not_before() {
    use std::io::{BufRead as _, BufReader};
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), PROTOTYPE);
    let mut command = airmail();
    command.args([
        "kafka",
        "topology",
        "--json",
        "--watch",
        "--interval",
        "100ms",
        "--file",
    ]);
    command.arg(&file).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let _waiting = waiting("two lines of a watch");
    assert_eq!(next()["balanced"], json!(false));
    // The same cluster in other words is told of no second time: the next line is of the other one.
    fs::write(&file, PROTOTYPE.replace(' ', "")).unwrap();
    let other = directory.path().join("other.json");
    fs::write(&other, BALANCED).unwrap();
    fs::rename(&other, &file).unwrap();
    assert_eq!(next()["balanced"], json!(true));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn no_broker_ends_with_2_and_says_where_it_was_looked_for() {
    let mut command = airmail();
    command.args(["kafka", "topology", "--bootstrap", "127.0.0.1:1"]);
    let said = node::run(&mut command, b"").failed(2);
    assert!(said.contains("--bootstrap 127.0.0.1:1"), "{said}");
    command.args(["--file", "cluster.json"]);
    node::run(&mut command, b"").failed(2);
}
