//! Recovery of a limiter: the number of windows until it is at the knee, at first or after a change of
//! the system.
//!
//! Single windows are noisy, so a limiter is at the knee when several windows *together* have enough of
//! its throughput and not too much of its latency. Both at once: a bound far too high has all the
//! throughput, one far too low has the least latency.

use crate::knee::{BesideKnee, Knee};

/// Windows that are looked at together.
pub const TOGETHER: usize = 5;
/// Share of the knee's throughput that they have at least.
pub const RATE_SHARE_MIN: f64 = 0.9;
/// Multiple of the knee's latency that they have at most.
pub const LATENCY_RATIO_MAX: f64 = 1.5;

/// Messages that were acknowledged one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stretch {
    /// Their number.
    pub messages: f64,
    /// Time in which they were acknowledged, in seconds.
    pub span_s: f64,
    /// Their mean latency, in seconds.
    pub latency_s: f64,
}

impl Stretch {
    /// Several as one; nothing has a latency of 0.
    #[must_use]
    pub fn together(stretches: &[Stretch]) -> Stretch {
        let sum = |of: fn(&Stretch) -> f64| stretches.iter().map(of).sum::<f64>();
        let messages = sum(|stretch| stretch.messages);
        let latencies_s = sum(|stretch| stretch.messages * stretch.latency_s);
        Stretch {
            messages,
            span_s: sum(|stretch| stretch.span_s),
            latency_s: if messages > 0.0 {
                latencies_s / messages
            } else {
                0.0
            },
        }
    }

    /// Throughput, in messages a second; 0 of nothing.
    #[must_use]
    pub fn rate_per_s(&self) -> f64 {
        self.messages / self.span_s.max(f64::MIN_POSITIVE)
    }
}

/// Number of windows before the first [`TOGETHER`] that are at the knee together; `None` if none are.
#[must_use]
pub fn windows_to_recover(windows: &[Stretch], knee: &Knee) -> Option<usize> {
    windows.windows(TOGETHER).position(|few| {
        let few = Stretch::together(few);
        is_at_knee(knee.compare(few.rate_per_s(), few.latency_s))
    })
}

/// Tells whether this is at the knee: it has [`RATE_SHARE_MIN`] of its throughput, and at most
/// [`LATENCY_RATIO_MAX`] times its latency.
#[must_use]
pub fn is_at_knee(beside: BesideKnee) -> bool {
    beside.rate_share >= RATE_SHARE_MIN && beside.latency_ratio <= LATENCY_RATIO_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNEE: Knee = Knee {
        bound: 10,
        rate_per_s: 1_000.0,
        latency_s: 0.01,
        peak_per_s: 1_100.0,
    };

    fn windows(each: &[(f64, f64)]) -> Vec<Stretch> {
        let window = |(rate_per_s, latency_s): &(f64, f64)| Stretch {
            messages: 100.0,
            span_s: 100.0 / rate_per_s,
            latency_s: *latency_s,
        };
        each.iter().map(window).collect()
    }

    #[test]
    fn it_has_recovered_once_five_windows_together_are_at_the_knee() {
        let slow = (500.0, 0.01);
        let good = (1_000.0, 0.01);
        let each = [slow, slow, good, (800.0, 0.01), good, good, good, slow];
        assert_eq!(windows_to_recover(&windows(&each), &KNEE), Some(2));
        assert_eq!(windows_to_recover(&windows(&each[..6]), &KNEE), None);
    }

    #[test]
    fn neither_throughput_nor_latency_alone_is_enough() {
        for each in [(2_000.0, 0.02), (500.0, 0.001)] {
            assert_eq!(windows_to_recover(&windows(&[each; 9]), &KNEE), None);
        }
    }

    #[test]
    fn windows_count_by_their_messages_and_their_time() {
        let together = Stretch::together(&windows(&[(100.0, 0.01), (300.0, 0.03)]));
        assert!((together.rate_per_s() - 150.0).abs() < 1e-9);
        assert!((together.latency_s - 0.02).abs() < 1e-12);
        assert_eq!(Stretch::together(&[]).latency_s, 0.0);
    }
}
