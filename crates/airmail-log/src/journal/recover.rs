//! Recovery: reads the files when the journal opens, and finds the batches that may not be durable.
//!
//! Commands first, from the newest segment of commands to the oldest (a newer one says where an
//! older one ends), applied in the order of their numbers; then the batches, segment by segment.
//! Before a segment's known durable end, unreadable bytes are damage: they are skipped, and readers
//! are told. Behind it the first unsound byte is the end, and sound batches may not be durable:
//! they are held in memory and written once more, into a new segment, before anyone sees them.
//!
//! No file is ever written again that an earlier run has written.

use super::checkpointer::Checkpointer;
use super::commands::Commands;
use super::commits::Commits;
use super::ends_file::EndsFile;
use super::faults::Faults;
use super::format::{
    ENVELOPE_BYTES, Envelope, HEADER_BYTES, HeaderError, Kind, META_CLASS, SegmentHeader,
};
use super::found_commands::FoundCommands;
use super::id::{ClassId, FileOffset, SegmentId, Slot};
use super::indexing::Indexer;
use super::known::Known;
use super::log::LogState;
use super::logs::Logs;
use super::meta::Meta;
use super::names::{number_of, segment_name, segment_of};
use super::producers::Producers;
use super::segment::Segment;
use super::segment_set::SegmentSet;
use super::segments::is_own_salt;
use super::{Journal, JournalConfig};
use crate::contract::LogSpec;
use crate::files::{FileName, Files};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_model::{LogId, NodeId, Now, Sequence, bug};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The reason why a journal does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file cannot be read.
    #[error("cannot read {file}: {source}")]
    Io {
        /// Its name.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A file belongs to another cluster, node or shard.
    #[error(
        "{file} belongs to cluster {cluster:016x}, node {node:016x}, shard {shard}: not to this one"
    )]
    Foreign {
        /// Its name.
        file: String,
        /// Its cluster.
        cluster: u64,
        /// Its node.
        node: NodeId,
        /// Its shard.
        shard: u32,
    },
    /// A file was written by a later version.
    #[error(
        "{file} was written by a later version of airmail, or with features unknown to this one"
    )]
    Newer {
        /// Its name.
        file: String,
    },
}

/// Names the file of an I/O error.
pub(super) fn failed(file: &str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::Io {
        file: file.to_owned(),
        source,
    }
}

/// Opens the journal that is in `files`.
pub(super) fn open<F: Files>(
    files: &mut F,
    config: JournalConfig,
    now: Now,
) -> Result<Journal, OpenError> {
    let (mut journal, known) = open_and_know(files, config, now)?;
    journal.find_missing(&known);
    Ok(journal)
}

/// Opens a journal like [`open`], and gives the facts known before the search for lost segments.
pub(super) fn open_and_know<F: Files>(
    files: &mut F,
    config: JournalConfig,
    now: Now,
) -> Result<(Journal, Known), OpenError> {
    let mut journal = Journal::new(config, now);
    let mut list = files.list().map_err(failed("the directory"))?;
    list.sort();
    let mut opening = journal.opening();
    let lengths = opening.take_names(&list);
    let mut known = opening.load_checkpoint(files, &list)?;
    opening.load_headers(files, &lengths, &mut known)?;
    opening.load_ends(files, &mut known)?;
    opening.take_checkpoint(&mut known);
    let metas = opening.load_metas(files, &lengths, &mut known)?;
    let mut again = if opening.config.new_incarnations {
        Vec::new()
    } else {
        last_of_each(&metas)
    };
    for meta in metas {
        opening.apply(meta, &mut known);
    }
    again.extend(opening.load_batches(files, &lengths, &mut known)?);
    journal.load_clock(files)?;
    journal.drop_strays(&list, &known);
    journal.opening().finish(&mut known, again);
    Ok((journal, known))
}

