//! Mean waits by theory, with a mean service time of 1.

use super::{Policy, Setting};

/// The mean wait of a setting for which there is an exact one, and its name.
#[must_use]
pub fn mean_wait(setting: &Setting) -> Option<(&'static str, f64)> {
    let Setting {
        policy,
        queues,
        dispatchers,
        load,
    } = *setting;
    match policy {
        Policy::Random => Some(("M/M/1", mm1(load))),
        Policy::RoundRobin if dispatchers == 1 => Some(("E_N/M/1", erlang_m1(queues, load))),
        // Jobs wait in one place, and go to whichever is idle.
        Policy::IdleQueue if dispatchers == 1 => Some(("M/M/N", mmn(queues, load))),
        _ => None,
    }
}

/// λ/(μ(μ-λ)): a queue with its own Poisson stream.
#[must_use]
pub fn mm1(load: f64) -> f64 {
    load / (1.0 - load)
}

/// `E_N/M/1`: a queue that gets every N-th job of a Poisson stream. The share σ of arrivals that
/// find it busy is the root below 1 of σ = A(1 - σ), where A is the transform of the time between
/// arrivals.
#[must_use]
pub fn erlang_m1(stages: usize, load: f64) -> f64 {
    let rate = stages as f64 * load;
    let transform = |s: f64| (rate / (rate + s)).powf(stages as f64);
    let (mut low, mut high) = (0.0, 1.0 - 1e-12);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if transform(1.0 - middle) > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    low / (1.0 - low)
}

/// M/M/N: one line for all servers. No policy can do better.
#[must_use]
pub fn mmn(servers: usize, load: f64) -> f64 {
    let offered = servers as f64 * load;
    // Erlang's B by its recursion, and C from it.
    let mut blocked = 1.0;
    for servers in 1..=servers {
        blocked = offered * blocked / (servers as f64 + offered * blocked);
    }
    let waits = blocked / (1.0 - load * (1.0 - blocked));
    waits / (servers as f64 * (1.0 - load))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stage_or_one_server_is_m_m_1() {
        for load in [0.1, 0.5, 0.9] {
            assert!((erlang_m1(1, load) - mm1(load)).abs() < 1e-9);
            assert!((mmn(1, load) - mm1(load)).abs() < 1e-9);
        }
    }

    #[test]
    fn many_stages_are_d_m_1() {
        // D/M/1 at load 0.5: σ = exp(-2 (1 - σ)), σ = 0.2032.
        assert!((erlang_m1(100_000, 0.5) - 0.2032 / 0.7968).abs() < 1e-3);
    }

    #[test]
    fn two_servers_wait_as_the_books_say() {
        // M/M/2: ρ²/(1 - ρ²) mean service times.
        assert!((mmn(2, 0.5) - 0.25 / 0.75).abs() < 1e-12);
    }
}
