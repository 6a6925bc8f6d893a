//! The producer: puts messages in batches, log by log, gives them sequence numbers, bounds what is
//! in flight, and sends again until each batch has its answer.
//!
//! Each log has a queue that keeps its messages in order; a topic has a log in each lane, and what lane high has
//! is sent first. Messages gather in the queue's open batch
//! while two earlier batches are in flight (natural batching: there is no timer). A batch is sealed
//! with the producer's next sequence numbers, and sent again byte for byte until it is answered, so
//! the node can tell a retry from a new message (G3).
//!
//! What happens when the answer is a refusal:
//!
//! - An error that is waited for (disk full, overload) pauses the log. Once everything in flight is
//!   answered and the delay is over, the same bytes go again, from the first unanswered batch on.
//!   After an overload no more batches are in flight than the node had accepted then, so that a
//!   node with little capacity is not asked in vain again and again.
//! - `OUTCOME_UNKNOWN` is what a lost connection is: that attempt may be stored. The log pauses as above and
//!   the same bytes go again, whose numbers tell.
//! - A final error fails that batch's messages. None of them is stored, so their numbers are free:
//!   the batches behind it are numbered again from there, and no hole arises.
//! - A stale map or a sealed log stops the namespace. When none of its batches is in flight, everything
//!   that waits is batched again by the new map, each log's messages in their order, so each topic's
//!   order is kept. Of a sealed log, a batch of which an attempt was lost is asked for again first: it is
//!   stored there, or the refusal says that it never was and never will be.
//! - Where the producer's numbers no longer say what is stored (`OUT_OF_ORDER` at the front,
//!   `UNKNOWN_PRODUCER`) the log begins a new epoch at number 0. A batch of which every attempt was
//!   refused is certainly not stored, and goes under the new epoch. A batch of which an attempt was
//!   lost may be stored, and fails with `OUTCOME_UNKNOWN` rather than risk a duplicate.
//! - The same holds when the delivery timeout passes.
//!
//! The caller learns when the producer has something to do from [`Accepted::due`], from
//! [`Producer::is_due`], or from the time that [`Producer::poll`] and [`Producer::advance`] return.
//! A log that pauses names the end of its pause even if it holds nothing: a message that is
//! accepted meanwhile is not due, and nobody asks for another time then.
//!
//! Invariants, which [`Producer::check`] and its parts in `check.rs` and `log_queue/check.rs`
//! assert after each step where bugs panic, under the names that stand first here:
//!
//! - `window`: at most `in_flight` batches and `in_flight_bytes` of a log, or one batch, are in
//!   flight. `congestion`: nor are more than the node had accepted when it refused one as
//!   overloaded, unless its acks have let that number grow.
//! - `connection`: at most `Limits::unacked_bytes`, or one batch of a lane, are in flight, beside an eighth more of
//!   lane high ([`LaneBytes`]): without it there is one bound, to the byte. `requests`:
//!   each batch in flight has a request of its own; without a connection there is none.
//! - `memory`: held messages never exceed `memory_bytes`, beside an eighth more of lane high; one message of each
//!   lane may always be held.
//! - `tickets`: every ticket comes back exactly once.
//! - `numbers`: a log's batches carry rising numbers of one epoch, and leave none out behind the
//!   last, unless they are to be numbered again. `order`: batches in flight come first, unless a
//!   refusal has paused the log. `maps`: all batches of a namespace are made by one map, and a map
//!   that waits is newer.
//! - `progress`: after a poll nothing is stuck: everything that is held waits for an answer, or for
//!   a time that the poll has returned, which is later than the one that it was given.

mod accept;
mod check;
mod config;
mod congestion_window;
mod expiry;
mod log_queue;
mod open_batch;
mod rebatch;
mod replies;
mod sealed_batch;
mod sending;
#[cfg(test)]
mod tests;

pub use accept::{Accepted, Destination, MessageRef};
pub use config::ProducerConfig;

use super::backoff::Backoff;
use super::check_schedule::CheckSchedule;
use airmail_model::frame::{Ack, Request, RequestId};
use airmail_model::{
    Error, Lane, LaneBytes, Limits, LogId, LogMap, Mono, NamespaceId, Now, ProducerEpoch,
    ProducerId,
};
use log_queue::{LogQueue, Phase};
use std::collections::BTreeMap;
use std::time::Duration;

/// The caller's mark on a message: comes back once, when the message is settled. Need not be
/// unique.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The result of some messages of one log, in the order in which they were published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Tickets of the messages, one for each.
    pub tickets: Vec<Ticket>,
    /// Log that they were published to.
    pub log: LogId,
    /// Ack, if they are stored: the number of the message of `tickets[i]` is `extent.first` plus
    /// `i`. Otherwise the reason; with `OUTCOME_UNKNOWN` they may have been stored all the same.
    pub result: Result<Ack, Error>,
}

/// Effects of a step: what the producer wants sent, and which messages are settled.
#[derive(Debug, Default)]
pub struct ProducerOutput {
    /// Requests to be sent to the node, in order.
    pub requests: Vec<Request>,
    /// Messages whose result is known.
    pub settled: Vec<Settled>,
}

/// The reason why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishError {
    /// The memory bound is reached: offer it again when something has been settled.
    Full,
    /// The namespace's map is not known: [`Producer::set_map`] first.
    Unresolved,
    /// It can never be stored.
    Refused(Error),
}

/// The map of a namespace, and a newer one that waits until nothing of the old one is in flight.
#[derive(Debug)]
struct NamespaceMap {
    current: LogMap,
    newer: Option<LogMap>,
}

