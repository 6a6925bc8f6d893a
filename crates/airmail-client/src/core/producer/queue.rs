//! One log's messages on the producer's side: the open batch, the sealed ones, their numbers.
//!
//! Sealed batches carry consecutive producer numbers from `acked` on, until one fails or is acknowledged
//! before its turn (`numbers`). Those sent and unanswered on this connection come first; a refusal changes
//! the phase, and nothing more is sent before all of them are answered (`order`). `queue/check.rs` asserts
//! both.

mod check;

use super::open::Open;
use super::room::Room;
use super::{Offer, Settled, Ticket};
use airmail_model::batch::{BatchTarget, ProducerStamp, PushError};
use airmail_model::bug;
use airmail_model::frame::{Ack, RequestId};
use airmail_model::{
    Batch, BatchEncoder, Checked, Error, ErrorCode, Limits, LogId, MapEpoch, Mono, ProducerEpoch,
    ProducerId, ProducerSequence, TopicHash,
};
use std::collections::VecDeque;
use std::time::Duration;

/// So many batches in flight, and what is not full goes as well: one is in the node's commit, and
/// one waits there for the next. With fewer the node's disk would idle for a round trip after each
/// commit; with more, batches would be smaller for nothing.
pub(super) const AHEAD: usize = 2;

/// What of one log may be sent and unanswered; one batch always may.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) batches: usize,
    pub(super) bytes: usize,
}

/// Whether batches may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Yes.
    Sending,
    /// After a refusal: again when all is answered, at this time. So as well if nothing is left:
    /// what is taken meanwhile waits too.
    Waiting { until: Mono },
    /// As `Waiting`, and what remains gets new numbers first.
    Rebuild { until: Mono },
}

/// A batch with its numbers.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) batch: Checked<Batch>,
    pub(super) tickets: Vec<Ticket>,
    /// Of the memory bound.
    pub(super) bytes: usize,
    /// When its first message was published.
    pub(super) since: Mono,
    /// Sent on this connection and not answered.
    pub(super) request: Option<RequestId>,
    /// An attempt was lost with its connection: it may be stored.
    pub(super) uncertain: bool,
    /// Why the last attempt was refused.
    pub(super) last_error: Option<Error>,
}

impl Sealed {
    /// The batch's bytes.
    pub(super) fn len(&self) -> usize {
        self.batch.bytes().len()
    }

    /// The error that its messages end with: honest about what is not known.
    fn verdict(&self, error: &Error) -> Error {
        let certain = !self.uncertain && self.request.is_none();
        if certain || error.code() == ErrorCode::OutcomeUnknown {
            return error.clone();
        }
        Error::new(ErrorCode::OutcomeUnknown)
            .field("publish")
            .value(error)
    }

    fn settle(self, log: LogId, result: Result<Ack, Error>, settled: &mut Vec<Settled>) -> usize {
        settled.push(Settled {
            tickets: self.tickets,
            log,
            result,
        });
        self.bytes
    }
}

/// What adding a message has led to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pushed {
    /// It is the first of its batch.
    pub(super) began: bool,
    /// A batch is complete.
    pub(super) sealed: bool,
}

/// One log's order.
#[derive(Debug)]
pub(super) struct Queue {
    log: LogId,
    pub(super) map: MapEpoch,
    id: ProducerId,
    pub(super) epoch: ProducerEpoch,
    /// The number after the last acknowledged one.
    pub(super) acked: u64,
    /// The number of the next batch to be sealed.
    pub(super) next: u64,
    pub(super) batches: VecDeque<Sealed>,
    /// How many of the first batches are sent and unanswered, and their bytes: counted, for each
    /// message that begins a batch asks.
    sent: (usize, usize),
    room: Room,
    open: Open,
    pub(super) phase: Phase,
    /// Numbers may have been used for what has failed: the rest needs a new epoch.
    pub(super) tainted: bool,
    /// Another client goes on under this producer's id.
    pub(super) fenced: Option<Error>,
}

