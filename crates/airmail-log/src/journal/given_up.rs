//! Durable batches that were given up all the same: recovery distinguishes them from a loss.
//!
//! While the files may be another node's, a write under way counts as failed, whatever becomes of
//! it ([`withhold`](super::withhold)). Its sync may have gone well, though, and the file of durable
//! ends, written with it, may list it. Then a command ends that segment before the place that the
//! ends file says; no client was ever told of the batches between, and their numbers are given
//! again. The ends are not synced: however often they were written since, a power cut may bring the
//! old ones back.

use super::format::{DATA_START, Kind};
use super::id::{FileOffset, Slot};
use super::known::Known;
use super::recover::OpenError;
use super::scan::{End, Seen, scan};
use super::segment::Segment;
use crate::files::Files;
use airmail_model::Sequence;
use std::collections::BTreeMap;

impl Known {
    /// Leaves the file of durable ends out if it is older than the checkpoint: it names a segment
    /// that the checkpoint knows to have gone, or to end before that. Its true facts are in the
    /// checkpoint too.
    pub(super) fn drop_older_ends(&mut self) {
        let older = self.durable.iter().any(|(&id, &end)| {
            let mut segments = self.checkpoint.segments.iter();
            match segments.find(|segment| segment.id == id) {
                Some(segment) => segment.sealed && segment.durable < end,
                None => id < self.checkpoint.next_segment,
            }
        });
        if older {
            self.durable.clear();
            self.next.clear();
        }
    }

    /// Moves the end of a log: if the file of durable ends has it end with given-up batches of a
    /// segment, it ends before those.
    pub(super) fn give_up<F: Files>(
        &mut self,
        files: &mut F,
        segment: &Segment,
        length: FileOffset,
    ) -> Result<(), OpenError> {
        let sealed = self.sealed.get(&segment.id).copied();
        let told = self.durable.get(&segment.id).copied();
        let Some((sealed, told)) = sealed.zip(told).filter(|(sealed, told)| sealed < told) else {
            // Input: files of which nothing was given up: a segment ends where the ends say.
            return Ok(());
        };
        let mut given_up: BTreeMap<Slot, (Sequence, Sequence)> = BTreeMap::new();
        let take = |Seen { envelope, .. }: Seen| {
            let (first, behind) = (envelope.sequence(), envelope.next());
            if envelope.kind == Kind::Batch {
                let part = given_up.entry(envelope.slot).or_insert((first, behind));
                *part = (part.0.min(first), part.1.max(behind));
            }
        };
        let from = sealed.max(DATA_START);
        let end = End::Sealed(told);
        // Damage to it is nobody's loss either.
        let damage = &mut Vec::new();
        scan(files, segment, length, from, end, damage, take)?;
        for (slot, (first, behind)) in given_up {
            let before = self.checkpoint_next.get(&slot).copied();
            let before = before.unwrap_or(Sequence::FIRST);
            if let Some(next) = self.next.get_mut(&slot).filter(|next| **next == behind) {
                *next = first.max(before);
            }
        }
        Ok(())
    }
}
