//! The table of `airmail-lab limiters`: a row for each limiter on each system, for people and for programs.

use super::figures;
use airmail_experiments::results::{Findings, Row as ProgramRow, Section, Table};
use airmail_experiments::row;
use airmail_queueing::limiters::{LATENCY_TARGET_S, Recovery, Report, Row};
use serde_json::{Value, json};

const HEAD: [&str; 21] = [
    "system", "limiter", "knee", "bound", "sd", "λ", "worst", "half", "again", "W", "worst",
    "half", "again", "start", "half", "again", "ms", "of aim", "p50", "p99", "uneven",
];

/// All of it: the table, then the figures of each system.
pub(super) fn findings(reports: &[Report], seeds: u64) -> Findings {
    let rows = || reports.iter().flat_map(|report| &report.rows);
    let table = Section {
        title: "Every limiter on every system".to_owned(),
        text: Vec::new(),
        table: Table::new(HEAD, rows().map(cells)),
        figures: vec![("summary".to_owned(), figures::summary(reports))],
    };
    let systems = reports.iter().map(|report| Section {
        title: format!("{}: {}", report.subject.name(), report.subject.stands_for()),
        figures: figures::of_system(report),
        ..Section::default()
    });
    Findings {
        name: "limiters".to_owned(),
        title: "Limiters beside the knee, in virtual time".to_owned(),
        about: about(seeds),
        sections: std::iter::once(table).chain(systems).collect(),
        rows: rows().map(program_row).collect(),
        ..Findings::default()
    }
}

fn about(seeds: u64) -> Vec<String> {
    vec![
        format!(
            "Medians of {seeds} seeds, beside a fixed bound at the knee in the same stretch of the same seed. \
             λ: share of its throughput, and W: multiple of its latency, at full capacity after 50 windows, \
             its worst seed, at half the capacity, at full capacity again. sd: the bound's deviation over its \
             mean."
        ),
        format!(
            "start, half, again: windows of N messages until five together have 0.9 of λ and at most 1.5 \
             times W, after the start, halving, doubling. ms: W. of aim: W over {} ms. p50, p99: ms until a \
             client has its acknowledgement. uneven: the largest publisher's share over the smallest's.",
            LATENCY_TARGET_S * 1e3
        ),
    ]
}

fn cells(row: &Row) -> Vec<String> {
    let ms = |at: usize| {
        let told = row.delivery_s.map(|seconds| fixed(seconds[at] * 1e3, 1));
        told.unwrap_or_else(|| "-".to_owned())
    };
    let [rate, rate_halved, rate_again] = &row.rate_share;
    let [latency, latency_halved, latency_again] = &row.latency_ratio;
    let [start, halved, again] = row.recovery.map(recovery);
    vec![
        row.system.to_owned(),
        row.contender.name(),
        row.knees[0].bound.to_string(),
        fixed(row.bound, 0),
        fixed(row.bound_spread.median, 2),
        fixed(rate.median, 2),
        fixed(rate.worst, 2),
        fixed(rate_halved.median, 2),
        fixed(rate_again.median, 2),
        fixed(latency.median, 2),
        fixed(latency.worst, 2),
        fixed(latency_halved.median, 2),
        fixed(latency_again.median, 2),
        start,
        halved,
        again,
        fixed(row.latency_s * 1e3, 2),
        fixed(row.latency_over_target(), 2),
        ms(0),
        ms(1),
        fixed(row.imbalance.median, 2),
    ]
}

fn fixed(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}

fn recovery(recovery: Recovery) -> String {
    match recovery.median {
        Some(windows) => format!("{windows:.0}"),
        None => "never".to_owned(),
    }
}

/// Row for programs: a measure with a value for each capacity has three names.
fn program_row(row: &Row) -> ProgramRow {
    let mut found = row! {
        "system": row.system,
        "limiter": row.contender.kind.name(),
        "latency_floor_ms": row.contender.latency_floor_ms,
        "knee_bound": row.knees[0].bound,
        "knee_rate_per_s": row.knees[0].rate_per_s,
        "knee_latency_s": row.knees[0].latency_s,
        "bound": row.bound,
        "bound_spread": row.bound_spread.median,
        "bound_spread_worst": row.bound_spread.worst,
    };
    let mut put = |name: String, value: Value| {
        found.insert(name, value);
    };
    for (at, capacity) in ["full", "half", "again"].into_iter().enumerate() {
        for (name, told) in [
            ("rate_share", &row.rate_share[at]),
            ("latency_ratio", &row.latency_ratio[at]),
        ] {
            put(format!("{name}_{capacity}"), json!(told.median));
            put(format!("{name}_{capacity}_worst"), json!(told.worst));
        }
        let Recovery {
            median,
            worst,
            share,
        } = row.recovery[at];
        put(format!("recovery_windows_{capacity}"), json!(median));
        put(format!("recovery_windows_{capacity}_worst"), json!(worst));
        put(format!("recovered_share_{capacity}"), json!(share));
    }
    put("latency_s".to_owned(), json!(row.latency_s));
    put(
        "latency_over_target".to_owned(),
        json!(row.latency_over_target()),
    );
    let delivery_s = |at: usize| json!(row.delivery_s.map(|seconds| seconds[at]));
    put("delivery_p50_s".to_owned(), delivery_s(0));
    put("delivery_p99_s".to_owned(), delivery_s(1));
    put("unevenness".to_owned(), json!(row.imbalance.median));
    put("unevenness_worst".to_owned(), json!(row.imbalance.worst));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_queueing::limiters::{Plan, measure};
    use airmail_queueing::subject::Subject;

    #[test]
    fn one_table_has_every_limiter_on_servers_and_on_nodes_with_all_measures() {
        let plan = Plan {
            seeds: 1,
            ..Plan::default()
        };
        let subjects = Subject::all().into_iter();
        let subjects = subjects.filter(|subject| ["mm1", "node-memory"].contains(&subject.name()));
        let reports: Vec<Report> = subjects
            .map(|subject| measure(subject, &plan, &|| {}).unwrap())
            .collect();
        let findings = findings(&reports, plan.seeds);
        let table = &findings.sections[0].table;
        let limiters = [
            "fixed",
            "last-three-points",
            "adaptive",
            "gradient",
            "ladder",
            "latency-target",
            "gradient, 10 ms",
        ];
        let expected = ["mm1", "node-memory"]
            .into_iter()
            .flat_map(|system| limiters.map(|limiter| [system, limiter]));
        let found = table.rows.iter().map(|row| [&*row[0], &*row[1]]);
        assert!(found.eq(expected), "{table:?}");
        assert!(table.rows.iter().all(|row| row.len() == HEAD.len()));
        // Servers have no clients of their own, and so no deliveries.
        assert_eq!(
            (&*table.rows[0][18], &findings.rows[0]["delivery_p50_s"]),
            ("-", &Value::Null)
        );
        for row in &findings.rows {
            for name in [
                "rate_share_half",
                "latency_ratio_again_worst",
                "bound_spread",
            ] {
                assert!(row[name].is_number(), "{name}: {row:?}");
            }
            assert!(row["recovered_share_full"].is_number(), "{row:?}");
        }
    }
}
