//! Experiments over several machines, with a command in ssh's place that stays on this one; and what
//! is left when they are interrupted.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::node::{self, airmail};

/// How often something is looked for that must come to be, and the wait between.
const LOOKS: u32 = 3000;
const BETWEEN: Duration = Duration::from_millis(10);

/// A directory with a command that takes ssh's place, writes down whom it was to reach, and starts the
/// command here as a shell there would.
struct Machines {
    directory: tempfile::TempDir,
}

impl Machines {
    fn new() -> Machines {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ssh");
        let log = directory.path().join("reached");
        let log = log.display();
        fs::write(
            &path,
            format!("#!/bin/sh\necho \"$1 $2\" >> '{log}'\nexec sh -c \"$2\"\n"),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(directory.path().join("data")).unwrap();
        Machines { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The experiment that needs nothing but nodes, in one short round over these machines.
    fn experiment(&self, hosts: &str, more: &[&str]) -> Command {
        self.experiment_by(env!("CARGO_BIN_EXE_airmail"), hosts, more)
    }

    fn experiment_by(&self, program: &str, hosts: &str, more: &[&str]) -> Command {
        fs::write(self.path("hosts"), hosts).unwrap();
        let mut command = airmail();
        command.args(["bench", "experiment", "rivals", "--only", "e2e"]);
        command.arg("--hosts").arg(self.path("hosts"));
        command.arg("--ssh").arg(self.path("ssh"));
        command.args(["--remote-program", program]);
        command.arg("--out").arg(self.path("out"));
        command.arg("--data").arg(self.path("data"));
        command.args(more);
        command
    }

    /// Whom the command in ssh's place was to reach, with what it was to start there.
    fn reached(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("reached")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until no node has data any more: each puts its own away when it ends.
    #[track_caller]
    fn wait_until_nothing_is_left(&self) {
        for _ in 0..LOOKS {
            if fs::read_dir(self.path("data")).unwrap().next().is_none() {
                return;
            }
            thread::sleep(BETWEEN);
        }
        panic!("a node has not ended");
    }
}

const THREE: &str = "node me@one 127.0.0.1\nload me@two\nload me@three # beside it\n";
const SHORT: [&str; 4] = ["--rounds", "1", "--duration", "200ms"];

#[test]
fn an_experiment_over_three_machines_has_its_node_on_one_and_its_load_on_two() {
    let machines = Machines::new();
    let mut command = machines.experiment(THREE, &SHORT);
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
        let word = format!("bench {word}");
        let only = |line: &String| line.ends_with(&word) || line.ends_with("bench server");
        assert!(there.clone().all(only), "{reached:?}");
    }
    let page = fs::read_to_string(machines.path("out/rivals.html")).unwrap();
    assert!(page.contains("The node is on me@one") && page.contains("me@two, me@three"));
    machines.wait_until_nothing_is_left();
}

#[test]
fn a_line_of_hosts_that_means_nothing_is_told_with_its_field() {
    let machines = Machines::new();
    let mut command = machines.experiment("node one\nserver two\n", &SHORT);
    let said = node::run(&mut command, b"").failed(2);
    assert!(said.contains("line 2: ROLE: server"), "{said}");
}

#[test]
fn a_machine_that_cannot_be_reached_is_named() {
    let machines = Machines::new();
    let mut command = machines.experiment_by("/nowhere/airmail", THREE, &SHORT);
    let done = node::run(&mut command, b"");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("me@one"), "{done:?}");
}

/// A long experiment under way, and what it says.
fn begin(machines: &Machines) -> (Child, impl Iterator<Item = String>) {
    let mut command = machines.experiment(THREE, &["--duration", "300ms", "--rounds", "100000"]);
    // As at a terminal, where it leads a group of its own.
    command.process_group(0).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    (child, said.map_while(Result::ok))
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn ctrl_c_ends_an_experiment_with_a_report_of_what_there_is() {
    let machines = Machines::new();
    let (mut child, mut said) = begin(&machines);
    said.find(|line| line.contains("round 2")).unwrap();
    // A terminal signals the whole group.
    kill_process_group(pid(&child), Signal::INT).unwrap();
    let rest: Vec<String> = said.collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:?}");
    let page = fs::read_to_string(machines.path("out/rivals.html")).unwrap();
    assert!(page.contains("before all rounds were run"));
    machines.wait_until_nothing_is_left();
}

#[test]
fn an_experiment_that_is_killed_leaves_no_process_behind() {
    let machines = Machines::new();
    let (mut child, mut said) = begin(&machines);
    said.find(|line| line.contains("round 1")).unwrap();
    node::signal(&child, Signal::KILL);
    child.wait().unwrap();
    machines.wait_until_nothing_is_left();
    // Whoever it started holds its standard error too, until the last of them has ended.
    said.for_each(drop);
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
        program = env!("CARGO_BIN_EXE_airmail"),
        data = data.display(),
        out = out.display(),
    );
    fs::write(machines.path("scenario.toml"), scenario).unwrap();
    let mut command = airmail();
    command.args(["bench", "scenario"]);
    node::run(command.arg(machines.path("scenario.toml")), b"").ok();
    for (name, workload, other) in [("first", "e2e", "publish"), ("second", "publish", "e2e")] {
        let rows = fs::read_to_string(out.join(name).join("rivals.csv")).unwrap();
        assert!(rows.contains(workload) && !rows.contains(other), "{rows}");
    }
}
