//! `gradient`: climbs to the bound with the most power λ^r / W, and stays there.
//!
//! Power has one peak over the bound, and it is at the knee: below, more in flight buys throughput
//! at no cost in latency; above, it buys latency alone. So the limiter needs no model and no
//! threshold of the system's: it tries another bound for one window, keeps it if that had more
//! power, and else goes back. Three habits make that quick, cheap and steady:
//!
//! - **A step that succeeds is repeated at twice its size**; one that fails is tried the other way
//!   at half of it. From anywhere the knee is near within a dozen windows, and the steps are small
//!   there.
//! - **A try costs about as much power as it is large**, so between neighbours that are known to
//!   have less power it rests the longer the larger the next step is. At the knee most windows are at
//!   the best bound known, and the next try is compared with their mean.
//! - **If the power of the same bound has changed, the system has**, and the search begins anew at
//!   once: downwards if power fell, upwards if it rose.
//!
//! Both λ and W must belong to one bound, so it asks for samples of messages admitted under it
//! alone ([`Limiter::settled_window`](super::Limiter::settled_window)). Power is compared by
//! its logarithm: differences are then shares, whatever the system's units.

use crate::meter::Sample;
use crate::rule::GradientRule as R;
use crate::settings::GradientSettings;

/// The mean power at rest gives each new window at least this weight, so that it follows slow
/// changes.
const REST_WEIGHT_MIN: f64 = 0.1;

/// Where the search stands.
#[derive(Clone, Debug)]
pub(super) struct Gradient {
    settings: GradientSettings,
    /// The best bound known.
    best: u64,
    /// Log power at `best`: a mean of the windows at rest there.
    reference: Mean,
    /// Whether the present bound is a try; otherwise it is `best`.
    trying: bool,
    upwards: bool,
    /// The next try's distance, as a share of the bound.
    step: f64,
    /// Whether the nearest bound below, and the one above, are known to have less power than
    /// `best`.
    fenced: [bool; 2],
    /// Messages that are admitted together: no step is smaller.
    batch: u64,
    /// Windows of this rest still to come.
    rest_left: u32,
}

impl Gradient {
    pub(super) fn new(settings: GradientSettings) -> Gradient {
        Gradient {
            settings,
            best: 0,
            reference: Mean::default(),
            trying: false,
            upwards: true,
            step: settings.step_initial,
            fenced: [false; 2],
            batch: 1,
            rest_left: 1,
        }
    }

    /// Fewest messages that a window has to hold under `bound`.
    pub(super) fn window_messages_min(&self, bound: u64) -> u64 {
        bound.saturating_mul(self.settings.window_round_trips)
    }

    /// Messages in flight at the latency floor: below it, no latency is worth throughput.
    pub(super) fn bound_floor(&self, sample: &Sample) -> u64 {
        let floor_s = self.settings.latency_floor_ms as f64 / 1e3;
        (sample.rate_per_s() * floor_s).round() as u64
    }

    /// The next bound, between the `ends`, after a sample measured under `bound`.
    pub(super) fn observe(&mut self, sample: &Sample, bound: u64, ends: (u64, u64)) -> (u64, R) {
        self.batch = sample.batch();
        let weight = self.settings.throughput_weight;
        let power = weight * sample.rate_per_s().ln() - sample.latency_s().ln();
        if self.trying {
            self.judge(power, bound, ends)
        } else {
            self.best = bound;
            self.rest(power, ends)
        }
    }

