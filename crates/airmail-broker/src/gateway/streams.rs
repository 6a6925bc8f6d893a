//! Producers in the stream of one session, where retries are recognised only when they are read.
//!
//! Such a storage gives what stands behind a hole, and leaves out what comes after it to fill the hole: acknowledged,
//! and never delivered. So within a stream a producer's batches go on in order: behind one that was refused, the next
//! is refused as well, until that one comes again. A new stream may begin anywhere, for its client may have been
//! elsewhere meanwhile. Where a storage recognises retries itself, it finds the holes, and nothing is kept here.
//!
//! A producer's epoch is *sole* here if nothing of it ever went another way: its client has said so of the first batch,
//! and this stream has taken everything since, from that batch on. Then this gateway's answers are the only ones that
//! the client goes by, and as long as the storage has only sure answers, no other node can have stored what comes later
//! in the epoch before what comes earlier. It ends with the stream, and with an answer that leaves the fate of a batch
//! open: what is sent again behind that may be stored already, and its successor as well.
//!
//! Invariant: the next place of a producer is behind all of its batches that went on in this stream since it last went
//! back, and not behind one that was refused.

use airmail_log::Refusal;
use airmail_model::batch::ProducerStamp;
use airmail_model::{LogId, ProducerEpoch, ProducerId, ProducerSequence};
use std::collections::BTreeMap;

/// Producers of one stream, each counted once for each log.
const STREAM_PRODUCERS_MAX: usize = 4096;

/// Place from which a producer goes on in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StreamPlace {
    epoch: ProducerEpoch,
    next: ProducerSequence,
    is_sole: bool,
}

/// The producers of a session's stream. See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    places: BTreeMap<(LogId, ProducerId), StreamPlace>,
    /// The last epoch of which the client has said that it begins in this stream.
    begun: BTreeMap<(LogId, ProducerId), ProducerEpoch>,
}

impl Streams {
    /// The client says that nothing of the batch's epoch went to its log by another way, and that this is its first batch.
    pub(super) fn begin(&mut self, log: LogId, stamp: ProducerStamp) {
        let is_known = self.begun.contains_key(&(log, stamp.id));
        let has_room = is_known || self.begun.len() < STREAM_PRODUCERS_MAX;
        if stamp.sequence == ProducerSequence(0) && has_room {
            self.begun.insert((log, stamp.id), stamp.epoch);
        }
    }

    /// Lets a batch with so many numbers go on, if it is one of those that may; whether its epoch is sole.
    ///
    /// # Errors
    /// The refusal, if it may not; `None` if there are too many producers.
    pub(super) fn pass(
        &mut self,
        log: LogId,
        stamp: ProducerStamp,
        numbers: u32,
    ) -> Result<bool, Option<Refusal>> {
        let begins = self.begins(log, stamp);
        let mut place = StreamPlace {
            epoch: stamp.epoch,
            next: ProducerSequence(stamp.sequence.0 + u64::from(numbers)),
            is_sole: begins && stamp.sequence == ProducerSequence(0),
        };
        let Some(known) = self.places.get_mut(&(log, stamp.id)) else {
            if self.places.len() >= STREAM_PRODUCERS_MAX {
                return Err(None);
            }
            self.places.insert((log, stamp.id), place);
            return Ok(place.is_sole);
        };
        if stamp.epoch < known.epoch {
            return Err(Some(Refusal::Fenced));
        }
        // A new epoch begins at 0: in this stream, for the one before was here, too.
        let expected = if stamp.epoch == known.epoch {
            known.next
        } else {
            ProducerSequence(0)
        };
        if stamp.sequence > expected {
            let found = stamp.sequence;
            return Err(Some(Refusal::OutOfOrder { expected, found }));
        }
        if stamp.epoch == known.epoch {
            place.is_sole = known.is_sole;
        }
        *known = place;
        Ok(place.is_sole)
    }

    /// Notes that the fate of a batch is open: nothing more of its epoch is sole.
    pub(super) fn doubt(&mut self, log: LogId, stamp: ProducerStamp) {
        let known = self.places.get_mut(&(log, stamp.id));
        if let Some(known) = known.filter(|known| known.epoch == stamp.epoch) {
            known.is_sole = false;
        }
    }

    /// Whether the client has said that an epoch begins in this stream.
    fn begins(&self, log: LogId, stamp: ProducerStamp) -> bool {
        self.begun.get(&(log, stamp.id)) == Some(&stamp.epoch)
    }

