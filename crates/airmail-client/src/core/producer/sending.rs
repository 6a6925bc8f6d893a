//! Sending of the producer's batches: their order in time, and the share of each log in the
//! connection.
//!
//! Logs of lane high go first. That they do not keep the others waiting for ever is for the bound to see to: they
//! never have all of it in flight ([`LaneBytes`](airmail_model::LaneBytes)).

use super::log_queue::LogQueue;
use super::{Producer, ProducerOutput};
use airmail_model::bug;
use airmail_model::frame::{Request, RequestId};
use airmail_model::{Lane, LogId};

impl Producer {
    /// Tells whether there may be something to be sent now: [`Producer::poll`] as soon as the
    /// transport takes something.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.connected && self.queues.keys().any(|log| self.is_log_due(*log))
    }

    pub(super) fn is_log_due(&self, log: LogId) -> bool {
        let queue = self.queues.get(&log);
        queue.is_some_and(|queue| queue.is_due(self.config.window(), self.is_switching(log)))
    }

    /// Tells whether a newer map of the log's namespace waits to come into force.
    fn is_switching(&self, log: LogId) -> bool {
        let known = self.maps.get(&log.namespace);
        known.is_some_and(|known| known.newer.is_some())
    }

    /// Tells whether something is held that neither an answer nor the end of a pause moves on.
    /// Never so after a poll (`progress`).
    pub(super) fn is_stuck(&self) -> bool {
        if !self.connected || !self.requests.is_empty() {
            return false;
        }
        // While such a queue pauses, the others of its namespace wait before they take a new map.
        let holds_up = |log: LogId| {
            let mut others = self.queues.iter();
            self.is_switching(log)
                && others.any(|(other, queue)| {
                    let same = other.namespace == log.namespace;
                    same && queue.is_paused() && queue.any_maybe_stored()
                })
        };
        let mut queues = self.queues.iter();
        queues.any(|(log, queue)| {
            queue.oldest_published().is_some() && !queue.is_paused() && !holds_up(*log)
        })
    }

    /// Tells whether something waits to be sent, now or later.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.queues.values().any(LogQueue::has_unsent)
    }

    /// Sends from the logs of lane high, then from the others.
    pub(super) fn send(&mut self, out: &mut ProducerOutput) {
        let mut orders = [Vec::new(), Vec::new()];
        for (log, queue) in &self.queues {
            if queue.has_unsent() {
                orders[log.lane as usize].push(*log);
            }
        }
        let [normal, high] = orders;
        self.send_lane(Lane::High, high, out);
        self.send_lane(Lane::Normal, normal, out);
    }

    /// Sends from each log of a lane in turn, beginning behind the one that was served last.
    fn send_lane(&mut self, lane: Lane, mut order: Vec<LogId>, out: &mut ProducerOutput) {
        let last_served = self.last_served[lane as usize];
        let after = |log: &LogId| last_served.is_none_or(|last| *log > last);
        let first = order.iter().position(after).unwrap_or(0);
        order.rotate_left(first);
        for log in order {
            if !self.send_log(log, out) {
                break;
            }
            self.last_served[lane as usize] = Some(log);
        }
    }

    /// Sends what a log has and may send; returns false when its lane's part of the connection's window is
    /// used up.
    fn send_log(&mut self, log: LogId, out: &mut ProducerOutput) -> bool {
        let switching = self.is_switching(log);
        let window = self.config.window();
        let unacked_bytes_max = self.config.limits.unacked_bytes as usize;
        let Some(queue) = self.queues.get_mut(&log) else {
            bug!("no queue of {log}, which has something to be sent");
            return true;
        };
        if queue.is_paused() {
            return true;
        }
        while let Some(batch) = queue.next_to_send(window, switching) {
            let bytes = batch.len();
            let unacked = &mut self.unacked_bytes;
            if !unacked.fits(log.lane, bytes, unacked_bytes_max) {
                return false;
            }
            let request = RequestId(self.next_request);
            let Some(batch) = queue.mark_sent(request) else {
                bug!("no batch of {log} to be sent, where one of {bytes} bytes was");
                return true;
            };
            self.next_request += 1;
            unacked.add(log.lane, bytes);
            self.requests.insert(request, (log, bytes));
            out.requests.push(Request::Publish {
                request,
                begins_epoch: !self.config.is_id_shared && queue.begins_epoch(&batch),
                batch,
            });
        }
        true
    }
}
