//! Claims about `ladder`, on a disk with group commit and on pipes, with noise.

use super::*;
use crate::decision::Decision;
use crate::limiter::Limiter;
use crate::rule::Rule;
use crate::settings::{LimiterKind, LimiterSettings};
use airmail_model::{Mono, random};
use std::time::Duration;

/// Numbers of a normal distribution, from a seed.
pub(in crate::limiter) struct Noise {
    seed: u64,
    drawn: u64,
}

impl Noise {
    pub(in crate::limiter) fn new(seed: u64) -> Noise {
        Noise { seed, drawn: 0 }
    }

    fn uniform(&mut self) -> f64 {
        self.drawn += 1;
        let bits = random::nth(random::mixed(self.seed), self.drawn) >> 11;
        (bits as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(in crate::limiter) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Something that does so many messages a second with so many in flight.
type Curve = fn(f64) -> f64;

/// Groups of n messages that cost c + m·n: 0.35 ms and 0.3 µs.
fn disk(in_flight: f64) -> f64 {
    in_flight / (0.35e-3 + 0.3e-6 * in_flight)
}

fn disk_halved(in_flight: f64) -> f64 {
    disk(in_flight) / 2.0
}

/// A pipe that holds 1,000 at no cost.
fn pipe(in_flight: f64) -> f64 {
    in_flight.min(1_000.0) / 1e-3
}

/// The same, half as wide.
fn pipe_halved(in_flight: f64) -> f64 {
    in_flight.min(500.0) / 1e-3
}

/// The least bound with nine tenths of the most throughput within 10 ms, by the true curve.
fn knee(curve: Curve) -> f64 {
    let bounds = || (0..400).map(|step| 1.05_f64.powi(step));
    let top = bounds()
        .filter(|bound| bound / curve(*bound) <= 0.01)
        .map(curve)
        .fold(0.0, f64::max);
    bounds()
        .find(|bound| curve(*bound) >= 0.9 * top)
        .expect("there is one")
}

fn sample(in_flight: f64, rate_per_s: f64) -> Sample {
    let messages = (rate_per_s * 0.1).max(1.0) as u64;
    let span_s = messages as f64 / rate_per_s;
    Sample {
        at: Mono(1),
        messages,
        batches: messages,
        span: Duration::from_secs_f64(span_s),
        latency: Duration::from_secs_f64(in_flight / rate_per_s),
    }
}

/// A limiter with what it was told and answered.
struct Run {
    limiter: Limiter,
    noise: Noise,
    sigma: f64,
}

impl Run {
    fn new(seed: u64, sigma: f64, settings: LimiterSettings) -> Run {
        Run {
            limiter: Limiter::new(LimiterSettings {
                kind: LimiterKind::Ladder,
                ..settings
            }),
            noise: Noise::new(seed),
            sigma,
        }
    }

    fn window(&mut self, curve: Curve) -> Decision {
        let bound = self.limiter.bound() as f64;
        let rate = curve(bound) * (self.sigma * self.noise.normal()).exp();
        self.limiter.observe(&sample(bound, rate), false)
    }

    fn windows(&mut self, curve: Curve, count: usize) -> Vec<Decision> {
        (0..count).map(|_| self.window(curve)).collect()
    }
}

fn batched() -> LimiterSettings {
    LimiterSettings {
        bound_initial: 545,
        bound_min: 545,
        ..LimiterSettings::DEFAULT
    }
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Mean and standard deviation of the bounds under which these windows were measured.
fn spread(decisions: &[Decision]) -> (f64, f64) {
    let bounds = || decisions.iter().map(|one| one.bound_before as f64);
    let mean = bounds().sum::<f64>() / decisions.len() as f64;
    let squares = bounds().map(|bound| (bound - mean).powi(2)).sum::<f64>();
    (mean, (squares / decisions.len() as f64).sqrt())
}

const SEEDS: u64 = 100;
/// Standard deviation of ln λ over 100 ms, as it was measured on a node.
const NOISE: f64 = 0.08;
/// Windows until a run is judged, and of a phase.
const SETTLED: usize = 60;
const PHASE: usize = 160;

/// Throughput and latency of these bounds by the true curve, as multiples of the knee's.
fn against_the_knee(decisions: &[Decision], curve: Curve) -> (f64, f64) {
    let mean = |of: fn(f64, Curve) -> f64| {
        let values = decisions
            .iter()
            .map(|one| of(one.bound_before as f64, curve));
        values.sum::<f64>() / decisions.len() as f64 / of(knee(curve), curve)
    };
    (
        mean(|bound, curve| curve(bound)),
        mean(|bound, curve| bound / curve(bound)),
    )
}

/// Windows until five together have nine tenths of the knee's throughput and half more of its latency.
fn recovered(decisions: &[Decision], curve: Curve) -> usize {
    let good = |few: &[Decision]| {
        let (rate, latency) = against_the_knee(few, curve);
        rate >= 0.9 && latency <= 1.5
    };
    let place = decisions.windows(5).position(good);
    place.unwrap_or(decisions.len())
}

fn changes(decisions: &[Decision]) -> usize {
    let changed = Rule::Ladder(R::Changed);
    decisions.iter().filter(|one| one.rule == changed).count()
}

#[test]
fn through_noise_it_keeps_the_throughput_of_the_knee_and_holds_still() {
    for curve in [disk as Curve, pipe] {
        let runs: Vec<Vec<Decision>> = (0..SEEDS)
            .map(|seed| {
                Run::new(seed, NOISE, batched())
                    .windows(curve, PHASE)
                    .split_off(SETTLED)
            })
            .collect();
        let measured: Vec<(f64, f64)> = runs
            .iter()
            .map(|run| against_the_knee(run, curve))
            .collect();
        assert!(median(measured.iter().map(|one| one.0)) >= 0.95);
        assert!(median(measured.iter().map(|one| one.1)) <= 1.2);
        let poor = measured
            .iter()
            .filter(|one| one.0 < 0.8 || one.1 > 2.5)
            .count();
        assert!(poor <= 10, "of {SEEDS}: {poor}");
        let spreads = runs.iter().map(|run| spread(run));
        assert!(median(spreads.map(|(mean, sd)| sd / mean)) <= 0.25);
        let changes: usize = runs.iter().map(|run| changes(run)).sum();
        assert!(
            changes <= 20,
            "in {SEEDS} runs of a system that is the same: {changes}"
        );
    }
}

#[test]
fn a_disk_of_half_and_of_twice_the_speed_is_noticed_and_held_within_twenty_windows() {
    let mut late = 0;
    let mut unseen = 0;
    for seed in 0..SEEDS {
        let mut run = Run::new(seed, NOISE, batched());
        run.windows(disk, PHASE);
        for curve in [disk_halved as Curve, disk] {
            let decisions = run.windows(curve, PHASE);
            late += usize::from(recovered(&decisions, curve) > 20);
            unseen += usize::from(changes(&decisions[..20]) == 0);
        }
    }
    assert!(
        late <= 20 && unseen <= 4,
        "of {}: {late} {unseen}",
        2 * SEEDS
    );
}

#[test]
fn a_pipe_that_is_half_as_wide_and_wide_again_is_followed_within_twenty_windows() {
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    for seed in 0..SEEDS {
        let mut run = Run::new(seed, NOISE, batched());
        run.windows(pipe, PHASE);
        for (curve, windows) in [(pipe_halved as Curve, &mut narrow), (pipe, &mut wide)] {
            windows.push(recovered(&run.windows(curve, PHASE), curve) as f64);
        }
    }
    assert!(median(narrow) <= 20.0);
    assert!(median(wide) <= 20.0);
}

#[test]
fn a_scan_goes_up_by_two_rungs_and_down_over_those_between() {
    let mut run = Run::new(0, 0.0, batched());
    let decisions = run.windows(pipe, 13);
    let rules: Vec<(u64, &str)> = decisions
        .iter()
        .map(|one| (one.bound, one.rule.name()))
        .collect();
    let expected = [
        (1_024, "ladder-scan-up"),
        (2_048, "ladder-scan-up"),
        (4_096, "ladder-scan-up"),
        (8_192, "ladder-scan-up"),
        (5_793, "ladder-scan-between"),
        (2_896, "ladder-scan-between"),
        (1_448, "ladder-scan-between"),
        (724, "ladder-scan-between"),
        // The rungs with enough and with the most are looked at three times.
        (1_024, "ladder-look-again"),
        (1_024, "ladder-look-again"),
        (8_192, "ladder-look-again"),
        (8_192, "ladder-look-again"),
        (1_024, "ladder-settle"),
    ];
    assert_eq!(rules, expected);
}

#[test]
fn a_flat_piece_of_the_curve_does_not_end_the_way_up() {
    // From 256 to 1,024 nothing is gained, and then twice as much.
    fn steps(in_flight: f64) -> f64 {
        let gained = if in_flight < 1_500.0 {
            in_flight.min(256.0)
        } else {
            512.0
        };
        gained / 256e-6
    }
    for seed in 0..SEEDS {
        let settings = LimiterSettings {
            bound_initial: 64,
            ..LimiterSettings::DEFAULT
        };
        let mut run = Run::new(seed, 0.05, settings);
        let decisions = run.windows(steps, PHASE).split_off(SETTLED);
        assert!(against_the_knee(&decisions, steps).0 >= 0.9, "{seed}");
    }
}

#[test]
fn one_stall_moves_nothing() {
    for seed in 0..SEEDS {
        let mut run = Run::new(seed, 0.02, batched());
        run.windows(disk, SETTLED);
        while run.window(disk).rule != Rule::Ladder(R::Rest) {}
        let bound = run.limiter.bound();
        // A tenth of the throughput, at ten times the latency.
        let stall = sample(bound as f64, disk(bound as f64) / 10.0);
        let decision = run.limiter.observe(&stall, false);
        assert_ne!(decision.rule, Rule::Ladder(R::Changed));
        let decisions = run.windows(disk, 20);
        assert_eq!(changes(&decisions), 0, "{seed}");
    }
}

#[test]
fn what_the_bound_does_not_hold_back_moves_nothing() {
    let mut run = Run::new(3, 0.1, batched());
    run.windows(disk, SETTLED);
    while run.window(disk).rule != Rule::Ladder(R::Rest) {}
    let bound = run.limiter.bound();
    for share in [0.01, 0.5, 0.79] {
        let in_flight = share * bound as f64;
        for rate in [1e3, 1e5, 1e7] {
            let decision = run.limiter.observe(&sample(in_flight, rate), false);
            assert_eq!((decision.bound, decision.rule), (bound, Rule::UnderUsed));
        }
    }
}

#[test]
fn a_look_that_is_not_used_up_is_broken_off() {
    let mut run = Run::new(3, 0.1, batched());
    run.windows(disk, SETTLED);
    while run.window(disk).rule != Rule::Ladder(R::ProbeUp) {}
    let probed = run.limiter.bound();
    let decision = run
        .limiter
        .observe(&sample(probed as f64 / 2.0, 1e6), false);
    assert_eq!(decision.rule, Rule::Ladder(R::BreakOff));
    assert!(decision.bound < probed);
    // A scan waits for three windows, and ends with what it has.
    let mut run = Run::new(3, 0.1, batched());
    let highest = run.windows(pipe, 3)[2].bound;
    let mut idle = || {
        let told = sample(highest as f64 / 2.0, 1e6);
        let decision = run.limiter.observe(&told, false);
        (decision.bound, decision.rule)
    };
    assert_eq!(idle(), (highest, Rule::UnderUsed));
    assert_eq!(idle(), (highest, Rule::UnderUsed));
    assert_eq!(idle(), (1_024, Rule::Ladder(R::BreakOff)));
}

#[test]
fn a_bound_that_holds_nothing_back_is_kept_if_more_is_done_under_it() {
    // Storage that answers within the turn. With room for fewer than four batches, batches wait for the next turn.
    let turns = |limiter: &mut Limiter, rate_per_s: [f64; 2]| {
        let held_back = limiter.bound() < 4 * 545;
        let rate = if held_back {
            rate_per_s[0]
        } else {
            rate_per_s[1]
        };
        limiter.observe(&sample(1e-3, rate), held_back)
    };
    let settings = LimiterSettings {
        kind: LimiterKind::Ladder,
        ..batched()
    };
    let mut limiter = Limiter::new(settings);
    for window in 0..PHASE {
        let decision = turns(&mut limiter, [3e6, 5e6]);
        assert!(window < 8 || decision.bound >= 4 * 545, "{decision:?}");
    }
    // Where less is offered than the lowest bound lets through, that one stays.
    let mut limiter = Limiter::new(settings);
    for window in 0..PHASE {
        let decision = turns(&mut limiter, [1e6, 1e6]);
        assert!(
            window < 8 || decision.bound_before < 4 * 545 || decision.bound < 4 * 545,
            "{decision:?}"
        );
    }
}

#[test]
fn a_probe_upwards_has_room_for_one_more_batch() {
    // Batches of 545: bounds from 1,090 to 1,634 hold two, and a third doubles what is done.
    let mut noise = Noise::new(5);
    let mut limiter = Limiter::new(LimiterSettings {
        kind: LimiterKind::Ladder,
        ..batched()
    });
    let mut turn = |limiter: &mut Limiter, third: f64| {
        let batches = (limiter.bound() / 545).min(3);
        let rate = if batches < 3 { 1e6 } else { third } * (0.05 * noise.normal()).exp();
        let told = sample(batches as f64 * 545.0, rate);
        let told = Sample {
            batches: told.messages / 545,
            ..told
        };
        limiter.observe(&told, true)
    };
    for _ in 0..SETTLED {
        turn(&mut limiter, 1e6);
    }
    assert!(limiter.bound() < 1_635, "{}", limiter.bound());
    let looks: Vec<Decision> = (0..SETTLED).map(|_| turn(&mut limiter, 2e6)).collect();
    let probes = looks
        .iter()
        .filter(|one| one.rule == Rule::Ladder(R::ProbeUp));
    assert!(probes.clone().count() > 0 && probes.clone().all(|one| one.bound >= 1_635));
    assert!(limiter.bound() >= 1_635, "{}", limiter.bound());
}

#[test]
fn what_takes_longer_than_the_budget_is_left_out_but_for_three_times_what_the_lowest_bound_has() {
    // Nothing has less than 20 ms: three times that is allowed.
    fn slow(in_flight: f64) -> f64 {
        in_flight / (20e-3 + 20e-6 * in_flight)
    }
    // 10 ms are reached at 500, where two thirds of the throughput are.
    fn fast(in_flight: f64) -> f64 {
        in_flight / (3.3e-3 + 13.4e-6 * in_flight)
    }
    for (curve, least_ms, most_ms) in [(slow as Curve, 36.0, 66.0), (fast, 5.0, 12.5)] {
        for bound_initial in [1, 500, 30_000] {
            let settings = LimiterSettings {
                bound_initial,
                ..LimiterSettings::DEFAULT
            };
            let mut run = Run::new(5, 0.03, settings);
            for decision in run.windows(curve, PHASE).split_off(SETTLED) {
                let latency_ms = decision.latency_s * 1e3;
                assert!((least_ms..=most_ms).contains(&latency_ms), "{decision:?}");
            }
        }
    }
}

#[test]
fn where_more_in_flight_gains_nothing_what_is_done_in_a_millisecond_is_enough() {
    // Storage that answers within the turn: the bound is used up, but nothing is ever in flight.
    let settings = batched();
    let mut limiter = Limiter::new(LimiterSettings {
        kind: LimiterKind::Ladder,
        ..settings
    });
    let mut noise = Noise::new(1);
    for window in 0..PHASE {
        let rate = 3e6 * (0.1 * noise.normal()).exp();
        let decision = limiter.observe(&sample(1e-3, rate), true);
        assert!(window < SETTLED || decision.bound <= 4_096, "{decision:?}");
    }
}

#[test]
fn it_stays_between_a_batch_and_its_greatest_bound_whatever_it_is_told() {
    let mut noise = Noise::new(9);
    for (min, max) in [(1, u64::MAX), (545, 1_000_000), (10, 10), (64, 70)] {
        let mut limiter = Limiter::new(LimiterSettings {
            kind: LimiterKind::Ladder,
            bound_initial: min,
            bound_min: min,
            bound_max: max,
            ..LimiterSettings::DEFAULT
        });
        for _ in 0..5_000 {
            let in_flight = (5.0 * noise.normal()).exp();
            let batches = 1 + (noise.uniform() * 100.0) as u64;
            let told = Sample {
                batches,
                ..sample(in_flight, (8.0 + 8.0 * noise.normal()).exp())
            };
            let decision = limiter.observe(&told, noise.uniform() < 0.8);
            assert!((min..=max).contains(&decision.bound), "{decision:?}");
        }
    }
}

#[test]
fn a_bound_is_never_less_than_what_is_admitted_together() {
    let mut run = Run::new(2, 0.05, LimiterSettings::DEFAULT);
    for _ in 0..PHASE {
        let bound = (run.limiter.bound() as f64).max(700.0);
        let told = sample(bound, pipe(bound));
        let told = Sample {
            batches: told.messages / 700,
            ..told
        };
        assert!(run.limiter.observe(&told, true).bound >= 700);
    }
}
