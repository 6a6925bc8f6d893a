//! A limiter in front of a system that is always offered more than its capacity: each message that
//! the gate admits is there at once. A bound on messages in flight is made for this case, and shows
//! its worth in it.

use crate::machine::Machine;
use crate::system::System;
use airmail_flow::{Gate, GateSettings, Ticket};
use airmail_model::Mono;
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// A stretch of a run at one capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Time, in windows of N acknowledged messages.
    pub windows: usize,
    /// 1: the system as described; 0.5: half its capacity.
    pub capacity: f64,
}

/// N acknowledged messages, whatever the limiter makes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Number of messages.
    pub messages: u64,
    /// Time that they took together, in nanoseconds.
    pub span_ns: u64,
    /// The sum of what each took, in nanoseconds.
    pub latency_ns: u64,
    /// The bound at the window's end.
    pub bound: u64,
}

impl Window {
    /// Several as one.
    #[must_use]
    pub fn together(windows: &[Window]) -> Window {
        let add = |sum: Window, next: &Window| Window {
            messages: sum.messages + next.messages,
            span_ns: sum.span_ns + next.span_ns,
            latency_ns: sum.latency_ns + next.latency_ns,
            bound: next.bound,
        };
        windows.iter().fold(Window::default(), add)
    }

    /// Messages a second.
    #[must_use]
    pub fn rate_per_s(&self) -> f64 {
        self.messages as f64 * 1e9 / self.span_ns as f64
    }

    /// The mean time of a message, in seconds.
    #[must_use]
    pub fn latency_s(&self) -> f64 {
        self.latency_ns as f64 / 1e9 / self.messages as f64
    }

    /// Throughput over latency.
    #[must_use]
    pub fn power(&self) -> f64 {
        self.rate_per_s() / self.latency_s()
    }
}

/// Runs `system` behind a gate through the phases, and gives every window of
/// `settings.window_messages`.
#[must_use]
pub fn run(system: System, settings: GateSettings, phases: &[Phase], seed: u64) -> Vec<Window> {
    let mut run = Run {
        gate: Gate::new(settings),
        machine: Machine::new(system, SmallRng::seed_from_u64(seed)),
        now: 0,
        window: Window::default(),
        opened: 0,
    };
    let mut windows = Vec::new();
    for phase in phases {
        run.machine.set_capacity(phase.capacity);
        for _ in 0..phase.windows {
            windows.push(run.window(settings.window_messages));
        }
    }
    windows
}

struct Run {
    gate: Gate<()>,
    machine: Machine,
    now: u64,
    window: Window,
    opened: u64,
}

impl Run {
    fn window(&mut self, messages: u64) -> Window {
        while self.window.messages < messages {
            self.turn();
        }
        let mut window = std::mem::take(&mut self.window);
        window.span_ns = self.now - self.opened;
        window.bound = self.gate.bound();
        self.opened = self.now;
        window
    }

    /// Goes on to the next moment at which anything happens.
    fn turn(&mut self) {
        while let Some(ticket) = self.gate.try_enter(Mono(self.now), 1) {
            self.machine.arrive(ticket);
        }
        self.machine.serve(self.now);
        let Some(next) = self.machine.next() else {
            return;
        };
        self.now = next;
        while let Some(ticket) = self.machine.depart(self.now) {
            self.window.messages += 1;
            self.window.latency_ns += self.now - ticket.admitted().0;
            let mut admitted: Vec<((), Ticket)> = Vec::new();
            let _decision = self
                .gate
                .acknowledged(Mono(self.now), ticket, &mut admitted);
        }
    }
}
