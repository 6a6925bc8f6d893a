//! Commits that follow one another before the first has ended.
//!
//! While commits are small, most of one's time is not the disk's: its end has to wake the shard,
//! which starts the next, which has to wake the writer. So batches that come in meanwhile are
//! handed to the writer at once, and lie ready when the disk is; those that lie there together are
//! written together. Large commits gain nothing by it: they would only become more, and smaller.
//!
//! All commits under way go to one segment, in order, and their ends are taken up in order. If one
//! fails, those behind it are given up with it, whatever becomes of their writes: the segment is
//! sealed before them.

use super::calls::Calls;
use super::choosing::class_of;
use super::commands::Commands;
use super::commits::Commits;
use super::entry::Entry;
use super::faults::Faults;
use super::id::{ClassId, SegmentId};
use super::logs::Logs;
use super::segment_set::SegmentSet;
use super::time::Time;
use super::{Journal, JournalConfig};
use airmail_model::{Synced, bug};

/// Commits under way at once, at most.
pub(super) const COMMITS_MAX: usize = 4;
/// Bytes under way and waiting, above which the next commit waits for the end of the last.
const FOLLOW_BYTES: u64 = 64 * 1024;

/// The parts of the journal that are read before a commit follows another; none of them is changed.
struct Following<'j> {
    config: &'j JournalConfig,
    time: &'j Time,
    calls: &'j Calls,
    faults: &'j Faults,
    logs: &'j Logs,
    segments: &'j SegmentSet,
    commits: &'j Commits,
    commands: &'j Commands,
}

impl Journal {
    fn following(&self) -> Following<'_> {
        Following {
            config: &self.config,
            time: &self.time,
            calls: &self.calls,
            faults: &self.faults,
            logs: &self.logs,
            segments: &self.segments,
            commits: &self.commits,
            commands: &self.commands,
        }
    }

    /// The segment to which all that waits may be committed behind what is under way, if nothing speaks
    /// against it.
    pub(super) fn segment_to_follow(&mut self) -> Option<SegmentId> {
        // What needs a moment without commits gets it.
        if self.checkpointing().is_due() {
            return None;
        }
        self.following().segment()
    }
}

impl Following<'_> {
    /// The segment of the commits under way, if all that waits may go there now.
    fn segment(&self) -> Option<SegmentId> {
        let part = self.commits.last_part()?;
        let in_order =
            part.metas.is_empty() && self.commands.is_empty() && !self.commands.are_held_back();
        let unhurried = !self.calls.is_closing() && !self.sync_due();
        let sound = self.faults.trouble().is_none() && self.faults.failed().is_empty();
        if !in_order || !unhurried || !sound || self.commits.len() >= COMMITS_MAX {
            return None;
        }
        let segment = self.segments.get(part.segment)?;
        let under_way = segment.written().since(segment.durable());
        let end = segment.written() + self.commits.bytes();
        let fits = !self.commits.waiting().is_empty()
            && under_way + self.commits.bytes() <= FOLLOW_BYTES
            && end <= self.config.segment_limit(segment.header.class)
            && !segment.fill.has_failed()
            && !segment.fill.meets(segment.written(), end);
        let mut waiting = self.commits.waiting().iter();
        (fits && waiting.all(|entry| self.belongs(entry, segment.header.class)))
            .then_some(segment.id)
    }

    /// Whether a batch needs nothing but to be written to the class's segment.
    fn belongs(&self, entry: &Entry, class: ClassId) -> bool {
        let Some(log) = self.logs.get(entry.slot) else {
            bug!("slot {} has a batch that waits and no log", entry.slot);
            return false;
        };
        let reserved = log.life.spec.durability.synced == Synced::Fsync
            || entry.next() <= log.numbers.reserved;
        let stays = log.class == Some(class);
        !entry.copy && reserved && stays && class_of(log.id, log.life.spec.retention) == class
    }

    /// Whether a segment is to be synced for its age, or to be left.
    fn sync_due(&self) -> bool {
        let mut open = self.segments.active();
        open.any(|id| {
            let segment = self.segments.get(id);
            segment.is_some_and(|segment| {
                let since = segment.unsynced_since();
                let old = since.map(|since| since.plus(self.config.unsynced_time));
                segment.fill.has_failed() || old.is_some_and(|at| at <= self.time.mono())
            })
        })
    }
}
