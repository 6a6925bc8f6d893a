//! When and how checkpoints are written, and what goes when they are.
//!
//! A checkpoint holds what is durable, as it is between two commits: what is only accepted, or only
//! written, is left out, and found behind it. The file is new, written once and synced.

use super::Journal;
use super::checkpoint::{BlockPart, Checkpoint, CopyPart, LogPart, SegmentPart};
use super::effects::Purpose;
use super::format::META_CLASS;
use super::id::{BlockId, BlockIndex, SegmentId};
use super::log::LogState;
use super::producers::{Key, Producer, Undo};
use super::segment::{Segment, State, checkpoint_name};
use crate::files::FileOp;
use airmail_model::bug;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

impl Journal {
    /// Begins a checkpoint, if it is time and no commit is under way.
    pub(super) fn start_checkpoint(&mut self) {
        if !self.commits.are_idle() || !self.commands.is_empty() || !self.checkpoint_due() {
            return;
        }
        let last = self.is_last_checkpoint();
        let checkpoint = self.snapshot(last);
        let bytes = Bytes::from(checkpoint.encode());
        let number = self.checkpointer.begin(checkpoint.meta_count, bytes, last);
        let name = checkpoint_name(number);
        self.effects
            .submit(Purpose::Checkpoint, FileOp::Create { name });
    }

    /// Whether it is time for one.
    pub(super) fn checkpoint_due(&self) -> bool {
        if self.commands.are_held_back() || !self.checkpointer.may_begin(self.time.mono()) {
            return false;
        }
        let last = self.is_last_checkpoint();
        let wanted = self.checkpointer.is_wanted(self.config.checkpoint_bytes);
        (wanted || last) && self.may_try() && (!self.calls.is_closing() || last)
    }

    /// Whether the next is that of a clean stop.
    fn is_last_checkpoint(&self) -> bool {
        self.calls.is_closing() && self.is_drained() && !self.checkpointer.is_closed()
    }

    pub(super) fn checkpoint_step_done(&mut self, result: io::Result<()>) {
        let Some(mut step) = self.checkpointer.take() else {
            bug!("a step of a checkpoint has ended, and none is under way");
            return;
        };
        let name = checkpoint_name(step.number);
        if result.is_err() {
            let again = self.time.mono().plus(self.config.probe_interval);
            self.checkpointer.failed(again, self.calls.is_closing());
            return self.effects.submit(Purpose::Minor, FileOp::Remove { name });
        }
        if !step.made {
            step.made = true;
            let op = FileOp::Write {
                name,
                at: 0,
                parts: vec![step.bytes.clone()],
                sync: true,
                note: None,
            };
            self.effects.submit(Purpose::Checkpoint, op);
            return self.checkpointer.put_back(step);
        }
        // A command may have come behind the snapshot; then another is written.
        let current = self.commands.count() == step.meta_count && self.is_drained();
        for old in self.checkpointer.written(&step, current) {
            let name = checkpoint_name(old);
            self.effects.submit(Purpose::Minor, FileOp::Remove { name });
        }
        self.sweep_metas();
    }

    /// Lets go of segments of commands that the older checkpoint makes unnecessary.
    fn sweep_metas(&mut self) {
        let Some(covered) = self.checkpointer.covered() else {
            // Input: a young journal, which has no older checkpoint yet.
            return;
        };
        // As for all segments, its end must be known for ever before the name can go.
        let sealing: BTreeSet<SegmentId> = self.sealing().collect();
        let old = self.segments.iter_mut().filter(|segment| {
            segment.header.class == META_CLASS
                && segment.state == State::Sealed
                && segment.fill.going_to.is_none()
                && !segment.leaving
                && segment.covered.meta_next <= covered
                && !sealing.contains(&segment.id)
        });
        let mut names = Vec::new();
        for segment in old {
            segment.leaving = true;
            names.push((segment.id, segment.name.clone()));
        }
        for (id, name) in names {
            self.effects
                .submit(Purpose::Left(id), FileOp::Remove { name });
        }
    }

