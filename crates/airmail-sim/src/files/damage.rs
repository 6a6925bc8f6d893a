//! Damage to stored messages: a bit of one's payload, wherever it is.
//!
//! It may hit bytes behind the end in the file of durable ends. A process that starts there takes
//! the damage for a torn write, which it has not acknowledged: the bytes do not tell the two apart.
//! So the bytes that are hit and all behind them in the segment would be gone, numbers and all. It
//! takes two faults at once: a crash that loses the record of the end, and damage to just the data
//! that it covered. That is the one case that is left out: such damage is undone before the start.

use super::disk::Disk;
use super::file::SimFile;
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::message::{MessageId, identify, scan};
use airmail_log::files::FileName;
use airmail_log::journal::ends::Ends;
use airmail_log::journal::id::SegmentId;
use std::ops::Range;

/// A message whose stored payload was damaged.
#[derive(Debug)]
pub(super) struct Hit {
    file: FileName,
    id: MessageId,
    /// Bytes of its payload.
    place: Range<usize>,
    at: usize,
    bit: u8,
}

impl Hit {
    /// Flips the bit; back, if it is flipped.
    fn flip(&self, file: &mut SimFile) {
        for image in [&mut file.durable, &mut file.seen] {
            if let Some(byte) = image.get_mut(self.at) {
                *byte ^= self.bit;
            }
        }
    }

    fn is_whole(&self, file: &SimFile) -> bool {
        let payload = file.durable.get(self.place.clone());
        payload
            .and_then(identify)
            .is_some_and(|(id, _)| id == self.id)
    }

    /// Whether the node is bound to take it for damage, and for no torn write.
    fn is_told(&self, ends: &Ends, file: &SimFile) -> bool {
        let end = told_end(&self.file, file, ends);
        number_of(&self.file).is_none() || end.is_some_and(|end| self.place.end <= end)
    }
}

impl Disk {
    /// Changes one byte of a message's stored payload, where one is found in the file for certain.
    /// Gives the messages whose payload is now damaged.
    pub fn damage(&mut self, chance: &mut Entropy) -> Option<MessageId> {
        let names: Vec<FileName> = self.files.keys().cloned().collect();
        let name = chance.pick(&names)?;
        let file = self.files.get_mut(name)?;
        let mut places = Vec::new();
        scan(&file.durable, |id, place| {
            // Where something else was written over it since, that would be hit.
            if file.seen.get(place.clone()) == file.durable.get(place.clone()) {
                places.push((id, place));
            }
        });
        let (id, place) = chance.pick(&places)?.clone();
        let hit = Hit {
            file: name.clone(),
            id,
            at: place.start + chance.index(place.len()),
            place,
            bit: 1u8 << chance.below(8),
        };
        hit.flip(file);
        self.hits.push(hit);
        self.census.count(Kind::PayloadDamaged);
        Some(id)
    }

    /// Undoes what the process that starts would take for torn writes. Where something else has been
    /// written to a place since, that stays as it is.
    pub(super) fn undo_untold_damage(&mut self) {
        let ends = self.files.get("ends");
        let ends = ends.and_then(|file| Ends::newest(&file.seen));
        let ends = ends.unwrap_or_default();
        for hit in &self.hits {
            let file = self.files.get_mut(&hit.file);
            let untold = |file: &&mut SimFile| !hit.is_told(&ends, file) && !hit.is_whole(file);
            if let Some(file) = file.filter(untold) {
                hit.flip(file);
                if !hit.is_whole(file) {
                    hit.flip(file);
                }
            }
        }
    }
}

/// The number of a segment, by its file's name.
pub(super) fn number_of(name: &str) -> Option<SegmentId> {
    let number = u64::from_str_radix(name.strip_prefix("seg-")?, 16);
    number.ok().map(SegmentId)
}

/// Where the data of a segment ends, if the file of durable ends tells it: of one that takes nothing
/// more, at the file's end.
pub(super) fn told_end(name: &str, file: &SimFile, ends: &Ends) -> Option<usize> {
    let id = number_of(name)?;
    let newest = ends.segments.keys().next_back();
    match ends.segments.get(&id) {
        Some(end) => Some(usize::try_from(end.0).ok()?.min(file.durable.len())),
        None => newest
            .is_some_and(|newest| id < *newest)
            .then_some(file.durable.len()),
    }
}