    fn judge(&mut self, power: f64, bound: u64, ends: (u64, u64)) -> (u64, R) {
        if power > self.reference.value {
            self.best = bound;
            self.reference = Mean::of(power);
            // Where it came from has less power, but only the smallest step makes a neighbour of
            // it.
            self.fenced = [false; 2];
            self.step = (self.step * 2.0).min(self.settings.step_max);
            let rule = if self.upwards { R::KeepUp } else { R::KeepDown };
            self.rest_left = 1;
            let next = self.towards(self.step, ends);
            self.trying = next != bound;
            return (next, rule);
        }
        self.trying = false;
        if bound == self.towards(self.settings.step_min, ends) {
            self.fenced[usize::from(self.upwards)] = true;
        }
        self.upwards = !self.upwards;
        self.step = (self.step / 2.0).max(self.settings.step_min);
        // No room is as good as less power.
        if self.towards(self.settings.step_min, ends) == self.best {
            self.fenced[usize::from(self.upwards)] = true;
            self.upwards = !self.upwards;
        }
        let settled = self.fenced == [true; 2];
        self.rest_left = if settled { self.long_rest(ends) } else { 1 };
        (self.best, R::TurnBack)
    }

    fn rest(&mut self, power: f64, ends: (u64, u64)) -> (u64, R) {
        let difference = power - self.reference.value;
        let limit = self.settings.changed_share.ln_1p();
        if self.reference.count > 0 && difference.abs() > limit {
            self.reference = Mean::of(power);
            self.upwards = difference > 0.0;
            self.step = self.step.max(self.settings.step_initial);
            self.fenced = [false; 2];
            return (self.attempt(ends), R::Changed);
        }
        self.reference.add(power);
        self.rest_left = self.rest_left.saturating_sub(1);
        if self.rest_left > 0 {
            return (self.best, R::Rest);
        }
        let next = self.attempt(ends);
        let rule = if next > self.best {
            R::TryUp
        } else {
            R::TryDown
        };
        (next, rule)
    }

    /// Number of windows to rest before the next try, so that tries cost about the same share of
    /// the power whether a step is a tenth of the bound or, where the bound is 1, all of it.
    fn long_rest(&self, ends: (u64, u64)) -> u32 {
        let next = self.towards(self.step, ends) as f64;
        let best = self.best as f64;
        let size = (next / best).max(best / next) - 1.0;
        (size * f64::from(self.settings.rest_windows))
            .round()
            .max(1.0) as u32
    }

    /// The bound to try next; the other way if there is no room in this one.
    fn attempt(&mut self, ends: (u64, u64)) -> u64 {
        if self.towards(self.step, ends) == self.best {
            self.upwards = !self.upwards;
        }
        let next = self.towards(self.step, ends);
        self.trying = next != self.best;
        next
    }

    fn towards(&self, step: f64, (min, max): (u64, u64)) -> u64 {
        let next = if self.upwards {
            // One goes also where the bound is below it.
            let best = self.best.max(self.batch);
            ((best as f64 * (1.0 + step)).round() as u64).max(best.saturating_add(self.batch))
        } else {
            ((self.best as f64 / (1.0 + step)).round() as u64)
                .min(self.best.saturating_sub(self.batch))
        };
        next.clamp(min.max(1), max.max(1))
    }
}

/// A mean that gives old values less and less weight.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    value: f64,
    count: u32,
}

impl Mean {
    fn of(value: f64) -> Mean {
        Mean { value, count: 1 }
    }

