//! One log's messages: the open batch, the sealed ones in order, and the numbers that they carry.
//!
//! Sealed batches carry consecutive producer numbers from `acked` on, until one fails or is
//! acknowledged before its turn (`numbers`). Batches in flight on this connection come first. A
//! refusal changes the phase, and nothing more is sent before all of them are answered (`order`).
//! `log_queue/check.rs` asserts both.

mod check;
mod refusals;

use super::config::InFlightWindow;
use super::congestion_window::CongestionWindow;
use super::open_batch::OpenBatch;
use super::sealed_batch::SealedBatch;
use super::{MessageRef, Settled, Ticket};
use airmail_model::batch::{BatchTarget, ProducerStamp, PushError};
use airmail_model::bug;
use airmail_model::frame::{Ack, RequestId};
use airmail_model::{
    Batch, Checked, Error, Limits, LogId, MapEpoch, Mono, ProducerEpoch, ProducerId,
    ProducerSequence, TopicHash,
};
use std::collections::VecDeque;
use std::time::Duration;

/// Number of batches in flight below which a batch is sent although it is not full: one is in the
/// node's commit, and one waits there for the next. With fewer in flight the node's disk would idle
/// for a round trip after each commit; with more, batches would be smaller for nothing.
pub(super) const EAGER_BATCHES: usize = 2;

/// Batches that are in flight at the front of a queue. They are counted as they come and go,
/// because every message that begins a batch asks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct InFlight {
    batches: usize,
    bytes: usize,
}

/// Phase of a queue, which says whether it may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Sends what the windows let through.
    Sending,
    /// Paused by a refusal: sends again when everything is answered and this time has come. An
    /// empty queue pauses as well: a message that comes meanwhile waits too.
    Paused { until: Mono },
    /// Paused by a refusal after which the remaining messages get new numbers, before the pause
    /// goes on.
    Renumbering { until: Mono },
}

/// Effect of appending a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pushed {
    /// True if the message is the first of its batch.
    pub(super) begins_batch: bool,
    /// True if a batch is complete now.
    pub(super) sealed: bool,
}

/// Queue of one log, in the order in which its messages were published.
#[derive(Debug)]
pub(super) struct LogQueue {
    log: LogId,
    pub(super) map_epoch: MapEpoch,
    id: ProducerId,
    pub(super) epoch: ProducerEpoch,
    /// Number after the last acknowledged one.
    pub(super) acked: u64,
    /// Number of the next batch to be sealed.
    pub(super) next: u64,
    pub(super) batches: VecDeque<SealedBatch>,
    in_flight: InFlight,
    congestion: CongestionWindow,
    open: OpenBatch,
    pub(super) phase: Phase,
    /// True if numbers may have been used for messages that have failed: the rest needs a new
    /// epoch.
    pub(super) needs_new_epoch: bool,
    /// True if a connection was lost over which batches of this epoch may have been sent.
    pub(super) was_cut: bool,
    /// Error of the node that says that another client goes on under this producer's id.
    pub(super) fenced: Option<Error>,
}

impl LogQueue {
    pub(super) fn new(
        log: LogId,
        map_epoch: MapEpoch,
        id: ProducerId,
        epoch: ProducerEpoch,
    ) -> LogQueue {
        LogQueue {
            log,
            map_epoch,
            id,
            epoch,
            acked: 0,
            next: 0,
            batches: VecDeque::new(),
            in_flight: InFlight::default(),
            congestion: CongestionWindow::default(),
            open: OpenBatch::new(log.namespace),
            phase: Phase::Sending,
            needs_new_epoch: false,
            was_cut: false,
            fenced: None,
        }
    }

