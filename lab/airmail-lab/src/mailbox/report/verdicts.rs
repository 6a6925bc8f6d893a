//! Verdict on an experiment: the few numbers that it was made for, beside the demands on them.

use super::groups::Group;
use crate::mailbox::case::{Case, Subject};
use crate::mailbox::plan::Plan;
use crate::mailbox::results::RunResult;
use airmail_bench::Spread;
use airmail_experiments::mailbox::Mix;
use airmail_experiments::mailbox::record::{Reader, RecordError};
use airmail_experiments::results::{Section, Table};

/// Requests/s beside the bare statements, at least; and p99 beside theirs, at most.
const RATE_LEAST: f64 = 0.9;
const P99_MOST: f64 = 1.3;
/// Messages/s in batches beside one statement a message, at least.
const BATCH_LEAST: f64 = 3.0;
/// Throughput in the last tenth of a run beside the first, at least.
const LAST_LEAST: f64 = 0.9;
/// A machine that is busy for so large a share is full.
const FULL: f64 = 0.9;

/// The section; none where there is nothing to say.
pub(super) fn section(
    plan: &Plan,
    reader: &Reader,
    results: &[RunResult],
    groups: &[Group<'_>],
) -> Result<Option<Section>, RecordError> {
    let text = match plan.name {
        "workload" => beside_statements(results),
        "batch" => batches(results, groups),
        "ping" => growth(groups),
        "stability" => steadiness(reader, results)?,
        _ => Vec::new(),
    };
    Ok((!text.is_empty()).then(|| Section {
        title: "What comes out".to_owned(),
        // A table, for a terminal shows nothing else.
        table: Table::new(
            ["beside what is asked for"],
            text.into_iter().map(|line| vec![line]),
        ),
        ..Section::default()
    }))
}

/// A ratio within each round.
fn ratio(
    results: &[RunResult],
    of: impl Fn(&Case) -> bool,
    to: impl Fn(&Case) -> bool,
    value: fn(&RunResult) -> f64,
) -> Option<Spread> {
    let find = |round: u32, which: &dyn Fn(&Case) -> bool| {
        let found = results
            .iter()
            .find(|result| result.run.round == round && which(&result.run.case));
        found.map(value)
    };
    let rounds = results
        .iter()
        .map(|result| result.run.round)
        .max()
        .unwrap_or(0);
    Spread::of((1..=rounds).filter_map(|round| Some(find(round, &of)? / find(round, &to)?)))
}

fn reached(yes: bool) -> &'static str {
    if yes { "reached" } else { "NOT REACHED" }
}

fn beside_statements(results: &[RunResult]) -> Vec<String> {
    let of = |subject: Subject| move |case: &Case| case.subject == subject;
    let (service, bare) = (of(Subject::Service), of(Subject::Statements));
    let rate = ratio(results, service, bare, |result| result.per_s);
    let p99 = ratio(results, service, bare, |result| result.times_us.p99 as f64);
    let rate = rate.map(|rate| {
        let verdict = reached(rate.median >= RATE_LEAST);
        format!("Requests/s: {rate:.2} of the bare statements'; at least {RATE_LEAST} is asked for: {verdict}.")
    });
    let p99 = p99.map(|p99| {
        let verdict = reached(p99.median <= P99_MOST);
        format!(
            "p99: {p99:.2} of the bare statements'; at most {P99_MOST} is asked for: {verdict}."
        )
    });
    rate.into_iter().chain(p99).collect()
}

fn batches(results: &[RunResult], groups: &[Group<'_>]) -> Vec<String> {
    let sizes = groups
        .iter()
        .filter(|group| group.case.subject == Subject::Service);
    let verdict = |group: &Group<'_>| {
        let Mix::Batch(messages) = group.case.mix else {
            return None;
        };
        let of = |case: &Case| case == group.case;
        let one = |case: &Case| case.subject == Subject::Pgmq;
        let ratio = ratio(results, of, one, |result| result.messages_per_s)?;
        let asked = match messages {
            1 => String::new(),
            _ => format!(
                "; at least {BATCH_LEAST} is asked for: {}",
                reached(ratio.median >= BATCH_LEAST)
            ),
        };
        Some(format!(
            "{messages} messages in a request: {ratio:.1} times the messages/s of one statement a \
             message{asked}."
        ))
    };
    sizes.filter_map(verdict).collect()
}

fn growth(groups: &[Group<'_>]) -> Vec<String> {
    let of_nodes = |nodes: u32| {
        let of_nodes = groups.iter().filter(|group| group.case.nodes == nodes);
        let rate = |group: &Group<'_>| {
            group
                .spread(|result| result.per_s)
                .map_or(0.0, |s| s.median)
        };
        let one = of_nodes
            .clone()
            .find(|group| group.case.clients == 1)
            .map(rate)?;
        let best = of_nodes.max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
        let busy = best.results.iter().filter_map(|result| result.busy.machine);
        let busy = Spread::of(busy)?.median;
        let verdict = match nodes {
            1 => format!(
                "; the machine is to be full there (from {:.0} %): {}",
                100.0 * FULL,
                reached(busy >= FULL)
            ),
            _ => String::new(),
        };
        Some(format!(
            "{nodes} node{}: {:.0} requests/s with 1 client, most with {}: {:.0} ({:.1} times as many), with \
             {:.0} % of all processors busy{verdict}.",
            if nodes == 1 { "" } else { "s" },
            one,
            best.case.clients,
            rate(best),
            rate(best) / one.max(1e-9),
            100.0 * busy,
        ))
    };
    [1, 2].into_iter().filter_map(of_nodes).collect()
}

fn steadiness(reader: &Reader, results: &[RunResult]) -> Result<Vec<String>, RecordError> {
    let mut text = Vec::new();
    for result in results {
        let (Some(first), Some(last)) = (result.tenths.first(), result.tenths.last()) else {
            continue;
        };
        let ratio = last / first.max(1e-9);
        let calls: u64 = result.kinds.values().map(|share| share.calls).sum();
        text.push(format!(
            "{}: {calls} requests; {first:.0} requests/s in the first tenth, {last:.0} in the last: {ratio:.2}; \
             at least {LAST_LEAST} is asked for: {}.",
            result.run.case,
            reached(ratio >= LAST_LEAST)
        ));
        let sizes = reader.samples(&result.run, "table_bytes")?;
        let middle = (result.run.begin_us + result.run.end_us) / 2;
        let most = |half: &dyn Fn(u64) -> bool| {
            let of_half = sizes.iter().filter(|(at_us, _)| half(*at_us));
            of_half.map(|(_, bytes)| bytes / 1e6).fold(0.0, f64::max)
        };
        text.push(format!(
            "Tables and indexes had at most {:.0} MB in the first half, {:.0} MB in the second.",
            most(&|at_us| at_us < middle),
            most(&|at_us| at_us >= middle)
        ));
    }
    Ok(text)
}