impl Queue {
    pub(super) fn new(log: LogId, map: MapEpoch, id: ProducerId, epoch: ProducerEpoch) -> Queue {
        Queue {
            log,
            map,
            id,
            epoch,
            acked: 0,
            next: 0,
            batches: VecDeque::new(),
            sent: (0, 0),
            room: Room::default(),
            open: Open::new(log.namespace),
            phase: Phase::Sending,
            tainted: false,
            fenced: None,
        }
    }

    /// Adds a message to the open batch; seals that one before if it has no room, and after if it
    /// has no more. `time` is when it was published: for expiry, and the producer's own.
    pub(super) fn push(
        &mut self,
        offer: &Offer<'_>,
        hash: TopicHash,
        bytes: usize,
        ticket: Ticket,
        time: (Mono, i64),
        limits: &Limits,
    ) -> Result<Pushed, PushError> {
        let mut sealed = false;
        let began = match self.open.push(offer, hash, bytes, ticket, time, limits) {
            Err(PushError::Full) => {
                self.seal();
                sealed = true;
                self.open.push(offer, hash, bytes, ticket, time, limits)?
            }
            other => other?,
        };
        if self.open.tickets.len() >= usize::from(limits.batch_records) {
            self.seal();
            sealed = true;
        }
        Ok(Pushed { began, sealed })
    }

    pub(super) fn is_gathering_nothing(&self) -> bool {
        self.open.tickets.is_empty()
    }

    /// Whether the window lets something go that has not gone.
    pub(super) fn is_due(&self, window: Window, switching: bool) -> bool {
        if self.phase != Phase::Sending {
            return false;
        }
        let window = self.room.narrow(window);
        match self.batches.get(self.in_flight()) {
            Some(batch) => self.has_room(batch, window) && self.may_go(switching),
            None => self.may_seal(window, switching) && !self.is_gathering_nothing(),
        }
    }

    /// Whether the open batch may go, when all before it has gone.
    fn may_seal(&self, window: Window, switching: bool) -> bool {
        !switching && self.in_flight() < AHEAD.min(window.batches)
    }

    /// Whether the first unsent batch may go. While maps are `switching` only what may be stored
    /// already has to, and what goes before it.
    fn may_go(&self, switching: bool) -> bool {
        let mut unsent = self.batches.iter().skip(self.in_flight());
        !switching || unsent.any(|batch| batch.uncertain)
    }

    /// Whether the window has room for one more batch than those that are sent.
    fn has_room(&self, more: &Sealed, window: Window) -> bool {
        let (sent, bytes) = self.sent;
        sent == 0 || (sent < window.batches && bytes + more.len() <= window.bytes)
    }

    /// Gives the open batch its numbers.
    pub(super) fn seal(&mut self) {
        if self.open.tickets.is_empty() {
            return;
        }
        let batch = self.open.encoder.finish(&BatchTarget {
            log: self.log,
            epoch: self.map,
            producer: Some(ProducerStamp {
                id: self.id,
                epoch: self.epoch,
                sequence: ProducerSequence(self.next),
            }),
            producer_time: self.open.time,
        });
        self.next += u64::from(batch.records());
        self.batches.push_back(Sealed {
            batch,
            tickets: self.open.take_tickets(),
            bytes: std::mem::take(&mut self.open.bytes),
            since: self.open.since,
            request: None,
            uncertain: false,
            last_error: None,
        });
    }

    fn in_flight(&self) -> usize {
        debug_assert_eq!(self.sent, self.count_sent());
        self.sent.0
    }

    fn count_sent(&self) -> (usize, usize) {
        let sent = self.batches.iter().take_while(|b| b.request.is_some());
        sent.fold((0, 0), |(count, bytes), batch| {
            (count + 1, bytes + batch.len())
        })
    }

