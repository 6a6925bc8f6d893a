//! Report of the findings, as rows, tables and figures.

use super::OverloadArgs;
use super::deliveries::{Deliveries, report as delivered};
use super::figures::{goodput_figure, latency_figure, memory_figure};
use super::promise::Kept;
use super::publishes::{Case, Publishes};
use crate::flow_control::FlowControl;
use crate::hosts::Hosts;
use airmail_bench::Spread;
use airmail_experiments::results::{Findings, Row, Section, Table};
use airmail_experiments::row;
use airmail_flow::PROMISE;

/// Everything.
pub(super) fn findings(
    args: &OverloadArgs,
    publishes: &Publishes,
    deliveries: &Deliveries<'_>,
    hosts: &Hosts,
) -> Findings {
    let mut findings = Findings {
        name: "overload".to_owned(),
        title: "Overload: a tenth to ten times the capacity".to_owned(),
        about: about(args, publishes, hosts),
        sections: vec![publish_section(publishes, deliveries)],
        rows: publishes
            .pairs()
            .into_iter()
            .map(|pair| row(publishes, pair))
            .collect(),
        ..Findings::default()
    };
    let rounds = publishes.cases.iter().map(round_row).collect();
    findings.courses.insert("rounds".to_owned(), rounds);
    if !deliveries.phases.is_empty() {
        findings.sections.push(delivered::section(args, deliveries));
        let rows = deliveries.phases.iter().map(delivered::row).collect();
        findings.courses.insert("deliveries".to_owned(), rows);
    }
    findings
}

fn about(args: &OverloadArgs, publishes: &Publishes, hosts: &Hosts) -> Vec<String> {
    let (node, closed, renewed) = match args.target.target {
        Some(_) => ("A node that was there before, as it is".to_owned(), "", ""),
        None => (
            match args.disk_bytes_per_s {
                Some(bytes) => format!(
                    "A node that stores on its disk, to which a control group lets it write {bytes} bytes a \
                     second"
                ),
                None => format!(
                    "A node whose storage takes {} us for each batch, one after another, in memory",
                    args.service_us
                ),
            },
            " without flow control",
            "; a new node for each load",
        ),
    };
    let mut about = vec![
        format!(
            "{node}. Its capacity, measured in a closed loop{closed}: {:.0} messages/s, in batches of {} \
             messages of {} bytes.",
            publishes.capacity_per_s, args.batch, args.size
        ),
        format!(
            "Each load: {} streams of batches due at random times (Poisson), {} s, of which the first \
             {:.1} s do not count; {} rounds{renewed}. Nothing is tried again. Latency is \
             from when a batch was due to its ack; a batch that was sent and got no answer counts for as \
             long as it was waited for. Tables and figures: the median of the rounds, and between what \
             they lay.",
            args.streams,
            args.seconds(),
            args.warmup(),
            args.rounds()
        ),
        "After each load what the node stored is read back: lost, doubled, out of order, or stored though \
         refused would be counted and end the command with 1; so would a refusal that is not OVERLOADED \
         with a delay."
            .to_owned(),
        hosts.paragraph(),
    ];
    about.extend(args.target.target.is_none().then(|| {
        "What is beyond the capacity of the storage, not of the processors, is what is measured."
            .to_owned()
    }));
    let stopped = hosts.stop().is_set();
    about.extend(stopped.then(|| "It was stopped before its end.".to_owned()));
    about
}

fn row(publishes: &Publishes, (ratio, flow): (f64, FlowControl)) -> Row {
    let median = |value: fn(&Case) -> f64| {
        let spread = publishes.spread(ratio, flow, value);
        spread.map_or(0.0, |spread| spread.median.round())
    };
    let cases = publishes.of(ratio, flow);
    let known = cases.iter().all(|case| case.found.rss_bytes > 0);
    let total = |value: fn(&Case) -> u64| cases.iter().map(|case| value(case)).sum::<u64>();
    row! {
        "offered_ratio": ratio,
        "flow_control": flow.name(),
        "offered_per_s": median(|case| case.found.sums.offered_per_s),
        "goodput_per_s": median(Case::goodput),
        "refused_per_s": median(Case::refused),
        "unanswered_per_s": median(|case| case.found.sums.unanswered_per_s),
        "unsent_per_s": median(|case| case.found.sums.unsent_per_s),
        "p50_us": median(Case::p50),
        "p99_us": median(Case::p99),
        "refusal_p99_us": median(Case::refusal_p99),
        "rss_bytes": known.then(|| median(|case| case.found.rss_bytes as f64)),
        "lost": total(|case| case.found.wrong.lost),
        "duplicates": total(|case| case.found.wrong.duplicates),
        "reordered": total(|case| case.found.wrong.reordered),
        "errors": total(Case::errors),
        "rounds": cases.len(),
    }
}

fn round_row(case: &Case) -> Row {
    let (sums, wrong) = (&case.found.sums, &case.found.wrong);
    row! {
        "round": case.round,
        "offered_ratio": case.ratio,
        "flow_control": case.flow.name(),
        "goodput_per_s": sums.goodput_per_s,
        "refused_per_s": sums.refused_per_s,
        "p50_us": case.p50(),
        "p99_us": case.p99(),
        "rss_bytes": case.found.rss_bytes,
        "lost": wrong.lost,
        "errors": case.errors(),
        "first_error": sums.errors.first().or(sums.strange.keys().next()),
    }
}

fn publish_section(publishes: &Publishes, deliveries: &Deliveries<'_>) -> Section {
    let head = [
        "offered / capacity",
        "flow control",
        "goodput, messages/s",
        "refused, messages/s",
        "p50, ms",
        "p99, ms",
        "node's memory, MiB",
    ];
    let line = |(ratio, flow): &(f64, FlowControl)| {
        let of = |value| publishes.spread(*ratio, *flow, value);
        let cell = |spread: Option<Spread>, digits: usize| {
            spread.map_or(String::new(), |spread| format!("{spread:.digits$}"))
        };
        let ms = |value: fn(&Case) -> f64| {
            let cases = publishes.of(*ratio, *flow);
            cell(
                Spread::of(cases.into_iter().map(|case| value(case) / 1e3)),
                1,
            )
        };
        vec![
            ratio.to_string(),
            flow.to_string(),
            cell(of(Case::goodput), 0),
            cell(of(Case::refused), 0),
            ms(Case::p50),
            ms(Case::p99),
            cell(of(Case::rss_mib).filter(|spread| spread.most > 0.0), 0),
        ]
    };
    let mut figures = vec![
        ("goodput".to_owned(), goodput_figure(publishes)),
        ("latency".to_owned(), latency_figure(publishes)),
    ];
    // A target's memory is often not known.
    if publishes.cases.iter().any(|case| case.found.rss_bytes > 0) {
        figures.push(("memory".to_owned(), memory_figure(publishes)));
    }
    Section {
        title: "Publishes".to_owned(),
        text: verdicts(publishes, deliveries),
        table: Table::new(head, publishes.pairs().iter().map(line)),
        figures,
    }
}

/// The promise, and what each kind of flow control makes of it.
fn verdicts(publishes: &Publishes, deliveries: &Deliveries<'_>) -> Vec<String> {
    let mut verdicts = vec![PROMISE.join(" ")];
    verdicts.extend(FlowControl::ALL.into_iter().filter_map(|flow| {
        let kept = Kept::of(publishes, deliveries, flow)?;
        Some(format!("Flow control {flow}: {kept}."))
    }));
    verdicts
}
