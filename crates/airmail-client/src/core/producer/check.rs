//! What a producer always is, whatever a node answers: its invariants, asserted.
//!
//! A step is compared with what was there before it; the rest is read off the state. Each line names the
//! invariant that it is of, as the documentation of the module above does.

use super::{Producer, ProducerOutput, Queue};
use airmail_model::{LogId, Mono};

/// What there was when a step began.
#[derive(Debug)]
pub(super) struct Before {
    /// Messages held.
    messages: usize,
    /// Groups of messages that the caller had been told of.
    settled: usize,
    /// Bytes sent and unanswered.
    unacked_bytes: usize,
}

/// What of the state has been counted.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    parts: usize,
    messages: usize,
    bytes: usize,
    in_flight: usize,
}

impl Producer {
    /// Notes what there is, if the step that begins is to be looked at.
    #[inline]
    pub(super) fn before(&mut self, out: &ProducerOutput) -> Option<Before> {
        self.checking.begins().then(|| Before {
            messages: self.messages(),
            settled: out.settled.len(),
            unacked_bytes: self.unacked_bytes,
        })
    }

    /// As [`Producer::before`], for a message that is taken: in debug builds only, for a look at whether to
    /// look costs something for each message.
    #[inline]
    pub(super) fn before_taking(&mut self) -> Option<Before> {
        if cfg!(debug_assertions) {
            self.before(&ProducerOutput::default())
        } else {
            None
        }
    }

    /// Asserts what a step may have done, in which `taken` messages came in.
    #[inline]
    pub(super) fn after(&mut self, before: Option<Before>, taken: usize, out: &ProducerOutput) {
        if let Some(before) = before {
            let parts = self.check_step(&before, taken, out);
            self.checking.looked_at(parts);
        }
    }

    fn check_step(&self, before: &Before, taken: usize, out: &ProducerOutput) -> usize {
        let told = out.settled.iter().skip(before.settled);
        let told: usize = told.map(|settled| settled.tickets.len()).sum();
        let (was, is) = (before.messages + taken, self.messages() + told);
        assert_eq!(was, is, "tickets: messages held before a step, and after");
        let unacked = self.unacked_bytes;
        let room = self.config.limits.unacked_bytes as usize;
        assert!(
            unacked <= room.max(before.unacked_bytes) || self.requests.len() == 1,
            "connection: {unacked} bytes sent and unanswered, of {room}"
        );
        self.check()
    }

    /// Asserts the invariants of the state, and gives how many parts it has.
    ///
    /// It is called after each step where bugs panic (debug builds, the simulator, fuzz targets).
    ///
    /// # Panics
    /// If one does not hold; the message begins with its name.
    pub fn check(&self) -> usize {
        let mut count = Count::default();
        for (log, queue) in &self.queues {
            let (batches, messages, bytes) = queue.check(*log, self.config.window());
            count.parts += 1 + batches;
            count.messages += messages;
            count.bytes += bytes;
            count.in_flight += self.check_requests(*log, queue);
            let space = self.spaces.get(&log.namespace);
            let epoch = space.map(|space| space.map.epoch);
            assert_eq!(epoch, Some(queue.map), "maps: of {log}");
        }
        self.check_connection(count);
        let (held, most) = (self.held_bytes, self.config.memory_bytes);
        assert_eq!(held, count.bytes, "memory: bytes counted, and held");
        assert!(
            held <= most || count.messages == 1,
            "memory: {held} bytes of {} messages, of {most}",
            count.messages
        );
        assert_eq!(held == 0, count.messages == 0, "memory: {held} bytes");
        for (namespace, space) in &self.spaces {
            let newer = space.newer.as_ref();
            assert!(
                space.map.namespace == *namespace
                    && newer.is_none_or(|newer| newer.namespace == *namespace)
                    && newer.is_none_or(|newer| newer.epoch > space.map.epoch),
                "maps: {space:?} of {namespace}"
            );
        }
        count.parts + self.requests.len() + self.spaces.len()
    }

    /// Asserts that each batch that is under way has its request, and gives how many there are.
    fn check_requests(&self, log: LogId, queue: &Queue) -> usize {
        let mut in_flight = 0;
        for batch in &queue.batches {
            if let Some(request) = batch.request {
                let known = self.requests.get(&request).copied();
                assert_eq!(known, Some((log, batch.len())), "requests: {request:?}");
                in_flight += 1;
            }
        }
        in_flight
    }

    fn check_connection(&self, count: Count) {
        let bytes: usize = self.requests.values().map(|(_, bytes)| bytes).sum();
        assert_eq!(bytes, self.unacked_bytes, "connection: bytes unanswered");
        // What was given up meanwhile is still unanswered.
        assert!(
            count.in_flight <= self.requests.len(),
            "requests: {} for {} batches under way",
            self.requests.len(),
            count.in_flight
        );
        assert!(
            self.connected || self.requests.is_empty(),
            "connection: {} requests without one",
            self.requests.len()
        );
        let last = self.requests.keys().next_back();
        assert!(
            last.is_none_or(|last| last.0 < self.next_request),
            "requests: {last:?} is given again"
        );
    }

    /// Asserts what a poll leaves, and the time that it names.
    pub(super) fn check_polled(&self, now: Mono, wake: Option<Mono>) {
        assert!(!self.stands_still(), "progress: {:?}", self.queues);
        assert!(
            wake.is_none_or(|wake| wake > now),
            "progress: {wake:?} at {now:?}"
        );
    }

    fn messages(&self) -> usize {
        self.queues.values().map(Queue::messages).sum()
    }
}
