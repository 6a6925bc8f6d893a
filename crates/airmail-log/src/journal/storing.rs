//! Taking up of stored commits: the written and durable ends of its logs, and the places of its
//! batches.
//!
//! Batches that are written and not synced stay in memory with their segment until a sync of that
//! ends; only then do they go into a table ([`placing`](super::placing)).

use super::Journal;
use super::append::cost;
use super::checkpointer::Checkpointer;
use super::commands::{Command, Commands};
use super::commits::Part;
use super::ends_file::EndsFile;
use super::entry::{Entry, Recent};
use super::faults::Faults;
use super::id::{SegmentId, Slot};
use super::placing::Placing;
use super::table::Location;
use super::time::Time;
use airmail_model::bug;
use std::collections::BTreeSet;

/// The parts of the journal that taking up a commit reads or changes, those for placing a batch
/// among them.
pub(super) struct Storing<'j> {
    time: &'j Time,
    commands: &'j Commands,
    faults: &'j mut Faults,
    ends: &'j mut EndsFile,
    checkpointer: &'j mut Checkpointer,
    placing: Placing<'j>,
}

impl Journal {
    pub(super) fn storing(&mut self) -> Storing<'_> {
        let checkpoint = self.checkpointer.next();
        Storing {
            time: &self.time,
            commands: &self.commands,
            faults: &mut self.faults,
            ends: &mut self.ends,
            checkpointer: &mut self.checkpointer,
            placing: Placing {
                config: &self.config,
                checkpoint,
                logs: &mut self.logs,
                segments: &mut self.segments,
                indexer: &mut self.indexer,
            },
        }
    }
}

impl Storing<'_> {
    /// Takes up a part of a commit that is written to its segment. Gives its commands, which are
    /// durable, to be carried out.
    ///
    /// # Errors
    /// The part again, if its segment is gone.
    pub(super) fn stored(
        &mut self,
        part: Part,
        moved: &mut BTreeSet<Slot>,
    ) -> Result<Vec<Command>, Part> {
        self.faults.stored();
        for entry in &part.entries {
            if let Some(log) = self.placing.logs.get_mut(entry.slot) {
                log.numbers.written = log.numbers.written.max(entry.next());
            }
        }
        let Some(segment) = self.placing.segments.get_mut(part.segment) else {
            bug!("segment {} of a commit is gone", part.segment);
            return Err(part);
        };
        segment.hold(part.entries);
        if part.sync {
            for entry in segment.synced(part.end) {
                moved.insert(entry.slot);
                self.take_in(part.segment, &entry);
            }
            self.ends.changed_if(!part.noted);
        } else {
            segment.wait_for_sync(self.time.mono());
        }
        if let Some(segment) = self.placing.segments.get_mut(part.segment)
            && !part.metas.is_empty()
        {
            segment.has_commands_to(self.commands.count());
        }
        Ok(part.metas)
    }

    /// A batch is durable: its place goes into the tables.
    fn take_in(&mut self, segment: SegmentId, entry: &Entry) {
        let Some(log) = self.placing.logs.get_mut(entry.slot) else {
            // Input: a log that was deleted while its batches were on their way.
            return;
        };
        if !entry.copy && entry.first < log.numbers.durable {
            bug!(
                "slot {}: {} becomes durable behind {}",
                entry.slot,
                entry.first,
                log.numbers.durable
            );
        }
        log.numbers.durable = log.numbers.durable.max(entry.next());
        let copied = log.take_copy(|| Recent {
            first: entry.first,
            numbers: entry.numbers,
            time: entry.time,
            batch: entry.batch.clone(),
        });
        if copied {
            self.checkpointer.want();
        }
        self.checkpointer.appended(entry.slot, cost(&entry.batch));
        let length = entry.batch.bytes().len() as u32;
        let location = Location {
            first: entry.first,
            numbers: entry.numbers,
            offset: entry.offset,
            length,
            time: entry.time,
        };
        self.placing
            .place(segment, entry.slot, location, &entry.batch);
    }
}
