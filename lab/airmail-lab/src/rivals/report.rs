//! Report of the measurements, as rows, tables and figures.

use super::criteria::{self, Verdict};
use super::subject::Subject;
use super::workload::{Quantity, Workload};
use super::{Measured, RivalsArgs, Rounds};
use airmail_bench::Report;
use airmail_bench::Spread;
use airmail_experiments::results::Plotted as _;
use airmail_experiments::results::{Findings, Row, Section, Table};
use airmail_plot::{Axis, Figure, Mark, Panel, Series};
use serde_json::json;

/// The whole report.
pub(super) fn findings(
    measured: &Measured,
    workloads: &[&Workload],
    args: &RivalsArgs,
    circumstances: &[String],
) -> Findings {
    let mut findings = Findings {
        name: "rivals".to_owned(),
        title: "Airmail beside others".to_owned(),
        about: about(measured, args, circumstances),
        sections: vec![promises(measured, args.common.quick)],
        ..Findings::default()
    };
    for workload in workloads {
        findings.rows.extend(rows(measured, workload, args));
        findings.sections.push(section(measured, workload, args));
    }
    let verdicts = criteria::verdicts(&measured.reports);
    if !verdicts.is_empty() {
        findings.sections.push(aims(&verdicts));
    }
    findings
}

/// Section on Airmail's aims, and whether it reached them.
fn aims(verdicts: &[Verdict]) -> Section {
    let line = |verdict: &Verdict| {
        let reached = if verdict.is_reached { "yes" } else { "no" };
        vec![
            verdict.says.clone(),
            format!("{:.2}", verdict.over_bound),
            reached.to_owned(),
        ]
    };
    Section {
        title: "What Airmail is to reach".to_owned(),
        table: Table::new(
            ["aim", "value over bound", "reached"],
            verdicts.iter().map(line),
        ),
        ..Section::default()
    }
}

fn about(measured: &Measured, args: &RivalsArgs, circumstances: &[String]) -> Vec<String> {
    let (rounds, ms) = (args.rounds(), args.duration_ms());
    let mut about = vec![format!(
        "Every system has one run of {ms} ms in each of {rounds} rounds, a quarter of it warm-up, in \
         an order that turns from round to round. Values are medians with the least and the greatest; \
         a ratio is taken within a round, against {}.",
        Subject::BASELINE.name()
    )];
    about.extend(circumstances.iter().cloned());
    if measured.is_cut {
        about.push(
            "It ended before all rounds were run: it was stopped, or its time was over.".into(),
        );
    }
    about.extend(
        measured
            .failed
            .iter()
            .map(|line| format!("Failed: {line}.")),
    );
    about
}

/// Section on the systems, and the promise of an ack in each.
fn promises(measured: &Measured, quick: bool) -> Section {
    let line = |subject: Subject| {
        let version = match measured.versions.get(&subject) {
            Some(version) => version.clone(),
            None if subject.is_airmail() => env!("CARGO_PKG_VERSION").to_owned(),
            None => String::new(),
        };
        vec![
            subject.name().to_owned(),
            version,
            subject.promise().to_owned(),
        ]
    };
    let mut text = vec![
        "These systems do not promise the same, and a rate without its promise says little."
            .to_owned(),
    ];
    for (subject, why) in &measured.absent {
        text.push(format!("{} was not measured: {why}.", subject.name()));
    }
    Section {
        title: "What an ack means".to_owned(),
        text,
        table: Table::new(
            ["system", "version", "acknowledged is"],
            Subject::all(quick).into_iter().map(line),
        ),
        ..Section::default()
    }
}

/// Systems that were to be measured with a workload.
fn partakers(workload: &Workload, args: &RivalsArgs) -> Vec<Subject> {
    let mut subjects = Subject::all(args.common.quick);
    subjects.retain(|subject| workload.has(*subject));
    subjects
}

fn values(rounds: &Rounds, quantity: Quantity) -> Option<Spread> {
    Spread::of(rounds.values().map(|report| quantity.of(report)))
}

/// The same in the unit of tables and figures.
fn scaled(rounds: &Rounds, quantity: Quantity) -> Option<Spread> {
    let scale = quantity.scale();
    Spread::of(rounds.values().map(|report| quantity.of(report) / scale))
}

/// A quantity as a multiple of the baseline's, round by round.
fn ratios(rounds: &Rounds, baseline: Option<&Rounds>, quantity: Quantity) -> Option<Spread> {
    let baseline = baseline?;
    let ratio = |(round, report): (&u32, &Report)| {
        Some(quantity.of(report) / quantity.of(baseline.get(round)?))
    };
    Spread::of(rounds.iter().filter_map(ratio))
}

/// Processor time of a message in nanoseconds: clients, server.
fn cpu_ns(report: &Report) -> [f64; 2] {
    let messages = report.acknowledged.max(report.delivered).max(1) as f64;
    [report.client_cpu_us, report.node_cpu_us.unwrap_or_default()]
        .map(|cpu_us| cpu_us as f64 * 1_000.0 / messages)
}

