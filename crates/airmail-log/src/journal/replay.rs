//! Recovery of the batches: durable ones go into the tables; others are held in memory, to be
//! written once more. A log's batches need not come in order of number: it may have gone from one
//! class of segments to another, and come back.

use super::block::Block;
use super::cache::Cached;
use super::copies::only_copied;
use super::entry::{Entry, Recent};
use super::format::{DATA_START, Envelope, META_CLASS};
use super::id::{FileOffset, SegmentId};
use super::known::Known;
use super::meta::Meta;
use super::placing::Placing;
use super::recover::{OpenError, Opening};
use super::results::Outcome;
use super::scan::{Body, End, Seen, scan};
use super::segment::Segment;
use super::table::Location;
use crate::files::Files;
use airmail_model::{Batch, Checked, Sequence, bug};
use std::collections::BTreeMap;

impl Opening<'_> {
    /// Reads the segments of batches; gives the ends that are still to be told.
    pub(super) fn load_batches<F: Files>(
        &mut self,
        files: &mut F,
        lengths: &BTreeMap<SegmentId, FileOffset>,
        known: &mut Known,
    ) -> Result<Vec<Meta>, OpenError> {
        let mut uncertain = Vec::new();
        let mut seals = Vec::new();
        let ids = self.segments.ids();
        for id in ids {
            if known.is_stray(id) {
                continue;
            }
            let Some(mut segment) = self.segments.remove(id) else {
                bug!("segment {id} is gone while the journal opens");
                continue;
            };
            let length = lengths.get(&id).copied().unwrap_or_default();
            let class = segment.header.class;
            let (sealed, told) = (known.sealed.get(&id).copied(), known.durable.get(&id));
            let end = match (sealed, told) {
                (Some(end), _) => End::Sealed(end),
                (None, Some(&end)) => End::Durable(end),
                // That there is a later segment proves nothing: it may have been prepared, or hold
                // what an earlier start had begun to write once more.
                (None, None) => End::Durable(DATA_START),
            };
            if class != META_CLASS {
                known.find_salt(files, &mut segment)?;
                known.give_up(files, &segment, length)?;
                let (mut found, mut damage) = (Vec::new(), Vec::new());
                let take = |seen: Seen| found.push(seen);
                let from = segment.blocks().last().map_or(DATA_START, Block::end);
                let end = scan(files, &segment, length, from, end, &mut damage, take)?;
                damage.drain(..).for_each(|one| self.faults.found(one));
                segment.found_to(end);
                self.segments.insert(segment);
                for seen in found {
                    match seen.body {
                        Body::Batch(batch, damaged) if seen.certain => {
                            self.take_certain(id, seen.at, &seen.envelope, &batch, known);
                            if damaged.is_empty() {
                                self.take_copy(&seen.envelope, batch);
                            }
                        }
                        Body::Batch(batch, _) => uncertain.push((seen.envelope, batch)),
                        Body::Meta(_) => {}
                    }
                }
            } else {
                self.segments.insert(segment);
            }
            let of = self.segments.get(id);
            let durable = of.map_or(FileOffset::START, Segment::durable);
            if sealed.is_none() {
                seals.push(Meta::SegmentSealed {
                    segment: id,
                    end: durable,
                });
            }
        }
        uncertain.extend(only_copied(self.logs));
        uncertain.sort_by_key(|(envelope, _)| (envelope.slot, envelope.first));
        for (envelope, batch) in uncertain {
            self.take_uncertain(&envelope, batch, known);
        }
        Ok(seals)
    }

    /// Whether a batch carries a log on; makes the log if only the batch knows of it.
    fn carries_on(&mut self, envelope: &Envelope, batch: &Batch, known: &Known) -> bool {
        if known.is_deleted(self.logs, envelope.slot) {
            return false;
        }
        let log = self.log_at(envelope.slot, batch.log());
        let (first, next) = (envelope.sequence(), envelope.next());
        if log.id != batch.log() || first < Sequence::FIRST || log.has(first, next) {
            return false;
        }
        log.numbers.next = log.numbers.next.max(next);
        log.clock.found(envelope.append_time);
        if let Some(stamp) = batch.producer() {
            let outcome = Outcome {
                sequence: stamp.sequence,
                records: envelope.numbers,
                first: envelope.sequence(),
                time: envelope.append_time,
            };
            self.producers.replay(envelope.slot, stamp, outcome);
        }
        true
    }

    fn placing(&mut self) -> Placing<'_> {
        Placing {
            config: self.config,
            checkpoint: self.checkpointer.next(),
            logs: self.logs,
            segments: self.segments,
            indexer: self.indexer,
        }
    }

    fn take_certain(
        &mut self,
        segment: SegmentId,
        offset: FileOffset,
        envelope: &Envelope,
        batch: &Batch,
        known: &Known,
    ) {
        if !self.carries_on(envelope, batch, known) {
            return;
        }
        let location = Location {
            first: envelope.sequence(),
            numbers: envelope.numbers,
            offset,
            length: envelope.length,
            time: envelope.append_time,
        };
        self.placing()
            .place(segment, envelope.slot, location, batch);
        if let Some(log) = self.logs.get_mut(envelope.slot) {
            log.numbers.durable = log.numbers.next;
        }
    }

    fn take_copy(&mut self, envelope: &Envelope, batch: Checked<Batch>) {
        let log = self.logs.get_mut(envelope.slot);
        if let Some(log) = log.filter(|log| log.id == batch.log()) {
            log.take_copy(|| Recent {
                first: envelope.sequence(),
                numbers: envelope.numbers,
                time: envelope.append_time,
                batch,
            });
        }
    }

    fn take_uncertain(&mut self, envelope: &Envelope, batch: Checked<Batch>, known: &Known) {
        if !self.carries_on(envelope, &batch, known) {
            return;
        }
        let bytes = super::append::cost(&batch);
        let entry = Entry::again(envelope, batch);
        let slot = entry.slot;
        if let Some(log) = self.logs.get_mut(slot) {
            log.recent.push_back(Recent {
                first: entry.first,
                numbers: entry.numbers,
                time: entry.time,
                batch: entry.batch.clone(),
            });
        }
        let first = entry.first;
        self.logs.cached(Cached { slot, first, bytes });
        self.commits.add(entry);
    }
}