    /// Appends a message to the open batch; seals the batch before that if it has no room, and
    /// after that if it is full. `time` is when the message was published: for expiry, and by the
    /// producer's own clock.
    pub(super) fn push(
        &mut self,
        message: &MessageRef<'_>,
        hash: TopicHash,
        bytes: usize,
        ticket: Ticket,
        time: (Mono, i64),
        limits: &Limits,
    ) -> Result<Pushed, PushError> {
        let mut sealed = false;
        let begins_batch = match self.open.push(message, hash, bytes, ticket, time, limits) {
            Err(PushError::Full) => {
                self.seal();
                sealed = true;
                self.open.push(message, hash, bytes, ticket, time, limits)?
            }
            other => other?,
        };
        if self.open.tickets.len() >= usize::from(limits.batch_records) {
            self.seal();
            sealed = true;
        }
        Ok(Pushed {
            begins_batch,
            sealed,
        })
    }

    pub(super) fn is_open_batch_empty(&self) -> bool {
        self.open.tickets.is_empty()
    }

    /// Tells whether there is an unsent batch that may be sent now.
    pub(super) fn is_due(&self, window: InFlightWindow, switching: bool) -> bool {
        if self.phase != Phase::Sending {
            return false;
        }
        let window = self.congestion.narrow(window);
        match self.batches.get(self.batches_in_flight()) {
            Some(batch) => self.fits(batch, window) && self.may_send(switching),
            None => self.may_seal(window, switching) && !self.is_open_batch_empty(),
        }
    }

    /// Tells whether the open batch may be sent although it is not full, when all before it are in
    /// flight.
    fn may_seal(&self, window: InFlightWindow, switching: bool) -> bool {
        !switching && self.batches_in_flight() < EAGER_BATCHES.min(window.batches)
    }

    /// Tells whether the first unsent batch may be sent. While maps are `switching`, only batches
    /// that may be stored already are sent, and those in front of them.
    fn may_send(&self, switching: bool) -> bool {
        let mut unsent = self.batches.iter().skip(self.batches_in_flight());
        !switching || unsent.any(|batch| batch.attempt_lost)
    }

    /// Tells whether the window has room for one more batch.
    fn fits(&self, more: &SealedBatch, window: InFlightWindow) -> bool {
        let InFlight { batches, bytes } = self.in_flight;
        batches == 0 || (batches < window.batches && bytes + more.len() <= window.bytes)
    }

    /// Seals the open batch with the next numbers.
    pub(super) fn seal(&mut self) {
        if self.open.tickets.is_empty() {
            return;
        }
        let batch = self.open.encoder.finish(&BatchTarget {
            log: self.log,
            epoch: self.map_epoch,
            producer: Some(ProducerStamp {
                id: self.id,
                epoch: self.epoch,
                sequence: ProducerSequence(self.next),
            }),
            producer_time: self.open.time,
        });
        self.next += u64::from(batch.records());
        self.batches.push_back(SealedBatch {
            batch,
            tickets: self.open.take_tickets(),
            held_bytes: std::mem::take(&mut self.open.held_bytes),
            published: self.open.published,
            request: None,
            attempt_lost: false,
            last_error: None,
        });
    }

    fn batches_in_flight(&self) -> usize {
        debug_assert_eq!(self.in_flight, self.count_in_flight());
        self.in_flight.batches
    }

    fn count_in_flight(&self) -> InFlight {
        let sent = self.batches.iter().take_while(|b| b.request.is_some());
        sent.fold(InFlight::default(), |count, batch| InFlight {
            batches: count.batches + 1,
            bytes: count.bytes + batch.len(),
        })
    }

    /// Marks the first unsent batch as sent by this request, and gives it; `None` if there is no
    /// such batch.
    pub(super) fn mark_sent(&mut self, request: RequestId) -> Option<Checked<Batch>> {
        let batch = self.batches.get_mut(self.in_flight.batches)?;
        batch.request = Some(request);
        self.in_flight.batches += 1;
        self.in_flight.bytes += batch.len();
        Some(batch.batch.clone())
    }

    /// Takes all batches out; none of them is in flight.
    pub(super) fn take_batches(&mut self) -> VecDeque<SealedBatch> {
        self.in_flight = InFlight::default();
        std::mem::take(&mut self.batches)
    }

    /// Takes a batch out.
    fn remove(&mut self, at: usize) -> Option<SealedBatch> {
        let batch = self.batches.remove(at)?;
        if at < self.in_flight.batches {
            self.in_flight.batches -= 1;
            self.in_flight.bytes -= batch.len();
        } else {
            // Behind a refused batch that is gone now, others may be in flight.
            self.in_flight = self.count_in_flight();
        }
        Some(batch)
    }

