//! Sections of the report: tables, each with its figures.

use super::figures::{PAPER_CLIENTS, PAPER_MS, PAPER_TIMEOUTS};
use super::groups::{
    Group, Load, mean_ms, node_cores, node_stopped_percent, p99_ms, stopped_percent,
    timeouts_percent,
};
use super::publishing::Run;
use super::verdict::Criterion;
use super::{Series, figures};
use airmail_bench::Spread;
use airmail_experiments::results::{Section, Table};

fn cell(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or(String::new(), |spread| format!("{spread:.digits$}"))
}

/// Table of what is asked for, and what was found.
pub(super) fn verdict(criteria: &[Criterion]) -> Section {
    let line = |criterion: &Criterion| {
        let is = if criterion.is_met { "yes" } else { "no" };
        vec![
            criterion.asked.clone(),
            criterion.found.clone(),
            is.to_owned(),
        ]
    };
    let head = ["asked for", "found: ratio of mean rounds, time-outs", "met"];
    Section {
        title: "What is asked for".to_owned(),
        table: Table::new(head, criteria.iter().map(line)),
        ..Section::default()
    }
}

/// Rounds by number of clients.
pub(super) fn rounds(series: Series, groups: &[&Group<'_>]) -> Section {
    let head = [
        "mode, clients",
        "connections, streams",
        "round, mean, ms",
        "x single's",
        "p99, ms",
        "timed out",
        "timed out, %",
        "deliveries to each",
        "cores: all nodes",
        "periods stopped, %",
        "clients",
        "publishers",
    ];
    let line = |group: &&Group<'_>| {
        let first = group.cases.first();
        let connections = first.map_or(0, |case| case.outcome.connections());
        vec![
            format!("{}, {}", group.mode.name(), group.clients()),
            format!("{connections}, {}", group.clients()),
            cell(group.of(mean_ms), 1),
            cell(group.ratio, 2),
            cell(group.of(p99_ms), 1),
            group.timeouts().to_string(),
            cell(group.of(timeouts_percent), 3),
            cell(group.of(|case| case.outcome.deliveries()), 1),
            cell(group.of(node_cores), 2),
            cell(group.of(stopped_percent), 0),
            cell(group.of(|case| case.outcome.crowd_cores()), 2),
            cell(group.of(|case| case.outcome.publishers_cores()), 2),
        ]
    };
    let (title, text, figures) = match series {
        Series::Clients => (
            "Rounds, as many clients in each mode",
            format!(
                "As the paper's figures 3, 5 and 6. The paper, for a single machine: about {PAPER_MS} ms on average \
                 and under {} % timed out up to {PAPER_CLIENTS} clients; for its tree: slightly faster.",
                PAPER_TIMEOUTS * 100.0
            ),
            figures::clients(groups),
        ),
        _ => (
            "Reach: how many clients",
            "Clients are raised until a mode has time-outs; x single's compares with the single node of the same \
             step, which has fewer clients."
                .to_owned(),
            figures::reach(groups),
        ),
    };
    Section {
        title: title.to_owned(),
        text: vec![text],
        table: Table::new(head, groups.iter().map(line)),
        figures: vec![(series.name().to_owned(), figures)],
    }
}

/// Use of the machine by each node, with the most clients of the series.
pub(super) fn nodes(series: Series, groups: &[&Group<'_>]) -> Section {
    let head = [
        "mode, clients, node",
        "below",
        "connections",
        "streams",
        "cores",
        "work a round, ms",
        "periods stopped, %",
        "cores while clients connect",
        "memory, MiB",
    ];
    let most = groups.iter().map(|group| group.step).max();
    let largest = groups.iter().filter(|group| Some(group.step) == most);
    let lines = largest.flat_map(|group| {
        let members = group.mode.members();
        members.iter().zip(0..).map(|(member, place)| {
            let of = |digits, value: &dyn Fn(&super::Case, &crate::rounds::NodeUse) -> f64| {
                cell(group.of_node(place, value), digits)
            };
            let node = group
                .cases
                .first()
                .and_then(|case| case.outcome.nodes.get(place));
            let above = member.parent.map_or("", |parent| members[parent].name);
            vec![
                format!(
                    "{}, {}, {}",
                    group.mode.name(),
                    group.clients(),
                    member.name
                ),
                above.to_owned(),
                node.map_or(0, |node| node.connections).to_string(),
                node.map_or(0, |node| node.clients).to_string(),
                of(3, &|_, node| node.cpu_share),
                of(1, &|case, node| case.outcome.work_ms(node)),
                of(0, &|_, node| node_stopped_percent(node)),
                of(2, &|_, node| node.connecting_cpu_share),
                of(0, &|_, node| (node.rss_bytes >> 20) as f64),
            ]
        })
    });
    Section {
        title: format!("Nodes at the most clients of the series {}", series.name()),
        table: Table::new(head, lines),
        ..Section::default()
    }
}

/// Many publishers and few subscribers.
pub(super) fn publish(loads: &[Load<'_>]) -> Section {
    let head = [
        "mode, publishers",
        "messages/s published",
        "delivered",
        "at messages/s",
        "p50, ms",
        "p99, ms",
        "ack, p50, ms",
        "cores: all nodes",
        "the first node",
        "its periods stopped, %",
        "cores: clients",
    ];
    let line = |load: &Load<'_>| {
        let ms = |value: fn(&Run) -> u64| cell(load.paced(|run| value(run) as f64 / 1e3), 1);
        let offered = load.paced(|run| run.rate.unwrap_or_default() as f64);
        vec![
            format!("{}, {}", load.mode.name(), load.publishers),
            cell(load.fast(|run| run.report.published_per_s), 0),
            cell(load.fast(|run| run.report.delivered_per_s), 0),
            offered.map_or(String::new(), |offered| format!("{:.0}", offered.median)),
            ms(|run| run.report.latency_us.p50),
            ms(|run| run.report.latency_us.p99),
            ms(|run| run.report.ack_latency_us.p50),
            cell(load.fast(Run::node_cores), 2),
            cell(load.fast(Run::first_cores), 2),
            cell(load.fast(Run::first_stopped_percent), 0),
            cell(load.fast(Run::client_cores), 2),
        ]
    };
    Section {
        title: "Many publishers, few subscribers".to_owned(),
        text: vec![
            "Every publish comes to the first node, in a tree its root, whichever node it is sent to: others take \
             connections and requests from it, and not the storing. Cores are those of the runs as fast as there \
             was room."
                .to_owned(),
        ],
        table: Table::new(head, loads.iter().map(line)),
        figures: vec![("publish".to_owned(), figures::publish(loads))],
    }
}