/// The publishing side of one client.
#[derive(Debug)]
pub struct Producer {
    config: ProducerConfig,
    id: ProducerId,
    epoch: ProducerEpoch,
    connected: bool,
    maps: BTreeMap<NamespaceId, NamespaceMap>,
    queues: BTreeMap<LogId, LogQueue>,
    /// Unanswered requests of this connection, each with its log and bytes.
    requests: BTreeMap<RequestId, (LogId, usize)>,
    next_request: u64,
    held_bytes: LaneBytes,
    unacked_bytes: LaneBytes,
    backoff: Backoff,
    last_topic: Option<accept::LastTopic>,
    /// Log of each lane that sent last, so that the next one begins and each gets its part of `unacked_bytes`.
    last_served: [Option<LogId>; Lane::ALL.len()],
    check_schedule: CheckSchedule,
}

impl Producer {
    /// Makes a producer that is not connected. The caller draws `id` at random; 0 stands for no
    /// producer and must not be given.
    #[must_use]
    pub fn new(mut config: ProducerConfig, id: ProducerId, epoch: ProducerEpoch) -> Producer {
        config.bound_batches();
        let backoff = Backoff::new(config.backoff, config.seed);
        Producer {
            config,
            id,
            epoch,
            connected: false,
            maps: BTreeMap::new(),
            queues: BTreeMap::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            held_bytes: LaneBytes::default(),
            unacked_bytes: LaneBytes::default(),
            backoff,
            last_topic: None,
            last_served: [None; Lane::ALL.len()],
            check_schedule: CheckSchedule::default(),
        }
    }

    /// Sets the limits of the node that the client is connected to now.
    pub fn set_limits(&mut self, limits: Limits) {
        self.config.limits = limits;
        self.config.bound_batches();
    }

    /// Sets a namespace's map; an older epoch than the one known is ignored. A newer one comes
    /// into force when nothing sent by the old one is unanswered.
    pub fn set_map(&mut self, map: LogMap) {
        match self.maps.get_mut(&map.namespace) {
            None => {
                let known = NamespaceMap {
                    newer: None,
                    current: map.clone(),
                };
                self.maps.insert(map.namespace, known);
            }
            Some(known) => {
                let newest = known.newer.as_ref().unwrap_or(&known.current);
                if map.epoch > newest.epoch {
                    known.newer = Some(map);
                }
            }
        }
    }

    /// Tells whether a namespace's map is known.
    #[must_use]
    pub fn has_map(&self, namespace: NamespaceId) -> bool {
        self.maps.contains_key(&namespace)
    }

    /// Takes note that a stream to a node is open. What was not acknowledged is sent again by
    /// [`Producer::poll`].
    pub fn connected(&mut self) {
        self.disconnected();
        self.connected = true;
    }

    /// Takes note that the stream has ended.
    pub fn disconnected(&mut self) {
        let nothing = ProducerOutput::default();
        let check = self.begin_check(&nothing);
        self.connected = false;
        self.requests.clear();
        self.unacked_bytes = LaneBytes::default();
        for queue in self.queues.values_mut() {
            queue.connection_lost();
        }
        self.end_check(check, 0, &nothing);
    }

    /// Appends to `out` what is to be sent now and what is settled. To be called after every other
    /// call, and at the time that it returns, which is later than `now`.
    pub fn poll(&mut self, now: Now, out: &mut ProducerOutput) -> Option<Mono> {
        let check = self.begin_check(out);
        self.advance_queues(now, out);
        if self.connected {
            self.send(out);
        }
        let wake = self.next_wake(now.mono);
        if check.is_some() {
            self.check_polled(now.mono, wake);
        }
        self.end_check(check, 0, out);
        wake
    }

    /// Does what [`Producer::poll`] does except sending: for the time while the transport takes
    /// nothing. Ask [`Producer::is_due`] then.
    pub fn advance(&mut self, now: Now, out: &mut ProducerOutput) -> Option<Mono> {
        let check = self.begin_check(out);
        self.advance_queues(now, out);
        self.end_check(check, 0, out);
        self.next_wake(now.mono)
    }

    fn advance_queues(&mut self, now: Now, out: &mut ProducerOutput) {
        self.expire(now.mono, out);
        self.renumber(now, out);
        self.switch_maps(now, out);
        for queue in self.queues.values_mut() {
            queue.end_pause(now.mono);
        }
    }

    fn next_wake(&self, now: Mono) -> Option<Mono> {
        let timeout = self.config.delivery_timeout;
        let deadlines = self.queues.values();
        let first = deadlines
            .filter_map(|queue| queue.deadline(timeout, self.connected))
            .min();
        // Where a new map has put messages behind younger ones, one may come to the front too late.
        first.map(|first| first.max(now.plus(Duration::from_nanos(1))))
    }

    /// Tells whether every message that was accepted has been settled.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.held_bytes.total() == 0
    }

    /// Counts the bytes of messages held, as against the memory bound.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.total()
    }

    /// Gives up: settles everything held, with `error`, or `OUTCOME_UNKNOWN` for what was sent.
    pub fn abandon(&mut self, error: &Error, out: &mut ProducerOutput) {
        let check = self.begin_check(out);
        for (log, queue) in &mut self.queues {
            let freed = queue.fail_all(error, &mut out.settled);
            self.held_bytes.remove(log.lane, freed);
            queue.phase = Phase::Renumbering { until: Mono(0) };
        }
        self.requests.clear();
        self.unacked_bytes = LaneBytes::default();
        self.end_check(check, 0, out);
    }
}
