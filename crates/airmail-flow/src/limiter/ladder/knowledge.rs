//! Knowledge of a system: the rungs, the level that they are relative to, and the choices that follow.
//!
//! Values are ln λ relative to the level at rest, so that differences are shares whatever the units, and a
//! system that becomes slower as a whole leaves them as they are. Each has an error, the noise over the
//! root of its looks. A choice between rungs takes the error into account: of many noisy values the greatest
//! is too great, so a part of its error is taken off, and a higher rung must be better by all of it.

use super::change::Change;
use super::rungs::{COUNT_MAX, Rung, Rungs, Seen, Step};
use crate::rule::LadderRule as R;
use crate::settings::LadderSettings;

/// Errors that are taken off each value where the greatest of several is sought.
const DOUBT: f64 = 1.5;
/// Errors by which a lower rung must have enough. Fewer than a higher one: what a rung too low costs is
/// seen within a few windows.
const DOWN: f64 = 0.3;
/// Multiple of the latency at the lowest bound that is always within the budget.
const UNLOADED: f64 = 3.0;
/// Share of the budget that messages may take before the bound is lowered for it.
const OVER: f64 = 1.25;
/// Looks that a rung is given credit for when it becomes the one at rest: the windows that follow soon
/// count for more.
const ARRIVAL: u32 = 2;

/// The table with its level.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    settings: LadderSettings,
    /// Where it rests, or rested before the scan.
    pub(super) rung: Rung,
    /// ln λ at rest; the table is relative to it. 0 while it scans.
    pub(super) level: f64,
    pub(super) rungs: Rungs,
    pub(super) change: Change,
}

impl Knowledge {
    pub(super) fn new(settings: LadderSettings) -> Knowledge {
        Knowledge {
            settings,
            rung: Rung::at_most(0),
            level: 0.0,
            rungs: Rungs::default(),
            change: Change::default(),
        }
    }

    /// Forgets all but the rung and the noise.
    pub(super) fn forget(&mut self) {
        self.rungs.clear();
        self.change.restart();
        self.level = 0.0;
    }

    /// Takes a window at rest into the level, no more of it than one window counts.
    pub(super) fn rest(&mut self, look: f64, in_flight: f64) {
        let count = (self.count() + 1).min(COUNT_MAX);
        self.level += self.change.clipped(look - self.level) / f64::from(count);
        let seen = Seen {
            value: 0.0,
            count,
            in_flight,
        };
        self.rungs.set(self.rung, seen);
    }

    /// Notes what was done under a bound that held nothing back. It could have been more, so it counts only if it
    /// is more than was done under any lower bound: then that one held back what could have been done.
    pub(super) fn at_least(&mut self, rung: Rung, value: f64, in_flight: f64) {
        let steps = self.rungs.isotonic();
        let below = steps.iter().take_while(|step| step.rung < rung);
        if below.map(|step| step.value).all(|most| value > most) {
            self.rungs.look(rung, value, in_flight);
        }
    }

    /// Number of windows behind the level.
    pub(super) fn count(&self) -> u32 {
        self.rungs.get(self.rung).map_or(0, |seen| seen.count)
    }

    /// Rests at this rung from now on.
    pub(super) fn go(&mut self, step: Step) {
        self.rung = step.rung;
        self.level += step.value;
        self.rungs.rebase(step.value);
        self.change.restart();
        let seen = Seen {
            value: 0.0,
            count: step.count.min(ARRIVAL),
            in_flight: step.in_flight,
        };
        self.rungs.set(step.rung, seen);
    }

    /// W with `in_flight` at this value, in seconds.
    pub(super) fn latency_s(&self, in_flight: f64, value: f64) -> f64 {
        in_flight / (self.level + value).exp()
    }

    /// Whether messages take no longer than the budget times `share`.
    pub(super) fn within(&self, in_flight: f64, value: f64, share: f64) -> bool {
        let lowest = self.rungs.lowest();
        let unloaded_s = lowest.map_or(0.0, |(_, seen)| self.latency_s(seen.in_flight, seen.value));
        let budget_s = self.budget_s().max(UNLOADED * unloaded_s);
        self.latency_s(in_flight, value) <= budget_s * share
    }

