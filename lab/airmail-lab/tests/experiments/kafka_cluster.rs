//! Tests that need a live cluster of Kafka's brokers: reassignments that are executed, producers of
//! stock Kafka with our partitioners, and the evaluation of these, at tiny sizes.

mod live;

use airmail_testkit::node::{self, airmail};
use airmail_testkit::waiting;
use live::{LiveCluster, servers};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Pause between two looks at something that a cluster does in its own time.
const BETWEEN: Duration = Duration::from_millis(200);
const POLICIES: [&str; 5] = [
    "PaperDefaultPartitioner",
    "ImprovedPartitioner",
    "NodePartitioner",
    "SqfPartitioner",
    "AdaptivePartitioner",
];

#[track_caller]
fn until(what: &str, holds: impl FnMut() -> Result<(), String>) {
    waiting::until(what, BETWEEN, holds);
}

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Has Kafka's own tools do what a plan says, and waits until it is done.
fn execute(cluster: &LiveCluster, plan: &str, directory: &Path) {
    let file = directory.join("plan.json");
    fs::write(&file, plan).unwrap();
    let of_cluster = ["--bootstrap-server", &cluster.bootstrap];
    let reassign = |step: &str| {
        let of_plan = ["--reassignment-json-file", file.to_str().unwrap(), step];
        let arguments = [&of_cluster[..], &of_plan].concat();
        cluster.tool("kafka", "reassign.ReassignPartitionsCommand", &arguments)
    };
    reassign("--execute").ok();
    until("the reassignment is completed", || {
        let said = reassign("--verify").ok();
        if said.contains("in progress") {
            Err(said)
        } else {
            Ok(())
        }
    });
    // Where only the order of replicas has changed, the new leader is to be elected.
    let election = ["--election-type", "preferred", "--all-topic-partitions"];
    let arguments = [&of_cluster[..], &election].concat();
    let elected = cluster.tool("kafka", "LeaderElectionCommand", &arguments);
    elected.ok();
}

#[test]
fn a_reassignment_that_is_proposed_gives_what_was_promised() {
    let Some(servers) = servers() else { return };
    let cluster = LiveCluster::start(&servers, 3);
    cluster.create("A", "1:2,2:3,2:1");
    cluster.create("B", "2:3,3:1");
    let before =
        r#"{"nodes": [1, 2, 3], "topics": {"A": [[1, 2], [2, 3], [2, 1]], "B": [[2, 3], [3, 1]]}}"#;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cluster.json");
    let of_file = |text: &str| {
        fs::write(&file, text).unwrap();
        let mut command = airmail();
        command.args(["kafka", "topology", "--json", "--file"]);
        object(&node::run(command.arg(&file), b"").stdout)
    };
    let live = || object(&cluster.topology(&["--json"]).stdout);
    // Leaders settle a moment after a topic is made.
    let as_made = of_file(before);
    until("the cluster is as it was made", || match live() {
        is if is == as_made => Ok(()),
        is => Err(is.to_string()),
    });
    assert_eq!(as_made["balanced"], json!(false));

    let advice = object(&cluster.topology(&["--advise", "--json"]).stdout)["advice"].clone();
    let plans = advice["plans"].as_array().unwrap();
    let plan = plans.iter().find(|plan| plan["goal"] == "no-overlap");
    let plan = plan.unwrap();
    let printed = cluster.topology(&["--plan", "no-overlap"]).ok();
    assert_eq!(object(&printed), plan["reassignment"]);
    execute(&cluster, &printed, directory.path());

    let mut promised = object(before);
    for moved in plan["reassignment"]["partitions"].as_array().unwrap() {
        let number = usize::try_from(moved["partition"].as_u64().unwrap()).unwrap();
        promised["topics"][moved["topic"].as_str().unwrap()][number] = moved["replicas"].clone();
    }
    let promised = of_file(&promised.to_string());
    until("the cluster is as promised", || match live() {
        is if is == promised => Ok(()),
        is => Err(is.to_string()),
    });
    assert_eq!(promised["balanced"], json!(true));
    let groups = promised["max_groups"].as_array().unwrap().len();
    assert_eq!(plan["after"]["max_groups"], json!(groups));
    assert_eq!(plan["after"]["overlap_count"], promised["overlap_count"]);
    assert_eq!(cluster.topology(&[]).code, Some(0));
}

#[test]
fn the_stock_performance_tool_takes_every_policy_with_clients_3_and_4() {
    let Some(servers) = servers() else { return };
    let cluster = LiveCluster::start(&servers, 2);
    let records = 6_000;
    for kafka in ["kafka-3", "kafka"] {
        for policy in POLICIES {
            let topic = format!("{kafka}-{policy}");
            cluster.create(&topic, "1:2,2:1,2:1");
            let (count, bootstrap) = (records.to_string(), &cluster.bootstrap);
            let properties = [
                format!("bootstrap.servers={bootstrap}"),
                format!("partitioner.class=airmail.kafka.{policy}"),
                "acks=all".to_owned(),
                "interceptor.classes=airmail.kafka.FlightInterceptor".to_owned(),
            ];
            let mut arguments = vec!["--topic", &topic, "--num-records", &count];
            arguments.extend(["--record-size", "100", "--throughput", "-1"]);
            arguments.push("--producer-props");
            // The interceptor is the adaptive one's alone.
            let own = if policy == "AdaptivePartitioner" {
                4
            } else {
                3
            };
            arguments.extend(properties.iter().take(own).map(String::as_str));
            let said = cluster.tool(kafka, "ProducerPerformance", &arguments).ok();
            assert!(said.contains("6000 records sent"), "{topic}: {said}");
            let stored = cluster.records(&topic);
            assert_eq!(stored.iter().sum::<u64>(), records, "{topic}: {stored:?}");
            let by_turns = match policy {
                "PaperDefaultPartitioner" | "ImprovedPartitioner" => vec![2_000, 2_000, 2_000],
                "NodePartitioner" | "SqfPartitioner" => vec![3_000, 1_500, 1_500],
                // A batch at a time, to whoever can take it.
                _ => continue,
            };
            for (is, shall) in stored.iter().zip(by_turns) {
                assert!(is.abs_diff(shall) <= 2, "{topic}: {stored:?}");
            }
        }
    }
}

