//! `airmail bench` measures, and counts what is missing, doubled or out of order.

use airmail_testkit::node::{self, Done, Node, airmail};

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

fn bench(arguments: &[&str]) -> Done {
    node::run(airmail().arg("bench").args(arguments), b"")
}

#[test]
fn bench_latency_keeps_to_its_timetable() {
    let run = bench(&["latency", "--messages", "300", "--rate", "1000", "--json"]);
    let report = report(&run.ok());
    assert_eq!(report["sent"], 300);
    assert_eq!(report["offered_per_s"], 1000.0);
    assert!(report["seconds"].as_f64().unwrap() >= 0.299);
    assert!(report["late_us"]["max"].is_u64());
}

#[test]
fn bench_fanout_delivers_to_every_subscriber() {
    let arguments = ["--messages", "300", "--subscribers", "5", "--json"];
    let report = report(&bench(&[&["fanout"], &arguments[..]].concat()).ok());
    assert_eq!(report["acknowledged"], 300);
    assert_eq!(report["delivered"], 1500);
}

#[test]
fn bench_sub_counts_what_bench_pub_has_stored() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let url = format!("airmail://{}", node.grpc);
    let common = [
        "--messages",
        "700",
        "--name",
        "pair",
        "--json",
        "--target",
        &url,
    ];
    let published = report(&bench(&[&["pub", "--unbatched"], &common[..]].concat()).ok());
    assert_eq!(published["acknowledged"], 700);
    assert_eq!(published["delivered"], 0);
    let received = report(&bench(&[&["sub", "--from-earliest"], &common[..]].concat()).ok());
    assert_eq!(received["delivered"], 700);
    for key in ["missing", "duplicates", "reordered", "strange"] {
        assert_eq!(received[key], 0, "{key}");
    }
}

#[test]
fn bench_of_several_processes_adds_up() {
    let spread = [
        "--publishers",
        "2",
        "--subscribers",
        "3",
        "--processes",
        "2",
    ];
    let common = ["e2e", "--messages", "1000", "--in-flight", "100", "--json"];
    let report = report(&bench(&[&common[..], &spread[..]].concat()).ok());
    assert_eq!(report["acknowledged"], 1000);
    assert_eq!(report["delivered"], 3000);
}

#[test]
fn bench_writes_its_course_as_a_table_and_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let (csv, html) = (directory.path().join("csv"), directory.path().join("html"));
    let mut command = airmail();
    command.args(["bench", "e2e", "--duration", "3s", "--warmup", "200ms"]);
    command.args(["--in-flight", "1", "--durability", "memory"]);
    command.arg("--csv").arg(&csv).arg("--html").arg(&html);
    node::run(&mut command, b"").ok();
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(
        csv.starts_with("seconds,") && csv.lines().count() > 2,
        "{csv}"
    );
    let html = std::fs::read_to_string(html).unwrap();
    assert_eq!(html.matches("</svg>").count(), 3);
}

#[test]
fn bench_tells_what_a_node_takes_for_topics_and_connections() {
    let few = [
        "--topics",
        "50",
        "--subscriptions",
        "50",
        "--producers",
        "2",
    ];
    let topics = report(&bench(&[&["topics", "--json"], &few[..]].concat()).ok());
    for (key, count) in [("topics", 50), ("subscriptions", 50), ("producers", 2)] {
        assert_eq!(topics[key]["count"], count, "{key}");
        assert!(topics[key]["before_bytes"].as_u64().unwrap() > 0, "{key}");
    }
    let few = [
        "--connections",
        "3",
        "--streams",
        "2",
        "--stalled",
        "1",
        "--json",
    ];
    let clients = report(&bench(&[&["clients"], &few[..]].concat()).ok());
    assert_eq!(clients["connections"]["count"], 3);
    assert_eq!(clients["streams"]["count"], 6);
    assert_eq!(clients["stalled"]["count"], 1);
}

#[test]
fn bench_disk_tells_what_a_sync_takes() {
    let report = report(&bench(&["disk", "--duration", "1s", "--json"]).ok());
    assert!(report["writes"].as_u64().unwrap() > 0);
    assert!(report["latency_us"]["p50"].as_u64() <= report["latency_us"]["p99"].as_u64());
}

