//! When and how checkpoints are written, and what goes when they are.
//!
//! A checkpoint holds what is durable, as it is between two commits: what is only accepted, or only
//! written, is left out, and found behind it. The file is new, written once and synced.

use super::checkpoint::{BlockPart, Checkpoint, CopyPart, LogPart, SegmentPart};
use super::format::META_CLASS;
use super::log::LogState;
use super::producers::{Key, Producer, Undo};
use super::segment::{Segment, State, checkpoint_name};
use super::{Journal, Purpose};
use crate::files::FileOp;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Checkpoints kept.
const KEPT: usize = 2;

/// A checkpoint on its way.
#[derive(Debug)]
pub(super) struct Checkpointing {
    number: u64,
    meta_count: u64,
    bytes: Bytes,
    made: bool,
    last: bool,
}

/// What is known about written checkpoints.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// The number of the next.
    pub(super) next: u64,
    /// Those that are there, and the count that their commands end at; from old to new.
    pub(super) kept: Vec<(u64, u64)>,
    /// Bytes appended since the last.
    pub(super) appended: u64,
    /// One is wanted whatever was appended.
    pub(super) due: bool,
    /// Not before this time, after a failure.
    pub(super) at: airmail_model::Mono,
    /// How large the last one was.
    pub(super) bytes: u64,
    /// The last of a clean stop is written.
    pub(super) closed: bool,
}

impl Journal {
    /// Begins a checkpoint, if it is time and no commit is under way.
    pub(super) fn start_checkpoint(&mut self) {
        if !self.commits.is_empty() || !self.metas.is_empty() || !self.checkpoint_due() {
            return;
        }
        let last = self.is_last_checkpoint();
        let checkpoint = self.snapshot(last);
        let (number, meta_count) = (self.checkpoints.next, checkpoint.meta_count);
        self.checkpoints.next += 1;
        self.checkpoints.due = false;
        self.checkpoints.appended = 0;
        let mut touched = std::mem::take(&mut self.touched);
        self.touched_before.append(&mut touched);
        let bytes = Bytes::from(checkpoint.encode());
        self.checkpointing = Some(Checkpointing {
            number,
            meta_count,
            bytes,
            made: false,
            last,
        });
        let name = checkpoint_name(number);
        self.submit(Purpose::Checkpoint, FileOp::Create { name });
    }

    /// Whether it is time for one.
    pub(super) fn checkpoint_due(&self) -> bool {
        let busy = self.checkpointing.is_some() || self.recovering.is_some();
        if busy || self.checkpoints.at > self.now.mono {
            return false;
        }
        // A large table of producers is not written again for every few batches.
        let enough = self.config.checkpoint_bytes.max(4 * self.checkpoints.bytes);
        let last = self.is_last_checkpoint();
        let wanted = self.checkpoints.due || self.checkpoints.appended >= enough || last;
        wanted && self.may_try() && (!self.closing || last)
    }

    /// Whether the next is that of a clean stop.
    fn is_last_checkpoint(&self) -> bool {
        self.closing && self.is_drained() && !self.checkpoints.closed
    }

    pub(super) fn checkpoint_step_done(&mut self, result: io::Result<()>) {
        let Some(mut step) = self.checkpointing.take() else {
            return;
        };
        let name = checkpoint_name(step.number);
        if result.is_err() {
            self.checkpoints.at = self.now.mono.plus(self.config.probe_interval);
            self.checkpoints.due = true;
            self.checkpoints.closed = self.closing;
            self.touched.append(&mut self.touched_before);
            return self.submit(Purpose::Minor, FileOp::Remove { name });
        }
        if !step.made {
            step.made = true;
            let parts = vec![step.bytes.clone()];
            self.submit(
                Purpose::Checkpoint,
                FileOp::Write {
                    name,
                    at: 0,
                    parts,
                    sync: true,
                    note: None,
                },
            );
            self.checkpointing = Some(step);
            return;
        }
        self.checkpoints.bytes = step.bytes.len() as u64;
        // A command may have come behind the snapshot; then another is written.
        let current = self.meta_count == step.meta_count && self.is_drained();
        self.checkpoints.closed = step.last && current;
        self.touched_before.clear();
        self.checkpoints.kept.push((step.number, step.meta_count));
        while self.checkpoints.kept.len() > KEPT {
            let (old, _) = self.checkpoints.kept.remove(0);
            self.submit(
                Purpose::Minor,
                FileOp::Remove {
                    name: checkpoint_name(old),
                },
            );
        }
        self.sweep_metas();
    }

