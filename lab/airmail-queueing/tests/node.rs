//! The model of a node against theory, and against what was measured on a node.

use airmail_flow::{GateSettings, LimiterKind, LimiterSettings};
use airmail_queueing::course::{Course, Phase};
use airmail_queueing::node::{BATCH_MESSAGES, Limiters, NODES, NodeModel, Noise, run};

const MS: u64 = 1_000_000;
const FILLING_NS: u64 = 100 * MS;
const END_NS: u64 = 1_500 * MS;

fn model(name: &str) -> NodeModel {
    match NODES.into_iter().find(|model| model.name == name) {
        Some(model) => model,
        None => panic!("there is no node {name}"),
    }
}

fn quiet(name: &str) -> NodeModel {
    NodeModel {
        noise: Noise::NONE,
        ..model(name)
    }
}

fn settings(kind: LimiterKind, bound: u64) -> GateSettings {
    GateSettings {
        window_messages: 1_000,
        limiter: LimiterSettings {
            kind,
            bound_initial: bound,
            ..LimiterSettings::DEFAULT
        },
        ..GateSettings::DEFAULT
    }
}

fn course(model: &NodeModel, bound: u64, capacity: f64) -> Course {
    let phase = Phase {
        span_ns: END_NS,
        capacity,
    };
    run(model, settings(LimiterKind::Fixed, bound), &[phase], 1)
}

/// Throughput in messages a second, and W in seconds.
fn done(model: &NodeModel, bound: u64) -> (f64, f64) {
    let done = course(model, bound, 1.0).between(FILLING_NS, END_NS);
    (done.rate_per_s(), done.latency_s)
}

fn assert_near(measured: f64, expected: f64, tolerance: f64) {
    assert!(
        (measured / expected - 1.0).abs() < tolerance,
        "{measured}, not {expected}"
    );
}

/// All in flight is one group, and the next takes its place from the line at once.
#[test]
fn the_pilot_of_a_quiet_disk_is_the_hyperbola() {
    let disk = quiet("node-disk");
    let (c, m) = (disk.storage.group_s(), disk.storage.message_s());
    for batches in [1, 2, 4, 7, 10] {
        let bound = (batches * BATCH_MESSAGES) as f64;
        let (rate_per_s, latency_s) = done(&disk, batches * BATCH_MESSAGES);
        assert_near(rate_per_s, bound / (c + m * bound), 0.02);
        assert_near(latency_s, c + m * bound, 0.02);
        let halved = course(&disk, batches * BATCH_MESSAGES, 0.5).between(FILLING_NS, END_NS);
        assert_near(halved.rate_per_s(), rate_per_s / 2.0, 0.02);
    }
}

/// A batch that is larger than the bound goes alone, and one that does not fit waits until it does.
#[test]
fn a_pilot_admits_whole_batches() {
    let disk = quiet("node-disk");
    assert_eq!(done(&disk, 1), done(&disk, BATCH_MESSAGES));
    assert_eq!(
        done(&disk, 2 * BATCH_MESSAGES),
        done(&disk, 3 * BATCH_MESSAGES - 1)
    );
}

#[test]
fn what_is_in_flight_is_rate_times_latency_with_publishers_that_compete() {
    for name in [
        "disk-alone",
        "disk-two",
        "disk-eight",
        "memory-two",
        "memory-eight",
    ] {
        let model = quiet(name);
        for bound in [64, 1_024] {
            let (rate_per_s, latency_s) = done(&model, bound);
            let in_flight = bound as f64 * f64::from(model.clients);
            assert_near(rate_per_s * latency_s, in_flight, 0.03);
        }
    }
}

/// With little in flight all of it is back in time for one group. With more it is not: one half is committed
/// while the other waits, so a message waits for one group and takes part in the next.
#[test]
fn from_some_bound_on_there_are_two_groups_and_a_message_takes_twice_their_time() {
    let two = quiet("disk-two");
    let (c, m) = (two.storage.group_s(), two.storage.message_s());
    let one_group = |in_flight: f64| c + m * in_flight;
    let two_groups = |in_flight: f64| 2.0 * c + m * in_flight;
    assert_near(done(&two, 32).1, one_group(64.0), 0.1);
    assert_near(done(&two, 512).1, two_groups(1_024.0), 0.1);
    assert_near(done(&two, 4_096).1, two_groups(8_192.0), 0.1);
}

fn assert_as_measured(name: &str, measured: &[(u64, f64)], tolerance: f64) {
    for (bound, millions) in measured {
        assert_near(done(&quiet(name), *bound).0, millions * 1e6, tolerance);
    }
}

/// Measured: bounds of each of two publishers, and M messages/s of both, on a node on a disk.
#[test]
fn two_publishers_do_what_they_were_measured_to_do() {
    let low = [(32, 0.17), (128, 0.60), (256, 0.69), (512, 1.05)];
    let middle = [(1_024, 1.70), (2_048, 2.38), (4_096, 2.62)];
    let high = [(8_192, 2.94), (16_384, 3.25)];
    assert_as_measured("disk-two", &[&low[..], &middle, &high].concat(), 0.21);
}

