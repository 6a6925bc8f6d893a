//! The findings for people: at most a number of lines of each kind, and the number of those left
//! out.

use super::findings::Findings;
use airmail_topology::{Advice, Cluster, Fault, NodeSet, PartitionIndex, Place, Plan, Summary};
use std::io::{self, Write};

/// Lines of each kind, where not all are asked for.
const LINES_MAX: usize = 20;
/// Names or nodes on a line.
const NAMES_MAX: usize = 12;

pub(super) fn write(out: &mut impl Write, findings: &Findings<'_>) -> io::Result<()> {
    let cluster = findings.cluster;
    let verdict = match (findings.is_balanced(), findings.is_empty()) {
        (true, true) => "balanced",
        (true, false) => "balanced, but not after every fault",
        (false, _) => "not balanced",
    };
    writeln!(
        out,
        "{verdict}: {}, {}, {}, {}",
        counted(cluster.nodes().len() as u64, "node"),
        counted(cluster.topics().len() as u64, "topic"),
        counted(findings.groups.iter().len() as u64, "max group"),
        counted(findings.overlaps, "overlap"),
    )?;
    let groups = findings.groups.iter().enumerate().map(|(index, group)| {
        let topics = names(cluster, group.topics.iter().copied());
        format!(
            "max group {index}: {topics} on {}",
            ids(cluster, &group.nodes)
        )
    });
    section(out, groups, LINES_MAX)?;
    sets(out, findings)?;
    replicas(out, findings)?;
    loads(out, findings)?;
    faults(out, findings)?;
    match &findings.advice {
        Some(advice) => advise(out, cluster, advice),
        None => Ok(()),
    }
}

fn sets(out: &mut impl Write, findings: &Findings<'_>) -> io::Result<()> {
    let cluster = findings.cluster;
    let overlaps = findings.overlapping();
    let nodes = overlaps.nodes().map(|(node, groups)| {
        let listed = joined(groups.iter().map(usize::to_string));
        format!("overlap on node {}: max groups {listed}", cluster.id(node))
    });
    section(out, nodes, LINES_MAX)?;
    let pairs = overlaps.pairs().map(|pair| {
        let [one, other] = pair.groups;
        format!(
            "max groups {one} and {other} overlap on {}",
            ids(cluster, &pair.nodes)
        )
    });
    if findings.lists_all {
        section(out, pairs, usize::MAX)?;
    } else {
        let all = usize::try_from(findings.overlaps).unwrap_or(usize::MAX);
        section_of(out, pairs, all, LINES_MAX)?;
    }
    let uneven = findings.uneven.iter().map(|uneven| {
        let counts = uneven.leaders.counts().iter();
        let counts = counts.map(|(node, count)| format!("{count} on {}", cluster.id(*node)));
        let topic = &cluster.topics()[uneven.topic].name;
        format!(
            "uneven: {topic} (max group {}): {}",
            uneven.group,
            joined(counts)
        )
    });
    section(out, uneven, LINES_MAX)
}

fn replicas(out: &mut impl Write, findings: &Findings<'_>) -> io::Result<()> {
    let cluster = findings.cluster;
    let found = &findings.replicas;
    let not_preferred = found.not_preferred.iter().map(|(index, leader)| {
        let partition = partition(cluster, *index);
        format!(
            "not led by its preferred replica: {partition}, by {}",
            cluster.id(*leader)
        )
    });
    section(out, not_preferred, LINES_MAX)?;
    let under = found.under_replicated.iter().map(|(index, missing)| {
        format!(
            "under-replicated: {} on {}",
            partition(cluster, *index),
            list(cluster, missing)
        )
    });
    section(out, under, LINES_MAX)?;
    let leaderless = found.leaderless.iter();
    let leaderless =
        leaderless.map(|index| format!("led by nobody: {}", partition(cluster, *index)));
    section(out, leaderless, LINES_MAX)
}

fn loads(out: &mut impl Write, findings: &Findings<'_>) -> io::Result<()> {
    let cluster = findings.cluster;
    let [partitions, nodes] = findings.loads.each_ref().map(|load| load.by_node());
    let rows = cluster.nodes().iter().zip(partitions.iter().zip(nodes));
    let rows = rows.map(|(node, (partitions, nodes))| {
        format!("{:>8} {partitions:>20.3} {nodes:>20.3}", node.to_string())
    });
    let head = format!(
        "{:>8} {:>20} {:>20}",
        "load of", "by partitions", "by nodes"
    );
    let lines = [head].into_iter().chain(rows);
    section(out, lines, LINES_MAX + 1)
}

fn faults(out: &mut impl Write, findings: &Findings<'_>) -> io::Result<()> {
    let cluster = findings.cluster;
    let faults = &findings.faults;
    let worst = faults.worst.iter().map(|fault| of_fault(cluster, fault));
    section(out, worst, LINES_MAX)?;
    match faults.possible {
        0 => Ok(()),
        possible => writeln!(
            out,
            "{} looked at, {} told, {} passed over as less bad",
            counted(possible, "fault"),
            faults.worst.len(),
            faults.passed_over
        ),
    }
}

