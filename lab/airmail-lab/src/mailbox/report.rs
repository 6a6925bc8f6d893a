//! The report of an experiment, drawn from its record: a table of its cases, curves over the
//! factors that vary, runs over time, and a verdict.

mod course;
mod curves;
mod groups;
mod verdicts;

use super::Document;
use super::plan::Plan;
use super::results::{PARTS, RunResult};
use airmail_experiments::mailbox::Mix;
use airmail_experiments::mailbox::record::Reader;
use airmail_experiments::results::{Findings, Row, Section, Table};
use groups::Group;
use serde_json::{Value, json};

/// Precision that a mean is to have: the paper's 5 % about it, with a confidence of 95 %.
const SURE: f64 = 0.05;

/// Everything.
pub(super) fn findings(
    plan: &Plan,
    document: &Document,
    reader: &Reader,
    results: &[RunResult],
) -> anyhow::Result<Findings> {
    let groups = groups::of(plan, document.quick, results);
    let mut sections = vec![cases(&groups)];
    sections.extend(verdicts::section(plan, reader, results, &groups)?);
    sections.extend(curves::section(plan, &groups));
    sections.extend(kinds(&groups));
    let mut findings = Findings {
        name: format!("mailbox-{}", plan.name),
        title: plan.title.to_owned(),
        about: about(plan, document, reader, &groups)?,
        sections,
        rows: groups.iter().map(row).collect(),
        ..Findings::default()
    };
    let rounds = results.iter().map(run_row).collect();
    findings.courses.insert("runs".to_owned(), rounds);
    if plan.over_time {
        for result in results {
            findings.sections.push(course::section(reader, result)?);
            let name = format!("run-{}", result.run.id);
            findings.courses.insert(name, course::rows(result));
        }
    }
    Ok(findings)
}

