//! Refusals of a log's batches: those that fail by one, and how the rest goes on.

use super::{LogQueue, Phase};
use crate::core::producer::Settled;
use airmail_model::bug;
use airmail_model::{BatchEncoder, Error, ErrorCode, Mono};

impl LogQueue {
    /// Applies the refusal of a batch; returns the bytes that become free. What is not final is
    /// tried again at `until`.
    pub(in crate::core::producer) fn refused(
        &mut self,
        at: usize,
        error: Error,
        until: Mono,
        out: &mut Vec<Settled>,
    ) -> usize {
        let renumbering = matches!(self.phase, Phase::Renumbering { .. });
        let batch = &mut self.batches[at];
        batch.request = None;
        batch.last_error = Some(error.clone());
        let attempt_lost = batch.attempt_lost;
        self.in_flight = self.count_in_flight();
        if error.code() == ErrorCode::Overloaded && self.phase == Phase::Sending {
            self.congestion.overloaded(at);
        }
        match error.code() {
            // For want of one before it, which has an answer of its own.
            ErrorCode::OutOfOrder | ErrorCode::UnknownProducer if at > 0 || renumbering => {
                self.pause(until, false);
                0
            }
            ErrorCode::OutOfOrder | ErrorCode::UnknownProducer => {
                self.needs_new_epoch = true;
                self.pause(until, true);
                if attempt_lost {
                    self.fail(at, &error, out)
                } else {
                    0
                }
            }
            ErrorCode::ProducerFenced => {
                self.fenced = Some(error.clone());
                self.fail_all(&error, out)
            }
            ErrorCode::LogSealed => {
                // Its storage knows each batch that it has: no attempt at this one was stored, or ever will be, and so
                // none at one behind it.
                for batch in self.batches.range_mut(at..) {
                    batch.attempt_lost = false;
                }
                self.pause(until, false);
                0
            }
            ErrorCode::MapStale if self.batches.iter().any(|b| b.attempt_lost) => {
                // An attempt under the old map may have been stored, and cannot be asked for again.
                // A batch behind this one whose attempt was lost fails when the rest gets new
                // numbers.
                self.pause(until, true);
                if attempt_lost {
                    self.fail(at, &error, out)
                } else {
                    0
                }
            }
            ErrorCode::OutcomeUnknown => {
                // As when the connection is lost: the same bytes go again, and their numbers tell whether they are
                // stored already.
                self.batches[at].attempt_lost = true;
                self.pause(until, false);
                0
            }
            _ if error.code().waited_for() => {
                self.pause(until, false);
                0
            }
            _ => {
                self.pause(Mono(0), true);
                self.fail(at, &error, out)
            }
        }
    }

    /// Pauses until this time at least; what remains gets new numbers if this pause, or one that it
    /// prolongs, is to `renumber`.
    fn pause(&mut self, until: Mono, renumber: bool) {
        let (before, renumbering) = match self.phase {
            Phase::Sending => (Mono(0), false),
            Phase::Paused { until } => (until, false),
            Phase::Renumbering { until } => (until, true),
        };
        let until = until.max(before);
        self.phase = if renumber || renumbering {
            Phase::Renumbering { until }
        } else {
            Phase::Paused { until }
        };
    }

    /// Fails one batch, and has what remains numbered again; returns the bytes that become free.
    pub(in crate::core::producer) fn fail(
        &mut self,
        at: usize,
        error: &Error,
        out: &mut Vec<Settled>,
    ) -> usize {
        let Some(batch) = self.remove(at) else {
            bug!("{}: no batch {at} to fail: {error}", self.log);
            return 0;
        };
        self.needs_new_epoch |= batch.is_maybe_stored();
        self.pause(Mono(0), true);
        let error = batch.final_error(error);
        batch.settle(self.log, Err(error), out)
    }

    /// Fails every batch that may be stored already; answers to them, if any come, are ignored.
    pub(in crate::core::producer) fn fail_maybe_stored(
        &mut self,
        error: &Error,
        out: &mut Vec<Settled>,
    ) -> usize {
        let mut freed = 0;
        let mut at = 0;
        while let Some(batch) = self.batches.get(at) {
            if batch.is_maybe_stored() {
                freed += self.fail(at, error, out);
            } else {
                at += 1;
            }
        }
        freed
    }

    /// Fails everything.
    pub(in crate::core::producer) fn fail_all(
        &mut self,
        error: &Error,
        out: &mut Vec<Settled>,
    ) -> usize {
        let mut freed = 0;
        while !self.batches.is_empty() {
            freed += self.fail(0, error, out);
        }
        freed + self.fail_open_batch(error, out)
    }

    /// Fails the messages of the open batch.
    pub(in crate::core::producer) fn fail_open_batch(
        &mut self,
        error: &Error,
        out: &mut Vec<Settled>,
    ) -> usize {
        if self.open.tickets.is_empty() {
            return 0;
        }
        self.open.encoder = BatchEncoder::new(self.log.namespace);
        out.push(Settled {
            tickets: std::mem::take(&mut self.open.tickets),
            log: self.log,
            result: Err(error.clone()),
        });
        std::mem::take(&mut self.open.held_bytes)
    }
}
