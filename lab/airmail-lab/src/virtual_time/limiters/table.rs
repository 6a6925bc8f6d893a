//! The table of `airmail-lab limiters`, as text and as lines of JSON.

use super::super::{RunArgs, print_json};
use crate::narration::print;
use airmail_queueing::limiters::{LATENCY_TARGET_S, Recovery, Report, Row, Told};
use serde_json::{Value, json};
use std::fmt::Write as _;

pub(super) fn print_rows(reports: &[Report], args: &RunArgs) -> anyhow::Result<()> {
    let rows = reports.iter().flat_map(|report| &report.rows);
    if args.json {
        return print_json(rows.map(json));
    }
    let mut out = String::new();
    writeln!(
        out,
        "Medians of {} seeds, beside a fixed bound at the knee in the same stretch of the same seed.\n\
         λ: share of its throughput, and W: multiple of its latency, at full capacity after 50 windows, its\n\
         worst seed, at half the capacity, at full capacity again. sd: the bound's deviation over its mean.\n\
         recovery: windows of N messages until five together have 0.9 of λ and at most 1.5 times W, after the\n\
         start, halving, doubling. ms: W. of aim: W over {} ms. p50, p99: ms until a client has its\n\
         acknowledgement. uneven: the largest publisher's share over the smallest's.\n",
        args.seeds,
        LATENCY_TARGET_S * 1e3
    )?;
    writeln!(
        out,
        "{:<12} {:<18} {:>6} {:>8} {:>5}  {:>5} {:>5} {:>5} {:>5}  {:>6} {:>6} {:>6} {:>6}  {:>5} {:>5} {:>5}  \
         {:>6} {:>6} {:>6} {:>6} {:>6}",
        "system",
        "limiter",
        "knee",
        "bound",
        "sd",
        "λ",
        "worst",
        "half",
        "again",
        "W",
        "worst",
        "half",
        "again",
        "start",
        "half",
        "again",
        "ms",
        "of aim",
        "p50",
        "p99",
        "uneven"
    )?;
    for row in rows {
        write_row(&mut out, row)?;
    }
    print(&out)
}

fn write_row(out: &mut String, row: &Row) -> std::fmt::Result {
    let [rate, rate_halved, rate_again] = &row.rate_share;
    let [latency, latency_halved, latency_again] = &row.latency_ratio;
    let [start, halved, again] = row.recovery.map(recovery);
    let ms = |at: usize| {
        let told = row
            .delivery_s
            .map(|seconds| format!("{:.1}", seconds[at] * 1e3));
        told.unwrap_or_else(|| "-".to_owned())
    };
    writeln!(
        out,
        "{:<12} {:<18} {:>6} {:>8.0} {:>5.2}  {:>5.2} {:>5.2} {:>5.2} {:>5.2}  {:>6.2} {:>6.2} {:>6.2} {:>6.2}  \
         {start:>5} {halved:>5} {again:>5}  {:>6.2} {:>6.2} {:>6} {:>6} {:>6.2}",
        row.system,
        row.contender.name(),
        row.knees[0].bound,
        row.bound,
        row.bound_spread.median,
        rate.median,
        rate.worst,
        rate_halved.median,
        rate_again.median,
        latency.median,
        latency.worst,
        latency_halved.median,
        latency_again.median,
        row.latency_s * 1e3,
        row.latency_over_target(),
        ms(0),
        ms(1),
        row.imbalance.median,
    )
}

fn recovery(recovery: Recovery) -> String {
    match recovery.median {
        Some(windows) => format!("{windows:.0}"),
        None => "never".to_owned(),
    }
}

fn json(row: &Row) -> Value {
    let told = |told: &Told| json!({ "median": told.median, "worst": told.worst });
    let recovery = |recovery: &Recovery| json!({ "median": recovery.median, "worst": recovery.worst, "share": recovery.share });
    json!({
        "system": row.system,
        "limiter": row.contender.kind.name(),
        "latency_floor_ms": row.contender.latency_floor_ms,
        "rate_share": row.rate_share.iter().map(told).collect::<Vec<_>>(),
        "latency_ratio": row.latency_ratio.iter().map(told).collect::<Vec<_>>(),
        "bound_spread": told(&row.bound_spread),
        "recovery_windows": row.recovery.iter().map(recovery).collect::<Vec<_>>(),
        "bound": row.bound,
        "knees": row.knees,
        "latency_s": row.latency_s,
        "latency_over_target": row.latency_over_target(),
        "delivery_s": row.delivery_s,
        "imbalance": told(&row.imbalance),
    })
}
