//! Publishing: batches, splitting by the map, sequence numbers, what is in flight, trying again.
//!
//! One queue for each log, each an order that is kept: messages gather in an open batch while two
//! earlier ones are in flight (natural batching: no timer), a batch is sealed with the producer's
//! next numbers, and sent again byte for byte until it is answered, so the node can tell a retry
//! from a new message (G3).
//!
//! What happens when an answer is a refusal:
//!
//! - One that may pass (disk full, overload) stops the log. Once everything in flight is answered
//!   and the delay is over, the same bytes go again from the first unanswered one on. After an
//!   overload no more is in flight than the node has taken then, so that a node with
//!   little to give is not asked in vain again and again.
//! - One that is final fails that batch's messages. Nothing of them is stored, so the numbers are
//!   free: what waits behind is numbered again from there, and no hole arises.
//! - A stale map stops the namespace; when nothing of it is in flight, all that waits is split
//!   again by the new map, each log's messages in their order, so each topic's order is kept.
//! - Where the producer's numbers no longer tell anything (`OUT_OF_ORDER` at the front,
//!   `UNKNOWN_PRODUCER`, `OUTCOME_UNKNOWN`) the log begins a new epoch at 0. A batch of which every
//!   attempt was refused is certainly not stored and goes under the new epoch; one of which an
//!   attempt was lost with its connection may be stored, and fails with `OUTCOME_UNKNOWN` rather
//!   than risk a duplicate.
//! - The same holds when the delivery timeout passes.
//!
//! Who calls is told when the producer goes on: by [`Taken::due`], by [`Producer::is_due`], or by the time
//! that [`Producer::poll`] and [`Producer::tend`] return. A log that pauses names the end of its pause even
//! if it holds nothing, for what it takes meanwhile is not due, and nobody asks for another time then.
//!
//! Invariants, which [`Producer::check`] and its parts in `check.rs` and `queue/check.rs` assert after each
//! step where bugs panic, under the names that stand first here:
//!
//! - `window`: at most `in_flight` batches and `in_flight_bytes` of a log, or one batch, are sent and
//!   unanswered. `room`: nor more than the node has taken where it has refused one as overloaded, unless
//!   its acks have let that grow.
//! - `connection`: at most `Limits::unacked_bytes` in all, or one batch, are sent and unanswered.
//!   `requests`: each batch that is has a request of its own; without a connection none is.
//! - `memory`: held messages never exceed `memory_bytes`; one message may always be held.
//! - `tickets`: every ticket comes back exactly once.
//! - `numbers`: a log's batches carry rising numbers of one epoch, and leave none out behind the last,
//!   unless they are to be numbered again. `order`: those sent and unanswered come first, unless a refusal
//!   has stopped the log. `maps`: all of a namespace are made by one map, and a map that waits is newer.
//! - `progress`: after a poll nothing is held that neither an answer nor a time moves on, and the time that
//!   it gives is later than the one that it was given.

mod check;
mod open;
mod queue;
mod rebuild;
mod room;
mod taking;
#[cfg(test)]
mod tests;

use super::backoff::{Backoff, BackoffConfig};
use super::checking::Checking;
use airmail_model::bug;
use airmail_model::frame::{Ack, Refused, Reply, Request, RequestId};
use airmail_model::{
    Error, Limits, LogId, LogMap, Mono, NamespaceId, Now, ProducerEpoch, ProducerId,
};
use queue::{Phase, Queue, Window};
use std::collections::BTreeMap;
use std::time::Duration;
pub use taking::{Offer, Place, Taken};

/// Bounds and patience of a [`Producer`].
#[derive(Clone, Debug)]
pub struct ProducerConfig {
    /// The node's limits, as Hello told them.
    pub limits: Limits,
    /// Batches of one log that wait for their ack. Default 64, at least 1. A node remembers the
    /// results of 64 batches of a producer and log, so more would risk retries that it cannot
    /// tell.
    pub in_flight: usize,
    /// Bytes of these batches; one batch may always be sent. Default 4 MiB.
    pub in_flight_bytes: usize,
    /// Messages of one batch, at least 1; the node's own limit holds as well. Default: no other.
    pub batch_messages: u16,
    /// Bytes of messages held, sent or not, until they are settled. Default 64 MiB.
    pub memory_bytes: usize,
    /// How long a message may take to be acknowledged, attempts and waits together. Default 30 s.
    pub delivery_timeout: Duration,
    /// Delays after refusals that may pass.
    pub backoff: BackoffConfig,
    /// Of the delays' jitter.
    pub seed: u64,
    /// A bug to plant.
    #[cfg(feature = "sabotage")]
    pub bug: Option<crate::sabotage::Bug>,
}