fn rows(measured: &Measured, workload: &Workload, args: &RivalsArgs) -> Vec<Row> {
    let baseline = measured.reports.get(&(workload.name, Subject::BASELINE));
    let mut rows = Vec::new();
    for subject in partakers(workload, args) {
        let rounds = measured.reports.get(&(workload.name, subject));
        for quantity in workload.quantities {
            let mut row = Row::new();
            let mut put = |name: &str, value| row.insert(name.to_owned(), value);
            put("workload", json!(workload.name));
            put("system", json!(subject.system()));
            put("durability", json!(subject.durability()));
            put("quantity", json!(quantity.name()));
            let spread = rounds.and_then(|rounds| values(rounds, *quantity));
            put("measured", json!(spread.is_some()));
            if let (Some(rounds), Some(spread)) = (rounds, spread) {
                put("median", json!(spread.median));
                put("least", json!(spread.least));
                put("greatest", json!(spread.most));
                if let Some(ratio) = ratios(rounds, baseline, *quantity) {
                    put("ratio", json!(ratio.median));
                    put("ratio_least", json!(ratio.least));
                    put("ratio_greatest", json!(ratio.most));
                }
                put("rounds", json!(rounds.len()));
                let sum = |of: fn(&Report) -> u64| rounds.values().map(of).sum::<u64>();
                put("missing", json!(sum(|report| report.missing)));
                put("duplicates", json!(sum(|report| report.duplicates)));
                put("reordered", json!(sum(|report| report.reordered)));
                put("failed", json!(sum(|report| report.failed)));
                let cpu = |at: usize| Spread::of(rounds.values().map(|r| cpu_ns(r)[at].round()));
                put("client_cpu_ns", json!(cpu(0).map(|spread| spread.median)));
                put("server_cpu_ns", json!(cpu(1).map(|spread| spread.median)));
            } else if let Some(why) = measured.absent.get(&subject) {
                put("why", json!(why));
            }
            rows.push(row);
        }
    }
    rows
}

fn section(measured: &Measured, workload: &Workload, args: &RivalsArgs) -> Section {
    let baseline = measured.reports.get(&(workload.name, Subject::BASELINE));
    let mut head = vec!["system".to_owned()];
    for quantity in workload.quantities {
        head.push(quantity.label().to_owned());
        head.push("ratio".to_owned());
    }
    head.push("processor ns a message, clients + server".to_owned());
    head.push("missing, doubled, out of order".to_owned());
    let line = |subject: Subject| {
        let mut line = vec![subject.name().to_owned()];
        let Some(rounds) = measured.reports.get(&(workload.name, subject)) else {
            line.push("not measured".to_owned());
            line.resize(head.len(), String::new());
            return line;
        };
        for quantity in workload.quantities {
            let digits = quantity.digits();
            let value = scaled(rounds, *quantity).map(|spread| format!("{spread:.digits$}"));
            line.push(value.unwrap_or_default());
            let ratio = ratios(rounds, baseline, *quantity);
            line.push(ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")));
        }
        let cpu = |at: usize| Spread::of(rounds.values().map(|r| cpu_ns(r)[at]));
        let cpu = [0, 1].map(|at| cpu(at).map_or(0.0, |spread| spread.median));
        line.push(format!("{:.0} + {:.0}", cpu[0], cpu[1]));
        let sum = |of: fn(&Report) -> u64| rounds.values().map(of).sum::<u64>();
        line.push(format!(
            "{}, {}, {}",
            sum(|report| report.missing),
            sum(|report| report.duplicates),
            sum(|report| report.reordered)
        ));
        line
    };
    let subjects = partakers(workload, args);
    Section {
        title: workload.title.to_owned(),
        table: Table {
            rows: subjects.iter().map(|subject| line(*subject)).collect(),
            head: head.clone(),
        },
        figures: vec![(
            workload.name.to_owned(),
            figure(measured, workload, &subjects),
        )],
        ..Section::default()
    }
}

/// A dot for each system with its least and greatest, in the unit of the tables.
fn figure(measured: &Measured, workload: &Workload, subjects: &[Subject]) -> Figure {
    let panel = |quantity: &Quantity| {
        let mut series = Vec::new();
        for (subject, place) in subjects.iter().zip(1..) {
            let rounds = measured.reports.get(&(workload.name, *subject));
            let spread = rounds.and_then(|rounds| scaled(rounds, *quantity));
            let value = spread.map_or("not measured".to_owned(), |spread| {
                format!("{:.*}", quantity.digits(), spread.median)
            });
            series.push(Series {
                name: format!("{}: {value}", subject.name()),
                points: spread
                    .iter()
                    .map(|spread| spread.at(f64::from(place)))
                    .collect(),
                mark: Mark::Dots,
                colour: subject.colour(),
            });
        }
        Panel {
            title: format!("{}: medians, least and greatest", quantity.label()),
            x: Axis::of(subjects.iter().map(|subject| subject.name())),
            y: Axis::log(quantity.label()),
            series,
        }
    };
    Figure {
        title: workload.title.to_owned(),
        panels: workload.quantities.iter().map(panel).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_bench::part::Part;

    fn report(delivered_per_s: f64) -> Report {
        let settings = super::super::WORKLOADS[0].settings(700);
        Report {
            delivered_per_s,
            ..Report::new("airmail", settings, Part::default(), None)
        }
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let rounds = |values: &[f64]| -> Rounds {
            (0..)
                .zip(values.iter().map(|value| report(*value)))
                .collect()
        };
        // The machine was twice as fast in the second round, and the third has no pair.
        let (mine, base) = (rounds(&[300.0, 600.0, 1.0]), rounds(&[100.0, 200.0]));
        let ratio = ratios(&mine, Some(&base), Quantity::Delivered).unwrap();
        assert_eq!((ratio.least, ratio.median, ratio.most), (3.0, 3.0, 3.0));
    }
}
