//! Report of the findings: what was done, and all tables, figures and rows.

use super::args::{ModesArgs, PublishArgs, RoundsArgs, Series};
use super::groups::{Group, groups, loads};
use super::rows::{case_row, group_row, load_row, node_rows, round_rows, run_node_rows, run_row};
use super::{Found, ROUND_PUBLISHERS, tables, verdict};
use crate::hosts::Hosts;
use crate::rounds::MESSAGES;
use airmail_experiments::results::{Findings, machine};

/// Everything.
pub(super) fn findings(args: &ModesArgs, found: &Found, hosts: &Hosts) -> Findings {
    let groups = groups(args, found);
    let loads = loads(args, found);
    let rows = groups.iter().map(group_row);
    let criteria = verdict::criteria(args, found);
    let mut sections = Vec::new();
    if !criteria.is_empty() {
        sections.push(tables::verdict(&criteria));
    }
    for series in [Series::Clients, Series::Reach] {
        let of_series: Vec<&Group<'_>> = groups
            .iter()
            .filter(|group| group.series == series)
            .collect();
        if !of_series.is_empty() {
            sections.push(tables::rounds(series, &of_series));
            sections.push(tables::nodes(series, &of_series));
        }
    }
    if !loads.is_empty() {
        sections.push(tables::publish(&loads));
    }
    let mut findings = Findings {
        name: "modes".to_owned(),
        title: "Modes: one node, and several as one service".to_owned(),
        about: about(args, found, hosts),
        sections,
        rows: rows.chain(loads.iter().map(load_row)).collect(),
        ..Findings::default()
    };
    let cases = found.cases.iter();
    let courses = [
        ("repeats", cases.clone().map(case_row).collect()),
        ("nodes", cases.clone().flat_map(node_rows).collect()),
        ("rounds", cases.flat_map(round_rows).collect()),
        ("publish", found.runs.iter().map(run_row).collect()),
        (
            "publish-nodes",
            found.runs.iter().flat_map(run_node_rows).collect(),
        ),
    ];
    for (name, rows) in courses {
        findings.courses.insert(name.to_owned(), rows);
    }
    findings
}

fn about(args: &ModesArgs, found: &Found, hosts: &Hosts) -> Vec<String> {
    let RoundsArgs {
        interval_ms,
        timeout_ms,
        ..
    } = &args.rounds;
    let PublishArgs {
        subscribers, rate, ..
    } = &args.publish;
    let (size, rounds, repeat) = (args.size, args.rounds(), args.repeat());
    let mut about = vec![
        args.mode.iter().map(|mode| mode.about()).collect::<Vec<_>>().join(" "),
        format!(
            "Rounds: each client has a subscription to one topic, from now; each round is {MESSAGES} messages of \
             {size} bytes, {rounds} rounds, one every {interval_ms} ms. A round takes from just before its first \
             publish until the client has its last message; more than {timeout_ms} ms is a time-out. All rounds \
             count. Clients are spread evenly over the nodes, and so are {ROUND_PUBLISHERS} publishers, which take \
             turns, in each mode as many."
        ),
        format!(
            "Publishers: each has a connection of its own, all have one topic with {subscribers} subscribers; both \
             are spread evenly over the nodes, where there are fewer of them than nodes over those that are farthest \
             from the root. Throughput: {} s as fast as there is room, with publishers a bounded number of \
             messages ahead of the slowest subscriber. Latency: from when a message was due to its delivery, at \
             {rate} messages a second of all publishers together.",
            args.seconds()
        ),
        format!(
            "Storage in memory, and new nodes for each case. {repeat} repetitions, in which modes follow one \
             another at each step, the other way round in every second. Figures are medians, with the least and the \
             greatest; ratios are within repetitions."
        ),
        hosts.paragraph(),
        machine(),
        "The processes of clients and publishers are not held. The paper held each node to half a core, in \
         containers of one machine, and says neither the size of its messages nor how fast they were published; its \
         clients were goroutines of one process. Of its tree the text gives no number: slightly faster than the \
         single machine, with fewer time-outs."
            .to_owned(),
    ];
    let nodes = found.cases.iter().flat_map(|case| &case.outcome.nodes);
    let of_rounds = nodes.flat_map(|node| &node.means);
    let of_runs = found.runs.iter().flat_map(|run| &run.means);
    let mut means: Vec<&str> = of_rounds.chain(of_runs).map(String::as_str).collect();
    means.sort_unstable();
    means.dedup();
    about.push(match &*means {
        [] => "Nodes were not held.".to_owned(),
        means => format!("Each node: {}.", means.join("; ")),
    });
    let stopped = hosts.stop().is_set();
    about.extend(stopped.then(|| "It was stopped before its end.".to_owned()));
    about
}
