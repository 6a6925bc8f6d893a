//! What the project wants to reach beside others, reckoned from the runs of a workload.
//!
//! A bound is made of the other systems' figures of the same round, so each round has its own; what
//! counts is the median of figure over bound.

use super::table::{Run, columns};
use super::workloads::Subject::{self, Airmail, AirmailMemory, Disk, Nats};
use super::workloads::Workload;
use crate::spread::Spread;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A figure of another system, and how often it is taken.
type Term = (f64, Subject);

/// One bound.
#[derive(Debug)]
pub(super) struct Criterion {
    workload: &'static str,
    /// Whose figure.
    subject: Subject,
    /// Which one, of those that the workload has.
    column: usize,
    /// It is to be at least the bound, else at most.
    at_least: bool,
    /// The bound is the sum of these.
    bound: &'static [Term],
}

const CRITERIA: &[Criterion] = &[
    Criterion {
        workload: "e2e",
        subject: Airmail,
        column: 0,
        at_least: true,
        bound: &[(2.5, Nats)],
    },
    Criterion {
        workload: "fanout",
        subject: Airmail,
        column: 0,
        at_least: true,
        bound: &[(1.5, Nats)],
    },
    Criterion {
        workload: "latency",
        subject: AirmailMemory,
        column: 0,
        at_least: false,
        bound: &[(1.5, Nats)],
    },
    Criterion {
        workload: "latency",
        subject: AirmailMemory,
        column: 1,
        at_least: false,
        bound: &[(2.0, Nats)],
    },
    Criterion {
        workload: "latency",
        subject: Airmail,
        column: 0,
        at_least: false,
        bound: &[(1.6, Disk), (1.5, Nats)],
    },
    Criterion {
        workload: "latency",
        subject: Airmail,
        column: 1,
        at_least: false,
        bound: &[(2.2, Disk), (2.0, Nats)],
    },
];

/// How a bound was kept.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Verdict {
    /// What is compared with what.
    says: String,
    /// The figure over the bound.
    over_bound: Spread,
    reached: bool,
}

/// All bounds of a workload.
pub(super) fn verdicts(
    workload: &Workload,
    runs: &BTreeMap<&'static str, Vec<Run>>,
) -> Vec<Verdict> {
    let mine = CRITERIA
        .iter()
        .filter(|criterion| criterion.workload == workload.name);
    mine.map(|criterion| criterion.judge(workload, runs))
        .collect()
}

/// A line for each, in Markdown.
pub(super) fn lines(verdicts: &[Verdict]) -> String {
    let mut out = String::new();
    for verdict in verdicts {
        let Spread {
            median,
            least,
            most,
            ..
        } = verdict.over_bound;
        let word = if verdict.reached {
            "reached"
        } else {
            "not reached"
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "- {}: {median:.2} of it ({least:.2} - {most:.2}), {word}",
            verdict.says
        );
    }
    out
}

impl Criterion {
    fn judge(&self, workload: &Workload, runs: &BTreeMap<&'static str, Vec<Run>>) -> Verdict {
        let figure = |subject: Subject, round: usize| {
            let run = runs.get(subject.name())?.get(round)?;
            run.figures(workload.figure).get(self.column).copied()
        };
        let bound = |round: usize| {
            let terms = self.bound.iter();
            terms
                .map(|(factor, subject)| Some(factor * figure(*subject, round)?))
                .sum::<Option<f64>>()
        };
        let rounds = runs.values().map(Vec::len).max().unwrap_or_default();
        let parts = (0..rounds).filter_map(|round| {
            let bound = bound(round).filter(|bound| *bound > 0.0)?;
            Some(figure(self.subject, round)? / bound)
        });
        let over_bound = Spread::of(parts.collect());
        let terms: Vec<String> = self
            .bound
            .iter()
            .map(|(factor, subject)| format!("{factor} x {}", subject.name()))
            .collect();
        let side = if self.at_least { "at least" } else { "at most" };
        Verdict {
            says: format!(
                "{} of {} to be {side} {}",
                columns(workload.figure)[self.column],
                self.subject.name(),
                terms.join(" + ")
            ),
            reached: rounds > 0
                && if self.at_least {
                    over_bound.median >= 1.0
                } else {
                    over_bound.median <= 1.0
                },
            over_bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::workloads::WORKLOADS;

    fn run(p50: u32, p99: u32) -> Run {
        let report = format!(r#"{{"latency_us":{{"p50":{p50},"p99":{p99}}}}}"#);
        serde_json::from_str(&report).unwrap()
    }

    #[test]
    fn a_durable_latency_is_held_to_the_disks_own_and_to_the_way_of_a_rival() {
        let workload = WORKLOADS.iter().find(|found| found.name == "latency");
        let of = |subject: Subject, p50, p99| (subject.name(), vec![run(p50, p99)]);
        let runs = [
            of(Airmail, 460, 2640),
            of(AirmailMemory, 151, 399),
            of(Disk, 200, 1000),
            of(Nats, 100, 200),
        ];
        let verdicts = verdicts(workload.unwrap(), &runs.into());
        let reached: Vec<bool> = verdicts.iter().map(|verdict| verdict.reached).collect();
        // 151 > 1.5 x 100; 399 <= 2 x 200; 460 <= 1.6 x 200 + 1.5 x 100; 2640 > 2.2 x 1000 + 2 x 200.
        assert_eq!(reached, [false, true, true, false]);
        let lines = lines(&verdicts);
        let words = "1.6 x the disk alone + 1.5 x NATS core";
        assert!(lines.contains(words), "{lines}");
    }

    #[test]
    fn every_criterion_is_one_of_a_workload_that_has_its_systems() {
        for criterion in CRITERIA {
            let workload = WORKLOADS
                .iter()
                .find(|found| found.name == criterion.workload)
                .unwrap();
            assert!(criterion.column < columns(workload.figure).len());
            let others = criterion.bound.iter().map(|(_, subject)| *subject);
            for subject in others.chain([criterion.subject]) {
                assert!(workload.subjects.contains(&subject), "{criterion:?}");
            }
        }
    }
}