impl Default for ProducerConfig {
    fn default() -> ProducerConfig {
        ProducerConfig {
            limits: Limits::DEFAULT,
            in_flight: 64,
            in_flight_bytes: 4 << 20,
            batch_messages: u16::MAX,
            memory_bytes: 64 << 20,
            delivery_timeout: Duration::from_secs(30),
            backoff: BackoffConfig::default(),
            seed: 0,
            #[cfg(feature = "sabotage")]
            bug: None,
        }
    }
}

impl ProducerConfig {
    fn bound_batches(&mut self) {
        let messages = self.limits.batch_records.min(self.batch_messages);
        self.limits.batch_records = messages.max(1);
    }

    fn window(&self) -> Window {
        Window {
            batches: self.in_flight.max(1),
            bytes: self.in_flight_bytes,
        }
    }
}

/// The caller's mark on a message: comes back once, when the message is settled. Need not be
/// unique.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What has become of some messages of one log, in the order in which they were published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// One for each message.
    pub tickets: Vec<Ticket>,
    /// Their log.
    pub log: LogId,
    /// Stored: the number of the message of `tickets[i]` is `extent.first` plus `i`. Else the
    /// reason; with `OUTCOME_UNKNOWN` they may have been stored all the same.
    pub result: Result<Ack, Error>,
}

/// What a producer wants done.
#[derive(Debug, Default)]
pub struct ProducerOutput {
    /// To be sent to the node, in order.
    pub requests: Vec<Request>,
    /// Messages whose fate is known.
    pub settled: Vec<Settled>,
}

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishError {
    /// The memory bound is reached: offer it again when something has been settled.
    Full,
    /// The namespace's map is not known: [`Producer::set_map`] first.
    Unresolved,
    /// It can never be stored.
    Refused(Error),
}

/// A namespace's map, and the newer one that waits until nothing of the old is in flight.
#[derive(Debug)]
struct Space {
    map: LogMap,
    newer: Option<LogMap>,
}

/// One client's publishing side.
#[derive(Debug)]
pub struct Producer {
    config: ProducerConfig,
    id: ProducerId,
    epoch: ProducerEpoch,
    connected: bool,
    spaces: BTreeMap<NamespaceId, Space>,
    queues: BTreeMap<LogId, Queue>,
    /// Sent and unanswered on this connection: the log, and the bytes.
    requests: BTreeMap<RequestId, (LogId, usize)>,
    next_request: u64,
    held_bytes: usize,
    unacked_bytes: usize,
    backoff: Backoff,
    last: Option<taking::LastTopic>,
    /// The log whose turn was last, so that each gets its part of `unacked_bytes`.
    served: Option<LogId>,
    checking: Checking,
}

impl Producer {
    /// A producer that is not connected. `id` is drawn at random by the caller; 0 stands for none
    /// and must not be given.
    #[must_use]
    pub fn new(mut config: ProducerConfig, id: ProducerId, epoch: ProducerEpoch) -> Producer {
        config.bound_batches();
        let backoff = Backoff::new(config.backoff, config.seed);
        Producer {
            config,
            id,
            epoch,
            connected: false,
            spaces: BTreeMap::new(),
            queues: BTreeMap::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            held_bytes: 0,
            unacked_bytes: 0,
            backoff,
            last: None,
            served: None,
            checking: Checking::default(),
        }
    }

    /// Takes the limits of the node that the client is connected to now.
    pub fn set_limits(&mut self, limits: Limits) {
        self.config.limits = limits;
        self.config.bound_batches();
    }

    /// Takes a namespace's map; an older epoch than the one known is ignored. A newer one comes
    /// into force when nothing sent by the old one is unanswered.
    pub fn set_map(&mut self, map: LogMap) {
        match self.spaces.get_mut(&map.namespace) {
            None => {
                let space = Space {
                    newer: None,
                    map: map.clone(),
                };
                self.spaces.insert(map.namespace, space);
            }
            Some(space) => {
                let known = space.newer.as_ref().map_or(space.map.epoch, |m| m.epoch);
                if map.epoch > known {
                    space.newer = Some(map);
                }
            }
        }
    }