    fn add(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        let weight = (1.0 / f64::from(self.count)).max(REST_WEIGHT_MIN);
        self.value += weight * (value - self.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Decision;
    use crate::limiter::Limiter;
    use crate::rule::Rule;
    use crate::settings::LimiterSettings;
    use airmail_model::Mono;
    use std::time::Duration;

    /// A pipe that holds `knee` messages at no cost: above, latency grows with the messages in flight.
    fn pipe(knee: f64) -> impl Fn(u64) -> Sample {
        move |bound| {
            let latency_s = 0.01 * (bound as f64 / knee).max(1.0);
            sample(bound, latency_s)
        }
    }

    /// `bound` messages in flight, each taking so long.
    fn sample(bound: u64, latency_s: f64) -> Sample {
        let latency = Duration::from_secs_f64(latency_s);
        Sample {
            at: Mono(1),
            messages: bound * 1_000,
            batches: bound * 1_000,
            span: latency * 1_000,
            latency,
        }
    }

    fn limiter(bound_initial: u64) -> Limiter {
        Limiter::new(LimiterSettings {
            bound_initial,
            ..LimiterSettings::DEFAULT
        })
    }

    fn windows(
        limiter: &mut Limiter,
        system: impl Fn(u64) -> Sample,
        count: usize,
    ) -> Vec<Decision> {
        let decide = |_| limiter.observe(&system(limiter.bound()), false);
        (0..count).map(decide).collect()
    }

    fn rules(decisions: &[Decision]) -> Vec<R> {
        let rule = |decision: &Decision| match decision.rule {
            Rule::Gradient(rule) => rule,
            rule => panic!("{rule:?}"),
        };
        decisions.iter().map(rule).collect()
    }

    /// All but a few windows within a smallest step of the knee.
    fn assert_holds(decisions: &[Decision], knee: f64) {
        let near = |decision: &&Decision| {
            let ratio = decision.bound as f64 / knee;
            (1.0 / 1.16..=1.16).contains(&ratio) || decision.bound.abs_diff(knee as u64) <= 1
        };
        let count = decisions.iter().filter(near).count();
        assert_eq!(count, decisions.len(), "{decisions:#?}");
    }

    #[test]
    fn the_knee_is_found_from_far_below_and_from_far_above() {
        for knee in [1.0, 2.0, 7.0, 50.0, 333.0, 20_000.0] {
            for initial in [1, 30, 1_000, 100_000] {
                let mut limiter = limiter(initial);
                windows(&mut limiter, pipe(knee), 50);
                assert_holds(&windows(&mut limiter, pipe(knee), 100), knee);
            }
        }
    }

    #[test]
    fn what_succeeds_is_repeated_with_twice_the_step() {
        let mut limiter = limiter(100);
        let decisions = windows(&mut limiter, pipe(1e6), 5);
        assert_eq!(
            rules(&decisions),
            [R::TryUp, R::KeepUp, R::KeepUp, R::KeepUp, R::KeepUp]
        );
        let bounds: Vec<u64> = decisions.iter().map(|decision| decision.bound).collect();
        assert_eq!(bounds, [150, 300, 600, 1_200, 2_400]);
    }

    #[test]
    fn what_fails_is_undone_and_tried_the_other_way_with_half_the_step() {
        let mut limiter = limiter(100);
        let decisions = windows(&mut limiter, pipe(1.0), 5);
        assert_eq!(
            rules(&decisions),
            [R::TryUp, R::TurnBack, R::TryDown, R::KeepDown, R::KeepDown]
        );
        let bounds: Vec<u64> = decisions.iter().map(|decision| decision.bound).collect();
        assert_eq!(bounds, [150, 100, 80, 53, 27]);
    }

    #[test]
    fn between_neighbours_with_less_power_it_rests_the_longer_the_larger_a_step_is() {
        for (knee, rests) in [(100.0, 2), (4.0, 8), (1.0, 30)] {
            let mut limiter = limiter(knee as u64);
            windows(&mut limiter, pipe(knee), 50);
            let rules = rules(&windows(&mut limiter, pipe(knee), 100));
            let tries: Vec<usize> = (0..rules.len())
                .filter(|index| matches!(rules[*index], R::TryUp | R::TryDown))
                .collect();
            let least = tries
                .windows(2)
                .map(|pair| pair[1] - pair[0])
                .min()
                .unwrap();
            assert_eq!(least, rests + 1, "knee {knee}: {rules:?}");
        }
    }

    #[test]
    fn another_power_at_the_same_bound_begins_the_search_at_once() {
        let mut limiter = limiter(100);
        windows(&mut limiter, pipe(100.0), 50);
        let back = (0..20).any(|_| {
            let bound = limiter.bound();
            limiter.observe(&pipe(100.0)(bound), false).rule == Rule::Gradient(R::TurnBack)
        });
        assert!(back, "it tries, and comes back");
        // Half as fast: the same bound is now twice too high.
        let bound = limiter.bound();
        let decision = limiter.observe(&sample(bound, 0.02 * bound as f64 / 100.0), false);
        assert_eq!(decision.rule, Rule::Gradient(R::Changed));
        assert!(decision.bound < bound, "downwards, as power fell");
    }

    #[test]
    fn it_stays_between_its_ends() {
        let ends = |initial| {
            Limiter::new(LimiterSettings {
                bound_initial: initial,
                bound_min: 10,
                bound_max: 40,
                ..LimiterSettings::DEFAULT
            })
        };
        for knee in [1.0, 1_000.0] {
            let mut limiter = ends(20);
            for decision in windows(&mut limiter, pipe(knee), 100) {
                assert!((10..=40).contains(&decision.bound));
            }
        }
        let mut narrow = Limiter::new(LimiterSettings {
            bound_initial: 10,
            bound_min: 10,
            bound_max: 10,
            ..LimiterSettings::DEFAULT
        });
        for decision in windows(&mut narrow, pipe(100.0), 30) {
            assert_eq!(decision.bound, 10);
        }
    }

    #[test]
    fn more_weight_for_throughput_holds_a_higher_bound_where_a_commit_has_a_fixed_cost() {
        // 2 ms a commit and 10 µs a message: power λ^r/W peaks at r times 200 messages.
        let commit = |bound: u64| sample(bound, 0.002 + 1e-5 * bound as f64);
        for weight in [1.0, 4.0] {
            let mut settings = LimiterSettings::DEFAULT;
            settings.gradient.throughput_weight = weight;
            let mut limiter = Limiter::new(settings);
            windows(&mut limiter, commit, 50);
            let best = windows(&mut limiter, commit, 100);
            let mean = best.iter().map(|decision| decision.bound).sum::<u64>() as f64 / 100.0;
            assert!(
                (mean / (200.0 * weight) - 1.0).abs() < 0.2,
                "{weight}: {mean}"
            );
        }
    }

    #[test]
    fn no_step_is_smaller_than_what_is_admitted_together() {
        // Batches of 1,000: the bound counts in whole ones, and the knee is at eight.
        let batches = |bound: u64| {
            let whole = (bound / 1_000).max(1);
            let latency = Duration::from_secs_f64(0.01 * (whole as f64 / 8.0).max(1.0));
            Sample {
                at: Mono(1),
                messages: whole * 1_000_000,
                batches: whole * 1_000,
                span: latency * 1_000,
                latency,
            }
        };
        let mut limiter = limiter(200);
        let decide = |_: u32| limiter.observe(&batches(limiter.bound()), true);
        let decisions: Vec<Decision> = (0..200).map(decide).collect();
        let settled = &decisions[50..];
        let held = |one: &&Decision| (7_000..10_000).contains(&one.bound);
        let share = settled.iter().filter(held).count() as f64 / settled.len() as f64;
        assert!(share > 0.9, "{share} {settled:#?}");
    }

    #[test]
    fn latency_below_the_floor_is_not_worth_throughput() {
        // 1 ms a commit and 1 µs a message: the knee is at 1,000 messages, half the throughput.
        let commit = |bound: u64| sample(bound, 0.001 + 1e-6 * bound as f64);
        let mut settings = LimiterSettings::DEFAULT;
        settings.gradient.latency_floor_ms = 20;
        let mut limiter = Limiter::new(settings);
        windows(&mut limiter, commit, 50);
        for decision in windows(&mut limiter, commit, 100) {
            assert!(decision.latency_s > 0.018, "{decision:?}");
            assert!(decision.rate_per_s > 0.94e6, "{decision:?}");
        }
        // A system that is slower by far holds the same latency with as much less in flight.
        let slow = |bound: u64| sample(bound, 0.001 + 1e-3 * bound as f64);
        windows(&mut limiter, slow, 50);
        for decision in windows(&mut limiter, slow, 100) {
            assert!(decision.bound <= 25, "{decision:?}");
        }
    }

    #[test]
    fn below_80_percent_of_the_bound_nothing_changes() {
        let mut limiter = limiter(100);
        let decision = limiter.observe(&sample(79, 0.01), false);
        assert_eq!((decision.bound, decision.rule), (100, Rule::UnderUsed));
    }
}
