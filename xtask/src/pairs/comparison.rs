//! Result of a workload's rounds: ratios, their spread, and whether bounds are kept.

use super::figures::{Figure, Figures, shown};
use super::versions::Version;
use super::workloads::Workload;
use crate::quartiles::Quartiles;
use serde::Serialize;
use std::fmt::{self, Write as _};

/// Bounds on medians of ratios, head over base. Without one, nothing is judged.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Bounds {
    /// The most that processor time a message may be of the base's: clients and node, each for itself
    #[arg(long, value_name = "RATIO")]
    max_cpu: Option<f64>,
    /// The least that the rate may be of the base's; looked at where there is no timetable
    #[arg(long, value_name = "RATIO")]
    min_rate: Option<f64>,
    /// The most that p50 may be of the base's
    #[arg(long, value_name = "RATIO")]
    max_p50: Option<f64>,
    /// The most that p99 may be of the base's
    #[arg(long, value_name = "RATIO")]
    max_p99: Option<f64>,
    /// The most that the node's memory may be of the base's
    #[arg(long, value_name = "RATIO")]
    max_memory: Option<f64>,
}

impl Bounds {
    pub(super) fn is_empty(&self) -> bool {
        let all = [
            self.max_cpu,
            self.min_rate,
            self.max_p50,
            self.max_p99,
            self.max_memory,
        ];
        all.iter().all(Option::is_none)
    }
}

/// A bound and what became of it.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    says: String,
    pub(super) holds: bool,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.holds {
            "holds"
        } else {
            "BEYOND ITS BOUND"
        };
        write!(f, "{}: {word}", self.says)
    }
}

/// A figure of both versions over the rounds.
#[derive(Clone, Debug, Serialize)]
struct Row {
    figure: Figure,
    base: Quartiles,
    head: Quartiles,
    /// Head over base, each within its round.
    ratio: Quartiles,
}

/// A workload, measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Comparison {
    workload: Workload,
    rows: Vec<Row>,
    rounds: Vec<[Figures; 2]>,
}

impl Comparison {
    /// Compares rounds, each with base and head. A figure that is missing on one side of any round
    /// is left out.
    pub(super) fn of(workload: Workload, rounds: Vec<[Figures; 2]>) -> Comparison {
        let first = rounds.first().map(|[_, head]| head.measured.keys());
        let figures = first.into_iter().flatten().copied();
        let rows = figures.filter_map(|figure| row(figure, &rounds)).collect();
        Comparison {
            workload,
            rows,
            rounds,
        }
    }

    /// Table for people.
    pub(super) fn table(&self, base: &Version, head: &Version) -> String {
        let (name, rounds) = (self.workload.name(), self.rounds.len());
        let arguments = self.workload.arguments().join(" ");
        let mut out = format!(
            "{name}: {rounds} rounds of `airmail bench {arguments}`\n\
             base {}: {}\nhead {}: {}\n\n{:<38} {:>10} {:>10} {:>8}  {:<15} {:<15}\n",
            base.short,
            base.subject,
            head.short,
            head.subject,
            "medians",
            "base",
            "head",
            "ratio",
            "quartiles",
            "least and most",
        );
        for row in &self.rows {
            let ratio = &row.ratio;
            // Writing to a string does not fail.
            let _ = writeln!(
                out,
                "{:<38} {:>10} {:>10} {:>8.3}  {:<15} {:<15}",
                row.figure.name(),
                shown(row.base.median),
                shown(row.head.median),
                ratio.median,
                format!("{:.3} - {:.3}", ratio.lower_quartile, ratio.upper_quartile),
                format!("{:.3} - {:.3}", ratio.least, ratio.most),
            );
        }
        out
    }

    /// The bounds that are for this workload. One that was asked for, and that nothing was measured for,
    /// is not kept.
    pub(super) fn judge(&self, bounds: &Bounds) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let mut at_most = |figures: &[Figure], bound: Option<f64>| {
            for figure in figures {
                verdicts.extend(bound.map(|bound| self.verdict(*figure, bound, false)));
            }
        };
        if self.workload == Workload::Memory {
            at_most(&[Figure::NodeMemoryKib], bounds.max_memory);
            return verdicts;
        }
        let sides = [Figure::ClientsNs, Figure::NodeNs];
        if sides.iter().all(|figure| self.row(*figure).is_some()) {
            at_most(&sides, bounds.max_cpu);
        } else {
            at_most(&[Figure::AllNs], bounds.max_cpu);
        }
        at_most(&[Figure::P50Us], bounds.max_p50);
        at_most(&[Figure::P99Us], bounds.max_p99);
        at_most(&[Figure::NodeMemoryKib], bounds.max_memory);
        if self.workload != Workload::Latency {
            let rate = bounds.min_rate;
            verdicts.extend(rate.map(|bound| self.verdict(Figure::DeliveredPerS, bound, true)));
        }
        verdicts
    }

    /// A line for each version that lost, doubled or reordered messages.
    pub(super) fn unsound(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (round, pair) in self.rounds.iter().enumerate() {
            for (name, figures) in ["base", "head"].iter().zip(pair) {
                if let Some(unsound) = &figures.unsound {
                    let workload = self.workload.name();
                    lines.push(format!(
                        "{workload}, round {}, {name}: {unsound}",
                        round + 1
                    ));
                }
            }
        }
        lines
    }

    fn row(&self, figure: Figure) -> Option<&Row> {
        self.rows.iter().find(|row| row.figure == figure)
    }

    fn verdict(&self, figure: Figure, bound: f64, at_least: bool) -> Verdict {
        let side = if at_least { "at least" } else { "at most" };
        let asked = format!(
            "{}, {}: {side} {bound}",
            self.workload.name(),
            figure.name()
        );
        match self.row(figure) {
            None => Verdict {
                says: format!("{asked}, and not told by both versions"),
                holds: false,
            },
            Some(row) => {
                let median = row.ratio.median;
                Verdict {
                    says: format!("{asked}, and it is {median:.3}"),
                    holds: if at_least {
                        median >= bound
                    } else {
                        median <= bound
                    },
                }
            }
        }
    }
}

