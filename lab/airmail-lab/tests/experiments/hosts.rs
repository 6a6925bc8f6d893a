//! Experiments over several machines, with a command in ssh's place that stays on this one.

mod interrupted;
mod machines;
mod spread;

use airmail_testkit::node;
use machines::{Machines, PROGRAM, THREE};
use std::fs;
use std::process::Command;

/// Long enough for something to be delivered also where the machine stands still for a while.
const SHORT: [&str; 4] = ["--rounds", "1", "--duration", "3s"];

/// The experiment that needs nothing but nodes, over these machines.
fn rivals(machines: &Machines, program: &str, hosts: &str, more: &[&str]) -> Command {
    let mut command = machines.experiment(program, hosts, "rivals");
    command.args(["--only", "e2e"]).args(more);
    command
}

#[test]
fn an_experiment_over_three_machines_has_its_node_on_one_and_its_load_on_two() {
    let machines = Machines::new();
    let mut command = rivals(&machines, PROGRAM, THREE, &SHORT);
    let rows = node::run(command.arg("--json"), b"").ok();
    let rows = rows.lines().map(|row| serde_json::from_str(row).unwrap());
    let rows: Vec<serde_json::Value> = rows.collect();
    let own = rows.iter().filter(|row| row["system"] == "airmail");
    let own: Vec<_> = own.collect();
    assert_eq!(own.len(), 2, "{rows:?}");
    for row in own {
        assert_eq!(row["measured"], true, "{row}");
        assert!(row["median"].as_f64().unwrap() > 0.0, "{row}");
        for wrong in ["missing", "duplicates", "reordered"] {
            assert_eq!(row[wrong], 0, "{row}");
        }
    }
    // What could not be measured says why.
    for row in rows.iter().filter(|row| row["measured"] == false) {
        assert!(row["why"].as_str().is_some_and(|why| !why.is_empty()));
    }
    let reached = machines.reached();
    for (target, word) in [("me@one", "node"), ("me@two", "part"), ("me@three", "part")] {
        let there = reached.iter().filter(|line| line.starts_with(target));
        assert!(there.clone().count() > 0, "{reached:?}");
        let word = format!(" {word}");
        let only = |line: &String| line.ends_with(&word) || line.ends_with(" server");
        assert!(there.clone().all(only), "{reached:?}");
    }
    let page = fs::read_to_string(machines.path("out/rivals.html")).unwrap();
    assert!(page.contains("The node is on me@one") && page.contains("me@two, me@three"));
    machines.wait_until_nothing_is_left();
}

#[test]
fn a_line_of_hosts_that_means_nothing_is_told_with_its_field() {
    let machines = Machines::new();
    let mut command = rivals(&machines, PROGRAM, "node one\nserver two\n", &SHORT);
    let said = node::run(&mut command, b"").failed(2);
    assert!(said.contains("line 2: ROLE: server"), "{said}");
}

#[test]
fn a_machine_that_cannot_be_reached_is_named() {
    let machines = Machines::new();
    let mut command = rivals(&machines, "/nowhere/airmail", THREE, &SHORT);
    let done = node::run(&mut command, b"");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("me@one"), "{done:?}");
}

#[test]
fn a_scenario_runs_its_experiments_one_after_the_other() {
    let machines = Machines::new();
    fs::write(machines.path("hosts"), THREE).unwrap();
    let (ssh, data) = (machines.path("ssh"), machines.path("data"));
    let out = machines.path("out");
    let scenario = format!(
        "hosts = \"hosts\"\nssh = \"{ssh}\"\nremote-program = \"{program}\"\ndata = \"{data}\"\n\
         only = [\"e2e\"]\nrounds = 1\nduration = \"200ms\"\n\
         [[experiment]]\nname = \"rivals\"\nout = \"{out}/first\"\n\
         [[experiment]]\nname = \"rivals\"\nout = \"{out}/second\"\nonly = [\"publish\"]\n",
        ssh = ssh.display(),
        program = env!("CARGO_BIN_EXE_airmail-lab"),
        data = data.display(),
        out = out.display(),
    );
    fs::write(machines.path("scenario.toml"), scenario).unwrap();
    let mut command = crate::lab();
    command.args(["scenario"]);
    node::run(command.arg(machines.path("scenario.toml")), b"").ok();
    for (name, workload, other) in [("first", "e2e", "publish"), ("second", "publish", "e2e")] {
        let rows = fs::read_to_string(out.join(name).join("rivals.csv")).unwrap();
        assert!(rows.contains(workload) && !rows.contains(other), "{rows}");
    }
}
