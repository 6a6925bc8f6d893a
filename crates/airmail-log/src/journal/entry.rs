//! Batches of a log in memory: on their way to the disk, and for readers.

use super::format::Envelope;
use super::id::{FileOffset, Slot};
use super::producers::Undo;
use airmail_model::batch::ProducerStamp;
use airmail_model::{AppendTime, Batch, Checked, Lane, Sequence};

/// A batch with its numbers, on its way to the disk.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) slot: Slot,
    pub(super) first: Sequence,
    pub(super) numbers: u32,
    pub(super) time: AppendTime,
    pub(super) batch: Checked<Batch>,
    /// Where it was written, in its segment.
    pub(super) offset: FileOffset,
    /// Undoes the batch's effect on its producer. `None`: it has no producer, or it has been
    /// answered.
    pub(super) undo: Option<(ProducerStamp, Undo)>,
    /// Found when the journal opened, or answered before its segment failed: written once more,
    /// and never refused.
    pub(super) copy: bool,
}

impl Entry {
    /// A batch that was found in a segment, to be written once more elsewhere.
    pub(super) fn again(envelope: &Envelope, batch: Checked<Batch>) -> Entry {
        Entry {
            slot: envelope.slot,
            first: envelope.sequence(),
            numbers: envelope.numbers,
            time: envelope.append_time,
            batch,
            offset: FileOffset::START,
            undo: None,
            copy: true,
        }
    }

    /// Its envelope, but for the salt.
    pub(super) fn envelope(&self) -> Envelope {
        let length = self.batch.bytes().len() as u32;
        Envelope::of_batch(self.slot, self.first, self.numbers, self.time, length)
    }

    /// The lane of its log.
    pub(super) fn lane(&self) -> Lane {
        self.batch.log().lane
    }

    /// The number after its last.
    pub(super) fn next(&self) -> Sequence {
        self.first.plus(u64::from(self.numbers))
    }
}

/// A batch that readers can have from memory.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    pub(super) first: Sequence,
    pub(super) numbers: u32,
    pub(super) time: AppendTime,
    pub(super) batch: Checked<Batch>,
}

impl Recent {
    /// Its envelope as a batch of a log, but for the salt.
    pub(super) fn envelope(&self, slot: Slot) -> Envelope {
        let length = self.batch.bytes().len() as u32;
        Envelope::of_batch(slot, self.first, self.numbers, self.time, length)
    }

    /// The number after its last.
    pub(super) fn next(&self) -> Sequence {
        self.first.plus(u64::from(self.numbers))
    }
}