    /// What is durable now.
    fn snapshot(&self, last: bool) -> Checkpoint {
        let mut indexed = BTreeSet::new();
        let mut segments = Vec::new();
        let known = self.known_blocks();
        for segment in self.segments.iter().filter(|segment| !segment.leaving) {
            let mut part = segment_part(segment);
            part.blocks
                .truncate(known.get(&segment.id).copied().unwrap_or(0));
            let blocks = (0..part.blocks.len()).map(BlockIndex::at);
            indexed.extend(blocks.map(|block| BlockId {
                segment: segment.id,
                block,
            }));
            segments.push(part);
        }
        Checkpoint {
            meta_count: self.commands.count(),
            next_slot: self.logs.next_slot(),
            next_segment: self.segments.next(),
            logs: self
                .logs
                .iter()
                .map(|log| log_part(log, &indexed, last))
                .collect(),
            segments,
            producers: self.durable_producers(),
        }
    }

    /// How many of each segment's first blocks a checkpoint can name: those with an index, but none
    /// behind a place of one of their logs that it cannot name. What is not named is read again
    /// when the journal opens, and a log is carried on in order only.
    fn known_blocks(&self) -> BTreeMap<SegmentId, usize> {
        let segments = self.segments.iter().filter(|segment| !segment.leaving);
        let indexed = |segment: &Segment| {
            let blocks = segment.blocks.iter();
            blocks.take_while(|block| block.layout.is_some()).count()
        };
        let mut known: BTreeMap<SegmentId, usize> = segments
            .map(|segment| (segment.id, indexed(segment)))
            .collect();
        let mut again = true;
        while std::mem::take(&mut again) {
            for log in self.logs.iter() {
                let mut behind = false;
                for place in &log.kept.list {
                    let count = known.entry(place.block.segment).or_default();
                    let inside = place.block.block.place() < *count;
                    if inside && behind {
                        *count = place.block.block.place();
                        again = true;
                    }
                    behind |= !inside;
                }
            }
        }
        known
    }

    /// The producers, without what is not yet durable.
    fn durable_producers(&self) -> Vec<(Key, Producer)> {
        #[cfg(feature = "sabotage")]
        if self.has_bug(crate::sabotage::Bug::ProducersForgotten) {
            return Vec::new();
        }
        let unsynced = self
            .segments
            .iter()
            .flat_map(|segment| &segment.unsynced.entries);
        let entries: Vec<_> = unsynced.chain(self.commits.waiting()).collect();
        let mut changed: BTreeMap<Key, Option<Producer>> = BTreeMap::new();
        for entry in entries.into_iter().rev() {
            let Some((stamp, undo)) = &entry.undo else {
                // Input: batches without a producer, and such as were answered.
                continue;
            };
            let key = (stamp.id, entry.slot);
            let now = changed
                .entry(key)
                .or_insert_with(|| self.producers.get(key).cloned());
            match undo {
                Undo::Forget => *now = None,
                Undo::Restore(old) => *now = Some((**old).clone()),
                Undo::Pop => {
                    if let Some(producer) = now {
                        producer.pop(*stamp);
                    }
                }
            }
        }
        let all = self
            .producers
            .iter()
            .filter_map(|(key, producer)| match changed.get(&key) {
                Some(durable) => durable.clone().map(|durable| (key, durable)),
                None => Some((key, producer.clone())),
            });
        all.collect()
    }
}

fn segment_part(segment: &Segment) -> SegmentPart {
    let blocks = segment.blocks.iter().map_while(|block| {
        let layout = block.layout?;
        Some(BlockPart {
            start: block.start,
            end: block.end,
            entries: layout.entries,
            topics: layout.topics,
        })
    });
    SegmentPart {
        id: segment.id,
        class: segment.header.class,
        salt: segment.header.salt,
        sealed: segment.state == State::Sealed,
        durable: segment.durable,
        blocks: blocks.collect(),
    }
}

fn log_part(log: &LogState, indexed: &BTreeSet<BlockId>, last: bool) -> LogPart {
    let places = log.kept.list.iter();
    let places = places.filter(|place| indexed.contains(&place.block));
    let copies = log.copies.from(log.numbers.first).map(|copy| CopyPart {
        first: copy.first,
        numbers: copy.numbers,
        time: copy.time,
        bytes: copy.batch.bytes().clone(),
    });
    LogPart {
        slot: log.slot,
        id: log.id,
        spec: log.life.spec,
        incarnation: log.life.incarnation,
        first: log.numbers.first,
        next: log.numbers.durable,
        reserved: if last {
            log.numbers.durable
        } else {
            log.numbers.reserved
        },
        sealed: log.life.sealed,
        last_time: log.last_time,
        places: places.copied().collect(),
        copies: copies.collect(),
    }
}
