//! Opening, the batches: what is durable goes into the tables; what may not be is held in memory,
//! to be written once more. A log's batches need not come in order of number: it may have gone from
//! one class of segments to another, and come back.

use super::Journal;
use super::format::{Envelope, HEADER_BYTES, META_CLASS};
use super::known::Known;
use super::log::{Entry, Recent};
use super::meta::Meta;
use super::recover::OpenError;
use super::results::Outcome;
use super::scan::{Body, End, Seen, scan};
use super::table::Location;
use crate::files::Files;
use airmail_model::{Batch, Checked};
use std::collections::BTreeMap;

impl Journal {
    /// Reads the segments of batches; gives the ends that are still to be told.
    pub(super) fn load_batches<F: Files>(
        &mut self,
        files: &mut F,
        lengths: &BTreeMap<u64, u64>,
        known: &mut Known,
    ) -> Result<Vec<Meta>, OpenError> {
        let mut uncertain = Vec::new();
        let mut seals = Vec::new();
        let ids: Vec<u64> = self.segments.keys().copied().collect();
        for id in ids {
            if known.is_stray(id) {
                continue;
            }
            let Some(mut segment) = self.segments.remove(&id) else {
                continue;
            };
            let length = lengths.get(&id).copied().unwrap_or(0);
            let class = segment.header.class;
            let (sealed, told) = (known.sealed.get(&id).copied(), known.durable.get(&id));
            let end = match (sealed, told) {
                (Some(end), _) => End::Sealed(end),
                (None, Some(&end)) => End::Durable(end),
                // That there is a later segment proves nothing: it may have been prepared, or hold
                // what an earlier start had begun to write once more.
                (None, None) => End::Durable(HEADER_BYTES as u64),
            };
            if class != META_CLASS {
                known.find_salt(files, &mut segment)?;
                known.give_up(files, &segment, length)?;
                let (mut found, mut damage) = (Vec::new(), Vec::new());
                let take = |seen: Seen| found.push(seen);
                let from = segment
                    .blocks
                    .last()
                    .map_or(HEADER_BYTES as u64, |block| block.end);
                segment.durable = scan(files, &segment, length, from, end, &mut damage, take)?;
                damage.drain(..).for_each(|one| self.damage.found(one));
                segment.written = segment.durable;
                self.segments.insert(id, segment);
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
                self.segments.insert(id, segment);
            }
            let durable = self.segments.get(&id).map_or(0, |segment| segment.durable);
            if sealed.is_none() {
                seals.push(Meta::SegmentSealed {
                    segment: id,
                    end: durable,
                });
            }
        }
        uncertain.extend(self.only_copied());
        uncertain.sort_by_key(|(envelope, _)| (envelope.slot, envelope.first));
        for (envelope, batch) in uncertain {
            self.take_uncertain(&envelope, batch, known);
        }
        Ok(seals)
    }

    /// Whether a batch carries a log on; makes the log if only the batch knows of it.
    fn carries_on(&mut self, envelope: &Envelope, batch: &Batch, known: &Known) -> bool {
        if known.is_deleted(self, envelope.slot) {
            return false;
        }
        let log = self.log_at(envelope.slot, batch.log());
        let next = envelope.first + u64::from(envelope.numbers);
        if log.id != batch.log() || envelope.first == 0 || log.has(envelope.first, next) {
            return false;
        }
        log.next = log.next.max(next);
        log.last_time = log.last_time.max(envelope.append_time);
        if let Some(stamp) = batch.producer() {
            let outcome = Outcome {
                sequence: stamp.sequence.0,
                records: envelope.numbers,
                first: envelope.first,
                time: envelope.append_time,
            };
            self.producers.replay(envelope.slot, stamp, outcome);
        }
        true
    }

    fn take_certain(
        &mut self,
        segment: u64,
        offset: u64,
        envelope: &Envelope,
        batch: &Batch,
        known: &Known,
    ) {
        if !self.carries_on(envelope, batch, known) {
            return;
        }
        let location = Location {
            first: envelope.first,
            numbers: envelope.numbers,
            offset,
            length: envelope.length,
            time: envelope.append_time,
        };
        self.index_batch(segment, envelope.slot, location, batch);
        if let Some(log) = self.logs.get_mut(&envelope.slot) {
            log.durable = log.next;
        }
    }

    fn take_copy(&mut self, envelope: &Envelope, batch: Checked<Batch>) {
        let log = self.logs.get_mut(&envelope.slot);
        if let Some(log) = log.filter(|log| log.id == batch.log()) {
            log.take_copy(|| Recent {
                first: envelope.first,
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
        if let Some(log) = self.logs.get_mut(&slot) {
            log.recent.push_back(Recent {
                first: entry.first,
                numbers: entry.numbers,
                time: entry.time,
                batch: entry.batch.clone(),
            });
        }
        self.cache_order.push_back((slot, entry.first, bytes));
        self.cache_bytes += bytes;
        self.pending_bytes += bytes;
        self.pending.push_back(entry);
    }
}
