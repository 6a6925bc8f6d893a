//! A publisher's limiter: the messages that may be sent now, and one point of the curves every N
//! acks.
//!
//! The gate is the node's own; here it decides how many messages go together. A chunk is admitted
//! as a whole and comes back as a whole, so its first message waits for its last: chunks stay small
//! against the bound. Nothing waits in the gate: a publisher that finds no room asks again after
//! the next ack. Room that is smaller than a chunk waits until it is one: a bound that moves leaves such
//! room over, and batches of a few messages made of it would cost as much as whole ones.
//!
//! Invariants: never more in flight than the bound of the moment, but for messages admitted before
//! the bound was lowered; never more than an eighth of the bound in a chunk, or one message; never less
//! in a chunk, but for the last one.

use super::{Counter, Window, named};
use airmail_flow::{
    Decision, Gate, GateSettings, GradientSettings, LadderSettings, LimiterKind, LimiterSettings,
    Ticket,
};
use airmail_model::{Lane, Mono};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// Chunks that the bound has room for, at least.
const CHUNKS: u64 = 8;
/// Messages of a chunk at most.
const CHUNK_MAX: u64 = 256;

/// Settings of a gate that an experiment changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttling {
    /// The limiter.
    #[serde(with = "named")]
    pub limiter: LimiterKind,
    /// The bound to begin with, in messages.
    pub bound_initial: u64,
    /// The smallest change of the bound that the paper's limiters make, in messages.
    pub delta: u64,
    /// The paper's N, in messages.
    pub window_messages: u64,
    /// Latency that `gradient` gives up no throughput for, and the budget of `ladder`, in milliseconds.
    pub latency_floor_ms: u64,
}

impl Throttling {
    /// A gate's settings, with the rest as it comes.
    #[must_use]
    pub fn gate(self) -> GateSettings {
        GateSettings {
            window_messages: self.window_messages,
            limiter: LimiterSettings {
                kind: self.limiter,
                bound_initial: self.bound_initial,
                delta: self.delta,
                gradient: GradientSettings {
                    latency_floor_ms: self.latency_floor_ms,
                    ..GradientSettings::DEFAULT
                },
                ladder: LadderSettings {
                    budget_ms: self.latency_floor_ms,
                    ..LadderSettings::DEFAULT
                },
                ..LimiterSettings::DEFAULT
            },
            ..GateSettings::DEFAULT
        }
    }
}

/// The gate of one publisher, with what it has seen.
#[derive(Debug)]
pub struct Throttle {
    gate: Gate<Infallible>,
    start: Mono,
    /// All that was acknowledged so far.
    so_far: Counter,
    windows: Vec<Window>,
    /// One at the end of each window.
    counters: Vec<Counter>,
}

/// Observations of a gate, from the first message to the last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// All windows.
    pub windows: Vec<Window>,
    /// Counters at the end of each, and at the end of all.
    pub counters: Vec<Counter>,
    /// The bound that held at last, in messages.
    pub bound: u64,
}

impl Throttle {
    /// Begins with the settings' first bound; times of windows count from `start`.
    #[must_use]
    pub fn new(settings: GateSettings, start: Mono) -> Throttle {
        Throttle {
            gate: Gate::new(settings),
            start,
            so_far: Counter::default(),
            windows: Vec::new(),
            counters: Vec::new(),
        }
    }

    /// Leave to send a chunk of at most `left` messages; `None` if there is no room for a whole one.
    pub fn admit(&mut self, now: Mono, left: u64) -> Option<Ticket> {
        let bound = self.gate.bound();
        let room = bound.saturating_sub(self.gate.in_flight());
        let chunk = (bound / CHUNKS).clamp(1, CHUNK_MAX);
        let count = chunk.min(left);
        if count == 0 || count > room {
            return None;
        }
        self.gate.try_enter(now, Lane::Normal, count)
    }

