//! What a log's queue always is: its invariants, asserted. [`super::super::Producer::check`] calls it.

use super::{Phase, Queue, Window};
use airmail_model::LogId;

impl Queue {
    /// Messages held: in sealed batches, and in the one that gathers.
    pub(in super::super) fn messages(&self) -> usize {
        let sealed: usize = self.batches.iter().map(|batch| batch.tickets.len()).sum();
        sealed + self.open.tickets.len()
    }

    /// Asserts the invariants; gives the batches, the messages and their bytes of the memory bound.
    pub(in super::super) fn check(&self, log: LogId, window: Window) -> (usize, usize, usize) {
        assert_eq!(self.log, log, "maps: a queue under another log");
        self.check_numbers();
        self.check_order();
        self.check_window(window);
        assert_eq!(
            self.open.tickets.len(),
            usize::from(self.open.encoder.records()),
            "tickets: of the batch that gathers for {log}"
        );
        assert_eq!(
            self.open.bytes == 0,
            self.open.tickets.is_empty(),
            "memory: {} bytes gather for {log}",
            self.open.bytes
        );
        let mut bytes = self.open.bytes;
        for batch in &self.batches {
            let (tickets, records) = (batch.tickets.len(), batch.batch.records());
            assert_eq!(tickets, usize::from(records), "tickets: a batch of {log}");
            bytes += batch.bytes;
        }
        (self.batches.len(), self.messages(), bytes)
    }

    /// The batches carry rising numbers of one epoch. The last one sealed or acknowledged ends at the
    /// next number; if not, new ones are to be given.
    fn check_numbers(&self) {
        let (log, mut after) = (self.log, 0);
        for sealed in &self.batches {
            let batch = &sealed.batch;
            let stamp = batch.producer();
            let stamp = stamp.map(|stamp| (stamp.id, stamp.epoch, stamp.sequence.0));
            let first = stamp.map_or(0, |(_, _, first)| first);
            assert_eq!(
                (batch.log(), batch.map_epoch(), stamp),
                (log, self.map, Some((self.id, self.epoch, first))),
                "numbers: a batch of another"
            );
            assert!(first >= after, "numbers: {log}: {first} behind {after}");
            after = first + u64::from(batch.records());
        }
        // A node may acknowledge the last before the others.
        let end = after.max(self.acked);
        let renumbered = matches!(self.phase, Phase::Rebuild { .. });
        assert!(
            end == self.next || (renumbered && end < self.next),
            "numbers: {log}: the last ends at {end}, the next is {}",
            self.next
        );
    }

    /// Those under way are the first, and counted; a refusal that has left others first has stopped
    /// the log.
    fn check_order(&self) {
        assert_eq!(self.sent, self.count_sent(), "order: of {}", self.log);
        let under_way = self.batches.iter().filter(|b| b.request.is_some()).count();
        assert!(
            self.phase != Phase::Sending || under_way == self.sent.0,
            "order: {}: {under_way} under way, {} first",
            self.log,
            self.sent.0
        );
    }

    fn check_window(&self, window: Window) {
        let under_way = self.batches.iter().filter(|b| b.request.is_some());
        let (batches, bytes) = under_way.fold((0, 0), |(batches, bytes), batch| {
            (batches + 1, bytes + batch.len())
        });
        assert!(
            batches <= 1 || (batches <= window.batches && bytes <= window.bytes),
            "window: {}: {batches} batches, {bytes} bytes, of {window:?}",
            self.log
        );
        let room = self.room.narrow(window).batches;
        assert!(
            self.phase != Phase::Sending || batches <= room,
            "room: {}: {batches} batches, of {room}",
            self.log
        );
    }
}
