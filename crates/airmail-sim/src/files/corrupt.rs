//! Damage to any file at rest: one bit, or its end.
//!
//! The cost that it may have is computed here, from the bytes: the messages of the batch that is
//! hit, or of the batches that are cut off. Bits are flipped only where the node is bound to
//! notice: below the end in the file of durable ends, or in a segment that takes nothing more.
//! Behind that end the node may take the damage for a torn write, which it has not acknowledged.
//!
//! An end is cut off only if the file of durable ends has it, too, and all data are before it:
//! batches that a killed process had stored and could not record any more would vanish as if they
//! had never been.

use super::damage::told_end;
use super::disk::Disk;
use super::file::SimFile;
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::message::{MessageId, identify, scan};
use airmail_log::files::FileName;
use airmail_log::journal::ends::Ends;
use airmail_log::journal::format::{Envelope, HEADER_BYTES, Kind as RecordKind, SegmentHeader};

const ENDS_PLACE_BYTES: usize = 4096;
/// An envelope (40 bytes) and the most of a batch's header.
const HEAD_BYTES: usize = 100;

/// Damage that was done to a file.
#[derive(Clone, Debug)]
pub struct Corruption {
    /// The file.
    pub file: FileName,
    /// The first damaged byte, or the only one.
    pub at: usize,
    /// Kind of the damage.
    pub kind: Kind,
    /// Messages that may be lost by it, and must be told as lost.
    pub hit: Vec<MessageId>,
}

impl Disk {
    /// Flips a bit, or cuts off the end, of any file that holds nothing unsynced. `None`: there is
    /// none now.
    pub fn corrupt(&mut self, chance: &mut Entropy) -> Option<Corruption> {
        let quiet = |file: &&SimFile| file.unsynced.is_empty() && !file.durable.is_empty();
        // There are far more segments and indexes than others: the kind of file is drawn first.
        let prefix = *chance.pick(&["seg", "seg", "idx", "checkpoint", "ends"])?;
        let fits = |name: &FileName, file: &SimFile| match prefix {
            "ends" => &**name == "ends" && !file.seen.is_empty(),
            _ => name.starts_with(prefix) && quiet(&file),
        };
        let names = self.files.iter().filter(|(name, file)| fits(name, file));
        let names: Vec<FileName> = names.map(|(name, _)| name.clone()).collect();
        let name = chance.pick(&names)?.clone();
        let ends = self.known_ends();
        let cut = chance.chance(250_000);
        let file = self.files.get_mut(&name)?;
        let (at, kind, hit) = match prefix {
            "seg" => segment(&name, file, &ends, cut, chance)?,
            "idx" if cut => (chance.index(file.seen.len()), Kind::IndexCut, Vec::new()),
            "checkpoint" if cut => (
                chance.index(file.seen.len()),
                Kind::CheckpointCut,
                Vec::new(),
            ),
            "idx" => (
                chance.index(file.seen.len()),
                Kind::IndexFlipped,
                Vec::new(),
            ),
            "checkpoint" => (
                chance.index(file.seen.len()),
                Kind::CheckpointFlipped,
                Vec::new(),
            ),
            "ends" => (chance.index(file.seen.len()), Kind::EndsFlipped, Vec::new()),
            _ => return None,
        };
        let is_cut = matches!(
            kind,
            Kind::SegmentCut | Kind::IndexCut | Kind::CheckpointCut
        );
        let bit = 1u8 << chance.below(8);
        for image in [&mut file.durable, &mut file.seen] {
            if is_cut {
                image.truncate(at);
            } else if let Some(byte) = image.get_mut(at) {
                *byte ^= bit;
            }
        }
        self.census.count(kind);
        Some(Corruption {
            file: name,
            at,
            kind,
            hit,
        })
    }

    /// Contents of the newer place in the file of durable ends.
    fn known_ends(&self) -> Ends {
        let Some(file) = self.files.get("ends") else {
            return Ends::default();
        };
        let whole = file.seen.len() > ENDS_PLACE_BYTES;
        let ends = whole.then(|| Ends::newest(&file.seen));
        ends.flatten().unwrap_or_default()
    }
}

/// Where a segment is hit, what is there, and what that may cost.
fn segment(
    name: &str,
    file: &SimFile,
    ends: &Ends,
    cut: bool,
    chance: &mut Entropy,
) -> Option<(usize, Kind, Vec<MessageId>)> {
    let end = told_end(name, file, ends)?;
    let mut at = chance.index(end);
    let commands = SegmentHeader::decode(&file.durable)
        .is_ok_and(|header| header.class == airmail_log::journal::format::META_CLASS);
    let records = records(&file.durable);
    // Most bytes are payload; what costs more when it is hit is hit as often.
    let sound = records.iter().filter(|(range, _)| range.end <= end);
    let starts: Vec<usize> = sound.map(|(range, _)| range.start).collect();
    match (chance.below(4), chance.pick(&starts)) {
        (0 | 1, Some(start)) => at = start + chance.index(HEAD_BYTES),
        (2, _) => at = chance.index(HEADER_BYTES),
        _ => {}
    }
    if cut {
        // Commands are not cut: what they say is nowhere else, and they tell no message.
        let told = records.iter().all(|(range, _)| range.end <= end);
        if commands || !told {
            return None;
        }
        let lost = records.iter().filter(|(range, _)| range.end > at);
        let hit = lost.flat_map(|(_, messages)| messages.clone()).collect();
        return Some((at, Kind::SegmentCut, hit));
    }
    let place = records.iter().find(|(range, _)| range.contains(&at));
    Some(match place {
        _ if commands => (at, Kind::CommandFlipped, Vec::new()),
        None => (at, Kind::SegmentFlipped, Vec::new()),
        Some((_, messages)) => match payload_at(&file.durable, place?.0.clone(), at) {
            Some(message) => (at, Kind::PayloadDamaged, vec![message]),
            None => (at, Kind::BatchFlipped, messages.clone()),
        },
    })
}

/// A segment's batches: where each is, with its envelope, and its messages.
fn records(bytes: &[u8]) -> Vec<(std::ops::Range<usize>, Vec<MessageId>)> {
    let mut found = Vec::new();
    let mut at = HEADER_BYTES;
    while let Some(envelope) = bytes.get(at..).and_then(Envelope::decode) {
        let length = usize::try_from(envelope.stored_bytes()).unwrap_or(usize::MAX);
        let end = at.saturating_add(length).min(bytes.len());
        let mut messages = Vec::new();
        if envelope.kind == RecordKind::Batch {
            scan(&bytes[at..end], |id, _| messages.push(id));
        }
        found.push((at..end, messages));
        at = end;
    }
    found
}

/// The message whose payload has the byte at `at`.
fn payload_at(bytes: &[u8], record: std::ops::Range<usize>, at: usize) -> Option<MessageId> {
    (record.start..=at).find_map(|start| {
        let (id, length) = identify(bytes.get(start..record.end)?)?;
        (at < start + length).then_some(id)
    })
}
