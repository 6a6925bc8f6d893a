//! Commands of one segment, as a journal that opens finds them.
//!
//! A commit of commands is one write, and the next begins when it is durable. So in a segment of which
//! nothing tells the end, only the last write may not be durable: it is torn, or whole and in the system's
//! cache alone. The place of each command in its write ([`InWrite`]) tells where that write began.
//!
//! - The segment ends before its last write, unless more is known to have been durable. What is unsound
//!   before that end is damage.
//! - What is unsound behind it may be torn; then nobody was told of the write. Each command is in it twice:
//!   those that are there at least once hold, up to the first that is not, because a command may rely on
//!   those before it. They are given again, as all commands behind the checkpoint are, with counts from
//!   that end on.

use super::damage::Problem;
use super::format::{DATA_START, Envelope, InWrite};
use super::id::FileOffset;
use super::meta::Meta;
use super::recover::OpenError;
use super::scan::{Body, End, Seen, scan};
use super::segment::Segment;
use crate::files::Files;
use std::collections::{BTreeMap, BTreeSet};

/// Commands of a segment. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct FoundCommands {
    /// Commands that hold, by their counts.
    pub(super) commands: BTreeMap<u64, Meta>,
    /// Counts of those before the end.
    pub(super) counts: BTreeSet<u64>,
    /// Place behind the last byte that is known to have been durable.
    pub(super) end: FileOffset,
    /// Damage before that end.
    pub(super) damage: Vec<Problem>,
}

/// A sound command.
struct FoundCommand {
    at: FileOffset,
    envelope: Envelope,
    meta: Meta,
}

impl FoundCommand {
    /// Where the first command of its write is.
    fn write_begins(&self) -> FileOffset {
        let before = u64::from(self.envelope.in_write().bytes);
        FileOffset(self.at.0.saturating_sub(before)).max(DATA_START)
    }
}

impl FoundCommands {
    /// Reads the commands of a segment of this length. `sealed` is its end, if a command or a checkpoint
    /// has it; before `durable` all is known to have been durable.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read<F: Files>(
        files: &mut F,
        segment: &Segment,
        length: FileOffset,
        sealed: Option<FileOffset>,
        durable: FileOffset,
    ) -> Result<FoundCommands, OpenError> {
        let (mut found, mut damage) = (Vec::new(), Vec::new());
        let take = |seen: Seen| {
            if let Body::Meta(meta) = seen.body {
                let (at, envelope) = (seen.at, seen.envelope);
                found.push(FoundCommand { at, envelope, meta });
            }
        };
        let end = sealed.map_or(End::Somewhere, End::Sealed);
        scan(files, segment, length, DATA_START, end, &mut damage, take)?;
        let last = found.last().map_or(DATA_START, FoundCommand::write_begins);
        let end = sealed.unwrap_or_else(|| durable.max(last));
        damage.retain(|one| one.at < end.0);
        if last >= end {
            leave_out_unfounded(&mut found, last);
        }
        let before = found.iter().filter(|one| one.at < end);
        let counts = before.map(|one| one.envelope.first).collect();
        let commands = found.into_iter().map(|one| (one.envelope.first, one.meta));
        Ok(FoundCommands {
            commands: commands.collect(),
            counts,
            end,
            damage,
        })
    }
}

/// Leaves out, of the write that begins here, the commands behind the first that is not there.
fn leave_out_unfounded(found: &mut Vec<FoundCommand>, write: FileOffset) {
    let place = |one: &FoundCommand| {
        let InWrite { commands, .. } = one.envelope.in_write();
        (one.write_begins() == write).then_some(commands)
    };
    let there: BTreeSet<u32> = found.iter().filter_map(place).collect();
    let unbroken = (0..).zip(&there).take_while(|(n, place)| n == *place);
    let unbroken = unbroken.count();
    found.retain(|one| place(one).is_none_or(|place| (place as usize) < unbroken));
}
