//! The simulated systems against theory: they have the properties on which the limiters'
//! measurements rest.

use airmail_flow::{GateSettings, LimiterKind, LimiterSettings};
use airmail_queueing::closed_loop::{Phase, Window, run};
use airmail_queueing::system::{SYSTEMS, System};

fn system(name: &str) -> System {
    let mut systems = SYSTEMS.into_iter();
    match systems.find(|system| system.name == name) {
        Some(system) => system,
        None => panic!("there is no system {name}"),
    }
}

/// All but the first windows of a fixed bound.
fn fixed(name: &str, bound: u64, capacity: f64) -> Window {
    let settings = GateSettings {
        window_messages: 5_000,
        limiter: LimiterSettings {
            kind: LimiterKind::Fixed,
            bound_initial: bound,
            ..LimiterSettings::DEFAULT
        },
        ..GateSettings::DEFAULT
    };
    let phase = Phase {
        windows: 21,
        capacity,
    };
    Window::together(&run(system(name), settings, &[phase], 1)[1..])
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
        let window = fixed("mm1", bound, 1.0);
        assert_near(window.rate_per_s(), 10_000.0);
        assert_near(window.latency_s(), bound as f64 / 10_000.0);
    }
}

#[test]
fn servers_give_as_much_as_there_is_in_flight_and_halving_takes_half_of_them() {
    for (bound, capacity, servers) in [(4, 1.0, 4), (16, 1.0, 16), (40, 1.0, 16), (40, 0.5, 8)] {
        let window = fixed("mm16", bound, capacity);
        assert_near(window.rate_per_s(), f64::from(servers) / 0.0016);
        let latency_s = 0.0016 * bound as f64 / f64::from(servers);
        assert_near(window.latency_s(), latency_s);
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
                let window = fixed("mm1-far", bound, capacity);
                assert_near(window.rate_per_s(), rate_per_s);
                assert_near(window.latency_s(), latency_s);
            }
        }
    }
}

#[test]
fn what_is_in_flight_is_rate_times_latency_on_every_system() {
    for system in SYSTEMS {
        let window = fixed(system.name, 40, 1.0);
        assert_near(window.rate_per_s() * window.latency_s(), 40.0);
    }
}

#[test]
fn one_seed_gives_one_run() {
    let settings = GateSettings {
        window_messages: 500,
        ..GateSettings::DEFAULT
    };
    let phase = Phase {
        windows: 50,
        capacity: 1.0,
    };
    let once = |seed| run(system("heavy-tail"), settings, &[phase], seed);
    assert_eq!(once(7), once(7));
    assert_ne!(once(7), once(8));
}
