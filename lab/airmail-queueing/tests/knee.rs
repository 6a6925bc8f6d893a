//! The knee's definition: what it is on known curves, and what means nothing to it.

use airmail_queueing::knee::{
    Held, Knee, KneeError, KneeRule, Measurement, bound_spread, isotonic, knee,
};
use proptest::prelude::*;

const RUNG: f64 = std::f64::consts::SQRT_2;

fn run(bound: u64, rate_per_s: f64, latency_s: f64) -> Measurement {
    Measurement {
        bound,
        rate_per_s,
        latency_s,
    }
}

fn found(sweep: &[Measurement]) -> Knee {
    match knee(sweep, &KneeRule::DEFAULT) {
        Ok(knee) => knee,
        Err(error) => panic!("{error}"),
    }
}

/// The ladder of √2 up to `top`, without what rounds to the same bound.
fn ladder(top: u64) -> Vec<u64> {
    let rungs = (0..64).map(|rung| RUNG.powi(rung).round() as u64);
    let mut bounds: Vec<u64> = rungs.take_while(|bound| *bound <= top).collect();
    bounds.dedup();
    bounds
}

/// A loop of messages through groups that cost `group_s`, and `message_s` for each of theirs.
fn hyperbola(bound: u64, group_s: f64, message_s: f64) -> Measurement {
    let latency_s = group_s + message_s * bound as f64;
    run(bound, bound as f64 / latency_s, latency_s)
}

#[test]
fn a_pipe_has_its_knee_where_it_is_nearly_full() {
    let pipe = |bound: u64| {
        let latency_s = f64::max(0.001, bound as f64 / 100_000.0);
        run(bound, bound as f64 / latency_s, latency_s)
    };
    let sweep: Vec<Measurement> = ladder(2_000).into_iter().map(pipe).collect();
    let knee = found(&sweep);
    assert_eq!((knee.bound, knee.peak_per_s.round()), (91, 100_000.0));
}

#[test]
fn bounds_beyond_the_latency_budget_are_left_out() {
    let slow = run(4, 900.0, 0.011);
    let sweep = [run(1, 100.0, 0.002), run(2, 190.0, 0.009), slow];
    assert_eq!((found(&sweep).bound, found(&sweep).peak_per_s), (2, 190.0));
    // Where the lowest bound takes 6 ms, up to 12 are within the budget.
    let sweep = [run(1, 100.0, 0.006), slow];
    assert_eq!(found(&sweep).bound, 4);
    // The lowest bound is always within it.
    assert_eq!(found(&[run(1, 5.0, 3.0)]).bound, 1);
}

#[test]
fn what_falls_is_averaged_with_what_is_below_it() {
    let sweep = [(1, 50.0), (2, 100.0), (4, 80.0), (8, 90.0)];
    let sweep = sweep.map(|(bound, rate)| run(bound, rate, 0.001));
    let knee = found(&sweep);
    assert!((knee.peak_per_s - 90.0).abs() < 1e-9);
    // What was measured at the knee is told, not what was fitted.
    assert_eq!((knee.bound, knee.rate_per_s), (2, 100.0));
}

#[test]
fn a_bound_measured_more_often_weighs_more() {
    let often = isotonic(&[(4.0, 3.0), (0.0, 1.0), (9.0, 1.0)]);
    assert_eq!(often, [3.0, 3.0, 9.0]);
    let mut sweep = vec![run(1, 400.0, 0.001); 3];
    sweep.push(run(2, 0.0, 0.001));
    assert!((found(&sweep).peak_per_s - 300.0).abs() < 1e-9);
}

#[test]
fn one_bad_run_of_three_moves_nothing() {
    let mut sweep = Vec::new();
    for bound in ladder(40_000) {
        let sound = hyperbola(bound, 350e-6, 0.3e-6);
        sweep.extend([sound, sound]);
        sweep.push(run(bound, sound.rate_per_s * 3.0, sound.latency_s / 9.0));
    }
    let clean: Vec<Measurement> = ladder(40_000)
        .into_iter()
        .map(|bound| hyperbola(bound, 350e-6, 0.3e-6))
        .collect();
    assert_eq!(found(&sweep).bound, found(&clean).bound);
}

#[test]
fn without_anything_to_judge_there_is_an_error_with_the_facts() {
    let rule = KneeRule::DEFAULT;
    assert_eq!(knee(&[], &rule), Err(KneeError::Nothing));
    let nothing_done = knee(&[run(1, 0.0, 0.007)], &rule);
    let budget_s = 0.014;
    assert_eq!(nothing_done, Err(KneeError::NoThroughput { budget_s }));
    for (rate, latency) in [(f64::NAN, 1.0), (1.0, f64::INFINITY), (-1.0, 1.0)] {
        let unsound = knee(&[run(1, 1.0, 1.0), run(7, rate, latency)], &rule);
        assert!(matches!(unsound, Err(KneeError::Unsound { bound: 7, .. })));
    }
}