    /// Whether a namespace's map is known.
    #[must_use]
    pub fn has_map(&self, namespace: NamespaceId) -> bool {
        self.spaces.contains_key(&namespace)
    }

    /// A stream to a node is open. What was not acknowledged is sent again by [`Producer::poll`].
    pub fn connected(&mut self) {
        self.disconnected();
        self.connected = true;
    }

    /// The stream has ended.
    pub fn disconnected(&mut self) {
        let nothing = ProducerOutput::default();
        let before = self.before(&nothing);
        self.connected = false;
        self.requests.clear();
        self.unacked_bytes = 0;
        for queue in self.queues.values_mut() {
            queue.connection_lost();
        }
        self.after(before, 0, &nothing);
    }

    /// Takes what the node says; anything but [`Reply::Acked`] is ignored.
    pub fn reply(&mut self, now: Now, reply: Reply, out: &mut ProducerOutput) {
        let before = self.before(out);
        self.take_reply(now, reply, out);
        self.after(before, 0, out);
    }

    fn take_reply(&mut self, now: Now, reply: Reply, out: &mut ProducerOutput) {
        let Reply::Acked { request, result } = reply else {
            // Input: a node that says other things on this stream.
            return;
        };
        let Some((log, bytes)) = self.requests.remove(&request) else {
            // Input: a node that answers twice, or what it was not asked.
            return;
        };
        self.unacked_bytes -= bytes;
        let Some(queue) = self.queues.get_mut(&log) else {
            bug!("no queue of {log}, of which {request:?} was sent");
            return;
        };
        let Some(at) = queue.find(request) else {
            // Input: an answer to a batch that was given up, as after the delivery timeout.
            return;
        };
        match result {
            Ok(ack) => {
                let freed = queue.acknowledged(at, ack, &mut out.settled);
                #[cfg(feature = "sabotage")]
                let freed = match self.config.bug {
                    Some(crate::sabotage::Bug::MemoryKept) => 0,
                    _ => freed,
                };
                self.held_bytes -= freed;
                self.backoff.reset();
            }
            Err(refused) => self.refused(now.mono, log, at, refused, out),
        }
    }

    fn refused(
        &mut self,
        now: Mono,
        log: LogId,
        at: usize,
        refused: Refused,
        out: &mut ProducerOutput,
    ) {
        let Refused { error, map } = refused;
        let newer = map.filter(|map| {
            let known = self.spaces.get(&map.namespace);
            known.is_some_and(|space| map.epoch > space.map.epoch)
        });
        let waits = self.queues.get(&log).is_some_and(Queue::is_waiting);
        let delay = match (&newer, error.delay()) {
            (Some(_), _) => Duration::ZERO,
            // One failure, whose batches are refused one by one.
            (None, delay) if waits => delay.unwrap_or_default(),
            (None, _) => self.backoff.delay_for(&error),
        };
        match self.queues.get_mut(&log) {
            Some(queue) => {
                self.held_bytes -= queue.refused(at, error, now.plus(delay), &mut out.settled);
            }
            None => bug!("no queue of {log}, which a node has refused a batch of: {error}"),
        }
        if let Some(map) = newer {
            self.set_map(map);
        }
    }

    /// Appends what is to be sent now and what is settled. To be called after every other call, and
    /// at the time that it returns, which is later than `now`.
    pub fn poll(&mut self, now: Now, out: &mut ProducerOutput) -> Option<Mono> {
        let before = self.before(out);
        self.advance(now, out);
        if self.connected {
            self.send(out);
        }
        let wake = self.deadline(now.mono);
        if before.is_some() {
            self.check_polled(now.mono, wake);
        }
        self.after(before, 0, out);
        wake
    }

    /// As [`Producer::poll`], but sends nothing: for when the transport takes nothing. Ask
    /// [`Producer::is_due`] then.
    pub fn tend(&mut self, now: Now, out: &mut ProducerOutput) -> Option<Mono> {
        let before = self.before(out);
        self.advance(now, out);
        self.after(before, 0, out);
        self.deadline(now.mono)
    }

