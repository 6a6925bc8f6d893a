//! The producer's answers to each reply of the node.

use super::log_queue::LogQueue;
use super::{Producer, ProducerOutput};
use airmail_model::bug;
use airmail_model::frame::{Refused, Reply};
use airmail_model::{LogId, Mono, Now};
use std::time::Duration;

impl Producer {
    /// Applies a reply of the node; any but [`Reply::Acked`] is ignored.
    pub fn reply(&mut self, now: Now, reply: Reply, out: &mut ProducerOutput) {
        let check = self.begin_check(out);
        self.apply_reply(now, reply, out);
        self.end_check(check, 0, out);
    }

    fn apply_reply(&mut self, now: Now, reply: Reply, out: &mut ProducerOutput) {
        let Reply::Acked { request, result } = reply else {
            // Input: a node that says other things on this stream.
            return;
        };
        let Some((log, bytes)) = self.requests.remove(&request) else {
            // Input: a node that answers twice, or what it was not asked.
            return;
        };
        self.unacked_bytes.remove(log.lane, bytes);
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
                self.held_bytes.remove(log.lane, freed);
                self.backoff.reset();
            }
            Err(refused) => self.apply_refusal(now.mono, log, at, refused, out),
        }
    }

    fn apply_refusal(
        &mut self,
        now: Mono,
        log: LogId,
        at: usize,
        refused: Refused,
        out: &mut ProducerOutput,
    ) {
        let Refused { error, map } = refused;
        let newer = map.filter(|map| {
            let known = self.maps.get(&map.namespace);
            known.is_some_and(|known| map.epoch > known.current.epoch)
        });
        let paused = self.queues.get(&log).is_some_and(LogQueue::is_paused);
        let delay = match (&newer, error.delay()) {
            (Some(_), _) => Duration::ZERO,
            // One failure, whose batches are refused one by one.
            (None, delay) if paused => delay.unwrap_or_default(),
            (None, _) => self.backoff.delay_for(&error),
        };
        match self.queues.get_mut(&log) {
            Some(queue) => {
                let freed = queue.refused(at, error, now.plus(delay), &mut out.settled);
                self.held_bytes.remove(log.lane, freed);
            }
            None => bug!("no queue of {log}, which a node has refused a batch of: {error}"),
        }
        if let Some(map) = newer {
            self.set_map(map);
        }
    }
}