#[test]
fn a_latency_of_nothing_is_compared_by_what_can_be_told() {
    let knee = found(&[run(1, 100.0, 0.0)]);
    assert_eq!(knee.compare(50.0, 0.000_08).latency_ratio, 1.0);
    assert!((knee.compare(50.0, 0.000_3).latency_ratio - 3.0).abs() < 1e-9);
    assert_eq!(knee.compare(50.0, 0.0).rate_share, 0.5);
}

#[test]
fn a_bound_that_rests_has_no_spread_and_one_that_alternates_has_its_share() {
    let held = |bound: f64, weight: f64| Held { bound, weight };
    assert_eq!(bound_spread([held(7.0, 1.0), held(7.0, 3.0)]), Some(0.0));
    let alternating = [held(50.0, 2.0), held(150.0, 1.0), held(150.0, 1.0)];
    assert_eq!(bound_spread(alternating), Some(0.5));
    assert_eq!(bound_spread([]), None);
}

fn sweeps() -> impl Strategy<Value = Vec<Measurement>> {
    let one = (1u64..40, 1.0f64..1e6, 1e-5f64..0.02);
    let run = one.prop_map(|(bound, rate, latency)| run(bound, rate, latency));
    prop::collection::vec(run, 1..60)
}

proptest! {
    #[test]
    fn the_order_of_measurements_means_nothing(
        (sorted, mixed) in sweeps().prop_flat_map(|runs| (Just(runs.clone()), Just(runs).prop_shuffle()))
    ) {
        prop_assert_eq!(found(&sorted), found(&mixed));
    }

    #[test]
    fn more_throughput_everywhere_moves_the_peak_and_not_the_knee(
        runs in sweeps(),
        exponent in -8i32..8,
    ) {
        // A power of two, so that rounding is the same.
        let factor = f64::from(exponent).exp2();
        let more: Vec<Measurement> = runs
            .iter()
            .map(|one| run(one.bound, one.rate_per_s * factor, one.latency_s))
            .collect();
        let (before, after) = (found(&runs), found(&more));
        prop_assert_eq!(after.bound, before.bound);
        prop_assert_eq!(after.rate_per_s, before.rate_per_s * factor);
        prop_assert_eq!(after.peak_per_s, before.peak_per_s * factor);
        prop_assert_eq!(after.latency_s, before.latency_s);
    }

    #[test]
    fn the_fitted_curve_never_falls_and_keeps_the_weighted_mean(
        values in prop::collection::vec((0.0f64..1e6, 1.0f64..9.0), 1..40)
    ) {
        let fitted = isotonic(&values);
        prop_assert_eq!(fitted.len(), values.len());
        prop_assert!(fitted.is_sorted());
        let weighted = |value: f64, weight: f64| value * weight;
        let before: f64 = values.iter().map(|(value, weight)| weighted(*value, *weight)).sum();
        let after: f64 = fitted.iter().zip(&values).map(|(fit, (_, weight))| weighted(*fit, *weight)).sum();
        prop_assert!((before - after).abs() <= 1e-9 * before.max(1.0));
        // What rises already is left as it is.
        let again: Vec<(f64, f64)> = fitted.iter().zip(&values).map(|(fit, (_, weight))| (*fit, *weight)).collect();
        prop_assert_eq!(isotonic(&again), fitted);
    }

    /// λ/λ_max = s where L = c/m·s/(1-s), which is 9c/m for s = 0.9. The sweep goes on until nothing is gained.
    #[test]
    fn on_a_hyperbola_the_knee_is_at_nine_times_the_groups_cost_over_the_messages(
        group_us in 50.0f64..900.0,
        message_ns in 100.0f64..10_000.0,
    ) {
        let (group_s, message_s) = (group_us / 1e6, message_ns / 1e9);
        let rule = KneeRule { latency_budget_s: f64::INFINITY, ..KneeRule::DEFAULT };
        let sweep: Vec<Measurement> = ladder(100_000_000)
            .into_iter()
            .map(|bound| hyperbola(bound, group_s, message_s))
            .collect();
        let knee = knee(&sweep, &rule).unwrap();
        let expected = 9.0 * group_s / message_s;
        let ratio = knee.bound as f64 / expected;
        prop_assert!((1.0 / RUNG / 1.01..=RUNG * 1.01).contains(&ratio), "{knee:?}, not {expected}");
        prop_assert!((knee.rate_per_s * message_s - 0.9).abs() < 0.05);
    }
}
