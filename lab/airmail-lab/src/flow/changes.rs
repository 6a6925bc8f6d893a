//! Runs in which the capacity is halved and doubled while the node runs: each limiter has to find another
//! knee, and back.
//!
//! The storage is served, one batch after another, so that its capacity is known and nothing else changes; its
//! timetable begins with the first append, and so does the run. Where the disk is among the storages, there are
//! runs on a real one too, which neighbours slow meanwhile.

use super::case::{Case, Setup, Storage};
use super::outcome::{Outcome, courses, periods_of, recovery};
use super::plan::{Plan, Until};
use super::runs::{Measured, Round, Runner};
use airmail_bench::Spread;
use airmail_experiments::flow::Window;
use airmail_flow::LimiterKind;
use airmail_queueing::knee::Knee;

/// All runs of a limiter in such a setup.
#[derive(Debug)]
pub(super) struct ChangeRuns {
    pub(super) case: Case,
    pub(super) rounds: Vec<Round>,
}

/// Capacities one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// All of it, from the beginning.
    Full,
    /// Half of it.
    Halved,
    /// All of it again.
    Doubled,
}

impl Phase {
    /// All of them, in the order of time.
    pub(super) const ALL: [Phase; 3] = [Phase::Full, Phase::Halved, Phase::Doubled];

    /// Its name in rows and tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Phase::Full => "full",
            Phase::Halved => "halved",
            Phase::Doubled => "doubled",
        }
    }

    /// The setup whose sweep has its knee.
    pub(super) fn swept(self, setup: &Setup) -> Setup {
        let storage = match (setup.storage, self) {
            (Storage::Served(service_us), Phase::Halved) => {
                Storage::Served(service_us.saturating_mul(2))
            }
            (Storage::SharedDiskAWhile, Phase::Halved) => Storage::SharedDisk,
            (Storage::SharedDiskAWhile, _) => Storage::Disk,
            (storage, _) => storage,
        };
        Setup { storage, ..*setup }
    }

    /// Its beginning and its end, in seconds since the run began: as planned, or as the capacity was halved.
    pub(super) fn span_s(self, change_ms: u64, halved_s: Option<(f64, f64)>) -> (f64, f64) {
        let length_s = change_ms as f64 / 1e3;
        let (from_s, to_s) = halved_s.unwrap_or((length_s, 2.0 * length_s));
        match self {
            Phase::Full => (0.0, from_s),
            Phase::Halved => (from_s, to_s),
            Phase::Doubled => (to_s, 3.0 * length_s),
        }
    }
}

/// Findings of a limiter in one phase, over all rounds.
#[derive(Clone, Debug)]
pub(super) struct PhaseFound {
    pub(super) phase: Phase,
    pub(super) knee: Option<Knee>,
    /// Mean bound in the last half of the phase, and share and multiple of the knee's.
    pub(super) bound: Option<Spread>,
    pub(super) rate_share: Option<Spread>,
    pub(super) latency_ratio: Option<Spread>,
    /// Periods until it was at the knee, of those runs in which it came there.
    pub(super) windows: Option<Spread>,
    /// Number of runs in which it came there.
    pub(super) recovered: usize,
    /// Seconds until a limiter said that the system had changed, of those that did.
    pub(super) told_s: Option<Spread>,
    /// Number of limiters that said so.
    pub(super) told: usize,
    /// Number of limiters.
    pub(super) limiters: usize,
}

impl ChangeRuns {
    /// Findings of a phase.
    pub(super) fn phase(&self, phase: Phase, plan: &Plan, measured: &Measured) -> PhaseFound {
        let setup = &self.case.setup;
        let knee = measured.knee(&phase.swept(setup));
        let runs = self.rounds.iter().map(|round| {
            let span_s = phase.span_s(plan.change_ms, round.halved_s);
            (courses(setup.place, round), span_s)
        });
        let runs: Vec<_> = runs.collect();
        let outcomes = runs.iter().filter_map(|(run, (from_s, to_s))| {
            // What is under way at a change belongs to neither side.
            Outcome::of_part(run, f64::midpoint(*from_s, *to_s), *to_s)
        });
        let outcomes: Vec<Outcome> = outcomes.collect();
        let beside = knee.map(|knee| outcomes.iter().map(move |outcome| outcome.beside(&knee)));
        let recoveries: Vec<usize> = knee.map_or_else(Vec::new, |knee| {
            let found = runs.iter().filter_map(|(run, (from_s, to_s))| {
                let periods = periods_of(run, *from_s, *to_s);
                Some(recovery(&periods, *from_s, &knee)?.0)
            });
            found.collect()
        });
        let told: Vec<f64> = self
            .limiters()
            .filter_map(|(round, windows)| {
                let (from_s, to_s) = phase.span_s(plan.change_ms, round.halved_s);
                let within = |window: &&Window| window.seconds > from_s && window.seconds <= to_s;
                let mut within = windows.iter().filter(within);
                Some(within.find(|window| window.tells_a_change())?.seconds - from_s)
            })
            .collect();
        PhaseFound {
            phase,
            knee,
            bound: Spread::of(outcomes.iter().map(|outcome| outcome.bound)),
            rate_share: beside
                .clone()
                .and_then(|beside| Spread::of(beside.map(|beside| beside.rate_share))),
            latency_ratio: beside
                .and_then(|beside| Spread::of(beside.map(|beside| beside.latency_ratio))),
            windows: Spread::of(recoveries.iter().map(|windows| *windows as f64)),
            recovered: recoveries.len(),
            told: told.len(),
            told_s: Spread::of(told),
            limiters: self.limiters().count(),
        }
    }