    /// The settings' budget.
    fn budget_s(&self) -> f64 {
        self.settings.budget_ms as f64 / 1e3
    }

    /// Whether the latency at the lowest bound has to be known, where messages take so long at a higher one: a
    /// multiple of it may be more than the budget. What was looked at first must not stand in for it, or
    /// each scan, which begins at half of the bound, would allow more than the one before.
    pub(super) fn needs_unloaded(&self, latency_s: f64) -> bool {
        UNLOADED * latency_s > self.budget_s()
    }

    /// The least rung worth resting at, where throughput has this value: below it messages take so little
    /// time that less does not matter.
    pub(super) fn floor(&self, value: f64) -> Rung {
        let floor_s = (self.settings.floor_us as f64 / 1e6).min(self.budget_s());
        Rung::at_most(((self.level + value).exp() * floor_s) as u64)
    }

    /// Those within the budget.
    pub(super) fn allowed<'a>(&self, steps: &'a [Step]) -> Vec<&'a Step> {
        let fits = |step: &&Step| self.within(step.in_flight, step.value, 1.0);
        steps.iter().filter(fits).collect()
    }

    /// The most ln λ within the budget.
    fn top(&self, steps: &[Step]) -> Option<f64> {
        let noise = DOUBT * self.change.noise();
        let sure = |step: &Step| step.value - noise / f64::from(step.count.max(1)).sqrt();
        self.allowed(steps).into_iter().map(sure).reduce(f64::max)
    }

    /// ln λ that is enough: a share of the most within the budget.
    pub(super) fn enough(&self, steps: &[Step]) -> Option<f64> {
        Some(self.top(steps)? + self.share())
    }

    /// The least rung with enough throughput, no lower than is worth it; if there is none, the highest within
    /// the budget, or the lowest that is known.
    pub(super) fn least(&self, steps: &[Step]) -> Option<Step> {
        let enough = self.enough(steps);
        let fits = |step: &&Step| {
            step.rung >= self.floor(step.value) && enough.is_some_and(|least| step.value >= least)
        };
        let highest = || self.allowed(steps).last().copied();
        let least = steps.iter().find(fits).or_else(highest);
        least.or(steps.first()).copied()
    }

    /// A rung that is better than the one at rest, by more than their error, with the cause to go there.
    pub(super) fn better(&self, steps: &[Step]) -> Option<(Step, R)> {
        let here = steps.iter().find(|step| step.rung == self.rung)?;
        let allowed = self.allowed(steps);
        if !self.within(here.in_flight, here.value, OVER)
            && let Some(target) = allowed.iter().rfind(|step| step.rung < self.rung)
        {
            return Some((**target, R::OverBudget));
        }
        let higher = allowed.iter().filter(|step| step.rung > self.rung);
        let sure = higher
            .clone()
            .map(|step| step.value - self.noise_of(step.count));
        if let Some(sure) = sure.reduce(f64::max)
            && sure + self.share() > here.value
            && let Some(target) = higher
                .clone()
                .find(|step| step.value >= sure + self.share())
        {
            return Some((**target, R::MoveUp));
        }
        let top = self.top(steps).unwrap_or(here.value).max(here.value);
        let floor = self.floor(0.0);
        let mut lower = steps
            .iter()
            .filter(|step| (floor..self.rung).contains(&step.rung));
        let enough =
            |step: &&Step| step.value - DOWN * self.noise_of(step.count) >= top + self.share();
        lower.find(enough).map(|target| (*target, R::MoveDown))
    }

    /// Standard deviation of the difference between so many looks and the level.
    pub(super) fn noise_of(&self, looks: u32) -> f64 {
        let both = 1.0 / f64::from(looks.max(1)) + 1.0 / f64::from(self.count().max(1));
        self.change.noise() * both.sqrt()
    }

    fn share(&self) -> f64 {
        self.settings.throughput_share.ln()
    }
}