fn of_fault(cluster: &Cluster, fault: &Fault) -> String {
    let mut line = format!(
        "if {} is lost:",
        list(cluster, &fault.lost).replace(", ", " and ")
    );
    if fault.lost.len() > 1 {
        line = line.replace(" is lost", " are lost");
    }
    match fault.peak {
        Some((node, load)) => {
            let (node, imbalance) = (cluster.id(node), fault.imbalance);
            line += &format!(" node {node} has {load:.3}, {imbalance:.2} times the mean");
        }
        None => line += " no node is left",
    }
    let leaderless: u32 = fault.leaderless.iter().map(|(_, count)| count).sum();
    if leaderless > 0 {
        let topics = names(cluster, fault.leaderless.iter().map(|(topic, _)| *topic));
        let partitions = counted(leaderless.into(), "partition");
        line += &format!("; {partitions} of {topics} led by nobody");
    }
    if !fault.uneven.is_empty() {
        line += &format!("; uneven: {}", names(cluster, fault.uneven.iter().copied()));
    }
    if fault.overlaps > 0 {
        line += &format!("; {}", counted(fault.overlaps, "overlap"));
    }
    if !fault.overlapping_nodes.is_empty() {
        line += &format!(", newly on {}", list(cluster, &fault.overlapping_nodes));
    }
    line
}

fn advise(out: &mut impl Write, cluster: &Cluster, advice: &Advice) -> io::Result<()> {
    writeln!(out, "\nnow: {}", of_summary(cluster, &advice.before))?;
    for plan in &advice.plans {
        of_plan(out, cluster, plan)?;
    }
    for (goal, reason) in &advice.not_offered {
        writeln!(out, "\n{}: no plan: {reason}", goal.name())?;
    }
    Ok(())
}

fn of_plan(out: &mut impl Write, cluster: &Cluster, plan: &Plan) -> io::Result<()> {
    let moves = counted(plan.reassignment.moves() as u64, "partition");
    let copied = plan.reassignment.partitions.iter();
    let copied = copied.filter(|changed| changed.moves_data).count();
    let after = of_summary(cluster, &plan.after);
    writeln!(out, "\n{}: {after}", plan.goal.name())?;
    writeln!(out, "  reassigns {moves}, {copied} of them with data")?;
    let added = plan.reassignment.added.iter().map(|added| {
        let topic = &cluster.topics()[added.topic].name;
        format!(
            "  first give {topic} {} partitions instead of {}",
            added.to, added.from
        )
    });
    section(out, added, LINES_MAX)?;
    let changed = plan.reassignment.partitions.iter().map(|changed| {
        let partition = partition(cluster, changed.partition);
        format!("  {partition} to {}", list(cluster, &changed.replicas))
    });
    section(out, changed, LINES_MAX)
}

fn of_summary(cluster: &Cluster, summary: &Summary) -> String {
    let peak = summary.peak.map_or(String::new(), |(node, load)| {
        let (node, imbalance) = (cluster.id(node), summary.imbalance);
        format!(", at most {load:.3} (node {node}), {imbalance:.2} times the mean")
    });
    format!(
        "{}, {}, {} uneven{peak}",
        counted(summary.max_groups as u64, "max group"),
        counted(summary.overlaps, "overlap"),
        counted(summary.uneven as u64, "topic"),
    )
}

/// Prints at most `lines_max` lines, and the number of those left out.
fn section(
    out: &mut impl Write,
    lines: impl Iterator<Item = String>,
    lines_max: usize,
) -> io::Result<()> {
    let mut more = 0_u64;
    for (index, line) in lines.enumerate() {
        if index < lines_max {
            writeln!(out, "{line}")?;
        } else {
            more += 1;
        }
    }
    match more {
        0 => Ok(()),
        more => writeln!(out, "and {more} more"),
    }
}

/// The same where it is known how many there are, so that the rest is not made to be counted.
fn section_of(
    out: &mut impl Write,
    lines: impl Iterator<Item = String>,
    all: usize,
    lines_max: usize,
) -> io::Result<()> {
    section(out, lines.take(lines_max), lines_max)?;
    match all.saturating_sub(lines_max) {
        0 => Ok(()),
        more => writeln!(out, "and {more} more; --pairs lists all"),
    }
}

fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

fn partition(cluster: &Cluster, index: PartitionIndex) -> String {
    format!("{} {}", cluster.topics()[index.topic].name, index.partition)
}

fn names(cluster: &Cluster, topics: impl ExactSizeIterator<Item = usize>) -> String {
    joined(topics.map(|topic| cluster.topics()[topic].name.clone()))
}

fn ids(cluster: &Cluster, nodes: &NodeSet) -> String {
    let places: Vec<Place> = nodes.iter().collect();
    list(cluster, &places)
}

fn list(cluster: &Cluster, nodes: &[Place]) -> String {
    joined(nodes.iter().map(|node| cluster.id(*node).to_string()))
}

fn joined(mut names: impl ExactSizeIterator<Item = String>) -> String {
    let mut text = names
        .by_ref()
        .take(NAMES_MAX)
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > 0 {
        text += &format!(" and {} more", names.len());
    }
    text
}