    /// A batch was refused: its producer goes on with it. Whether its epoch is sole.
    pub(super) fn refused(&mut self, log: LogId, stamp: ProducerStamp) -> bool {
        let place = StreamPlace {
            epoch: stamp.epoch,
            next: stamp.sequence,
            is_sole: self.begins(log, stamp),
        };
        let is_full = self.places.len() >= STREAM_PRODUCERS_MAX;
        match self.places.get_mut(&(log, stamp.id)) {
            Some(known) if known.epoch == stamp.epoch => known.next = known.next.min(place.next),
            // An older epoch is over, and a newer one begins at 0.
            Some(_) => {}
            None if is_full => {}
            None => _ = self.places.insert((log, stamp.id), place),
        }
        let known = self.places.get(&(log, stamp.id));
        known.is_some_and(|known| known.epoch == stamp.epoch && known.is_sole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: LogId = LogId::SYSTEM;

    fn stamp(epoch: u32, sequence: u64) -> ProducerStamp {
        ProducerStamp {
            id: ProducerId(7),
            epoch: ProducerEpoch(epoch),
            sequence: ProducerSequence(sequence),
        }
    }

    fn out_of_order(expected: u64, found: u64) -> Result<bool, Option<Refusal>> {
        Err(Some(Refusal::OutOfOrder {
            expected: ProducerSequence(expected),
            found: ProducerSequence(found),
        }))
    }

    #[test]
    fn a_stream_begins_anywhere_and_leaves_nothing_out() {
        let mut streams = Streams::default();
        assert_eq!(streams.pass(LOG, stamp(1, 40), 2), Ok(false));
        assert_eq!(streams.pass(LOG, stamp(1, 43), 1), out_of_order(42, 43));
        assert_eq!(streams.pass(LOG, stamp(1, 42), 1), Ok(false));
        assert_eq!(streams.pass(LOG, stamp(1, 40), 2), Ok(false), "sent again");
        assert_eq!(streams.pass(LOG, stamp(1, 43), 1), out_of_order(42, 43));
    }

    #[test]
    fn behind_the_first_of_a_stream_that_was_refused_nothing_goes_on() {
        let mut streams = Streams::default();
        streams.refused(LOG, stamp(1, 40));
        assert_eq!(streams.pass(LOG, stamp(1, 41), 1), out_of_order(40, 41));
        assert_eq!(streams.pass(LOG, stamp(1, 40), 1), Ok(false));
        assert_eq!(streams.pass(LOG, stamp(1, 41), 1), Ok(false));
    }

    #[test]
    fn behind_one_of_several_that_wait_and_was_refused_nothing_goes_on() {
        let mut streams = Streams::default();
        // The third finds no place to wait; then the first, which has waited for too long, is refused.
        streams.refused(LOG, stamp(1, 42));
        streams.refused(LOG, stamp(1, 40));
        assert_eq!(streams.pass(LOG, stamp(1, 41), 1), out_of_order(40, 41));
        for sequence in 40..43 {
            assert_eq!(streams.pass(LOG, stamp(1, sequence), 1), Ok(false));
        }
        streams.refused(LOG, stamp(1, 41));
        assert_eq!(streams.pass(LOG, stamp(1, 43), 1), out_of_order(41, 43));
    }

    #[test]
    fn a_new_epoch_begins_at_0_and_the_one_before_is_over() {
        let mut streams = Streams::default();
        assert_eq!(streams.pass(LOG, stamp(1, 40), 2), Ok(false));
        assert_eq!(streams.pass(LOG, stamp(2, 1), 1), out_of_order(0, 1));
        assert_eq!(streams.pass(LOG, stamp(2, 0), 1), Ok(false));
        let fenced = Err(Some(Refusal::Fenced));
        assert_eq!(streams.pass(LOG, stamp(1, 42), 1), fenced);
    }

    #[test]
    fn no_stream_has_more_producers_than_its_bound() {
        let mut streams = Streams::default();
        for id in 1..=STREAM_PRODUCERS_MAX as u64 + 1 {
            let stamp = ProducerStamp {
                id: ProducerId(id),
                ..stamp(1, 0)
            };
            let is_full = id > STREAM_PRODUCERS_MAX as u64;
            assert_eq!(streams.pass(LOG, stamp, 1).is_err(), is_full);
        }
        assert_eq!(streams.pass(LOG, stamp(1, 1), 1), Ok(false));
    }

    #[test]
    fn an_epoch_is_sole_from_a_first_batch_of_which_the_client_says_so_until_an_answer_leaves_its_fate_open()
     {
        let mut streams = Streams::default();
        assert_eq!(streams.pass(LOG, stamp(0, 0), 2), Ok(false), "nothing said");
        streams.begin(LOG, stamp(1, 0));
        assert_eq!(streams.pass(LOG, stamp(0, 2), 1), Ok(false), "before it");
        assert_eq!(streams.pass(LOG, stamp(1, 0), 2), Ok(true));
        assert_eq!(streams.pass(LOG, stamp(1, 2), 2), Ok(true));
        streams.refused(LOG, stamp(1, 2));
        assert_eq!(streams.pass(LOG, stamp(1, 2), 2), Ok(true), "not stored");
        streams.doubt(LOG, stamp(0, 1));
        assert_eq!(streams.pass(LOG, stamp(1, 4), 1), Ok(true));
        streams.doubt(LOG, stamp(1, 2));
        assert_eq!(streams.pass(LOG, stamp(1, 5), 1), Ok(false));
        assert_eq!(streams.pass(LOG, stamp(2, 0), 1), Ok(false), "nothing said");
    }

    #[test]
    fn an_epoch_that_begins_behind_its_first_batch_is_not_sole() {
        let mut streams = Streams::default();
        streams.begin(LOG, stamp(1, 3));
        assert_eq!(streams.pass(LOG, stamp(1, 3), 1), Ok(false));
        streams.begin(LOG, stamp(2, 0));
        streams.refused(LOG, stamp(2, 0));
        assert_eq!(streams.pass(LOG, stamp(2, 0), 1), Ok(true), "the next one");
        let mut streams = Streams::default();
        streams.begin(LOG, stamp(1, 0));
        streams.refused(LOG, stamp(1, 0));
        assert_eq!(streams.pass(LOG, stamp(1, 0), 1), Ok(true));
    }
}
