//! Failing the messages that have waited longer than the delivery timeout.

use super::sealed_batch::SealedBatch;
use super::{Producer, ProducerOutput};
use airmail_model::{Error, ErrorCode, Mono};

impl Producer {
    /// Fails what has waited longer than the delivery timeout: with its last refusal, if there was
    /// one.
    pub(super) fn expire(&mut self, now: Mono, out: &mut ProducerOutput) {
        let timeout = self.config.delivery_timeout;
        let connected = self.connected;
        let late = |published: Mono| published.plus(timeout) <= now;
        for (log, queue) in &mut self.queues {
            while queue.oldest_published().is_some_and(late) {
                let code = if connected {
                    ErrorCode::Overloaded
                } else {
                    ErrorCode::Disconnected
                };
                let limit = format!("{} ms", timeout.as_millis());
                let error = Error::new(code).field("delivery_timeout").limit(limit);
                // A refusal that is about the producer's numbers tells a user nothing.
                let reason = |batch: &SealedBatch| {
                    let last = batch.last_error.clone();
                    last.filter(|last| last.code().waited_for())
                        .unwrap_or_else(|| error.clone())
                };
                let freed = match queue.batches.front() {
                    None => queue.fail_open_batch(&error, &mut out.settled),
                    Some(batch) if batch.is_maybe_stored() => {
                        let error = reason(batch);
                        queue.fail_maybe_stored(&error, &mut out.settled)
                    }
                    Some(batch) => {
                        let error = reason(batch);
                        queue.fail(0, &error, &mut out.settled)
                    }
                };
                self.held_bytes.remove(log.lane, freed);
            }
        }
    }
}