    /// The first unsent batch goes out, as this request; `None` if there is none.
    pub(super) fn sends(&mut self, request: RequestId) -> Option<Checked<Batch>> {
        let batch = self.batches.get_mut(self.sent.0)?;
        batch.request = Some(request);
        self.sent = (self.sent.0 + 1, self.sent.1 + batch.len());
        Some(batch.batch.clone())
    }

    /// Takes all batches out; none of them is under way.
    pub(super) fn take_batches(&mut self) -> VecDeque<Sealed> {
        self.sent = (0, 0);
        std::mem::take(&mut self.batches)
    }

    /// Takes a batch out.
    fn remove(&mut self, at: usize) -> Option<Sealed> {
        let batch = self.batches.remove(at)?;
        if at < self.sent.0 {
            self.sent = (self.sent.0 - 1, self.sent.1 - batch.len());
        } else {
            // Behind a refused one that is gone now, others may be under way.
            self.sent = self.count_sent();
        }
        Some(batch)
    }

    pub(super) fn any_in_flight(&self) -> bool {
        self.batches.iter().any(|batch| batch.request.is_some())
    }

    /// Whether something sent by the present map may still be answered.
    pub(super) fn any_uncertain(&self) -> bool {
        let pending = |batch: &Sealed| batch.request.is_some() || batch.uncertain;
        self.batches.iter().any(pending)
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.open.tickets.is_empty() || self.batches.back().is_some_and(|b| b.request.is_none())
    }

    pub(super) fn find(&self, request: RequestId) -> Option<usize> {
        let of = |batch: &Sealed| batch.request == Some(request);
        self.batches.iter().position(of)
    }

    /// Whether a refusal has stopped it.
    pub(super) fn is_waiting(&self) -> bool {
        self.phase != Phase::Sending
    }

    /// A wait that is over ends here.
    pub(super) fn end_pause(&mut self, now: Mono) {
        if let Phase::Waiting { until } = self.phase
            && now >= until
            && !self.any_in_flight()
        {
            self.phase = Phase::Sending;
        }
    }

    /// The next batch to be sent: a full one while the window has room, the open one when fewer than
    /// [`AHEAD`] are in flight.
    pub(super) fn next_unsent(&mut self, window: Window, switching: bool) -> Option<&Sealed> {
        let window = self.room.narrow(window);
        let sent = self.in_flight();
        if sent == self.batches.len() {
            if !self.may_seal(window, switching) {
                return None;
            }
            self.seal();
        }
        let batch = self.batches.get(sent)?;
        (self.has_room(batch, window) && self.may_go(switching)).then_some(batch)
    }

    pub(super) fn connection_lost(&mut self) {
        for batch in &mut self.batches {
            batch.uncertain |= batch.request.take().is_some();
        }
        self.sent = (0, 0);
    }

    /// Takes an ack; returns the bytes set free.
    pub(super) fn acknowledged(&mut self, at: usize, ack: Ack, out: &mut Vec<Settled>) -> usize {
        let Some(batch) = self.remove(at) else {
            bug!("{}: no batch {at} that a node has stored", self.log);
            return 0;
        };
        self.room.acknowledged();
        match batch.batch.producer() {
            Some(stamp) => {
                let after = stamp.sequence.0 + u64::from(batch.batch.records());
                self.acked = self.acked.max(after);
            }
            None => bug!("{}: a batch without numbers was stored", self.log),
        }
        batch.settle(self.log, Ok(ack), out)
    }

