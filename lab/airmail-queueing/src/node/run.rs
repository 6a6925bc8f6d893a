//! A run of the model, from event to event in virtual time.
//!
//! Invariants: a message is in one place, a client, the line, or the storage; the node's gate admits whole
//! batches in the order in which they came; one seed gives one run.

use super::agenda::Agenda;
use super::client::{Batch, Client};
use super::storage::Storage;
use super::{Limiters, NodeModel};
use crate::course::{Course, Phase, Recorder};
use airmail_flow::{Admission, Gate, GateSettings, Ticket};
use airmail_model::{Lane, Mono, bug};
use std::collections::VecDeque;

/// Time between the first wakes of two clients: nobody begins together.
const STAGGER_NS: u64 = 50_000;
/// A line that refuses nobody: what waits is bounded by what the clients keep.
const ENDLESS_MS: u64 = 1_000_000_000;

#[derive(Debug)]
enum Event {
    /// A client wakes.
    Wake(usize),
    /// A batch reaches the node.
    Arrive(Batch),
    /// The storage begins a group.
    Begin,
    /// The group is stored.
    End,
    /// The capacity becomes this.
    Capacity(f64),
}

/// Runs a node through the phases, and gives its course in windows of `settings.window_messages` of all
/// clients together. Where publishers are limited, each limiter counts its share of them, so that its windows
/// are as long.
#[must_use]
pub fn run(model: &NodeModel, settings: GateSettings, phases: &[Phase], seed: u64) -> Course {
    let mut run = Run::new(model, settings, seed);
    let mut end_ns = 0;
    for phase in phases {
        run.agenda.enter(end_ns, Event::Capacity(phase.capacity));
        end_ns += phase.span_ns;
    }
    for client in 0..run.clients.len() {
        let at_ns = client as u64 * STAGGER_NS;
        run.agenda.enter(at_ns, Event::Wake(client));
    }
    while let Some((at_ns, event)) = run.agenda.next()
        && at_ns < end_ns
    {
        run.now_ns = at_ns;
        run.handle(event);
    }
    run.recorder.finish(end_ns)
}

struct Run {
    now_ns: u64,
    agenda: Agenda<Event>,
    clients: Vec<Client>,
    /// The node's own gate, if that is what is limited, and its line.
    pilot: Option<Pilot>,
    storage: Storage,
    recorder: Recorder,
}

struct Pilot {
    gate: Gate<()>,
    /// Batches that wait, as the gate knows them: in the same order.
    line: VecDeque<Batch>,
    in_turn: bool,
}

impl Run {
    fn new(model: &NodeModel, settings: GateSettings, seed: u64) -> Run {
        let clients = model.clients as usize;
        let endless = GateSettings {
            waiting_messages_max: u64::MAX,
            burst_ms: ENDLESS_MS,
            wait_ms_max: ENDLESS_MS,
            ..settings
        };
        let (pilot, limiters, shared) = match model.limiters {
            Limiters::Publishers => (None, clients, u64::from(model.clients)),
            Limiters::Pilot { in_turn, .. } => {
                let pilot = Pilot {
                    gate: Gate::new(endless),
                    line: VecDeque::new(),
                    in_turn,
                };
                (Some(pilot), 1, 1)
            }
        };
        let own = GateSettings {
            window_messages: settings.window_messages / shared,
            ..settings
        };
        Run {
            now_ns: 0,
            agenda: Agenda::new(),
            clients: (0..clients)
                .map(|number| Client::new(model, number, own, seed))
                .collect(),
            pilot,
            storage: Storage::new(model, seed),
            recorder: Recorder::new(settings.window_messages, limiters),
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Wake(client) => {
                let leaving = self.clients[client].wake(self.now_ns, &mut self.recorder);
                for (at_ns, batch) in leaving {
                    self.agenda.enter(at_ns, Event::Arrive(batch));
                }
                self.close();
            }
            Event::Arrive(batch) => self.arrive(batch),
            Event::Begin => self.begin(),
            Event::End => self.end(),
            Event::Capacity(capacity) => self.storage.set_capacity(capacity),
        }
    }

    fn arrive(&mut self, mut batch: Batch) {
        if let Some(pilot) = &mut self.pilot
            && !pilot.in_turn
        {
            match pilot
                .gate
                .enter(Mono(self.now_ns), Lane::Normal, batch.messages, ())
            {
                Admission::Go(ticket) => batch.tickets.push(ticket),
                Admission::Waits(_) => {
                    pilot.line.push_back(batch);
                    return;
                }
                Admission::Refused(refusal) => {
                    bug!("a line without end has refused a batch: {refusal:?}");
                    return;
                }
            }
        }
        if let Some(at_ns) = self.storage.arrive(self.now_ns, batch) {
            self.agenda.enter(at_ns, Event::Begin);
        }
    }

    fn begin(&mut self) {
        let Some(end_ns) = self.storage.begin(self.now_ns) else {
            return;
        };
        if let Some(pilot) = &mut self.pilot
            && pilot.in_turn
        {
            // Asked and answered at one moment: the gate sees each batch alone, for no time.
            for batch in self.storage.group_mut() {
                if let Some(ticket) =
                    pilot
                        .gate
                        .try_enter(Mono(self.now_ns), Lane::Normal, batch.messages)
                {
                    pilot.take_back(self.now_ns, ticket, &mut self.recorder);
                }
            }
        }
        self.agenda.enter(end_ns, Event::End);
    }

    fn end(&mut self) {
        let (mut group, begin_ns) = self.storage.end(self.now_ns);
        self.agenda.enter(begin_ns, Event::Begin);
        if let Some(pilot) = &mut self.pilot {
            for batch in &mut group {
                for ticket in batch.tickets.drain(..) {
                    let admitted = pilot.take_back(self.now_ns, ticket, &mut self.recorder);
                    self.storage.let_in(admitted.into_iter());
                }
            }
        }
        for batch in group {
            let client = batch.client;
            if let Some(at_ns) = self.clients[client].acknowledged(self.now_ns, batch) {
                self.agenda.enter(at_ns, Event::Wake(client));
            }
        }
        self.close();
    }

    fn close(&mut self) {
        let pilot = self.pilot.iter().map(|pilot| pilot.gate.bound());
        let clients = self.clients.iter().filter_map(Client::bound);
        self.recorder.close(self.now_ns, pilot.chain(clients));
    }
}

impl Pilot {
    /// Takes a ticket back, and gives the batches that may go now.
    fn take_back(&mut self, now_ns: u64, ticket: Ticket, recorder: &mut Recorder) -> Vec<Batch> {
        let mut admitted: Vec<((), Ticket)> = Vec::new();
        let (messages, latency_ns) = (ticket.messages(), now_ns - ticket.admitted().0);
        let _decision = self.gate.acknowledged(Mono(now_ns), ticket, &mut admitted);
        recorder.acknowledged(0, messages, latency_ns);
        let ticketed = admitted.into_iter().filter_map(|((), ticket)| {
            let mut batch = self.line.pop_front()?;
            batch.tickets.push(ticket);
            Some(batch)
        });
        ticketed.collect()
    }
}