    /// A chunk is acknowledged.
    pub fn acknowledged(&mut self, now: Mono, ticket: Ticket) {
        let messages = ticket.messages() as f64;
        let latency_s = now.since(ticket.admitted()).as_secs_f64();
        let decision = self.gate.acknowledged(now, ticket, &mut Vec::new());
        if let Some(decision) = decision {
            // This chunk has come after the window.
            let seconds = decision.at.since(self.start).as_secs_f64();
            self.windows.push(self.window(&decision));
            self.counters.push(Counter {
                seconds,
                ..self.so_far
            });
        }
        self.so_far.seconds = now.since(self.start).as_secs_f64();
        self.so_far.messages += messages;
        self.so_far.message_seconds += messages * latency_s;
    }

    /// A chunk, or part of it, came to nothing.
    pub fn abandoned(&mut self, now: Mono, ticket: Ticket) {
        self.gate.abandoned(now, ticket, &mut Vec::new());
    }

    /// All that it has seen.
    #[must_use]
    pub fn into_seen(mut self) -> Seen {
        self.counters.push(self.so_far);
        Seen {
            windows: self.windows,
            counters: self.counters,
            bound: self.gate.bound(),
        }
    }

    fn window(&self, decision: &Decision) -> Window {
        Window {
            number: self.windows.len() as u64 + 1,
            seconds: decision.at.since(self.start).as_secs_f64(),
            bound: decision.bound_before,
            bound_after: decision.bound,
            in_flight: decision.in_flight,
            latency_s: decision.latency_s,
            rate_per_s: decision.rate_per_s,
            rule: decision.rule.name().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::time::Duration;

    /// A system that acknowledges chunks in order, each message 10 µs after the one before, and none
    /// sooner than 1 ms after it was sent.
    struct Line {
        now: Mono,
        free: Mono,
        sent: VecDeque<(Mono, Ticket)>,
    }

    impl Line {
        const MESSAGE: Duration = Duration::from_micros(10);
        const WAY: Duration = Duration::from_millis(1);

        fn new() -> Line {
            Line {
                now: Mono(0),
                free: Mono(0),
                sent: VecDeque::new(),
            }
        }

        /// Sends what is let, then moves on to the next ack. What was in flight after sending.
        fn turn(&mut self, throttle: &mut Throttle, mut left: u64) -> (u64, u64) {
            let mut sent = 0;
            while let Some(ticket) = throttle.admit(self.now, left) {
                let messages = u32::try_from(ticket.messages()).unwrap();
                assert!(ticket.messages() <= (throttle.gate.bound() / CHUNKS).max(1));
                left -= ticket.messages();
                sent += ticket.messages();
                let begin = self.free.max(self.now.plus(Line::WAY));
                self.free = begin.plus(Line::MESSAGE * messages);
                self.sent.push_back((self.free, ticket));
            }
            let in_flight = throttle.gate.in_flight();
            if let Some((done, ticket)) = self.sent.pop_front() {
                self.now = done;
                throttle.acknowledged(done, ticket);
            }
            (sent, in_flight)
        }
    }

    fn settings(limiter: LimiterKind) -> GateSettings {
        let throttling = Throttling {
            limiter,
            bound_initial: 40,
            delta: 4,
            window_messages: 500,
            latency_floor_ms: 0,
        };
        throttling.gate()
    }

    #[test]
    fn another_process_holds_back_the_same_way() {
        for limiter in LimiterKind::ALL {
            let told = Throttling {
                limiter,
                bound_initial: 7,
                delta: 3,
                window_messages: 11,
                latency_floor_ms: 5,
            };
            let words = serde_json::to_string(&told).unwrap();
            assert_eq!(serde_json::from_str::<Throttling>(&words).unwrap(), told);
        }
        let unknown = r#"{"limiter":"vegas","bound_initial":1,"delta":1,"window_messages":1,"latency_floor_ms":0}"#;
        let said = serde_json::from_str::<Throttling>(unknown).unwrap_err();
        assert!(said.to_string().contains("vegas"), "{said}");
    }

    #[test]
    fn the_bound_holds_and_is_used_whatever_the_limiter() {
        for kind in LimiterKind::ALL {
            let mut throttle = Throttle::new(settings(kind), Mono(0));
            let mut line = Line::new();
            let mut highest = 0;
            for _ in 0..20_000 {
                let bound = throttle.gate.bound();
                let before = throttle.gate.in_flight();
                let (_, in_flight) = line.turn(&mut throttle, u64::MAX);
                assert!(
                    in_flight <= bound.max(before),
                    "{kind}: {in_flight} of {bound}"
                );
                let chunk = (bound / CHUNKS).clamp(1, CHUNK_MAX);
                assert!(in_flight + chunk > bound, "{kind}: {in_flight} of {bound}");
                highest = highest.max(bound);
            }
            assert!(highest >= 40, "{kind}");
        }
    }

    #[test]
    fn no_more_than_what_is_left_is_admitted() {
        let mut throttle = Throttle::new(settings(LimiterKind::Fixed), Mono(0));
        let mut line = Line::new();
        let (sent, in_flight) = line.turn(&mut throttle, 7);
        assert_eq!((sent, in_flight), (7, 7));
        assert!(throttle.admit(line.now, 0).is_none());
    }

    #[test]
    fn room_left_over_is_no_batch_of_its_own() {
        let throttling = Throttling {
            limiter: LimiterKind::Fixed,
            bound_initial: 43,
            delta: 4,
            window_messages: 500,
            latency_floor_ms: 0,
        };
        let mut throttle = Throttle::new(throttling.gate(), Mono(0));
        let mut tickets = Vec::new();
        while let Some(ticket) = throttle.admit(Mono(1), u64::MAX) {
            assert_eq!(ticket.messages(), 5);
            tickets.push(ticket);
        }
        assert_eq!(throttle.gate.in_flight(), 40);
        assert!(
            throttle.admit(Mono(1), 3).is_some(),
            "the last one is smaller"
        );
        for bound in 1..8 {
            let mut least = Throttle::new(
                Throttling {
                    bound_initial: bound,
                    ..throttling
                }
                .gate(),
                Mono(0),
            );
            assert!(least.admit(Mono(1), u64::MAX).is_some(), "{bound}");
        }
    }

    #[test]
    fn windows_have_the_systems_rate_and_littles_law() {
        let mut throttle = Throttle::new(settings(LimiterKind::Fixed), Mono(0));
        let mut line = Line::new();
        for _ in 0..5_000 {
            line.turn(&mut throttle, u64::MAX);
        }
        let acknowledged = throttle.so_far.messages;
        let Seen {
            windows, counters, ..
        } = throttle.into_seen();
        assert!(windows.len() > 20);
        assert_eq!(counters.len(), windows.len() + 1);
        assert_eq!(counters[windows.len()].messages, acknowledged);
        assert!(counters.is_sorted_by(|a, b| a.messages < b.messages));
        for window in &windows[2..] {
            assert_eq!(window.bound, 40);
            assert!((window.in_flight - 40.0).abs() < 4.0, "{window:?}");
            assert!(window.latency_s > 0.001 && window.rule == "fixed");
        }
        assert!(windows.is_sorted_by(|a, b| a.seconds < b.seconds && a.number + 1 == b.number));
    }

    #[test]
    fn what_came_to_nothing_leaves_room_and_no_trace() {
        let mut throttle = Throttle::new(settings(LimiterKind::Fixed), Mono(0));
        let mut tickets = Vec::new();
        while let Some(ticket) = throttle.admit(Mono(1), u64::MAX) {
            tickets.push(ticket);
        }
        throttle.abandoned(Mono(2), tickets.pop().unwrap());
        assert_eq!(throttle.gate.in_flight(), 35);
        assert_eq!(throttle.so_far, Counter::default());
    }
}
