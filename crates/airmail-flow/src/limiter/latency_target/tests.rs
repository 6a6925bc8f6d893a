//! Claims about `latency-target`, alone and among several on one disk with group commit.

use super::*;
use crate::decision::Decision;
use crate::limiter::Limiter;
use crate::limiter::ladder::tests::Noise;
use crate::rule::Rule;
use crate::settings::{LimiterKind, LimiterSettings};
use airmail_model::Mono;
use std::time::Duration;

/// A disk with group commit that several publishers share: groups cost 0.35 ms and 0.3 µs a message.
struct Disk {
    limiters: Vec<Limiter>,
    noise: Noise,
    /// Noise of ln W that is common to all, and that each has of its own.
    sigma: (f64, f64),
    /// 2: half as fast.
    slower: f64,
}

impl Disk {
    fn new(seed: u64, bounds: &[u64], sigma: (f64, f64)) -> Disk {
        let limiter = |bound: &u64| {
            Limiter::new(LimiterSettings {
                kind: LimiterKind::LatencyTarget,
                bound_initial: *bound,
                bound_min: 32,
                ..LimiterSettings::DEFAULT
            })
        };
        Disk {
            limiters: bounds.iter().map(limiter).collect(),
            noise: Noise::new(seed),
            sigma,
            slower: 1.0,
        }
    }

    fn window(&mut self) -> Vec<Decision> {
        let together: u64 = self.limiters.iter().map(Limiter::bound).sum();
        let latency_s = self.slower * (0.35e-3 + 0.3e-6 * together as f64);
        let common = self.sigma.0 * self.noise.normal();
        let mut decisions = Vec::new();
        for limiter in &mut self.limiters {
            let own = self.sigma.1 * self.noise.normal();
            let latency_s = latency_s * (common + own).exp();
            decisions.push(limiter.observe(&sample(limiter.bound() as f64, latency_s), false));
        }
        decisions
    }

    fn windows(&mut self, count: usize) -> Vec<Vec<Decision>> {
        (0..count).map(|_| self.window()).collect()
    }

    fn latency_ms(&self) -> f64 {
        let together: u64 = self.limiters.iter().map(Limiter::bound).sum();
        self.slower * (0.35 + 0.3e-3 * together as f64)
    }

    fn unequal(&self) -> f64 {
        let bounds = || self.limiters.iter().map(Limiter::bound);
        bounds().max().unwrap() as f64 / bounds().min().unwrap() as f64
    }
}

fn sample(in_flight: f64, latency_s: f64) -> Sample {
    let messages = (in_flight / latency_s * 0.03).max(1.0).round();
    Sample {
        at: Mono(1),
        messages: messages as u64,
        batches: messages as u64,
        span: Duration::from_secs_f64(messages * latency_s / in_flight),
        latency: Duration::from_secs_f64(latency_s),
    }
}

const SEEDS: u64 = 100;
/// Noise of the common latency from window to window, and of what each measures of it.
const SIGMA: (f64, f64) = (0.15, 0.05);

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn one_two_and_eight_publishers_keep_the_target_together() {
    for publishers in [1, 2, 8] {
        for seed in 0..SEEDS {
            let mut disk = Disk::new(seed, &vec![512; publishers], SIGMA);
            disk.windows(20);
            let latencies = (0..100).map(|_| {
                disk.window();
                disk.latency_ms()
            });
            let mean = latencies.sum::<f64>() / 100.0;
            assert!((3.75..=6.25).contains(&mean), "{publishers}: {mean} ms");
        }
    }
}

#[test]
fn those_who_share_a_node_come_to_the_same_bound() {
    let newcomer_of_eight = [512, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000];
    for (bounds, windows) in [(&[512, 15_000][..], 150), (&newcomer_of_eight, 80)] {
        let mut disk = Disk::new(0, bounds, (0.0, 0.0));
        disk.windows(windows);
        assert!(disk.unequal() <= 1.3, "{}", disk.unequal());
        disk.windows(350);
        assert!(disk.unequal() <= 1.02, "{}", disk.unequal());
    }
}