    fn advance(&mut self, now: Now, out: &mut ProducerOutput) {
        self.expire(now.mono, out);
        self.rebuild(now, out);
        self.switch_maps(now, out);
        for queue in self.queues.values_mut() {
            queue.end_pause(now.mono);
        }
    }

    fn deadline(&self, now: Mono) -> Option<Mono> {
        let timeout = self.config.delivery_timeout;
        let deadlines = self.queues.values();
        let first = deadlines
            .filter_map(|queue| queue.deadline(timeout, self.connected))
            .min();
        // Where a new map has put messages behind younger ones, one may come to the front too late.
        first.map(|first| first.max(now.plus(Duration::from_nanos(1))))
    }

    /// Whether there may be something to be sent now: [`Producer::poll`] as soon as the transport
    /// takes something.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.connected && self.queues.keys().any(|log| self.is_log_due(*log))
    }

    fn is_log_due(&self, log: LogId) -> bool {
        let queue = self.queues.get(&log);
        queue.is_some_and(|queue| queue.is_due(self.config.window(), self.is_switching(log)))
    }

    fn is_switching(&self, log: LogId) -> bool {
        let space = self.spaces.get(&log.namespace);
        space.is_some_and(|space| space.newer.is_some())
    }

    /// Whether something is held that nothing moves on: no answer, no end of a pause. Never so after
    /// a poll.
    fn stands_still(&self) -> bool {
        if !self.connected || !self.requests.is_empty() {
            return false;
        }
        // The others wait for such a one before they take a new map.
        let holds_up = |log: LogId| {
            let mut others = self.queues.iter();
            self.is_switching(log)
                && others.any(|(other, queue)| {
                    let same = other.namespace == log.namespace;
                    same && queue.is_waiting() && queue.any_uncertain()
                })
        };
        let mut queues = self.queues.iter();
        queues
            .any(|(log, queue)| queue.oldest().is_some() && !queue.is_waiting() && !holds_up(*log))
    }

    /// Whether something waits to be sent, now or later.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.queues.values().any(Queue::has_unsent)
    }

    /// Sends from each log in turn, beginning after the one served last.
    fn send(&mut self, out: &mut ProducerOutput) {
        let mut order: Vec<LogId> = Vec::new();
        for (log, queue) in &self.queues {
            if queue.has_unsent() {
                order.push(*log);
            }
        }
        let after = |log: &LogId| self.served.is_none_or(|served| *log > served);
        let first = order.iter().position(after).unwrap_or(0);
        order.rotate_left(first);
        for log in order {
            if !self.send_log(log, out) {
                break;
            }
            self.served = Some(log);
        }
    }

    /// Sends what a log has and may. False when the connection's window is used up.
    fn send_log(&mut self, log: LogId, out: &mut ProducerOutput) -> bool {
        let switching = self.is_switching(log);
        let window = self.config.window();
        let room = self.config.limits.unacked_bytes as usize;
        let Some(queue) = self.queues.get_mut(&log) else {
            bug!("no queue of {log}, which has something to be sent");
            return true;
        };
        if queue.is_waiting() {
            return true;
        }
        while let Some(batch) = queue.next_unsent(window, switching) {
            let bytes = batch.len();
            if self.unacked_bytes > 0 && self.unacked_bytes + bytes > room {
                return false;
            }
            let request = RequestId(self.next_request);
            let Some(batch) = queue.sends(request) else {
                bug!("no batch of {log} to be sent, where one of {bytes} bytes was");
                return true;
            };
            self.next_request += 1;
            self.unacked_bytes += bytes;
            self.requests.insert(request, (log, bytes));
            out.requests.push(Request::Publish { request, batch });
        }
        true
    }

    /// Whether every message taken has been settled.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.held_bytes == 0
    }

    /// Bytes of messages held, as counted against the memory bound.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Gives up: settles everything held, with `error`, or `OUTCOME_UNKNOWN` for what was sent.
    pub fn abandon(&mut self, error: &Error, out: &mut ProducerOutput) {
        let before = self.before(out);
        for queue in self.queues.values_mut() {
            self.held_bytes -= queue.fail_all(error, &mut out.settled);
            queue.phase = Phase::Rebuild { until: Mono(0) };
        }
        self.requests.clear();
        self.unacked_bytes = 0;
        self.after(before, 0, out);
    }
}