/// Commands behind the checkpoint may be in the system's cache alone: they are given again before
/// anything that rests on them is told. Given twice they say the same as once; of those that are
/// alike the last counts, so that journals that are killed while they open do not gather them. What
/// first opened a log stays where it is, too: what was given behind it is for a log that is there.
fn last_of_each(metas: &[Meta]) -> Vec<Meta> {
    let mut opened = BTreeSet::new();
    let opens = |meta: &Meta| match meta {
        Meta::Open { slot, .. } => opened.insert(*slot),
        _ => false,
    };
    let first: Vec<bool> = metas.iter().map(opens).collect();
    let mut seen = BTreeSet::new();
    let all = metas.iter().zip(first).rev();
    let last = all.filter(|(meta, first)| seen.insert(meta.encode()) || *first);
    let mut last: Vec<Meta> = last.map(|(meta, _)| meta.clone()).collect();
    last.reverse();
    last
}

/// The parts that recovery may change: all that have something from the files. It leaves alone the
/// parts that only a running journal uses: calls, readers, effects, and the time. As recovery comes
/// before all else, nothing else can rely on what it changes.
pub(super) struct Opening<'j> {
    pub(super) config: &'j JournalConfig,
    pub(super) logs: &'j mut Logs,
    pub(super) producers: &'j mut Producers,
    pub(super) segments: &'j mut SegmentSet,
    /// Batches that may not be durable wait here to be written once more.
    pub(super) commits: &'j mut Commits,
    /// The commands that are given again are held back here.
    pub(super) commands: &'j mut Commands,
    /// The blocks that were complete and have no index get one.
    pub(super) indexer: &'j mut Indexer,
    pub(super) checkpointer: &'j mut Checkpointer,
    pub(super) ends: &'j mut EndsFile,
    /// The damage found.
    pub(super) faults: &'j mut Faults,
}

impl Journal {
    fn opening(&mut self) -> Opening<'_> {
        Opening {
            config: &self.config,
            logs: &mut self.logs,
            producers: &mut self.producers,
            segments: &mut self.segments,
            commits: &mut self.commits,
            commands: &mut self.commands,
            indexer: &mut self.indexer,
            checkpointer: &mut self.checkpointer,
            ends: &mut self.ends,
            faults: &mut self.faults,
        }
    }
}

