//! Rows for programs.

use super::Case;
use super::args::Series;
use super::groups::{Group, Load, mean_ms, node_cores, p99_ms, stopped_percent, timeouts_percent};
use super::publishing::Run;
use crate::hold::Look;
use crate::rounds::{NodeUse, Round};
use airmail_bench::Spread;
use airmail_experiments::results::Row;
use airmail_experiments::row;

fn median(spread: Option<Spread>) -> Option<f64> {
    spread.map(|spread| spread.median)
}

/// A mode at a step.
pub(super) fn group_row(group: &Group<'_>) -> Row {
    let of = |value: fn(&Case) -> f64| median(group.of(value));
    let total =
        |value: fn(&Case) -> u64| -> u64 { group.cases.iter().map(|case| value(case)).sum() };
    row! {
        "series": group.series.name(),
        "mode": group.mode.name(),
        "nodes": group.mode.members().len(),
        "clients": group.clients(),
        "clients_of_single": group.step,
        "connections": group.cases.first().map(|case| case.outcome.connections()),
        "streams": group.clients(),
        "repeats": group.cases.len(),
        "round_ms_mean": of(mean_ms),
        "round_ms_p99": of(p99_ms),
        "ratio": median(group.ratio),
        "ratio_max": group.ratio.map(|ratio| ratio.most),
        "timeouts": group.timeouts(),
        "timeout_percent": of(timeouts_percent),
        "incomplete": total(|case| case.outcome.all().incomplete),
        "wrong": total(|case| case.outcome.got.wrong),
        "deliveries_a_round": of(|case| case.outcome.deliveries()),
        "node_cores": of(node_cores),
        "periods_stopped_percent": of(stopped_percent),
        "clients_cores": of(|case| case.outcome.crowd_cores()),
        "publishers_cores": of(|case| case.outcome.publishers_cores()),
    }
}

/// A mode with so many publishers.
pub(super) fn load_row(load: &Load<'_>) -> Row {
    let fast = |value: fn(&Run) -> f64| median(load.fast(value));
    let paced = |value: fn(&Run) -> f64| median(load.paced(value));
    let lost = |run: &&Run| run.report.missing + run.report.failed + run.report.gaps;
    row! {
        "series": Series::Publish.name(),
        "mode": load.mode.name(),
        "nodes": load.mode.members().len(),
        "publishers": load.publishers,
        "repeats": load.runs.iter().filter(|run| run.rate.is_none()).count(),
        "published_per_s": fast(|run| run.report.published_per_s),
        "delivered_per_s": fast(|run| run.report.delivered_per_s),
        "offered_per_s": paced(|run| run.rate.unwrap_or_default() as f64),
        "p50_us": paced(|run| run.report.latency_us.p50 as f64),
        "p99_us": paced(|run| run.report.latency_us.p99 as f64),
        "ack_p50_us": paced(|run| run.report.ack_latency_us.p50 as f64),
        "node_cores": fast(Run::node_cores),
        "first_node_cores": fast(Run::first_cores),
        "first_node_periods_stopped_percent": fast(Run::first_stopped_percent),
        "node_cores_paced": paced(Run::node_cores),
        "clients_cores": fast(Run::client_cores),
        "lost": load.runs.iter().map(lost).sum::<u64>(),
        "duplicates": load.runs.iter().map(|run| run.report.duplicates).sum::<u64>(),
        "reordered": load.runs.iter().map(|run| run.report.reordered).sum::<u64>(),
    }
}

/// Rounds of a mode in one repetition.
pub(super) fn case_row(case: &Case) -> Row {
    let all = case.outcome.all();
    row! {
        "series": case.series.name(),
        "mode": case.mode.name(),
        "repeat": case.repeat,
        "clients": case.outcome.clients,
        "clients_of_single": case.step,
        "processes": case.outcome.processes,
        "rounds": case.outcome.rounds,
        "round_ms_mean": all.mean_ms(),
        "round_ms_p50": all.took.percentiles().p50 as f64 / 1e3,
        "round_ms_p99": all.p99_ms(),
        "round_ms_max": all.took.percentiles().max as f64 / 1e3,
        "timeouts": all.timeouts(),
        "incomplete": all.incomplete,
        "error": case.outcome.got.error,
        "node_cores": node_cores(case),
        "clients_cores": case.outcome.crowd_cores(),
        "publishers_cores": case.outcome.publishers_cores(),
    }
}

/// Nodes in one repetition of rounds.
pub(super) fn node_rows(case: &Case) -> Vec<Row> {
    let members = case.mode.members();
    let row = |(node, place): (&NodeUse, usize)| {
        row! {
            "series": case.series.name(),
            "mode": case.mode.name(),
            "repeat": case.repeat,
            "clients": case.outcome.clients,
            "node": members[place].name,
            "parent": members[place].parent.map(|parent| members[parent].name),
            "connections": node.connections,
            "streams": node.clients,
            "cores": node.cpu_share,
            "cores_connecting": node.connecting_cpu_share,
            "cpu_ms_a_round": case.outcome.work_ms(node),
            "periods": node.throttled.map(|throttled| throttled.periods),
            "periods_stopped": node.throttled.map(|throttled| throttled.throttled),
            "rss_bytes": node.rss_bytes,
        }
    };
    case.outcome.nodes.iter().zip(0..).map(row).collect()
}

/// Rounds of one repetition, each for all clients.
pub(super) fn round_rows(case: &Case) -> Vec<Row> {
    let rounds = case.outcome.got.rounds.iter().zip(1..);
    let row = |(round, number): (&Round, usize)| {
        row! {
            "series": case.series.name(),
            "mode": case.mode.name(),
            "repeat": case.repeat,
            "clients": case.outcome.clients,
            "round": number,
            "round_ms_mean": round.mean_ms(),
            "round_ms_p99": round.p99_ms(),
            "timeouts": round.timeouts(),
        }
    };
    rounds.map(row).collect()
}

/// A run of publishers.
pub(super) fn run_row(run: &Run) -> Row {
    row! {
        "mode": run.mode.name(),
        "repeat": run.repeat,
        "publishers": run.publishers,
        "offered_per_s": run.rate,
        "published_per_s": run.report.published_per_s,
        "delivered_per_s": run.report.delivered_per_s,
        "p50_us": run.report.latency_us.p50,
        "p99_us": run.report.latency_us.p99,
        "ack_p50_us": run.report.ack_latency_us.p50,
        "ack_p99_us": run.report.ack_latency_us.p99,
        "node_cores": run.node_cores(),
        "first_node_cores": run.first_cores(),
        "first_node_periods_stopped_percent": run.first_stopped_percent(),
        "clients_cores": run.client_cores(),
        "sound": run.report.is_sound(),
        "first_error": run.report.first_error,
    }
}

/// Nodes in a run of publishers.
pub(super) fn run_node_rows(run: &Run) -> Vec<Row> {
    let members = run.mode.members();
    let row = |(node, place): (&Look, usize)| {
        row! {
            "mode": run.mode.name(),
            "repeat": run.repeat,
            "publishers": run.publishers,
            "offered_per_s": run.rate,
            "node": members[place].name,
            "parent": members[place].parent.map(|parent| members[parent].name),
            "cores": run.cores(node),
            "periods": node.throttled.map(|throttled| throttled.periods),
            "periods_stopped": node.throttled.map(|throttled| throttled.throttled),
            "rss_bytes": node.usage.rss_bytes,
        }
    };
    run.nodes.iter().zip(0..).map(row).collect()
}
