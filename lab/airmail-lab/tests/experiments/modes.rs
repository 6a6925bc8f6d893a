//! `airmail-lab modes`, at tiny sizes: that clients of every node of every mode get all messages, and the
//! files that are left. What is asked of times is not asked here.

use airmail_testkit::node;
use serde_json::Value;

#[test]
fn clients_of_one_node_and_of_each_node_of_a_tree_get_every_message() {
    let out = tempfile::tempdir().unwrap();
    let mut command = crate::lab();
    command.args(["modes", "--steps", "9", "--reach", "4", "--times", "2"]);
    command.args(["--rounds", "5", "--interval-ms", "100", "--repeat", "1"]);
    command.args([
        "--timeout-ms",
        "60000",
        "--publishers",
        "6",
        "--seconds",
        "1",
    ]);
    command.args(["--rate", "500", "--quota", "0.9", "--json", "--out"]);
    let rows = node::run(command.arg(out.path()), b"").ok();
    let rows = rows.lines().map(|row| serde_json::from_str(row).unwrap());
    let rows: Vec<Value> = rows.collect();
    let named = |row: &Value| {
        let word = |key: &str| row[key].as_str().unwrap().to_owned();
        let count = row["clients"].as_u64().or(row["publishers"].as_u64());
        (word("series"), word("mode"), count.unwrap())
    };
    let expected = [
        ("clients", "single", 9),
        ("clients", "tree", 9),
        ("reach", "single", 4),
        ("reach", "tree", 8),
        ("publish", "single", 6),
        ("publish", "tree", 6),
    ];
    let expected = expected.map(|(series, mode, count)| (series.into(), mode.into(), count));
    assert_eq!(rows.iter().map(named).collect::<Vec<_>>(), expected);
    for row in &rows {
        let publish = row["series"] == "publish";
        let none = if publish {
            &["lost", "duplicates", "reordered"][..]
        } else {
            &["timeouts", "incomplete", "wrong"]
        };
        for key in none {
            assert_eq!(row[*key], 0, "{key}: {row}");
        }
        let measured = if publish { "p99_us" } else { "round_ms_mean" };
        assert!(row[measured].as_f64().unwrap() > 0.0, "{row}");
    }
    let nodes = std::fs::read_to_string(out.path().join("modes-nodes.csv")).unwrap();
    // Two steps, of one node and of four.
    assert_eq!(nodes.lines().count(), 1 + 2 * (1 + 4), "{nodes}");
    // Of nine clients, as far as they spread evenly.
    let leaf = |line: &&str| line.starts_with("9,2,") && line.contains(",leaf,right,");
    assert_eq!(nodes.lines().filter(leaf).count(), 1, "{nodes}");
    let page = std::fs::read_to_string(out.path().join("modes.html")).unwrap();
    // By a control group, or else the system did not let it.
    assert!(page.contains("0.9 of a core, period 10 ms: "));
    for name in [
        "modes.csv",
        "modes.json",
        "modes-clients.png",
        "modes-reach.svg",
        "modes-publish.png",
        "modes-rounds.csv",
    ] {
        assert!(out.path().join(name).exists(), "{name}");
    }
}

#[test]
fn a_judge_asks_for_a_mode_beside_a_single_node() {
    let out = tempfile::tempdir().unwrap();
    let mut command = crate::lab();
    command.args([
        "modes", "--mode", "tree", "--series", "clients", "--steps", "4",
    ]);
    command.args(["--rounds", "1", "--interval-ms", "100", "--repeat", "1"]);
    command.args(["--judge", "--out"]).arg(out.path());
    let said = node::run(&mut command, b"").failed(1);
    assert!(
        said.contains("NOT met") && said.contains("not measured"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_is_refused_by_the_option() {
    for (arguments, option) in [
        (["--quota", "0.05"], "--quota"),
        (["--seconds", "0"], "--seconds"),
        (["--steps", "3"], "--steps"),
        (["--mode", "ring"], "--mode"),
    ] {
        let mut command = crate::lab();
        let said = node::run(command.arg("modes").args(arguments), b"").failed(2);
        assert!(said.contains(option), "{arguments:?}: {said}");
    }
}