/// The rows of `airmail-lab partitioners`, which must end with 0.
fn evaluate(arguments: &[&str], out: &Path) -> Option<Vec<Value>> {
    let servers = servers()?;
    let mut command = crate::lab();
    // Not --quick, which ends when its time is over.
    command.args(["partitioners", "--json"]);
    command.arg("--servers").arg(servers);
    command.arg("--out").arg(out).args(arguments);
    let lines = node::run(&mut command, b"").ok();
    Some(lines.lines().map(object).collect())
}

#[test]
fn nodes_of_a_live_cluster_get_what_section_6_4_says() {
    let out = tempfile::tempdir().unwrap();
    let Some(rows) = evaluate(&["--parts", "nodes"], out.path()) else {
        return;
    };
    let found = |policy: &str, shared: bool| {
        let mut rows = rows.iter();
        let row = rows.find(|row| row["policy"] == policy && row["shared"] == shared);
        row.unwrap_or_else(|| panic!("{policy}, {shared}: {rows:?}"))
            .clone()
    };
    let (half, third) = (json!([30_000.0, 50_000.0, 20_000.0]), 100_000.0 / 3.0);
    let by_partition = json!([20_000.0, 60_000.0, 20_000.0]);
    for (policy, shared, expected) in [
        ("default", false, &by_partition),
        ("improved", false, &by_partition),
        ("node", false, &half),
        ("sqf", false, &half),
        ("sqf", true, &json!([third, third, third])),
    ] {
        let row = found(policy, shared);
        assert_eq!(row["expected"], *expected, "{row}");
        assert!(row["deviation"].as_f64().unwrap() <= 0.01, "{row}");
    }
    for policy in ["built-in", "adaptive"] {
        let row = found(policy, false);
        let records = row["records"].as_array().unwrap().iter();
        let sum: f64 = records.filter_map(Value::as_f64).sum();
        assert!((sum - 100_000.0).abs() < 0.5, "{row}");
    }
}

#[test]
fn an_evaluation_stands_beside_the_papers_tables() {
    let out = tempfile::tempdir().unwrap();
    let arguments = [
        "--parts=tables,contention",
        "--topics=U2",
        "--acks=all",
        "--policies=default,node",
        "--limit=none",
        "--records=4000",
        "--threads=4",
        "--rounds=2",
    ];
    let Some(rows) = evaluate(&arguments, out.path()) else {
        return;
    };
    let of = |part: &str| {
        rows.iter()
            .filter(|row| row["part"] == part)
            .collect::<Vec<_>>()
    };
    let tables = of("tables");
    let named: Vec<&Value> = tables.iter().map(|row| &row["policy"]).collect();
    assert_eq!(named, ["default", "node"]);
    for (row, table) in tables.iter().zip(["7.5", "7.11"]) {
        assert_eq!(row["paper_table"], table);
        assert_eq!((&row["topic"], &row["acks"]), (&json!("U2"), &json!("all")));
        assert_eq!((&row["rounds"], &row["failed"]), (&json!(2), &json!(0)));
        for key in [
            "throughput_mb_per_s",
            "mean_ms",
            "p999_ms",
            "io_time_ns",
            "ttc_s",
        ] {
            assert!(row[key].as_f64().unwrap() > 0.0, "{key}: {row}");
            assert!(row[format!("{key}_low")].is_f64(), "{key}: {row}");
        }
        let (mean, most) = (row["p50_ms"].as_f64(), row["max_ms"].as_f64());
        assert!(mean <= most, "{row}");
    }
    // By partition and by node, as the cluster counts them.
    let part = |row: &Value| row["part_1"].as_f64().unwrap();
    assert!((part(tables[0]) - 1.0 / 3.0).abs() < 0.01, "{}", tables[0]);
    assert!((part(tables[1]) - 0.5).abs() < 0.01, "{}", tables[1]);
    for row in of("contention") {
        assert_eq!(row["ours"], 0, "{row}");
    }
    let page = fs::read_to_string(out.path().join("partitioners.html")).unwrap();
    for heading in [
        "Table 7.5: paper's default, U2, acks=all",
        "Table 7.11: Node, U2, acks=all",
        "Where the paper's own policies lost",
        "Percentiles of the paper that cannot be",
        "4 threads on one producer",
    ] {
        assert!(page.contains(heading), "{heading}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_refused_with_what_to_do() {
    let nowhere = tempfile::tempdir().unwrap();
    let evaluate = |arguments: &[&str]| {
        let mut command = crate::lab();
        command.args(["partitioners", "--servers"]);
        command.arg(nowhere.path()).args(arguments);
        node::run(&mut command, b"")
    };
    let said = evaluate(&[]).stderr;
    assert!(said.contains("cargo xtask servers"), "{said}");
    for (arguments, word) in [
        (&["--cores", "0.05"][..], "--cores"),
        (&["--line", "10"], "--line"),
        (&["--hosts", "hosts.txt"], "--hosts"),
        (&["--policies", "best"], "best"),
    ] {
        let said = evaluate(arguments).failed(2);
        assert!(said.contains(word), "{said}");
    }
}
