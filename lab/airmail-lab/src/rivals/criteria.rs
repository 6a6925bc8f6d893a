//! Criteria for Airmail beside other systems, computed from the measurements.
//!
//! A bound is made of the other systems' values of the same round, so each round has its own; the
//! median of value over bound counts.

use super::Rounds;
use super::subject::Subject::{self, AirmailDisk, AirmailMemory, Disk, Nats};
use super::workload::Quantity;
use airmail_bench::Spread;
use std::collections::BTreeMap;

/// Measurements: rounds by workload and system.
type Reports = BTreeMap<(&'static str, Subject), Rounds>;

/// One bound.
#[derive(Debug)]
struct Criterion {
    workload: &'static str,
    /// The system whose value is judged.
    subject: Subject,
    quantity: Quantity,
    /// It is to be at least the bound, else at most.
    at_least: bool,
    /// The bound is the sum of these, each so often.
    bound: &'static [(f64, Subject)],
}

const CRITERIA: &[Criterion] = &[
    Criterion {
        workload: "e2e",
        subject: AirmailDisk,
        quantity: Quantity::Delivered,
        at_least: true,
        bound: &[(2.5, Nats)],
    },
    Criterion {
        workload: "fanout",
        subject: AirmailDisk,
        quantity: Quantity::Delivered,
        at_least: true,
        bound: &[(1.5, Nats)],
    },
    Criterion {
        workload: "latency",
        subject: AirmailMemory,
        quantity: Quantity::Median,
        at_least: false,
        bound: &[(1.5, Nats)],
    },
    Criterion {
        workload: "latency",
        subject: AirmailMemory,
        quantity: Quantity::P99,
        at_least: false,
        bound: &[(2.0, Nats)],
    },
    Criterion {
        workload: "latency",
        subject: AirmailDisk,
        quantity: Quantity::Median,
        at_least: false,
        bound: &[(1.6, Disk), (1.5, Nats)],
    },
    Criterion {
        workload: "latency",
        subject: AirmailDisk,
        quantity: Quantity::P99,
        at_least: false,
        bound: &[(2.2, Disk), (2.0, Nats)],
    },
];

/// Verdict on one bound.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// Sentence that says what is compared.
    pub(super) says: String,
    /// The value over the bound.
    pub(super) over_bound: Spread,
    pub(super) is_reached: bool,
}

/// Each bound for which enough was measured.
pub(super) fn verdicts(reports: &Reports) -> Vec<Verdict> {
    let verdicts = CRITERIA.iter().map(|criterion| criterion.judge(reports));
    verdicts.flatten().collect()
}

impl Criterion {
    fn judge(&self, reports: &Reports) -> Option<Verdict> {
        let value = |subject: Subject, round: u32| {
            let rounds = reports.get(&(self.workload, subject))?;
            Some(self.quantity.of(rounds.get(&round)?))
        };
        let bound = |round: u32| {
            let terms = self.bound.iter();
            let terms = terms.map(|(factor, subject)| Some(factor * value(*subject, round)?));
            terms.sum::<Option<f64>>().filter(|bound| *bound > 0.0)
        };
        let mine = reports.get(&(self.workload, self.subject))?;
        let over_bound = Spread::of(
            mine.iter()
                .filter_map(|(round, report)| Some(self.quantity.of(report) / bound(*round)?)),
        )?;
        let terms: Vec<String> = self
            .bound
            .iter()
            .map(|(factor, subject)| format!("{factor} x {}", subject.name()))
            .collect();
        let side = if self.at_least { "at least" } else { "at most" };
        Some(Verdict {
            says: format!(
                "{}, {} of {} to be {side} {}",
                self.workload,
                self.quantity.name(),
                self.subject.name(),
                terms.join(" + ")
            ),
            is_reached: if self.at_least {
                over_bound.median >= 1.0
            } else {
                over_bound.median <= 1.0
            },
            over_bound,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::WORKLOADS;
    use super::*;
    use airmail_bench::Report;
    use airmail_bench::latency::Percentiles;
    use airmail_bench::part::Part;

    fn round(p50: u64, p99: u64) -> Rounds {
        let settings = WORKLOADS[2].settings(700);
        let report = Report {
            latency_us: Percentiles {
                p50,
                p99,
                ..Percentiles::default()
            },
            ..Report::new("any", settings, Part::default(), None)
        };
        [(0, report)].into()
    }

    #[test]
    fn a_durable_latency_is_held_to_the_disks_own_and_to_the_way_of_a_rival() {
        let reports = [
            (("latency", AirmailDisk), round(460, 2640)),
            (("latency", AirmailMemory), round(151, 399)),
            (("latency", Disk), round(200, 1000)),
            (("latency", Nats), round(100, 200)),
        ];
        let verdicts = verdicts(&reports.into());
        let reached: Vec<bool> = verdicts.iter().map(|verdict| verdict.is_reached).collect();
        // 151 > 1.5 x 100; 399 <= 2 x 200; 460 <= 1.6 x 200 + 1.5 x 100; 2640 > 2.2 x 1000 + 2 x 200.
        assert_eq!(reached, [false, true, true, false]);
        let words = "1.6 x the disk alone + 1.5 x NATS core";
        assert!(verdicts[2].says.contains(words), "{verdicts:?}");
    }

    #[test]
    fn where_a_rival_was_not_measured_nothing_is_judged() {
        let alone = [(("latency", AirmailMemory), round(151, 399))];
        assert!(verdicts(&alone.into()).is_empty());
    }

    #[test]
    fn every_criterion_is_one_of_a_workload_that_has_its_systems() {
        for criterion in CRITERIA {
            let mut all = WORKLOADS.iter();
            let workload = all.find(|found| found.name == criterion.workload).unwrap();
            assert!(workload.quantities.contains(&criterion.quantity));
            let others = criterion.bound.iter().map(|(_, subject)| *subject);
            for subject in others.chain([criterion.subject]) {
                assert!(workload.has(subject), "{criterion:?}");
            }
        }
    }
}
