//! Measuring W and λ over every N acknowledged messages.
//!
//! λ is taken from acknowledgements, not from arrivals: in a steady state both rates are the same,
//! and otherwise the completed work is what counts. A window begins where the one before ended, so
//! that no time is left out; the very first begins with the first acknowledgement, because nobody
//! knows how long the system had been idle before.

use airmail_model::Mono;
use std::time::Duration;

const NANOS_PER_S: f64 = 1e9;

/// Measurements over one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When the window ended.
    pub at: Mono,
    /// Messages acknowledged in it: N, or more where they are acknowledged in batches.
    pub messages: u64,
    /// Number of acknowledgements in which they came.
    pub batches: u64,
    /// Length of the window; never zero.
    pub span: Duration,
    /// W: the mean time that one of these messages took, from admission to acknowledgement.
    pub latency: Duration,
}

impl Sample {
    /// λ: messages a second.
    #[must_use]
    pub fn rate_per_s(&self) -> f64 {
        self.messages as f64 / self.span.as_secs_f64()
    }

    /// W in seconds.
    #[must_use]
    pub fn latency_s(&self) -> f64 {
        self.latency.as_secs_f64()
    }

    /// L = λW: the mean number in flight, by Little's law.
    #[must_use]
    pub fn in_flight(&self) -> f64 {
        self.rate_per_s() * self.latency_s()
    }

    /// Mean number of messages that are admitted and acknowledged together, at least 1: a bound has
    /// no finer effect.
    #[must_use]
    pub fn batch(&self) -> u64 {
        (self.messages / self.batches.max(1)).max(1)
    }

    /// Power, λ/W, which is greatest at the knee of the curve.
    #[must_use]
    pub fn power(&self) -> f64 {
        self.rate_per_s() / self.latency_s()
    }
}

/// Least size of a sample: it ends where both are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Acknowledged messages; at least 1.
    pub messages: u64,
    /// Time. A rate that is many times lower than the last one is known after no more than this.
    pub span: Duration,
}

impl Window {
    /// Makes one of so many messages, however long they take.
    #[must_use]
    pub fn of_messages(messages: u64) -> Window {
        Window {
            messages,
            span: Duration::ZERO,
        }
    }
}

/// Gathers acknowledgements into samples.
#[derive(Clone, Debug)]
pub struct Meter {
    window: Window,
    /// Acknowledged messages still to be left out.
    unsettled: u64,
    /// When the window began, and the last acknowledgement since.
    moments: Option<(Mono, Mono)>,
    messages: u64,
    batches: u64,
    latency_ns: u128,
}

impl Meter {
    /// Measures over every `window_messages` (N; at least 1) acknowledged messages.
    #[must_use]
    pub fn new(window_messages: u64) -> Meter {
        Meter::with(Window::of_messages(window_messages))
    }

    fn with(window: Window) -> Meter {
        Meter {
            window,
            unsettled: 0,
            moments: None,
            messages: 0,
            batches: 0,
            latency_ns: 0,
        }
    }

    /// Forgets the present window, and begins this one after `unsettled` more acknowledged messages. It is
    /// for a changed bound, when the messages in flight were admitted under the old one.
    pub fn settle(&mut self, unsettled: u64, window: Window) {
        *self = Meter::with(window);
        self.unsettled = unsettled;
    }

    /// Gives the present window, and those after it, this size; what it has gathered stays.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// Notes that `messages` were acknowledged now, each after `latency`. If all of a window had
    /// been acknowledged before, that gives its sample: acknowledgements of one moment belong to
    /// one window, because a commit cut in two would count as a higher rate here and a lower one
    /// there.
    pub fn acknowledged(&mut self, now: Mono, messages: u64, latency: Duration) -> Option<Sample> {
        if self.unsettled > 0 {
            self.unsettled = self.unsettled.saturating_sub(messages);
            return None;
        }
        let Some((opened, last)) = self.moments else {
            // What comes with the moment at which the window begins is not part of it.
            self.moments = Some((now, now));
            return None;
        };
        if now <= opened {
            return None;
        }
        let reached =
            self.messages >= self.window.messages.max(1) && last.since(opened) >= self.window.span;
        let full = reached && now > last;
        let sample = full.then(|| self.close(opened, last));
        let opened = if full { last } else { opened };
        self.moments = Some((opened, now));
        self.messages = self.messages.saturating_add(messages);
        self.batches += 1;
        self.latency_ns += latency.as_nanos() * u128::from(messages);
        sample
    }