    /// Lets go of segments of commands that the older checkpoint makes unnecessary.
    fn sweep_metas(&mut self) {
        if self.checkpoints.kept.len() < KEPT {
            return;
        }
        let covered = self.checkpoints.kept[0].1;
        // As for all segments, its end must be known for ever before the name can go.
        let sealing: BTreeSet<u64> = self.sealing().collect();
        let old = self.segments.values_mut().filter(|segment| {
            segment.header.class == META_CLASS
                && segment.state == State::Sealed
                && segment.filling.is_none()
                && !segment.leaving
                && segment.meta_next <= covered
                && !sealing.contains(&segment.id)
        });
        let mut names = Vec::new();
        for segment in old {
            segment.leaving = true;
            names.push((segment.id, segment.name.clone()));
        }
        for (id, name) in names {
            self.submit(Purpose::Left(id), FileOp::Remove { name });
        }
    }

    /// What is durable now.
    fn snapshot(&self, last: bool) -> Checkpoint {
        let mut indexed = BTreeSet::new();
        let mut segments = Vec::new();
        let known = self.known_blocks();
        for segment in self.segments.values().filter(|segment| !segment.leaving) {
            let mut part = segment_part(segment);
            part.blocks
                .truncate(known.get(&segment.id).copied().unwrap_or(0));
            let blocks = 0..part.blocks.len() as u32;
            indexed.extend(blocks.map(|block| (segment.id, block)));
            segments.push(part);
        }
        Checkpoint {
            meta_count: self.meta_count,
            next_slot: self.next_slot,
            next_segment: self.next_segment,
            logs: self
                .logs
                .values()
                .map(|log| log_part(log, &indexed, last))
                .collect(),
            segments,
            producers: self.durable_producers(),
        }
    }

    /// How many of each segment's first blocks a checkpoint can name: those with an index, but none
    /// behind a place of one of their logs that it cannot name. What is not named is read again
    /// when the journal opens, and a log is carried on in order only.
    fn known_blocks(&self) -> BTreeMap<u64, usize> {
        let segments = self.segments.values().filter(|segment| !segment.leaving);
        let indexed = |segment: &Segment| {
            let blocks = segment.blocks.iter();
            blocks.take_while(|block| block.layout.is_some()).count()
        };
        let mut known: BTreeMap<u64, usize> = segments
            .map(|segment| (segment.id, indexed(segment)))
            .collect();
        let mut again = true;
        while std::mem::take(&mut again) {
            for log in self.logs.values() {
                let mut behind = false;
                for place in &log.places {
                    let count = known.entry(place.segment).or_default();
                    let inside = (place.block as usize) < *count;
                    if inside && behind {
                        *count = place.block as usize;
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
        let unsynced = self.segments.values().flat_map(|segment| &segment.unsynced);
        let entries: Vec<_> = unsynced.chain(&self.pending).collect();
        let mut changed: BTreeMap<Key, Option<Producer>> = BTreeMap::new();
        for entry in entries.into_iter().rev() {
            let Some((stamp, undo)) = &entry.undo else {
                continue;
            };
            let key = (stamp.id.0, entry.slot);
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

fn log_part(log: &LogState, indexed: &BTreeSet<(u64, u32)>, last: bool) -> LogPart {
    let places = log.places.iter();
    let places = places.filter(|place| indexed.contains(&(place.segment, place.block)));
    let copies = log.copies.from(log.first).map(|copy| CopyPart {
        first: copy.first,
        numbers: copy.numbers,
        time: copy.time,
        bytes: copy.batch.bytes().clone(),
    });
    LogPart {
        slot: log.slot,
        id: log.id,
        spec: log.spec,
        incarnation: log.incarnation,
        first: log.first,
        next: log.durable,
        reserved: if last { log.durable } else { log.reserved },
        sealed: log.sealed,
        last_time: log.last_time,
        places: places.copied().collect(),
        copies: copies.collect(),
    }
}
