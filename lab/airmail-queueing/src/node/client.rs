//! A client: it makes messages one after another, and sends them in batches.
//!
//! When it wakes it takes the acknowledgements that have come, and then makes all that it may make, which
//! takes its own time; acknowledgements that come meanwhile have to wait. A full batch is sent at once.
//! What remains is sent when all is made, unless [`EAGER_BATCHES`] are under way already: then it stays
//! open, and gathers.
//!
//! With a limiter of its own a client admits *chunks* of an eighth of the bound, so that a message does not
//! wait long for those that it was admitted with. Room that is smaller than a chunk stays unused until it is
//! as large: a bound that moves would otherwise make batches of what it leaves over.

use super::{BATCH_MESSAGES, ClientTimes, Limiters, NodeModel};
use crate::course::{Delivered, Recorder};
use crate::service::exponential;
use airmail_flow::{Gate, GateSettings, Ticket};
use airmail_model::{Lane, Mono};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::VecDeque;

/// Batches under way below which one is sent that is not full, as the SDK does.
const EAGER_BATCHES: usize = 2;
/// Batches under way at most.
const BATCHES_MAX: usize = 64;
/// Chunks that a bound has room for, at least.
const CHUNKS: u64 = 8;
/// Messages of a chunk at most.
const CHUNK_MAX: u64 = 256;
const NANOS_PER_US: f64 = 1_000.0;

/// Messages that are sent together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The client that made them.
    pub(super) client: usize,
    /// Their number.
    pub(super) messages: u64,
    /// When the first was made, in nanoseconds.
    pub(super) made_ns: u64,
    /// Tickets that are handed back with it: of the node's gate, or of the client's for the chunks that
    /// end in this batch.
    pub(super) tickets: Vec<Ticket>,
}

/// A batch that leaves a client at a time.
pub(super) type Leaving = (u64, Batch);

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    number: usize,
    times: ClientTimes,
    gate: Option<Gate<()>>,
    random: SmallRng,
    /// When it has made all that it might, in nanoseconds.
    free_ns: u64,
    /// Whether it is known when it wakes.
    wakes: bool,
    /// Batches that are acknowledged.
    inbox: Vec<Batch>,
    /// Messages that it may make without asking a gate.
    to_make: u64,
    open: Batch,
    /// Full batches that are not sent yet, each with the time at which it was full.
    full: VecDeque<Leaving>,
    under_way: usize,
}

impl Client {
    /// A client, with a gate of its own if publishers are limited.
    pub(super) fn new(
        model: &NodeModel,
        number: usize,
        settings: GateSettings,
        seed: u64,
    ) -> Client {
        let (gate, to_make) = match model.limiters {
            Limiters::Publishers => (Some(Gate::new(settings)), 0),
            Limiters::Pilot { held_batches, .. } => {
                (None, u64::from(held_batches) * BATCH_MESSAGES)
            }
        };
        let stream = seed.rotate_left(17) ^ (number as u64 + 1);
        Client {
            number,
            times: model.client,
            gate,
            random: SmallRng::seed_from_u64(stream),
            free_ns: 0,
            wakes: true,
            inbox: Vec::new(),
            to_make,
            open: Batch::default(),
            full: VecDeque::new(),
            under_way: 0,
        }
    }

    /// The bound of its own limiter, if it has one.
    pub(super) fn bound(&self) -> Option<u64> {
        self.gate.as_ref().map(Gate::bound)
    }

    /// Takes an acknowledgement. Gives the time at which it wakes, if that was not known.
    pub(super) fn acknowledged(&mut self, now_ns: u64, batch: Batch) -> Option<u64> {
        self.inbox.push(batch);
        if self.wakes {
            return None;
        }
        self.wakes = true;
        let wake_ns = self.times.wake_us * NANOS_PER_US * exponential(&mut self.random);
        Some((now_ns + wake_ns as u64).max(self.free_ns))
    }

    /// Sees what has been acknowledged, makes what it may, and gives the batches that leave, each with its time.
    pub(super) fn wake(&mut self, now_ns: u64, recorder: &mut Recorder) -> Vec<Leaving> {
        self.wakes = false;
        self.see_acknowledged(now_ns, recorder);
        self.free_ns = self.make(now_ns);
        let mut leaving = Vec::new();
        while self.under_way < BATCHES_MAX
            && let Some((full_ns, batch)) = self.full.pop_front()
        {
            self.under_way += 1;
            leaving.push((full_ns.max(now_ns), batch));
        }
        if self.open.messages > 0 && self.full.is_empty() && self.under_way < EAGER_BATCHES {
            self.under_way += 1;
            leaving.push((self.free_ns, std::mem::take(&mut self.open)));
        }
        leaving
    }

    fn see_acknowledged(&mut self, now_ns: u64, recorder: &mut Recorder) {
        for batch in std::mem::take(&mut self.inbox) {
            self.under_way -= 1;
            recorder.delivered(Delivered {
                at_ns: now_ns,
                latency_ns: now_ns - batch.made_ns,
                messages: batch.messages,
            });
            let Some(gate) = &mut self.gate else {
                self.to_make += batch.messages;
                continue;
            };
            for ticket in batch.tickets {
                let (messages, latency_ns) = (ticket.messages(), now_ns - ticket.admitted().0);
                let _decision = gate.acknowledged(Mono(now_ns), ticket, &mut Vec::new());
                recorder.acknowledged(self.number, messages, latency_ns);
            }
        }
    }

    /// Makes all that may be made, and gives the time at which that is done.
    fn make(&mut self, now_ns: u64) -> u64 {
        // Half of the time is fixed, and half of it is drawn.
        let luck = 0.5 + 0.5 * exponential(&mut self.random);
        let message_ns = self.times.message_ns * luck;
        let mut made = 0;
        let mut at_ns = now_ns;
        loop {
            let (messages, ticket) = match &mut self.gate {
                Some(gate) => {
                    let chunk = (gate.bound() / CHUNKS).clamp(1, CHUNK_MAX);
                    match gate.try_enter(Mono(now_ns), Lane::Normal, chunk) {
                        Some(ticket) => (chunk, Some(ticket)),
                        None => return at_ns,
                    }
                }
                None if self.to_make >= BATCH_MESSAGES => {
                    self.to_make -= BATCH_MESSAGES;
                    (BATCH_MESSAGES, None)
                }
                None => return at_ns,
            };
            let begun_ns = at_ns;
            made += messages;
            at_ns = now_ns + (made as f64 * message_ns) as u64;
            self.put(messages, ticket, begun_ns, at_ns);
        }
    }

    /// Puts messages into the open batch, and into the next where it becomes full; their ticket goes with the last.
    fn put(&mut self, messages: u64, ticket: Option<Ticket>, begun_ns: u64, done_ns: u64) {
        let mut left = messages;
        loop {
            if self.open.messages == 0 {
                self.open.client = self.number;
                self.open.made_ns = begun_ns;
            }
            let fits = left.min(BATCH_MESSAGES - self.open.messages);
            self.open.messages += fits;
            left -= fits;
            if left == 0 {
                self.open.tickets.extend(ticket);
                if self.open.messages == BATCH_MESSAGES {
                    self.full
                        .push_back((done_ns, std::mem::take(&mut self.open)));
                }
                return;
            }
            self.full
                .push_back((done_ns, std::mem::take(&mut self.open)));
        }
    }
}
