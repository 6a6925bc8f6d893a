//! Producers in the stream of one session, where retries are recognised only when they are read.
//!
//! Such a storage gives what stands behind a hole, and leaves out what comes after it to fill the hole: acknowledged,
//! and never delivered. So within a stream a producer's batches go on in order: behind one that was refused, the next
//! is refused as well, until that one comes again. A new stream may begin anywhere, for its client may have been
//! elsewhere meanwhile. Where a storage recognises retries itself, it finds the holes, and nothing is kept here.
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
}

/// The producers of a session's stream. See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Streams(BTreeMap<(LogId, ProducerId), StreamPlace>);

impl Streams {
    /// Lets a batch with so many numbers go on, if it is one of those that may.
    ///
    /// # Errors
    /// The refusal, if it may not; `None` if there are too many producers.
    pub(super) fn pass(
        &mut self,
        log: LogId,
        stamp: ProducerStamp,
        numbers: u32,
    ) -> Result<(), Option<Refusal>> {
        let place = StreamPlace {
            epoch: stamp.epoch,
            next: ProducerSequence(stamp.sequence.0 + u64::from(numbers)),
        };
        let Some(known) = self.0.get_mut(&(log, stamp.id)) else {
            if self.0.len() >= STREAM_PRODUCERS_MAX {
                return Err(None);
            }
            self.0.insert((log, stamp.id), place);
            return Ok(());
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
        *known = place;
        Ok(())
    }

    /// A batch was refused: its producer goes on with it.
    pub(super) fn refused(&mut self, log: LogId, stamp: ProducerStamp) {
        let place = StreamPlace {
            epoch: stamp.epoch,
            next: stamp.sequence,
        };
        let is_full = self.0.len() >= STREAM_PRODUCERS_MAX;
        match self.0.get_mut(&(log, stamp.id)) {
            Some(known) if known.epoch == stamp.epoch => known.next = known.next.min(place.next),
            // An older epoch is over, and a newer one begins at 0.
            Some(_) => {}
            None if is_full => {}
            None => _ = self.0.insert((log, stamp.id), place),
        }
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

    fn out_of_order(expected: u64, found: u64) -> Result<(), Option<Refusal>> {
        Err(Some(Refusal::OutOfOrder {
            expected: ProducerSequence(expected),
            found: ProducerSequence(found),
        }))
    }

    #[test]
    fn a_stream_begins_anywhere_and_leaves_nothing_out() {
        let mut streams = Streams::default();
        assert_eq!(streams.pass(LOG, stamp(1, 40), 2), Ok(()));
        assert_eq!(streams.pass(LOG, stamp(1, 43), 1), out_of_order(42, 43));
        assert_eq!(streams.pass(LOG, stamp(1, 42), 1), Ok(()));
        assert_eq!(streams.pass(LOG, stamp(1, 40), 2), Ok(()), "sent again");
        assert_eq!(streams.pass(LOG, stamp(1, 43), 1), out_of_order(42, 43));
    }

    #[test]
    fn behind_the_first_of_a_stream_that_was_refused_nothing_goes_on() {
        let mut streams = Streams::default();
        streams.refused(LOG, stamp(1, 40));
        assert_eq!(streams.pass(LOG, stamp(1, 41), 1), out_of_order(40, 41));
        assert_eq!(streams.pass(LOG, stamp(1, 40), 1), Ok(()));
        assert_eq!(streams.pass(LOG, stamp(1, 41), 1), Ok(()));
    }

    #[test]
    fn behind_one_of_several_that_wait_and_was_refused_nothing_goes_on() {
        let mut streams = Streams::default();
        // The third finds no place to wait; then the first, which has waited for too long, is refused.
        streams.refused(LOG, stamp(1, 42));
        streams.refused(LOG, stamp(1, 40));
        assert_eq!(streams.pass(LOG, stamp(1, 41), 1), out_of_order(40, 41));
        for sequence in 40..43 {
            assert_eq!(streams.pass(LOG, stamp(1, sequence), 1), Ok(()));
        }
        streams.refused(LOG, stamp(1, 41));
        assert_eq!(streams.pass(LOG, stamp(1, 43), 1), out_of_order(41, 43));
    }

    #[test]
    fn a_new_epoch_begins_at_0_and_the_one_before_is_over() {
        let mut streams = Streams::default();
        assert_eq!(streams.pass(LOG, stamp(1, 40), 2), Ok(()));
        assert_eq!(streams.pass(LOG, stamp(2, 1), 1), out_of_order(0, 1));
        assert_eq!(streams.pass(LOG, stamp(2, 0), 1), Ok(()));
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
        assert_eq!(streams.pass(LOG, stamp(1, 1), 1), Ok(()));
    }
}