#[test]
fn bench_filters_finds_what_a_loop_finds_and_tells_how_fast() {
    let directory = tempfile::tempdir().unwrap();
    let csv = directory.path().join("csv");
    let amounts = ["--filters", "300", "--attributes", "3", "--interval", "20%"];
    let rounds = ["--rounds", "1", "--turn", "5ms"];
    let files = ["--json", "--csv", csv.to_str().unwrap()];
    let run = bench(&[&["filters"], &amounts[..], &rounds, &files].concat());
    let report = report(&run.ok());
    let runs = report["runs"].as_array().unwrap();
    let kinds: Vec<_> = runs
        .iter()
        .map(|run| run["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["intervals", "equalities", "skewed", "many_names"]);
    for run in runs {
        assert_eq!(run["sound"], true, "{run}");
        assert!(
            run["messages_per_s"]["median"].as_f64().unwrap() > 0.0,
            "{run}"
        );
    }
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 5);
}

#[test]
fn bench_refuses_settings_by_name() {
    for (arguments, name) in [
        (["e2e", "--size", "8"], "--size"),
        (["e2e", "--target", "http://x"], "--target"),
        (["latency", "--rate", "0"], "--rate"),
        (["late", "--size", "7"], "--size"),
        (["late", "--readers", "0"], "--readers"),
        (["filters", "--interval", "0%"], "--interval"),
    ] {
        let said = bench(&arguments).failed(2);
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn bench_late_has_everybody_catch_up_and_tells_how_often_the_log_was_read() {
    let directory = tempfile::tempdir().unwrap();
    let (csv, html) = (directory.path().join("csv"), directory.path().join("html"));
    let paths = [csv.to_str().unwrap(), html.to_str().unwrap()];
    let amounts = ["--backlog", "2MiB", "--subscribers", "100", "--rounds", "1"];
    let further = ["--readers", "1,2", "--apart", "--json"];
    let files = ["--csv", paths[0], "--html", paths[1]];
    let run = bench(&[&["late"], &amounts[..], &further, &files].concat());
    let report = report(&run.ok());
    let runs = report["runs"].as_array().unwrap();
    let readers: Vec<_> = runs.iter().map(|run| run["readers"].as_u64()).collect();
    assert_eq!(readers, [Some(1), Some(2)]);
    for run in runs {
        assert_eq!(run["sound"], true, "{run}");
        assert_eq!(run["caught_up"]["complete"], 100, "{run}");
        assert!(run["caught_up"]["messages"].as_u64().unwrap() > 0, "{run}");
        // Of a node in two processes, each has used something.
        assert!(run["tower_cpu_us"].is_u64(), "{run}");
    }
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 3);
    assert!(std::fs::read_to_string(html).unwrap().contains("<svg"));
}

#[test]
fn bench_isolation_measures_others_beside_each_subscriber_and_beside_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let (csv, html) = (directory.path().join("csv"), directory.path().join("html"));
    let paths = [csv.to_str().unwrap(), html.to_str().unwrap()];
    // Each of six times so long that something comes, also where the machine stands still for a while.
    let arguments = ["--backlog", "1MiB", "--rounds", "1", "--duration", "2s"];
    let further = ["--warmup", "0s", "--rate", "2000", "--json"];
    let files = ["--csv", paths[0], "--html", paths[1]];
    let run = bench(&[&["isolation"], &arguments[..], &further, &files].concat());
    let report = report(&run.ok());
    assert_eq!(report["offered_per_s"], 2000.0);
    let phases = report["phases"].as_array().unwrap();
    let beside = |phase: &serde_json::Value| phase["beside"].as_str().map(str::to_owned);
    let names: Vec<_> = phases.iter().filter_map(beside).collect();
    assert_eq!(names, ["stopped", "slow", "earliest", "earliest"]);
    for phase in phases {
        assert_eq!(phase["sound"], true, "{phase}");
        assert!(phase["delivered_per_s"].as_f64().unwrap() > 0.0, "{phase}");
    }
    // The one that begins at the earliest message had what was stored before.
    let taken = |phase: &serde_json::Value| phase["taken"]["messages"].as_u64();
    assert_eq!(taken(&phases[1]), Some(0));
    assert!(taken(&phases[3]).unwrap() > 0);
    assert_eq!(report["ratios"].as_array().unwrap().len(), 4);
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 7);
    assert!(std::fs::read_to_string(html).unwrap().contains("<svg"));
}