#[test]
fn through_noise_their_shares_differ_by_less_than_half() {
    for publishers in [2, 8] {
        let shares = (0..SEEDS).map(|seed| {
            let mut disk = Disk::new(seed, &vec![512; publishers], SIGMA);
            disk.windows(20);
            let mut sums = vec![0; publishers];
            for _ in 0..160 {
                disk.window();
                for (sum, limiter) in sums.iter_mut().zip(&disk.limiters) {
                    *sum += limiter.bound();
                }
            }
            let most = sums.iter().max().expect("there are some");
            *most as f64 / *sums.iter().min().expect("there are some") as f64
        });
        let unequal = median(shares.collect());
        assert!(unequal <= 1.5, "{publishers}: {unequal}");
    }
}

#[test]
fn a_node_of_half_and_of_twice_the_speed_is_followed_within_ten_windows() {
    for publishers in [1, 2, 8] {
        let mut disk = Disk::new(0, &vec![512; publishers], (0.0, 0.0));
        disk.windows(50);
        for slower in [2.0, 1.0] {
            disk.slower = slower;
            disk.windows(10);
            assert!(
                (3.75..=6.25).contains(&disk.latency_ms()),
                "{}",
                disk.latency_ms()
            );
        }
    }
}

#[test]
fn one_stall_moves_nothing_and_the_second_slow_window_does() {
    let mut disk = Disk::new(0, &[8_000], (0.0, 0.0));
    disk.windows(50);
    let limiter = &mut disk.limiters[0];
    let bound = limiter.bound();
    let first = limiter.observe(&sample(bound as f64, 0.1), false);
    assert!(first.bound.abs_diff(bound) <= 1, "{first:?}");
    let second = limiter.observe(&sample(bound as f64, 0.1), false);
    assert_eq!(second.rule, Rule::LatencyTarget(R::Down));
    assert!(second.bound >= bound * 6 / 10, "{second:?}");
}

#[test]
fn one_batch_is_the_least_however_long_it_takes() {
    let mut disk = Disk::new(0, &[8_000], (0.0, 0.0));
    disk.slower = 1_000.0;
    let last = disk.windows(50).pop().expect("there are windows");
    assert_eq!(
        (last[0].bound, last[0].rule),
        (32, Rule::LatencyTarget(R::Least))
    );
    // What is admitted together is a batch too.
    let limiter = &mut disk.limiters[0];
    let batches = Sample {
        messages: 54_500,
        batches: 100,
        ..sample(545.0, 0.35)
    };
    assert_eq!(limiter.observe(&batches, true).bound, 545);
}

#[test]
fn small_bounds_move_though_a_window_is_worth_less_than_a_message() {
    let mut limiter = Limiter::new(LimiterSettings {
        kind: LimiterKind::LatencyTarget,
        bound_initial: 4,
        ..LimiterSettings::DEFAULT
    });
    // 1 ms a message, and an aim of 5.5 ms for who has so little in flight.
    let mut rules = Vec::new();
    for _ in 0..40 {
        let bound = limiter.bound() as f64;
        rules.push(limiter.observe(&sample(bound, bound / 1e3), false).rule);
    }
    assert!((5..=6).contains(&limiter.bound()));
    assert!(rules.contains(&Rule::LatencyTarget(R::Rest)), "{rules:?}");
}

#[test]
fn the_aim_is_within_a_quarter_of_the_target_for_every_bound() {
    let settings = LatencyTargetSettings::DEFAULT;
    let limiter = LatencyTarget::new(settings);
    let mut greater = f64::INFINITY;
    for power in 0..=20 {
        let aim = limiter.aim_s(f64::from(1 << power)) / (settings.target_us as f64 / 1e6);
        assert!((0.75..=1.25).contains(&aim), "{aim}");
        assert!(aim <= greater, "who has less aims higher");
        greater = aim;
    }
}

#[test]
fn what_the_bound_does_not_hold_back_moves_nothing() {
    let mut disk = Disk::new(0, &[1_000], (0.0, 0.0));
    for latency_s in [1e-4, 1e-2, 1.0] {
        let decision = disk.limiters[0].observe(&sample(490.0, latency_s), false);
        assert_eq!((decision.bound, decision.rule), (1_000, Rule::UnderUsed));
    }
}