    pub(super) fn any_in_flight(&self) -> bool {
        self.batches.iter().any(|batch| batch.request.is_some())
    }

    /// Tells whether a batch may be stored that is not answered.
    pub(super) fn any_maybe_stored(&self) -> bool {
        self.batches.iter().any(SealedBatch::is_maybe_stored)
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.open.tickets.is_empty() || self.batches.back().is_some_and(|b| b.request.is_none())
    }

    /// Finds the batch that was sent by a request.
    pub(super) fn find(&self, request: RequestId) -> Option<usize> {
        let sent = |batch: &SealedBatch| batch.request == Some(request);
        self.batches.iter().position(sent)
    }

    /// Tells whether a refusal has paused it.
    pub(super) fn is_paused(&self) -> bool {
        self.phase != Phase::Sending
    }

    /// Ends a pause whose time has come.
    pub(super) fn end_pause(&mut self, now: Mono) {
        if let Phase::Paused { until } = self.phase
            && now >= until
            && !self.any_in_flight()
        {
            self.phase = Phase::Sending;
        }
    }

    /// Gives the next batch to be sent: a full one while the window has room, the open one when
    /// fewer than [`EAGER_BATCHES`] are in flight.
    pub(super) fn next_to_send(
        &mut self,
        window: InFlightWindow,
        switching: bool,
    ) -> Option<&SealedBatch> {
        let window = self.congestion.narrow(window);
        let sent = self.batches_in_flight();
        if sent == self.batches.len() {
            if !self.may_seal(window, switching) {
                return None;
            }
            self.seal();
        }
        let batch = self.batches.get(sent)?;
        (self.fits(batch, window) && self.may_send(switching)).then_some(batch)
    }

    /// Tells whether a batch is the first of its epoch, of which nothing was sent over another connection.
    pub(super) fn begins_epoch(&self, batch: &Batch) -> bool {
        let stamp = batch.producer();
        let is_first = |stamp: ProducerStamp| {
            stamp.epoch == self.epoch && stamp.sequence == ProducerSequence(0)
        };
        !self.was_cut && stamp.is_some_and(is_first)
    }

    /// Notes of every batch in flight that its attempt was lost.
    pub(super) fn connection_lost(&mut self) {
        self.was_cut |= self.next > 0;
        for batch in &mut self.batches {
            batch.attempt_lost |= batch.request.take().is_some();
        }
        self.in_flight = InFlight::default();
    }

    /// Settles a batch as stored; returns the bytes that become free.
    pub(super) fn acknowledged(&mut self, at: usize, ack: Ack, out: &mut Vec<Settled>) -> usize {
        let Some(batch) = self.remove(at) else {
            bug!("{}: no batch {at} that a node has stored", self.log);
            return 0;
        };
        self.congestion.acknowledged();
        match batch.batch.producer() {
            Some(stamp) => {
                let after = stamp.sequence.0 + u64::from(batch.batch.records());
                self.acked = self.acked.max(after);
            }
            None => bug!("{}: a batch without numbers was stored", self.log),
        }
        batch.settle(self.log, Ok(ack), out)
    }

    /// Gives the time at which the oldest message was published.
    pub(super) fn oldest_published(&self) -> Option<Mono> {
        let open = (!self.open.tickets.is_empty()).then_some(self.open.published);
        self.batches.front().map(|batch| batch.published).or(open)
    }

    /// Gives the time at which there is something to be done even without an answer. The end of a
    /// pause counts although the queue may be empty: a message may be appended after this was
    /// asked.
    pub(super) fn deadline(&self, timeout: Duration, connected: bool) -> Option<Mono> {
        let expiry = self
            .oldest_published()
            .map(|published| published.plus(timeout));
        let retry = match self.phase {
            Phase::Paused { until } if connected && !self.any_in_flight() => Some(until),
            _ => None,
        };
        expiry.into_iter().chain(retry).min()
    }
}
