//! Sweeps over fixed bounds: each bound several times, all bounds of all sweeps before any of them once
//! more, every other time downwards. So a slow minute of the machine meets one run of many bounds, and
//! not all runs of one.

use super::case::{Case, Setup};
use super::changes::Phase;
use super::outcome::{Outcome, courses};
use super::plan::{Plan, Until};
use super::runs::Runner;
use airmail_experiments::flow::Sweep;
use airmail_flow::LimiterKind;
use airmail_queueing::knee::Measurement;
use std::f64::consts::SQRT_2;

/// The highest bound of a sweep.
const BOUND_MAX: u64 = 1 << 17;

/// The sweep of one setup, whatever the distribution.
#[derive(Debug)]
pub(super) struct SweepOf {
    pub(super) setup: Setup,
    pub(super) sweep: Sweep,
}

impl Plan {
    /// Setups that have a sweep: once for all distributions, and once for each capacity of one that
    /// changes.
    pub(super) fn swept_setups(&self) -> Vec<Setup> {
        let mut swept = Vec::new();
        if self.sweep_ms == 0 {
            return swept;
        }
        let changing = self.changing_setups();
        let changing = changing
            .iter()
            .flat_map(|setup| Phase::ALL.map(|phase| phase.swept(setup)));
        for setup in self.setups().into_iter().map(Setup::swept).chain(changing) {
            if !swept.contains(&setup) {
                swept.push(setup);
            }
        }
        swept
    }
}

impl Runner<'_> {
    /// All sweeps, as often as is planned.
    pub(super) fn sweeps(&mut self) -> anyhow::Result<()> {
        for pass in 0..self.plan.sweep_runs {
            for setup in self.plan.swept_setups() {
                if self.stopped() {
                    return Ok(());
                }
                let mut sweep = self.take(setup);
                let done = self.pass(&setup, &mut sweep, pass);
                if sweep.runs().next().is_some() {
                    self.measured.sweeps.push(SweepOf { setup, sweep });
                }
                done?;
                self.bar.inc(1);
            }
        }
        Ok(())
    }

    /// The sweep so far, out of the results, so that it can grow.
    fn take(&mut self, setup: Setup) -> Sweep {
        let mut sweeps = self.measured.sweeps.iter();
        let known = sweeps.position(|sweep| sweep.setup == setup);
        known.map_or_else(Sweep::default, |place| {
            self.measured.sweeps.remove(place).sweep
        })
    }

    /// All known bounds once more; then on from the highest, if more runs show that it gains yet; at first
    /// also a closer look around the knee.
    fn pass(&mut self, setup: &Setup, sweep: &mut Sweep, pass: u32) -> anyhow::Result<()> {
        let mut bounds = sweep.bounds();
        if pass % 2 == 1 {
            bounds.reverse();
        }
        for bound in bounds {
            self.bound(setup, sweep, bound)?;
        }
        self.double(setup, sweep)?;
        if pass > 0 {
            return Ok(());
        }
        let lowest = self.plan.lowest_bound(setup.place);
        let knee = sweep.knee().map_or(0, |knee| knee.bound);
        for near in [knee as f64 / SQRT_2, knee as f64 * SQRT_2] {
            let near = near.round() as u64;
            if near > lowest && !sweep.bounds().contains(&near) {
                self.bound(setup, sweep, near)?;
            }
        }
        Ok(())
    }

    /// Doubles the highest bound until nothing is gained. That one takes too long is believed when a second
    /// run says so too.
    fn double(&mut self, setup: &Setup, sweep: &mut Sweep) -> anyhow::Result<()> {
        let lowest = self.plan.lowest_bound(setup.place);
        loop {
            let next = sweep.next_bound().unwrap_or(lowest);
            let bound = match sweep.takes_too_long() {
                Some(1) => next / 2,
                _ if sweep.is_spent() || next > BOUND_MAX.max(lowest) => return Ok(()),
                _ => next,
            };
            let known = sweep.runs().count();
            self.bound(setup, sweep, bound)?;
            if sweep.runs().count() == known {
                // So much is not even acknowledged in the time that there is, or it is to stop.
                return Ok(());
            }
        }
    }

    /// One more run, unless it is to stop.
    fn bound(&mut self, setup: &Setup, sweep: &mut Sweep, bound: u64) -> anyhow::Result<()> {
        let name = format!("{setup}, a fixed bound of {bound}");
        self.bar.set_message(name.clone());
        let points = sweep.points().into_iter();
        let below = points.take_while(|point| point.bound <= bound).last();
        // What is known of the throughput says how long windows have to be.
        let rate_per_s = below.map_or(0.0, |point| point.rate_per_s.median);
        let gate = self
            .plan
            .fixed(bound, rate_per_s / f64::from(setup.limiters()));
        let case = Case {
            setup: *setup,
            limiter: LimiterKind::Fixed,
        };
        let until = Until::time_ms(self.plan.sweep_ms);
        let Some(round) = self.run(&case, gate, setup.storage.option(), until)? else {
            return Ok(());
        };
        if !round.flown.is_sound() {
            self.measured.sweep_faults.push(name);
        }
        if let Some(outcome) = Outcome::of_run(&courses(setup.place, &round)) {
            sweep.enter(Measurement {
                bound,
                rate_per_s: outcome.rate_per_s,
                latency_s: outcome.latency_s,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;

    #[test]
    fn distributions_share_a_sweep_and_a_changing_capacity_has_two() {
        let plan = plan("--topics 1,16 --publishers 2 --storages memory --side pilot");
        let swept = plan.swept_setups();
        assert_eq!(swept.len(), 2 + 2);
        let names: Vec<String> = swept
            .iter()
            .filter_map(|setup| setup.storage.option())
            .collect();
        assert!(
            names.contains(&"--log=memory:?service_us=2000".to_owned()),
            "{names:?}"
        );
    }

    #[test]
    fn without_a_time_there_is_no_sweep() {
        assert!(plan("--sweep 0s").swept_setups().is_empty());
    }
}
