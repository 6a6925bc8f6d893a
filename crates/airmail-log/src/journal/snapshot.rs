//! Contents of a checkpoint: everything that is durable, in the state between two commits.
//!
//! Batches that are only accepted, or only written, are left out, and found behind the checkpoint.
//! The snapshot is taken from parts that nothing changes meanwhile.

use super::Journal;
#[cfg(feature = "sabotage")]
use super::JournalConfig;
use super::checkpoint::{BlockPart, Checkpoint, CopyPart, LogPart, SegmentPart};
use super::commands::Commands;
use super::commits::Commits;
use super::id::{BlockId, BlockIndex, SegmentId};
use super::log::LogState;
use super::logs::Logs;
use super::producers::{Key, Producer, Producers, Undo};
use super::segment::Segment;
use super::segment_set::SegmentSet;
use std::collections::{BTreeMap, BTreeSet};

/// The parts of the journal that a checkpoint is taken from; none of them is changed.
pub(super) struct Snapshot<'j> {
    #[cfg(feature = "sabotage")]
    config: &'j JournalConfig,
    logs: &'j Logs,
    producers: &'j Producers,
    segments: &'j SegmentSet,
    commits: &'j Commits,
    commands: &'j Commands,
}

impl Journal {
    pub(super) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            #[cfg(feature = "sabotage")]
            config: &self.config,
            logs: &self.logs,
            producers: &self.producers,
            segments: &self.segments,
            commits: &self.commits,
            commands: &self.commands,
        }
    }
}

impl Snapshot<'_> {
    /// Takes a checkpoint of what is durable now; `last` if nothing comes behind it, because the
    /// stop is clean.
    pub(super) fn take(&self, last: bool) -> Checkpoint {
        let mut indexed = BTreeSet::new();
        let mut segments = Vec::new();
        let known = self.known_blocks();
        for segment in self.segments.iter().filter(|segment| !segment.is_leaving()) {
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
            tombstones: self.logs.tombstones().clone(),
        }
    }

    /// Number of each segment's first blocks that a checkpoint can name: those with an index, but
    /// none behind a place of one of their logs that it cannot name. The other blocks are read
    /// again when the journal opens, and a log is continued in order only.
    fn known_blocks(&self) -> BTreeMap<SegmentId, usize> {
        let segments = self.segments.iter().filter(|segment| !segment.is_leaving());
        let indexed = |segment: &Segment| {
            let blocks = segment.blocks().iter();
            blocks.take_while(|block| block.layout().is_some()).count()
        };
        let mut known: BTreeMap<SegmentId, usize> = segments
            .map(|segment| (segment.id, indexed(segment)))
            .collect();
        let mut again = true;
        while std::mem::take(&mut again) {
            for log in self.logs.iter() {
                let mut behind = false;
                for place in log.kept.iter() {
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

    /// The producers, without batches that are not yet durable.
    fn durable_producers(&self) -> Vec<(Key, Producer)> {
        #[cfg(feature = "sabotage")]
        if self
            .config
            .has_bug(crate::sabotage::Bug::ProducersForgotten)
        {
            return Vec::new();
        }
        let unsynced = self.segments.iter().flat_map(Segment::unsynced);
        let entries: Vec<_> = unsynced.chain(self.commits.waiting().iter()).collect();
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
    let blocks = segment.blocks().iter().map_while(|block| {
        let layout = block.layout()?;
        Some(BlockPart {
            start: block.start(),
            end: block.end(),
            entries: layout.entries,
            topics: layout.topics,
        })
    });
    SegmentPart {
        id: segment.id,
        class: segment.header.class,
        salt: segment.header.salt,
        sealed: segment.is_sealed(),
        durable: segment.durable(),
        blocks: blocks.collect(),
    }
}

fn log_part(log: &LogState, indexed: &BTreeSet<BlockId>, last: bool) -> LogPart {
    let places = log.kept.iter();
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
        last_time: log.clock.shown(),
        places: places.copied().collect(),
        copies: copies.collect(),
    }
}
