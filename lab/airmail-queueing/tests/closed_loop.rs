//! The simulated systems against theory: they have the properties on which the limiters'
//! measurements rest.

use airmail_flow::{GateSettings, LimiterKind, LimiterSettings};
use airmail_queueing::closed_loop::run;
use airmail_queueing::course::Phase;
use airmail_queueing::recovery::Stretch;
use airmail_queueing::system::{SYSTEMS, System};

fn system(name: &str) -> System {
    let mut systems = SYSTEMS.into_iter();
    match systems.find(|system| system.name == name) {
        Some(system) => system,
        None => panic!("there is no system {name}"),
    }
}

const FILLING_NS: u64 = 2_000_000_000;
const END_NS: u64 = 25_000_000_000;

/// Messages and latency under a fixed bound, once the system has filled.
fn fixed(name: &str, bound: u64, capacity: f64) -> Stretch {
    let settings = GateSettings {
        window_messages: 500,
        limiter: LimiterSettings {
            kind: LimiterKind::Fixed,
            bound_initial: bound,
            ..LimiterSettings::DEFAULT
        },
        ..GateSettings::DEFAULT
    };
    let phase = Phase {
        span_ns: END_NS,
        capacity,
    };
    run(&system(name), settings, &[phase], 1).between(FILLING_NS, END_NS)
}

fn assert_near(measured: f64, expected: f64) {
    assert!(
        (measured / expected - 1.0).abs() < 0.02,
        "{measured}, not {expected}"
    );
}

#[test]
fn one_server_gives_all_it_has_whatever_is_in_flight() {
    for bound in [1, 3, 20] {
        let done = fixed("mm1", bound, 1.0);
        assert_near(done.rate_per_s(), 10_000.0);
        assert_near(done.latency_s, bound as f64 / 10_000.0);
    }
}

#[test]
fn servers_give_as_much_as_there_is_in_flight_and_halving_takes_half_of_them() {
    for (bound, capacity, servers) in [(4, 1.0, 4), (16, 1.0, 16), (40, 1.0, 16), (40, 0.5, 8)] {
        let done = fixed("mm16", bound, capacity);
        assert_near(done.rate_per_s(), f64::from(servers) / 0.0016);
        let latency_s = 0.0016 * bound as f64 / f64::from(servers);
        assert_near(done.latency_s, latency_s);
    }
}

/// Mean value analysis of a closed network: a delay, and one server with exponential times.
#[test]
fn a_server_behind_a_network_follows_mean_value_analysis() {
    for (capacity, service_s) in [(1.0, 1e-4), (0.5, 2e-4)] {
        let mut waiting = 0.0;
        for bound in 1..=80u64 {
            let latency_s = 0.005 + service_s * (1.0 + waiting);
            let rate_per_s = bound as f64 / latency_s;
            waiting = rate_per_s * (latency_s - 0.005);
            if [5, 30, 55, 80].contains(&bound) {
                let done = fixed("mm1-far", bound, capacity);
                assert_near(done.rate_per_s(), rate_per_s);
                assert_near(done.latency_s, latency_s);
            }
        }
    }
}

#[test]
fn what_is_in_flight_is_rate_times_latency_on_every_system() {
    for system in SYSTEMS {
        let done = fixed(system.name, 40, 1.0);
        assert_near(done.rate_per_s() * done.latency_s, 40.0);
    }
}

#[test]
fn one_seed_gives_one_run() {
    let settings = GateSettings {
        window_messages: 500,
        ..GateSettings::DEFAULT
    };
    let phase = Phase {
        span_ns: END_NS,
        capacity: 1.0,
    };
    let once = |seed| run(&system("heavy-tail"), settings, &[phase], seed);
    assert_eq!(once(7), once(7));
    assert_ne!(once(7), once(8));
}

#[test]
fn capacity_changes_at_its_time_and_a_record_has_no_holes() {
    let settings = GateSettings {
        window_messages: 500,
        ..GateSettings::DEFAULT
    };
    let phases = [1.0, 0.5].map(|capacity| Phase {
        span_ns: END_NS,
        capacity,
    });
    let course = run(&system("mm1"), settings, &phases, 1);
    assert_near(course.between(0, END_NS).rate_per_s(), 10_000.0);
    assert_near(course.between(END_NS, 2 * END_NS).rate_per_s(), 5_000.0);
    let mut at_ns = 0;
    for window in &course.windows {
        assert_eq!(window.until_ns - window.span_ns, at_ns);
        at_ns = window.until_ns;
    }
    assert_eq!(at_ns, 2 * END_NS);
    let whole = course.between(0, 2 * END_NS).messages;
    let cut = course.between(0, 12_345_678_901).messages
        + course.between(12_345_678_901, 2 * END_NS).messages;
    assert!((whole - cut).abs() < 1e-3);
}