/// A figure over all rounds, if both versions tell it in each. One of 0 has no ratio.
fn row(figure: Figure, rounds: &[[Figures; 2]]) -> Option<Row> {
    let side = |side: usize| -> Option<Vec<f64>> {
        let of_round = |pair: &[Figures; 2]| pair[side].measured.get(&figure).copied();
        rounds.iter().map(of_round).collect()
    };
    let (base, head) = (side(0)?, side(1)?);
    if base.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let ratios = base.iter().zip(&head).map(|(base, head)| head / base);
    Some(Row {
        figure,
        ratio: Quartiles::of(ratios),
        base: Quartiles::of(base),
        head: Quartiles::of(head),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(rate: f64, clients: f64, node: Option<f64>) -> Figures {
        let node = node.map(|node| (Figure::NodeNs, node));
        let all = clients + node.map_or(0.0, |(_, node)| node);
        Figures {
            measured: [(Figure::DeliveredPerS, rate), (Figure::ClientsNs, clients)]
                .into_iter()
                .chain(node)
                .chain([(Figure::AllNs, all)])
                .collect(),
            unsound: None,
        }
    }

    /// The machine is twice as slow in the second round, and the ratios are the same.
    fn rounds() -> Vec<[Figures; 2]> {
        vec![
            [
                figures(100.0, 10.0, Some(20.0)),
                figures(99.0, 11.0, Some(20.0)),
            ],
            [
                figures(50.0, 20.0, Some(40.0)),
                figures(49.5, 22.0, Some(40.0)),
            ],
        ]
    }

    fn told(bounds: Bounds, workload: Workload, rounds: Vec<[Figures; 2]>) -> Vec<(String, bool)> {
        let verdicts = Comparison::of(workload, rounds).judge(&bounds);
        let one = |verdict: Verdict| (verdict.to_string(), verdict.holds);
        verdicts.into_iter().map(one).collect()
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let comparison = Comparison::of(Workload::E2e, rounds());
        let ratio = comparison.row(Figure::ClientsNs).unwrap().ratio;
        assert_eq!(ratio.least.to_bits(), 1.1f64.to_bits());
        assert_eq!(ratio.most.to_bits(), 1.1f64.to_bits());
    }

    #[test]
    fn clients_and_node_are_judged_each_for_itself() {
        let bounds = Bounds {
            max_cpu: Some(1.02),
            ..Bounds::default()
        };
        let verdicts = told(bounds, Workload::E2e, rounds());
        let holds: Vec<bool> = verdicts.iter().map(|(_, holds)| *holds).collect();
        assert_eq!(holds, [false, true], "{verdicts:?}");
        assert!(verdicts[0].0.starts_with("e2e, clients"), "{verdicts:?}");
    }

    #[test]
    fn a_version_that_does_not_tell_its_node_is_judged_by_the_whole() {
        let bounds = Bounds {
            max_cpu: Some(1.02),
            ..Bounds::default()
        };
        let old = vec![[figures(1.0, 10.0, None), figures(1.0, 10.0, Some(0.1))]];
        let verdicts = told(bounds, Workload::E2e, old);
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
        assert!(
            verdicts[0].0.contains("both") && verdicts[0].1,
            "{verdicts:?}"
        );
    }

    #[test]
    fn a_rate_below_its_bound_is_told_and_a_timetable_has_none() {
        let bounds = Bounds {
            min_rate: Some(0.995),
            ..Bounds::default()
        };
        assert!(!told(bounds, Workload::E2e, rounds())[0].1);
        assert!(told(bounds, Workload::Latency, rounds()).is_empty());
    }

    #[test]
    fn a_bound_that_nothing_was_measured_for_is_not_kept() {
        let bounds = Bounds {
            max_p99: Some(2.0),
            ..Bounds::default()
        };
        assert!(!told(bounds, Workload::E2e, rounds())[0].1);
    }

    #[test]
    fn a_round_that_lost_messages_is_told_with_its_side() {
        let mut rounds = rounds();
        rounds[1][0].unsound = Some("missing 3".to_owned());
        let told = Comparison::of(Workload::E2e, rounds).unsound();
        assert_eq!(told, ["e2e, round 2, base: missing 3"]);
    }
}
