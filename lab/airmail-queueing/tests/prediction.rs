//! A node's model that is fitted to the ends of a sweep, against itself and against what was measured on a node.

use airmail_flow::{GateSettings, LimiterKind, LimiterSettings};
use airmail_queueing::fit::{Ends, fit, fixed};
use airmail_queueing::knee::{Knee, KneeRule, Measurement, knee};
use airmail_queueing::node::{Limiters, NODES, NodeModel, Noise};
use airmail_queueing::prediction::{Prediction, rungs};

fn model(name: &str) -> NodeModel {
    match NODES.into_iter().find(|model| model.name == name) {
        Some(model) => NodeModel {
            noise: Noise::NONE,
            ..model
        },
        None => panic!("there is no node {name}"),
    }
}

fn ends(sweep: &[Measurement]) -> Ends {
    match Ends::of(sweep, &KneeRule::DEFAULT) {
        Some(ends) => ends,
        None => panic!("{sweep:?} has no two ends"),
    }
}

fn prediction(name: &str, sweep: &[Measurement]) -> Prediction {
    match Prediction::new(&model(name), ends(sweep)) {
        Ok(prediction) => prediction,
        Err(error) => panic!("{name}: {error}"),
    }
}

fn knee_of(sweep: &[Measurement]) -> Knee {
    match knee(sweep, &KneeRule::DEFAULT) {
        Ok(knee) => knee,
        Err(error) => panic!("{error}"),
    }
}

/// Bounds, M messages/s of all clients together, and W in milliseconds.
fn sweep(points: &[(u64, f64, f64)]) -> Vec<Measurement> {
    let points = points.iter();
    let measured = points.map(|(bound, millions, latency_ms)| Measurement {
        bound: *bound,
        rate_per_s: millions * 1e6,
        latency_s: latency_ms / 1e3,
    });
    measured.collect()
}

/// Measured: two publishers on a node on a disk.
fn two_on_a_disk() -> Vec<Measurement> {
    let low = [(32, 0.17, 0.37), (128, 0.60, 0.41), (256, 0.69, 0.72)];
    let middle = [(512, 1.05, 0.94), (1_024, 1.70, 1.13), (2_048, 2.38, 1.54)];
    let high = [(4_096, 2.62, 2.59), (8_192, 2.94, 4.3), (16_384, 3.25, 7.4)];
    sweep(&[low, middle, high].concat())
}

/// The same in memory.
fn two_in_memory() -> Vec<Measurement> {
    let low = [(32, 0.43, 0.14), (128, 1.39, 0.17), (256, 1.74, 0.28)];
    let middle = [(512, 1.73, 0.56), (1_024, 1.89, 0.95), (2_048, 2.39, 1.35)];
    let high = [(4_096, 3.13, 1.76), (8_192, 3.09, 3.5), (16_384, 2.96, 7.1)];
    sweep(&[low, middle, high].concat())
}

#[test]
fn a_model_is_found_again_by_the_ends_of_its_own_sweep() {
    for (name, bounds) in [
        ("node-disk", [545, 17_440]),
        ("disk-alone", [1, 16_384]),
        ("disk-two", [1, 8_192]),
        ("disk-eight", [1, 2_048]),
        ("memory-two", [1, 8_192]),
    ] {
        let own = model(name);
        let sweep = bounds.map(|bound| fixed(&own, bound));
        // Begins with costs that are not its own.
        let mut other = own;
        other.storage.group_us *= 3.0;
        other.storage.message_ns /= 2.0;
        let fitted = fit(&other, &ends(&sweep)).storage;
        let near = |found: f64, own: f64| (found / own - 1.0).abs() < 0.05;
        assert!(
            near(fitted.group_us, own.storage.group_us)
                && near(fitted.message_ns, own.storage.message_ns),
            "{name}: {fitted:?}"
        );
    }
}