fn about(
    plan: &Plan,
    document: &Document,
    reader: &Reader,
    groups: &[Group<'_>],
) -> anyhow::Result<Vec<String>> {
    let mut about: Vec<String> = plan.about.iter().map(|text| (*text).to_owned()).collect();
    let seconds = groups
        .iter()
        .flat_map(|group| &group.results)
        .map(|result| result.run.seconds());
    let seconds = seconds.fold(0.0, f64::max);
    about.push(format!(
        "Every client has a connection of its own and one request under way. Each case is measured \
         {seconds:.0} s, warm-up and cool-down left out, in {} rounds; values are medians with the least \
         and the greatest. ± is the half of the 95 % confidence interval about a mean, by Student from \
         {PARTS} parts of a run, the widest of the rounds.",
        document.rounds
    ));
    let unsure: Vec<String> = groups
        .iter()
        .filter(|group| group.unsureness().is_none_or(|widest| widest > SURE))
        .map(Group::label)
        .collect();
    about.push(if unsure.is_empty() {
        "All means are sure to 5 %.".to_owned()
    } else {
        format!("Not sure to 5 %: {}.", unsure.join("; "))
    });
    about.push(document.machine.clone());
    about.push(format!(
        "{} Database, nodes and clients share this one machine.",
        document.server
    ));
    about.extend(reader.notes()?);
    Ok(about)
}

fn cases(groups: &[Group<'_>]) -> Section {
    let batches = groups
        .iter()
        .any(|group| matches!(group.case.mix, Mix::Batch(_)));
    let mut head = vec![
        "case",
        "requests/s",
        "±",
        "mean, ms",
        "±",
        "p50, ms",
        "p99, ms",
    ];
    if batches {
        head.insert(1, "messages/s");
    }
    head.extend([
        "machine busy, %",
        "nodes, cores",
        "database, cores",
        "failed",
    ]);
    let line = |group: &Group<'_>| {
        let mut cells = vec![
            group.label(),
            group.cell(|result| result.per_s, 0),
            group.interval(|result| result.rate_interval),
            group.cell(|result| result.mean_ms, 2),
            group.interval(|result| result.time_interval),
            group.cell(|result| result.times_us.p50 as f64 / 1e3, 2),
            group.cell(|result| result.times_us.p99 as f64 / 1e3, 2),
        ];
        if batches {
            cells.insert(1, group.cell(|result| result.messages_per_s, 0));
        }
        let seen = |value: fn(&RunResult) -> Option<f64>, digits: usize| {
            let values = group.results.iter().filter_map(|result| value(result));
            groups::cell(values, digits)
        };
        cells.push(seen(
            |result| result.busy.machine.map(|share| 100.0 * share),
            0,
        ));
        cells.push(seen(|result| result.busy.nodes, 2));
        cells.push(seen(|result| result.busy.database, 2));
        let failed: u64 = group.results.iter().map(|result| result.failed).sum();
        cells.push(failed.to_string());
        cells
    };
    Section {
        title: "Cases".to_owned(),
        table: Table::new(head, groups.iter().map(line)),
        ..Section::default()
    }
}

/// Requests by what they ask, where there are several kinds.
fn kinds(groups: &[Group<'_>]) -> Option<Section> {
    let several = groups.iter().any(|group| group.case.mix.shares().len() > 1);
    if !several || groups.len() > 12 {
        return None;
    }
    let mut rows = Vec::new();
    for group in groups {
        for (kind, _) in group.case.mix.shares() {
            let shares = || {
                group
                    .results
                    .iter()
                    .filter_map(|result| Some((*result, result.kinds.get(kind)?)))
            };
            let per_s = shares().map(|(result, share)| share.calls as f64 / result.run.seconds());
            let empty =
                shares().map(|(_, share)| 100.0 * share.nothing as f64 / share.calls.max(1) as f64);
            rows.push(vec![
                group.label(),
                kind.name().to_owned(),
                groups::cell(per_s, 0),
                groups::cell(shares().map(|(_, share)| share.mean_ms()), 2),
                groups::cell(empty, 0),
            ]);
        }
    }
    let head = [
        "case",
        "request",
        "requests/s",
        "mean, ms",
        "found nothing, %",
    ];
    Some(Section {
        title: "By request".to_owned(),
        text: vec![
            "Of pgbench it is not known what found nothing; a script has the same chance in both."
                .into(),
        ],
        table: Table::new(head, rows),
        ..Section::default()
    })
}

fn row(group: &Group<'_>) -> Row {
    let median = |value: fn(&RunResult) -> f64| group.spread(value).map(|spread| spread.median);
    let seen = |value: fn(&RunResult) -> Option<f64>| {
        let values = group.results.iter().filter_map(|result| value(result));
        airmail_bench::Spread::of(values).map(|spread| spread.median)
    };
    let failed: u64 = group.results.iter().map(|result| result.failed).sum();
    let mut row = case_row(group.case);
    row.extend(object(json!({
        "rounds": group.results.len(),
        "requests_per_s": median(|result| result.per_s),
        "messages_per_s": median(|result| result.messages_per_s),
        "mean_ms": median(|result| result.mean_ms),
        "p50_us": median(|result| result.times_us.p50 as f64),
        "p99_us": median(|result| result.times_us.p99 as f64),
        "sure_to": group.unsureness(),
        "machine_busy": seen(|result| result.busy.machine),
        "nodes_cores": seen(|result| result.busy.nodes),
        "database_cores": seen(|result| result.busy.database),
        "clients_cores": seen(|result| result.busy.clients),
        "failed": failed,
    })));
    row
}

fn run_row(result: &RunResult) -> Row {
    let mut row = case_row(&result.run.case);
    row.extend(object(json!({
        "run": result.run.id,
        "round": result.run.round,
        "requests_per_s": result.per_s,
        "messages_per_s": result.messages_per_s,
        "mean_ms": result.mean_ms,
        "times_us": result.times_us,
        "machine_busy": result.busy.machine,
        "failed": result.failed,
    })));
    row
}

fn case_row(case: &super::case::Case) -> Row {
    let mut row = object(json!(case));
    // Flat, as a table wants it.
    let sizes: Vec<String> = case.sizes.iter().map(u32::to_string).collect();
    row.insert("sizes".to_owned(), Value::from(sizes.join(" ")));
    row.insert("mix".to_owned(), Value::from(format!("{:?}", case.mix)));
    row
}

fn object(value: Value) -> Row {
    match value {
        Value::Object(row) => row,
        _ => Row::new(),
    }
}
