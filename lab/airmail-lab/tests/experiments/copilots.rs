//! `airmail-lab copilots`, at tiny sizes: what each link carries, and the files that are left.

use airmail_testkit::node;
use serde_json::Value;

#[test]
fn each_link_carries_what_is_wanted_behind_it_once() {
    let out = tempfile::tempdir().unwrap();
    let mut command = crate::lab();
    command.args(["copilots", "--copilots", "1,2", "--subscribers", "4"]);
    command.args(["--topics", "8", "--size", "1000", "--log", "memory:"]);
    command.args(["--seconds", "1", "--rounds", "1", "--quota", "0.9"]);
    command.args(["--judge", "--json", "--out"]).arg(out.path());
    let done = node::run(&mut command, b"");
    let said = done.stderr.clone();
    let rows = done.ok();
    let rows: Vec<Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let named = |row: &Value| {
        let series = row["series"].as_str().unwrap().to_owned();
        (series, row["copilots"].as_u64().unwrap())
    };
    let expected = [("divided", 1), ("divided", 2), ("shared", 1), ("shared", 2)];
    let expected = expected.map(|(series, copilots)| (series.to_owned(), copilots));
    assert_eq!(rows.iter().map(named).collect::<Vec<_>>(), expected);
    for row in &rows {
        for key in ["faults", "lost", "duplicates", "reordered"] {
            assert_eq!(row[key], 0, "{key}: {row}");
        }
        let figure = |key: &str| row[key].as_f64().unwrap();
        assert!(
            figure("messages_per_s") > 0.0 && figure("p99_us") > 0.0,
            "{row}"
        );
        // Not less either: what is wanted has to come.
        let (series, copilots) = named(row);
        let wanted = if series == "shared" {
            1.0
        } else {
            1.0 / copilots as f64
        };
        assert!(figure("link_bytes_per_published") >= wanted, "{row}");
        assert!(
            figure("tower_sent_per_published") >= wanted * copilots as f64,
            "{row}"
        );
    }
    assert!(
        said.contains("each link carried what was wanted behind it, once"),
        "{said}"
    );
    let links = std::fs::read_to_string(out.path().join("copilots-links.csv")).unwrap();
    // Two series, two paces, and three copilots in each.
    assert_eq!(links.lines().count(), 1 + 2 * 2 * 3, "{links}");
    let page = std::fs::read_to_string(out.path().join("copilots.html")).unwrap();
    // By a control group, or else the system did not let it.
    assert!(page.contains("0.9 of a core, period 10 ms: "));
    for name in [
        "copilots.csv",
        "copilots-throughput.png",
        "copilots-links.svg",
    ] {
        assert!(out.path().join(name).exists(), "{name}");
    }
}

#[test]
fn subscribers_that_do_not_spread_evenly_are_refused_by_the_option() {
    for (arguments, option) in [
        (["--copilots", "3"], "--copilots: 3"),
        (["--topics", "20"], "--topics: 20"),
        (["--quota", "0.05"], "--quota"),
        (["--seconds", "0"], "--seconds"),
    ] {
        let mut command = crate::lab();
        let said = node::run(command.arg("copilots").args(arguments), b"").failed(2);
        assert!(said.contains(option), "{arguments:?}: {said}");
    }
}