impl Opening<'_> {
    /// Takes up the segments that there are; gives their files' lengths.
    fn take_names(&mut self, list: &[(FileName, u64)]) -> BTreeMap<SegmentId, FileOffset> {
        let mut lengths = BTreeMap::new();
        for (name, length) in list {
            let end = FileOffset(*length);
            if let Some(id) = segment_of(name) {
                lengths.insert(id, end);
            } else if let Some(id) = number_of(name, "free-") {
                self.segments.add_free(SegmentId(id), end);
            }
            for prefix in ["seg-", "free-"] {
                let id = SegmentId(number_of(name, prefix).unwrap_or(0));
                self.segments.go_on_at(id.next());
            }
        }
        lengths
    }

    fn load_headers<F: Files>(
        &mut self,
        files: &mut F,
        lengths: &BTreeMap<SegmentId, FileOffset>,
        known: &mut Known,
    ) -> Result<(), OpenError> {
        for (&id, &length) in lengths {
            let name = segment_name(id);
            let want = (HEADER_BYTES + ENVELOPE_BYTES) as u32;
            let bytes = files.load(&name, 0, want).map_err(failed(&name))?;
            let header = match SegmentHeader::decode(&bytes) {
                Ok(header) if self.is_foreign(&header) => {
                    let SegmentHeader {
                        cluster,
                        node,
                        shard,
                        ..
                    } = header;
                    return Err(OpenError::Foreign {
                        file: name.to_string(),
                        cluster,
                        node,
                        shard,
                    });
                }
                Ok(header) if header.segment == id => header,
                Err(HeaderError::Newer) => {
                    return Err(OpenError::Newer {
                        file: name.to_string(),
                    });
                }
                // Never written, or damaged: then the first record knows the salt, or the last.
                _ => {
                    known.headless.push(id);
                    self.guessed_header(id, known, bytes.get(HEADER_BYTES..).unwrap_or(&[]))
                }
            };
            self.segments.insert(Segment::found(header, length));
        }
        Ok(())
    }

    fn is_foreign(&self, header: &SegmentHeader) -> bool {
        (header.cluster, header.node, header.shard)
            != (self.config.cluster, self.config.node, self.config.shard)
    }

    fn guessed_header(&self, id: SegmentId, known: &Known, first: &[u8]) -> SegmentHeader {
        let envelope = Envelope::decode(first).filter(|found| is_own_salt(found.salt, id));
        let meta = envelope.is_some_and(|envelope| envelope.kind == Kind::Meta);
        let told = known
            .checkpoint
            .segments
            .iter()
            .find(|segment| segment.id == id);
        SegmentHeader {
            class: told.map_or(if meta { META_CLASS } else { ClassId(0) }, |told| {
                told.class
            }),
            incompatible: 0,
            compatible: 0,
            shard: self.config.shard,
            cluster: self.config.cluster,
            node: self.config.node,
            segment: id,
            salt: told.map_or(envelope.map_or(0, |sound| sound.salt), |told| told.salt),
        }
    }

    /// All commands, in the order in which they were given; and the ends of segments that they tell.
    fn load_metas<F: Files>(
        &mut self,
        files: &mut F,
        lengths: &BTreeMap<SegmentId, FileOffset>,
        known: &mut Known,
    ) -> Result<Vec<Meta>, OpenError> {
        let sealed = &mut known.sealed;
        let mut next = SegmentId::FIRST;
        let mut all = BTreeMap::new();
        for segment in self.segments.iter_mut().rev() {
            let id = segment.id;
            if segment.header.class != META_CLASS {
                continue;
            }
            let length = lengths.get(&id).copied().unwrap_or_default();
            let durable = known.durable.get(&id).copied().unwrap_or_default();
            let end = sealed.get(&id).copied();
            let found = FoundCommands::read(files, segment, length, end, durable)?;
            segment.found_to(found.end);
            let behind = found.counts.last().map_or(0, |count| count + 1);
            segment.has_commands_to(behind);
            self.commands.go_on_at(behind);
            for one in found.damage {
                self.faults.found(one);
            }
            known.first_meta = Some(id);
            known.counts.extend(found.counts);
            for (count, meta) in found.commands {
                if let Meta::SegmentSealed { segment, end } = meta {
                    sealed.entry(segment).or_insert(end);
                    // Its file may be gone; a new segment of this number would be taken to end here.
                    next = next.max(segment.next());
                }
                if count >= known.checkpoint.meta_count {
                    all.insert((id, count), meta);
                }
            }
        }
        self.segments.go_on_at(next);
        Ok(all.into_values().collect())
    }

    /// Carries out a command.
    fn apply(&mut self, meta: Meta, known: &mut Known) {
        match meta {
            Meta::Open {
                slot,
                log,
                spec,
                incarnation,
            } => {
                self.logs.go_on_at(slot.next());
                if known.is_deleted(self.logs, slot) {
                    return;
                }
                let state = self.log_at(slot, log);
                state.life.spec = spec;
                state.life.spec_told = true;
                state.life.incarnation = incarnation;
                state.life.incarnation_asked = incarnation;
            }
            Meta::Trim { slot, first } => {
                if let Some(log) = self.logs.get_mut(slot) {
                    log.numbers.first = log.numbers.first.max(first);
                    log.numbers.first_durable = log.numbers.first;
                }
            }
            Meta::Seal { slot, next } => {
                if let Some(log) = self.logs.get_mut(slot) {
                    log.life.sealed = Some(next);
                    log.life.seal_told = true;
                }
            }
            #[cfg(feature = "sabotage")]
            Meta::Delete { .. } if self.config.has_bug(Bug::DeleteForgotten) => {}
            Meta::Delete { slot, tombstone } => {
                known.deleted.insert(slot);
                if let Some(tombstone) = tombstone {
                    self.logs.bury(tombstone);
                }
                self.forget_log(slot);
            }
            Meta::Bury { tombstone } => self.logs.bury(tombstone),
            Meta::Reserve { slot, until } => {
                if let Some(log) = self.logs.get_mut(slot) {
                    log.numbers.reserved = log.numbers.reserved.max(until);
                }
            }
            Meta::Copy { slot, .. } | Meta::TakenBack { slot, .. } => {
                if !known.is_deleted(self.logs, slot) {
                    self.log_at(slot, LogId::SYSTEM).copies.apply(&meta);
                }
            }
            Meta::SegmentSealed { .. } => {}
        }
    }

    /// The log of a slot, made if need be.
    pub(super) fn log_at(&mut self, slot: Slot, id: LogId) -> &mut LogState {
        let incarnation = self.config.incarnation(slot);
        let spec = LogSpec::default();
        let make = || LogState::new(id, slot, spec, incarnation);
        self.logs.at(slot, id, make)
    }

    /// Sets where each log goes on, and gives the commands that record the findings when they are
    /// sure.
    fn finish(&mut self, known: &mut Known, seals: Vec<Meta>) {
        let new_lives = self.config.new_incarnations;
        let last = self.segments.iter().filter(|of| !of.is_leaving());
        let last = last.filter_map(Segment::last_block);
        for block in last.collect::<Vec<_>>() {
            self.indexer.complete(block, self.segments);
        }
        let slots: Vec<Slot> = self.logs.iter().map(|log| log.slot).collect();
        for slot in slots {
            let incarnation = self.config.incarnation(slot);
            let Some(log) = self.logs.get_mut(slot) else {
                bug!("slot {slot} has no log");
                continue;
            };
            let told = known.next.get(&log.slot).copied();
            let told = told.unwrap_or(Sequence::FIRST);
            log.numbers.next = log.numbers.next.max(told).max(log.numbers.first);
            let told = log.numbers.next;
            known.next.insert(log.slot, told);
            if new_lives || self.config.renewed {
                log.life.incarnation = incarnation;
                log.life.incarnation_asked = incarnation;
                // So that it is made durable before anybody is told of the log.
                log.life.spec_told &= new_lives;
            }
            if new_lives {
                log.numbers.reserved = Sequence::MAX;
                log.numbers.reserving = Sequence::MAX;
            } else {
                #[cfg(feature = "sabotage")]
                if self.config.bug == Some(Bug::NumbersReused) {
                    log.numbers.reserved = log.numbers.next;
                }
                log.numbers.next = log.numbers.next.max(log.numbers.reserved);
                // Behind the checkpoint it may be in the system's cache alone.
                log.numbers.reserved = log.numbers.next.min(told.max(log.numbers.reserved_surely));
                log.numbers.reserving = log.numbers.next;
            }
        }
        if !new_lives {
            self.checkpointer.want();
        }
        self.commands.hold_back(seals);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::Incarnation;

    #[test]
    fn what_is_given_again_is_for_a_log_that_is_there() {
        let (slot, until) = (Slot(3), Sequence(481));
        let open = Meta::Open {
            slot,
            log: LogId::SYSTEM,
            spec: LogSpec::default(),
            incarnation: Incarnation(1),
        };
        let reserve = Meta::Reserve { slot, until };
        let mut metas = vec![open.clone(), reserve.clone(), open.clone()];
        assert_eq!(last_of_each(&metas), metas);
        metas.extend(metas.clone());
        assert_eq!(last_of_each(&metas), [open.clone(), reserve, open]);
    }
}