#[test]
fn a_fitted_model_does_what_was_measured_at_both_ends() {
    for sweep in [two_on_a_disk(), two_in_memory()] {
        let prediction = prediction("disk-two", &sweep);
        for end in [prediction.ends.lowest, prediction.ends.highest] {
            let ratio = prediction.at(end.bound).rate_per_s / end.rate_per_s;
            assert!((ratio - 1.0).abs() < 0.02, "{end:?}: {ratio}");
        }
    }
}

/// The model knows of the lowest and the highest bound alone.
#[test]
fn the_two_ends_predict_the_knee_of_two_publishers() {
    for sweep in [two_on_a_disk(), two_in_memory()] {
        let predicted = prediction("disk-two", &sweep).knee;
        let measured = knee_of(&sweep);
        let ratio = predicted.rate_per_s / measured.rate_per_s;
        assert!(
            (ratio - 1.0).abs() <= 0.15,
            "{predicted:?}, not {measured:?}"
        );
        let rungs = rungs(measured.bound, predicted.bound);
        assert!(rungs.abs() <= 2.0, "{predicted:?}, not {measured:?}");
    }
}

#[test]
fn a_pilot_without_a_latency_answers_within_the_turn_and_has_its_knee_at_a_batch() {
    let sweep = sweep(&[(545, 2.9, 0.09), (2_180, 3.1, 0.0), (4_360, 3.0, 0.0)]);
    let prediction = prediction("node-disk", &sweep);
    assert!(matches!(
        prediction.model.limiters,
        Limiters::Pilot { in_turn: true, .. }
    ));
    assert_eq!(prediction.knee.bound, 545);
    let ratio = prediction.knee.rate_per_s / 3.0e6;
    assert!((ratio - 1.0).abs() < 0.02, "{prediction:?}");
}

#[test]
fn one_bound_or_no_throughput_has_no_ends() {
    let none: [&[(u64, f64, f64)]; 4] = [
        &[],
        &[(545, 2.0, 0.1), (545, 2.1, 0.1)],
        &[(1, 0.0, 0.0), (2, 1.0, 0.1)],
        &[(1, 0.5, 0.1), (2, 1.0, 10.1)],
    ];
    for points in none {
        assert_eq!(Ends::of(&sweep(points), &KneeRule::DEFAULT), None);
    }
}

#[test]
fn the_lower_end_is_the_median_of_its_runs_and_the_upper_has_the_peak_within_the_budget() {
    let lowest = [(1, 0.1, 0.2), (1, 0.9, 0.2), (1, 0.2, 0.2)];
    let highest = [(4, 3.2, 1.0), (8, 2.8, 3.0), (16, 5.0, 12.0)];
    let ends = ends(&sweep(&[lowest, highest].concat()));
    assert_eq!((ends.lowest.bound, ends.highest.bound), (1, 8));
    assert!((ends.lowest.rate_per_s - 0.2e6).abs() < 1e-6, "{ends:?}");
    // What falls again is chance: the regression makes one level of both.
    assert!((ends.highest.rate_per_s - 3.0e6).abs() < 1e-6, "{ends:?}");
}

#[test]
fn a_fixed_bound_has_the_share_that_it_has_by_its_throughput() {
    let prediction = prediction("disk-two", &two_on_a_disk());
    let gate = |bound_initial| GateSettings {
        window_messages: 2_000,
        limiter: LimiterSettings {
            kind: LimiterKind::Fixed,
            bound_initial,
            ..LimiterSettings::DEFAULT
        },
        ..GateSettings::DEFAULT
    };
    let share = |bound| prediction.rate_share(gate(bound), 1.0, 3);
    let at_knee = share(prediction.knee.bound);
    assert!((at_knee - 1.0).abs() < 0.01, "{at_knee}");
    let quiet = prediction.at(256).rate_per_s / prediction.knee.rate_per_s;
    assert!(
        (share(256) / quiet - 1.0).abs() < 0.2,
        "{} {quiet}",
        share(256)
    );
    assert_eq!(share(256), share(256));
}