/// The same in memory, where what a middle bound does is explained less well.
#[test]
fn two_publishers_in_memory_do_nearly_what_they_were_measured_to_do() {
    let low = [(32, 0.43), (128, 1.39), (256, 1.74), (512, 1.73)];
    let high = [
        (1_024, 1.89),
        (2_048, 2.39),
        (4_096, 3.13),
        (8_192, 3.09),
        (16_384, 2.96),
    ];
    assert_as_measured("memory-two", &[&low[..], &high].concat(), 0.25);
}

/// Measured: bounds of a node's gate, and M messages/s.
#[test]
fn a_pilot_does_what_it_was_measured_to_do() {
    let low = [
        (32, 1.70),
        (128, 1.54),
        (256, 1.55),
        (512, 1.53),
        (1_024, 1.60),
    ];
    let high = [(2_048, 2.45), (4_096, 2.94), (8_192, 2.77), (16_384, 3.23)];
    assert_as_measured("node-disk", &[&low[..], &high].concat(), 0.15);
}

/// Clients keep a fixed amount, so by Little's law the time until it is back is that over λ: more in flight
/// makes nobody late.
#[test]
fn messages_come_back_sooner_the_more_is_done() {
    let disk = quiet("node-disk");
    let Limiters::Pilot { held_batches, .. } = disk.limiters else {
        panic!("{disk:?}");
    };
    let held = (u64::from(held_batches) * BATCH_MESSAGES * u64::from(disk.clients)) as f64;
    let mut before = f64::INFINITY;
    for bound in [545, 2_048, 8_192] {
        let course = course(&disk, bound, 1.0);
        let Some([half, most]) = course.delivery_s(FILLING_NS, END_NS, [0.5, 0.99]) else {
            panic!("nothing came back");
        };
        let rate_per_s = course.between(FILLING_NS, END_NS).rate_per_s();
        assert_near(half, held / rate_per_s, 0.1);
        assert!(half < before && half <= most);
        before = half;
    }
}

#[test]
fn a_storage_that_answers_within_the_turn_has_no_latency_to_measure() {
    let memory = quiet("node-memory");
    let (rate_per_s, latency_s) = done(&memory, 1);
    assert_eq!((rate_per_s, latency_s), done(&memory, 100_000));
    assert_eq!(latency_s, 0.0);
}

#[test]
fn publishers_with_one_bound_share_the_node_equally() {
    for name in ["disk-two", "disk-eight", "memory-eight"] {
        let course = course(&model(name), 1_024, 1.0);
        let parts = course.windows[0].parts.len();
        let of_client = |client: usize| -> u64 {
            let windows = course.windows.iter();
            windows.map(|window| window.parts[client].messages).sum()
        };
        let shares: Vec<u64> = (0..parts).map(of_client).collect();
        let most = shares.iter().max().copied().unwrap_or(0) as f64;
        let least = shares.iter().min().copied().unwrap_or(0) as f64;
        assert!(most / least < 1.05, "{name}: {shares:?}");
    }
}

/// A chunk is an eighth of the bound. Of a bound that a chunk does not divide, the rest is not used.
#[test]
fn room_that_is_left_over_does_not_become_a_batch_of_its_own() {
    let alone = quiet("disk-alone");
    for (bound, admitted) in [(2_050, 2_048.0), (2_303, 2_048.0), (15, 15.0)] {
        let (rate_per_s, latency_s) = done(&alone, bound);
        assert_near(rate_per_s * latency_s, admitted, 0.01);
    }
}

#[test]
fn one_seed_gives_one_run_with_noise_and_limiters() {
    let phase = Phase {
        span_ns: 400 * MS,
        capacity: 1.0,
    };
    for model in NODES {
        let once = |seed| run(&model, settings(LimiterKind::Gradient, 200), &[phase], seed);
        assert_eq!(once(7), once(7));
        assert_ne!(once(7), once(8));
    }
}

/// The noise is the seed's, whatever the bound is.
#[test]
fn two_bounds_of_one_seed_meet_the_same_slow_moments() {
    let disk = model("node-disk");
    let stretches = |bound| {
        let course = course(&disk, bound, 1.0);
        let each = (1..14).map(|part| {
            let from = part * FILLING_NS;
            course.between(from, from + FILLING_NS).rate_per_s().ln()
        });
        let all: Vec<f64> = each.collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        all.into_iter().map(|one| one - mean).collect::<Vec<f64>>()
    };
    let (low, high) = (stretches(2_180), stretches(4_360));
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let correlation = product(&low, &high) / (product(&low, &low) * product(&high, &high)).sqrt();
    assert!(correlation > 0.9, "{correlation}");
}
