//! A limiter in front of a system that is always offered more than its capacity: each message that
//! the gate admits is there at once. A bound on messages in flight is made for this case, and shows
//! its worth in it.

use crate::course::{Course, Phase, Recorder};
use crate::machine::Machine;
use crate::system::System;
use airmail_flow::{Gate, GateSettings, Ticket};
use airmail_model::{Lane, Mono};
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// Runs `system` behind a gate through the phases, and gives its course in windows of
/// `settings.window_messages`.
#[must_use]
pub fn run(system: &System, settings: GateSettings, phases: &[Phase], seed: u64) -> Course {
    let mut run = Run {
        gate: Gate::new(settings),
        machine: Machine::new(*system, SmallRng::seed_from_u64(seed)),
        now: 0,
        recorder: Recorder::new(settings.window_messages, 1),
    };
    let mut end = 0;
    for phase in phases {
        run.machine.set_capacity(phase.capacity);
        end += phase.span_ns;
        while run.now < end {
            run.turn(end);
        }
    }
    run.recorder.finish(end)
}

struct Run {
    gate: Gate<()>,
    machine: Machine,
    now: u64,
    recorder: Recorder,
}

impl Run {
    /// Goes on to the next moment at which anything happens, or to the end of the phase.
    fn turn(&mut self, end: u64) {
        while let Some(ticket) = self.gate.try_enter(Mono(self.now), Lane::Normal, 1) {
            self.machine.arrive(ticket);
        }
        self.machine.serve(self.now);
        self.now = self.machine.next().map_or(end, |next| next.min(end));
        while let Some(ticket) = self.machine.depart(self.now) {
            let (messages, latency) = (ticket.messages(), self.now - ticket.admitted().0);
            let mut admitted: Vec<((), Ticket)> = Vec::new();
            let _decision = self
                .gate
                .acknowledged(Mono(self.now), ticket, &mut admitted);
            self.recorder.acknowledged(0, messages, latency);
        }
        let bound = std::iter::once(self.gate.bound());
        self.recorder.close(self.now, bound);
    }
}