    fn close(&mut self, opened: Mono, last: Mono) -> Sample {
        let mean_ns = self.latency_ns as f64 / self.messages as f64;
        let sample = Sample {
            at: last,
            messages: self.messages,
            batches: self.batches,
            span: last.since(opened),
            latency: Duration::from_secs_f64(mean_ns.max(1.0) / NANOS_PER_S),
        };
        self.messages = 0;
        self.batches = 0;
        self.latency_ns = 0;
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn at(ms: u32) -> Mono {
        Mono(0).plus(MILLISECOND * ms)
    }

    #[test]
    fn every_n_messages_give_a_sample_whose_l_is_λ_times_w() {
        let mut meter = Meter::new(4);
        assert_eq!(meter.acknowledged(at(0), 1, 8 * MILLISECOND), None);
        for ms in 1..4 {
            assert_eq!(meter.acknowledged(at(ms), 1, 6 * MILLISECOND), None);
        }
        assert_eq!(meter.acknowledged(at(4), 1, 10 * MILLISECOND), None);
        let sample = meter.acknowledged(at(5), 1, 90 * MILLISECOND).unwrap();
        assert_eq!((sample.at, sample.messages), (at(4), 4));
        assert!((sample.rate_per_s() - 1000.0).abs() < 1e-9);
        assert!((sample.latency_s() - 0.007).abs() < 1e-12);
        assert!((sample.in_flight() - 7.0).abs() < 1e-9);
        assert!((sample.power() - 1000.0 / 0.007).abs() < 1e-6);
    }

    #[test]
    fn a_batch_counts_as_its_messages() {
        let mut meter = Meter::new(10);
        assert_eq!(meter.acknowledged(at(0), 1, MILLISECOND), None);
        assert_eq!(meter.acknowledged(at(1), 9, MILLISECOND), None);
        assert_eq!(meter.acknowledged(at(2), 3, 5 * MILLISECOND), None);
        let sample = meter.acknowledged(at(3), 1, MILLISECOND).unwrap();
        assert_eq!(sample.messages, 12);
        assert!((sample.latency_s() - 0.002).abs() < 1e-12);
    }

    #[test]
    fn a_window_begins_where_the_one_before_ended() {
        let mut meter = Meter::new(1);
        assert_eq!(meter.acknowledged(at(5), 1, MILLISECOND), None);
        assert_eq!(meter.acknowledged(at(6), 1, MILLISECOND), None);
        let first = meter.acknowledged(at(16), 1, MILLISECOND).unwrap();
        let second = meter.acknowledged(at(17), 1, MILLISECOND).unwrap();
        assert_eq!(first.span, MILLISECOND);
        assert_eq!(second.span, 10 * MILLISECOND);
    }

    #[test]
    fn what_is_acknowledged_at_one_moment_is_never_divided() {
        let mut meter = Meter::new(10);
        let mut samples = Vec::new();
        for ms in 0..50 {
            for _ in 0..7 {
                samples.extend(meter.acknowledged(at(ms), 1, MILLISECOND));
            }
        }
        assert_eq!(samples.len(), 24);
        for sample in samples {
            assert_eq!(sample.messages, 14);
            assert!((sample.rate_per_s() - 7000.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_longer_window_keeps_what_it_has() {
        let mut meter = Meter::new(2);
        assert_eq!(meter.acknowledged(at(0), 1, MILLISECOND), None);
        assert_eq!(meter.acknowledged(at(1), 1, MILLISECOND), None);
        meter.set_window(Window::of_messages(4));
        for ms in 2..5 {
            assert_eq!(meter.acknowledged(at(ms), 1, MILLISECOND), None);
        }
        let sample = meter.acknowledged(at(5), 1, MILLISECOND).unwrap();
        assert_eq!((sample.messages, sample.span), (4, 4 * MILLISECOND));
    }

    #[test]
    fn what_was_admitted_under_the_old_bound_is_left_out() {
        let mut meter = Meter::new(100);
        meter.settle(3, Window::of_messages(2));
        for ms in 0..3 {
            assert_eq!(meter.acknowledged(at(ms), 1, 90 * MILLISECOND), None);
        }
        for ms in 3..6 {
            assert_eq!(meter.acknowledged(at(ms), 1, MILLISECOND), None);
        }
        let sample = meter.acknowledged(at(6), 1, MILLISECOND).unwrap();
        assert_eq!((sample.messages, sample.latency), (2, MILLISECOND));
        assert_eq!(sample.span, 2 * MILLISECOND);
    }

    #[test]
    fn a_window_with_a_span_ends_where_both_are_reached() {
        let mut meter = Meter::new(1);
        meter.set_window(Window {
            messages: 3,
            span: 10 * MILLISECOND,
        });
        let samples: Vec<Sample> = (0..40)
            .filter_map(|ms| meter.acknowledged(at(ms), 1, MILLISECOND))
            .collect();
        assert!(samples.iter().all(|sample| sample.span == 10 * MILLISECOND));
        // Where acknowledgements become rare it is the messages that are waited for.
        let rare: Vec<Sample> = (1..20)
            .filter_map(|n| meter.acknowledged(at(100 + n * 8), 1, MILLISECOND))
            .collect();
        assert!(rare[1..].iter().all(|sample| sample.messages == 3));
    }
}