    /// Takes a refusal; returns the bytes set free. What may pass is tried at `until`.
    pub(super) fn refused(
        &mut self,
        at: usize,
        error: Error,
        until: Mono,
        out: &mut Vec<Settled>,
    ) -> usize {
        let rebuilding = matches!(self.phase, Phase::Rebuild { .. });
        let batch = &mut self.batches[at];
        batch.request = None;
        batch.last_error = Some(error.clone());
        let uncertain = batch.uncertain;
        self.sent = self.count_sent();
        if error.code() == ErrorCode::Overloaded && self.phase == Phase::Sending {
            self.room.refused(at);
        }
        match error.code() {
            ErrorCode::OutOfOrder if at > 0 || rebuilding => {
                self.wait(until, false);
                0
            }
            ErrorCode::OutOfOrder | ErrorCode::UnknownProducer => {
                self.tainted = true;
                self.wait(until, true);
                if uncertain {
                    self.fail(at, &error, out)
                } else {
                    0
                }
            }
            ErrorCode::ProducerFenced => {
                self.fenced = Some(error.clone());
                self.fail_all(&error, out)
            }
            ErrorCode::MapStale | ErrorCode::LogSealed
                if self.batches.iter().any(|b| b.uncertain) =>
            {
                // An attempt under the old map may have been stored, and it can't be asked again.
                // One behind this fails when the rest gets new numbers.
                self.wait(until, true);
                if uncertain {
                    self.fail(at, &error, out)
                } else {
                    0
                }
            }
            _ if error.code().waited_for() => {
                self.wait(until, false);
                0
            }
            code => {
                self.tainted |= code == ErrorCode::OutcomeUnknown;
                self.wait(Mono(0), true);
                self.fail(at, &error, out)
            }
        }
    }

    fn wait(&mut self, until: Mono, renumber: bool) {
        let (before, rebuild) = match self.phase {
            Phase::Sending => (Mono(0), false),
            Phase::Waiting { until } => (until, false),
            Phase::Rebuild { until } => (until, true),
        };
        let until = until.max(before);
        self.phase = if renumber || rebuild {
            Phase::Rebuild { until }
        } else {
            Phase::Waiting { until }
        };
    }

    /// Fails one batch; what remains needs new numbers.
    pub(super) fn fail(&mut self, at: usize, error: &Error, out: &mut Vec<Settled>) -> usize {
        let Some(batch) = self.remove(at) else {
            bug!("{}: no batch {at} to fail: {error}", self.log);
            return 0;
        };
        self.tainted |= batch.uncertain || batch.request.is_some();
        self.wait(Mono(0), true);
        let verdict = batch.verdict(error);
        batch.settle(self.log, Err(verdict), out)
    }

    /// Fails all that may be stored already; its answers, if any come, are ignored.
    pub(super) fn fail_uncertain(&mut self, error: &Error, out: &mut Vec<Settled>) -> usize {
        let mut freed = 0;
        let mut at = 0;
        while let Some(batch) = self.batches.get(at) {
            if batch.uncertain || batch.request.is_some() {
                freed += self.fail(at, error, out);
            } else {
                at += 1;
            }
        }
        freed
    }

    /// Fails everything.
    pub(super) fn fail_all(&mut self, error: &Error, out: &mut Vec<Settled>) -> usize {
        let mut freed = 0;
        while !self.batches.is_empty() {
            freed += self.fail(0, error, out);
        }
        freed + self.fail_open(error, out)
    }

    /// Fails what gathers.
    pub(super) fn fail_open(&mut self, error: &Error, out: &mut Vec<Settled>) -> usize {
        if self.open.tickets.is_empty() {
            return 0;
        }
        self.open.encoder = BatchEncoder::new(self.log.namespace);
        out.push(Settled {
            tickets: std::mem::take(&mut self.open.tickets),
            log: self.log,
            result: Err(error.clone()),
        });
        std::mem::take(&mut self.open.bytes)
    }

    /// When the oldest message was published.
    pub(super) fn oldest(&self) -> Option<Mono> {
        let open = (!self.open.tickets.is_empty()).then_some(self.open.since);
        self.batches.front().map(|batch| batch.since).or(open)
    }

    /// When there is something to be done without an answer. A pause ends for what is taken after
    /// this was asked too.
    pub(super) fn deadline(&self, timeout: Duration, connected: bool) -> Option<Mono> {
        let expiry = self.oldest().map(|since| since.plus(timeout));
        let retry = match self.phase {
            Phase::Waiting { until } if connected && !self.any_in_flight() => Some(until),
            _ => None,
        };
        expiry.into_iter().chain(retry).min()
    }
}