    /// The windows of each limiter of each round, with the round.
    fn limiters(&self) -> impl Iterator<Item = (&Round, &[Window])> {
        self.rounds.iter().flat_map(|round| {
            let windows = round.windows(self.case.setup.place).into_iter();
            windows.map(move |windows| (round, windows))
        })
    }
}

impl Runner<'_> {
    /// One round of the runs in which the capacity changes.
    pub(super) fn changes(&mut self, number: u32) -> anyhow::Result<()> {
        let (change_ms, service_us) = (self.plan.change_ms, self.plan.service_us);
        let timetable = format!(
            "--log=memory:?service_us={service_us}@0s,{half_us}@{change_ms}ms,{service_us}@{twice_ms}ms",
            half_us = service_us.saturating_mul(2),
            twice_ms = change_ms.saturating_mul(2),
        );
        let until = Until::time_ms(change_ms.saturating_mul(3));
        for setup in self.plan.changing_setups() {
            let mut cases = self.plan.cases_of(setup);
            if number % 2 == 1 {
                cases.reverse();
            }
            for case in cases {
                let gate = match (self.measured.knee(&setup), case.limiter) {
                    (Some(knee), LimiterKind::Fixed) => self.plan.fixed_at(&setup, &knee),
                    (None, LimiterKind::Fixed) => continue,
                    (_, limiter) => self.plan.throttling(limiter),
                };
                self.bar.set_message(format!("{case}, halved and doubled"));
                let option = match setup.storage {
                    Storage::Served(_) => Some(timetable.clone()),
                    _ => setup.storage.option(),
                };
                let round = self.run(&case, gate, option, until)?;
                let mut known = self.measured.changes.iter_mut();
                match known.find(|known| known.case == case) {
                    Some(known) => known.rounds.extend(round),
                    None => self.measured.changes.push(ChangeRuns {
                        case,
                        rounds: round.into_iter().collect(),
                    }),
                }
                self.bar.inc(1);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Place;
    use super::super::plan::tests::plan;
    use super::super::runs::tests::flight;
    use super::super::sweeps::SweepOf;
    use super::*;
    use airmail_experiments::flow::Sweep;
    use airmail_queueing::knee::Measurement;

    /// Knees of 100 in flight at 10,000 messages/s, and of 50 at half of it.
    fn measured(setup: &Setup) -> Measured {
        let sweep = |phase: Phase, rate_per_s: f64| {
            let mut sweep = Sweep::default();
            sweep.enter(Measurement {
                bound: (rate_per_s / 100.0) as u64,
                rate_per_s,
                latency_s: 0.01,
            });
            SweepOf {
                setup: phase.swept(setup),
                sweep,
            }
        };
        Measured {
            sweeps: vec![sweep(Phase::Full, 10_000.0), sweep(Phase::Halved, 5_000.0)],
            ..Measured::default()
        }
    }

    #[test]
    fn each_phase_has_its_own_knee_and_its_own_part_of_the_run() {
        let plan = plan("--publishers 1 --change 2s --side publishers");
        let setup = plan.changing_setups()[0];
        assert_eq!(setup.place, Place::Publisher);
        let mut round = Round::default();
        round.flown.flights = vec![flight(100, 6.0, 10_000.0)];
        round.flown.flights[0].windows[25].rule = "gradient-changed".into();
        let runs = ChangeRuns {
            case: Case {
                setup,
                limiter: LimiterKind::Gradient,
            },
            rounds: vec![round],
        };
        let of = |phase| runs.phase(phase, &plan, &measured(&setup));
        let full = of(Phase::Full);
        assert!((full.rate_share.unwrap().median - 1.0).abs() < 1e-6);
        assert_eq!((full.recovered, full.told, full.limiters), (1, 0, 1));
        let halved = of(Phase::Halved);
        assert!((halved.rate_share.unwrap().median - 2.0).abs() < 1e-6);
        assert!((halved.told_s.unwrap().median - 0.6).abs() < 1e-6);
        assert_eq!(halved.knee.unwrap().bound, 50);
        assert_eq!(of(Phase::Doubled).told, 0);
    }
}
