//! Asserts the invariants of a producer, which hold whatever a node answers.
//!
//! Some are about a step: its result is compared with the state before it. The others are read off
//! the state. Each assertion begins with the name that the documentation of [`super`] gives the
//! invariant.

use super::log_queue::LogQueue;
use super::{Producer, ProducerOutput};
use airmail_model::{Lane, LaneBytes, LogId, Mono};

/// State before a step, which is compared with the state after it.
#[derive(Debug)]
pub(super) struct StateBefore {
    /// Number of messages held.
    messages: usize,
    /// Number of entries in the caller's list of settled messages.
    settled: usize,
    /// Number of bytes in flight.
    unacked_bytes: LaneBytes,
}

/// Sums over the state.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    parts: usize,
    messages: [usize; Lane::ALL.len()],
    bytes: LaneBytes,
    in_flight: usize,
}

impl Producer {
    /// Notes the state before a step, if the step is to be checked.
    #[inline]
    pub(super) fn begin_check(&mut self, out: &ProducerOutput) -> Option<StateBefore> {
        self.check_schedule.begin_step().then(|| StateBefore {
            messages: self.messages(),
            settled: out.settled.len(),
            unacked_bytes: self.unacked_bytes,
        })
    }

    /// Notes the state before a message is accepted, like [`Producer::begin_check`] but in debug
    /// builds only: even the question whether to check costs something for each message.
    #[inline]
    pub(super) fn begin_accept_check(&mut self) -> Option<StateBefore> {
        if cfg!(debug_assertions) {
            self.begin_check(&ProducerOutput::default())
        } else {
            None
        }
    }

    /// Asserts the invariants after a step that accepted this number of messages.
    #[inline]
    pub(super) fn end_check(
        &mut self,
        before: Option<StateBefore>,
        accepted: usize,
        out: &ProducerOutput,
    ) {
        if let Some(before) = before {
            let parts = self.check_step(&before, accepted, out);
            self.check_schedule.checked(parts);
        }
    }

    fn check_step(&self, before: &StateBefore, accepted: usize, out: &ProducerOutput) -> usize {
        let settled = out.settled.iter().skip(before.settled);
        let settled: usize = settled.map(|settled| settled.tickets.len()).sum();
        let (was, is) = (before.messages + accepted, self.messages() + settled);
        assert_eq!(was, is, "tickets: messages held before a step, and after");
        let (unacked, most) = (self.unacked_bytes, self.unacked_most());
        let bound = most.max(before.unacked_bytes.counted(most));
        assert!(
            under_bound(unacked, self.in_flight()).counted(most) <= bound,
            "connection: {unacked:?} in flight, of {most}"
        );
        self.check()
    }

    /// Asserts the invariants of the state; returns how many parts it has.
    ///
    /// Called after each step where bugs panic (debug builds, the simulator, fuzz targets).
    ///
    /// # Panics
    /// If one does not hold; the message begins with its name.
    pub fn check(&self) -> usize {
        let mut count = Count::default();
        for (log, queue) in &self.queues {
            let (batches, messages, bytes) = queue.check(*log, self.config.window());
            count.parts += 1 + batches;
            count.messages[log.lane as usize] += messages;
            count.bytes.add(log.lane, bytes);
            count.in_flight += self.check_requests(*log, queue);
            let known = self.maps.get(&log.namespace);
            let epoch = known.map(|known| known.current.epoch);
            assert_eq!(epoch, Some(queue.map_epoch), "maps: of {log}");
        }
        self.check_connection(count);
        let (held, most) = (self.held_bytes, self.config.memory_bytes);
        assert_eq!(held, count.bytes, "memory: bytes counted, and held");
        let bounded = under_bound(held, count.messages);
        assert!(
            Lane::ALL.iter().all(|lane| bounded.fits(*lane, 0, most)),
            "memory: {held:?} of {:?} messages, of {most}",
            count.messages
        );
        for lane in Lane::ALL {
            let (bytes, messages) = (held.of(lane), count.messages[lane as usize]);
            assert_eq!(bytes == 0, messages == 0, "memory: {bytes} bytes of {lane}");
        }
        for (namespace, known) in &self.maps {
            let (current, newer) = (&known.current, known.newer.as_ref());
            assert!(
                current.namespace == *namespace
                    && newer.is_none_or(|newer| newer.namespace == *namespace)
                    && newer.is_none_or(|newer| newer.epoch > current.epoch),
                "maps: {known:?} of {namespace}"
            );
        }
        count.parts + self.requests.len() + self.maps.len()
    }

    /// Asserts that each batch in flight has its request; counts them.
    fn check_requests(&self, log: LogId, queue: &LogQueue) -> usize {
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
        let mut bytes = LaneBytes::default();
        for (log, more) in self.requests.values() {
            bytes.add(log.lane, *more);
        }
        assert_eq!(bytes, self.unacked_bytes, "connection: bytes in flight");
        // The requests of batches that were given up are still unanswered.
        assert!(
            count.in_flight <= self.requests.len(),
            "requests: {} for {} batches in flight",
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

    /// Asserts that a poll has left nothing stuck, and that the time that it returns is later.
    pub(super) fn check_polled(&self, now: Mono, wake: Option<Mono>) {
        assert!(!self.is_stuck(), "progress: {:?}", self.queues);
        assert!(
            wake.is_none_or(|wake| wake > now),
            "progress: {wake:?} at {now:?}"
        );
    }

    fn unacked_most(&self) -> usize {
        self.config.limits.unacked_bytes as usize
    }

    /// Counts the requests in flight of each lane.
    fn in_flight(&self) -> [usize; Lane::ALL.len()] {
        let mut requests = [0; Lane::ALL.len()];
        for (log, _) in self.requests.values() {
            requests[log.lane as usize] += 1;
        }
        requests
    }

    /// Counts the messages held.
    fn messages(&self) -> usize {
        self.queues.values().map(LogQueue::messages).sum()
    }
}

/// Leaves the bytes that a bound is for: not those of a lane that has so many as one item, which may be of any size.
fn under_bound(mut bytes: LaneBytes, items: [usize; Lane::ALL.len()]) -> LaneBytes {
    for lane in Lane::ALL {
        if items[lane as usize] == 1 {
            bytes.remove(lane, bytes.of(lane));
        }
    }
    bytes
}
