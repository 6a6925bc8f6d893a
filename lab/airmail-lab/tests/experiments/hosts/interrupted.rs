//! Experiments over several machines that are interrupted: their reports, and the processes that
//! are left.

use super::machines::{Machines, PROGRAM, THREE};
use airmail_testkit::node;
use airmail_testkit::waiting::waiting;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

/// A long experiment.
struct Long {
    name: &'static str,
    options: &'static str,
    /// Its output when it is well under way.
    under_way: &'static str,
    /// Text of its page if it was interrupted.
    cut: &'static str,
}

const RIVALS: Long = Long {
    name: "rivals",
    options: "--only e2e --duration 300ms --rounds 100000",
    under_way: "round 2",
    cut: "before all rounds were run",
};
const OVERLOAD: Long = Long {
    name: "overload",
    options: "--ratios 0.5 --seconds 0.4 --rounds 100000 --delivery-rate 0",
    under_way: "round 1",
    cut: "stopped before its end",
};
const CLIENTS: Long = Long {
    name: "clients",
    options: "--steps 3 --rounds 10000 --interval-ms 50",
    under_way: "clients stand",
    cut: "stopped before its end",
};
const FLOW: Long = Long {
    name: "flow",
    options: "--storages memory --messages 1000000000 --sweep 0s",
    under_way: "after Ctrl-C",
    cut: "stopped before all was measured",
};

/// One under way, and what it says from then on.
fn begin(machines: &Machines, long: &Long) -> (Child, impl Iterator<Item = String>) {
    let mut command = machines.experiment(PROGRAM, THREE, long.name);
    command.args(long.options.split_whitespace());
    // As at a terminal, where it leads a group of its own.
    command.process_group(0).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = said.map_while(Result::ok);
    let _waiting = waiting(format!("{}: {}", long.name, long.under_way));
    let mut before = Vec::new();
    let is_under_way = |line: &String| line.contains(long.under_way);
    while before.last().is_none_or(|line| !is_under_way(line)) {
        let line = said.next();
        before.push(line.unwrap_or_else(|| panic!("{} ended: {before:#?}", long.name)));
    }
    (child, said)
}

#[track_caller]
fn ctrl_c_leaves_a_report(long: &Long) {
    let machines = Machines::new();
    let (mut child, said) = begin(&machines, long);
    // A terminal signals the whole group.
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let _waiting = waiting(format!("the end of {} after Ctrl-C", long.name));
    let rest: Vec<String> = said.collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:?}");
    let page = machines.path("out").join(format!("{}.html", long.name));
    assert!(fs::read_to_string(page).unwrap().contains(long.cut));
    machines.wait_until_nothing_is_left();
}

#[test]
fn ctrl_c_ends_rivals_with_a_report_of_what_there_is() {
    ctrl_c_leaves_a_report(&RIVALS);
}

#[test]
fn ctrl_c_ends_an_overload_with_a_report_of_what_there_is() {
    ctrl_c_leaves_a_report(&OVERLOAD);
}

#[test]
fn ctrl_c_ends_clients_with_a_report_of_the_rounds_that_there_were() {
    ctrl_c_leaves_a_report(&CLIENTS);
}

#[test]
fn ctrl_c_ends_a_flow_with_a_report_of_what_there_is() {
    ctrl_c_leaves_a_report(&FLOW);
}

#[test]
fn an_experiment_that_is_killed_leaves_no_process_behind() {
    for long in [&RIVALS, &CLIENTS] {
        let machines = Machines::new();
        let (mut child, said) = begin(&machines, long);
        node::signal(&child, Signal::KILL);
        child.wait().unwrap();
        let _waiting = waiting(format!("the end of what {} started", long.name));
        machines.wait_until_nothing_is_left();
        // Whoever it started holds its standard error too, until the last of them has ended.
        said.for_each(drop);
    }
}
