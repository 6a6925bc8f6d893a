//! Asserts the invariants of a log's queue; called by [`super::super::Producer::check`].

use super::{InFlight, LogQueue, Phase};
use crate::core::producer::config::InFlightWindow;
use airmail_model::LogId;

impl LogQueue {
    /// Counts the messages held, in sealed batches and in the open one.
    pub(in super::super) fn messages(&self) -> usize {
        let sealed: usize = self.batches.iter().map(|batch| batch.tickets.len()).sum();
        sealed + self.open.tickets.len()
    }

    /// Asserts the invariants; counts the batches, the messages, and the bytes of the memory bound
    /// that they take.
    pub(in super::super) fn check(
        &self,
        log: LogId,
        window: InFlightWindow,
    ) -> (usize, usize, usize) {
        assert_eq!(self.log, log, "maps: a queue under another log");
        self.check_numbers();
        self.check_order();
        self.check_window(window);
        assert_eq!(
            self.open.tickets.len(),
            usize::from(self.open.encoder.records()),
            "tickets: of the open batch of {log}"
        );
        assert_eq!(
            self.open.held_bytes == 0,
            self.open.tickets.is_empty(),
            "memory: {} bytes in the open batch of {log}",
            self.open.held_bytes
        );
        let mut bytes = self.open.held_bytes;
        for batch in &self.batches {
            let (tickets, records) = (batch.tickets.len(), batch.batch.records());
            assert_eq!(tickets, usize::from(records), "tickets: a batch of {log}");
            bytes += batch.held_bytes;
        }
        (self.batches.len(), self.messages(), bytes)
    }

    /// Asserts that the batches carry rising numbers of one epoch, and that the last one sealed or
    /// acknowledged ends at the next number, unless the batches are to be numbered again.
    fn check_numbers(&self) {
        let (log, mut after) = (self.log, 0);
        for sealed in &self.batches {
            let batch = &sealed.batch;
            let stamp = batch.producer();
            let stamp = stamp.map(|stamp| (stamp.id, stamp.epoch, stamp.sequence.0));
            let first = stamp.map_or(0, |(_, _, first)| first);
            assert_eq!(
                (batch.log(), batch.map_epoch(), stamp),
                (log, self.map_epoch, Some((self.id, self.epoch, first))),
                "numbers: a batch of another"
            );
            assert!(first >= after, "numbers: {log}: {first} behind {after}");
            after = first + u64::from(batch.records());
        }
        // A node may acknowledge the last before the others.
        let end = after.max(self.acked);
        let renumbered = matches!(self.phase, Phase::Renumbering { .. });
        assert!(
            end == self.next || (renumbered && end < self.next),
            "numbers: {log}: the last ends at {end}, the next is {}",
            self.next
        );
    }

    /// Asserts that the batches in flight are counted, and come first unless a refusal has paused
    /// the log.
    fn check_order(&self) {
        assert_eq!(
            self.in_flight,
            self.count_in_flight(),
            "order: of {}",
            self.log
        );
        let in_flight = self.batches.iter().filter(|b| b.request.is_some()).count();
        let first = self.in_flight.batches;
        assert!(
            self.phase != Phase::Sending || in_flight == first,
            "order: {}: {in_flight} in flight, {first} of them first",
            self.log
        );
    }

    fn check_window(&self, window: InFlightWindow) {
        let in_flight = self.batches.iter().filter(|b| b.request.is_some());
        let InFlight { batches, bytes } =
            in_flight.fold(InFlight::default(), |count, batch| InFlight {
                batches: count.batches + 1,
                bytes: count.bytes + batch.len(),
            });
        assert!(
            batches <= 1 || (batches <= window.batches && bytes <= window.bytes),
            "window: {}: {batches} batches, {bytes} bytes, of {window:?}",
            self.log
        );
        let most = self.congestion.narrow(window).batches;
        assert!(
            self.phase != Phase::Sending || batches <= most,
            "congestion: {}: {batches} batches, of {most}",
            self.log
        );
    }
}
