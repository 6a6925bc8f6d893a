//! The truth about logs on Kafka: what every reader has to be given, by what the brokers were ever given.
//!
//! It goes by the rule alone, over whole partitions, also what retention has removed: a record is left out if it is
//! stale or not above its producer's last that was not, and a producer is forgotten a day after. So a node that gives
//! what is left out here, or tells as unused what is not, has another verdict than whoever began at the beginning.
//!
//! A copy of what retention has removed is recognised by statements alone, which nodes write in time where they run and
//! brokers answer. Where nodes have stood still or been killed, or brokers been slow or dead, a log with such a copy
//! counts as harmed: here records are kept for seconds.
//!
//! A log may be harmed from outside: cut by an unclean election, or its topic deleted, perhaps made again. From then on
//! nothing is told about it here but what was there before.

use crate::invariants::{Checked, Violation};
use crate::ledger::Harm;
use airmail_log::{GapWhy, Stored};
use airmail_log_kafka::brokers::{Partition, Record, Topic};
use airmail_log_kafka::model::ModelCluster;
use airmail_log_kafka::place::{Offset, place_of};
use airmail_log_kafka::producers::{FORGET_MS, STALE_MS};
use airmail_model::{
    AppendTime, Batch, Checked as Whole, Extent, LogId, LogIndex, ProducerEpoch, ProducerId,
    Sequence,
};
use std::collections::BTreeMap;

/// The last record of a producer that was not left out.
#[derive(Clone, Copy, Debug)]
struct Last {
    epoch: ProducerEpoch,
    sequence: u64,
    at: Offset,
    /// The log's highest append time there.
    at_ms: i64,
}

/// A log as it has to be read.
#[derive(Debug)]
struct TrueLog {
    partition: Partition,
    /// Records of the partition that were looked at.
    read: usize,
    latest_ms: i64,
    producers: BTreeMap<ProducerId, Last>,
    given: Vec<Stored>,
    /// Number of what is given of each record, by its first number.
    places: BTreeMap<Sequence, usize>,
    /// Offset of each copy, and of the record by which it is one.
    copies: Vec<(Offset, Offset)>,
    harm: Option<Harm>,
}

/// Counts of what the brokers were given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    pub(super) copies: u64,
    pub(super) stragglers: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Truth {
    cluster: ModelCluster,
    logs: BTreeMap<LogId, TrueLog>,
    /// Nodes or brokers have been slow, or not there: statements may be late.
    pub(super) is_late: bool,
    /// Logs with copies of what is gone, which a node need not recognise.
    doubted: Vec<LogId>,
    /// Topics that were deleted by hand.
    deleted: Vec<Topic>,
    pub(super) left_out: Left,
}

impl Truth {
    pub(super) fn new(cluster: ModelCluster) -> Truth {
        Truth {
            cluster,
            logs: BTreeMap::new(),
            is_late: false,
            doubted: Vec::new(),
            deleted: Vec::new(),
            left_out: Left::default(),
        }
    }

    /// Parts of a log that are given, from the one with this index on, and the index to go on with.
    pub(super) fn given(&mut self, log: LogId, from: usize) -> (&[Stored], usize) {
        self.refresh(log);
        let given = self.logs.get(&log).map(|log| log.given.as_slice());
        let given = given.unwrap_or_default();
        (given.get(from..).unwrap_or_default(), given.len())
    }

    /// Somebody has deleted a topic by hand.
    pub(super) fn deleted(&mut self, topic: &Topic) {
        self.deleted.push(topic.clone());
    }

    /// Checks what nobody asked for.
    ///
    /// # Errors
    /// A topic that was deleted by hand is there again.
    pub(super) fn check_topics(&self) -> Checked {
        let is_there = |topic: &&Topic| self.cluster.partitions(topic) > 0;
        match self.deleted.iter().find(is_there) {
            None => Ok(()),
            Some(topic) => {
                let detail = format!("{topic} was deleted, and is there");
                Err(Violation::new("G4 no topic is made again", detail))
            }
        }
    }

    /// Logs of which nodes need no longer have the same verdict, once.
    pub(super) fn doubted(&mut self) -> Vec<LogId> {
        std::mem::take(&mut self.doubted)
    }

    /// Logs with something in them that were not harmed, but for log 0.
    pub(super) fn sound(&mut self) -> Vec<LogId> {
        self.discover();
        let logs = self.logs.iter();
        let sound = logs
            .filter(|(id, log)| **id != LogId::SYSTEM && log.harm.is_none() && self.is_there(log));
        sound.map(|(id, _)| *id).collect()
    }

    fn is_there(&self, log: &TrueLog) -> bool {
        self.cluster.partitions(&log.partition.topic) > 0
    }

    /// The partition of a log.
    pub(super) fn partition(&self, log: LogId) -> Option<Partition> {
        self.logs.get(&log).map(|log| log.partition.clone())
    }

    /// The logs of a log's topic are about to be harmed. Which they are.
    pub(super) fn harm(&mut self, log: LogId, harm: Harm) -> Vec<LogId> {
        self.discover();
        let Some(partition) = self.partition(log) else {
            // Input: a log that nobody has written to.
            return Vec::new();
        };
        let all = match harm {
            Harm::Cut => partition.number.0..partition.number.0 + 1,
            Harm::Gone => 0..self.cluster.partitions(&partition.topic),
        };
        let mut harmed = Vec::new();
        for number in all {
            // Logs of a topic follow one another, as its partitions do.
            let index = log.index.0 + number - partition.number.0;
            let id = LogId {
                index: LogIndex(index),
                ..log
            };
            let partition = Partition::new(&partition.topic, number);
            self.refresh(id);
            let of = self.logs.entry(id);
            of.or_insert_with(|| TrueLog::new(partition)).harm = Some(harm);
            harmed.push(id);
        }
        harmed
    }

    /// A node gives a batch to a reader.
    ///
    /// # Errors
    /// It is to be left out, or is none of the log's.
    pub(super) fn check_batch(&mut self, log: LogId, stored: &Stored, who: &str) -> Checked {
        self.refresh(log);
        let known = self.logs.get(&log);
        if known.is_some_and(|known| known.harm == Some(Harm::Cut)) {
            return Ok(());
        }
        let tile = known.and_then(|known| {
            let at = known.places.get(&stored.base)?;
            known.given.get(*at)
        });
        let is_so = tile.is_some_and(|tile| {
            tile.extent == stored.extent && tile.batch.bytes() == stored.batch.bytes()
        });
        if is_so {
            return Ok(());
        }
        let low = known.map(|known| self.cluster.low(&known.partition));
        let detail = format!(
            "{who} was given {} to {}; of the record at {} everybody is to be given {:?}; kept from offset {low:?}",
            stored.extent.first,
            stored.extent.last,
            stored.base,
            tile.map(|tile| tile.extent)
        );
        Err(Violation::new("G3 every node leaves out the same", detail))
    }

    /// A node tells a reader of a gap.
    ///
    /// # Errors
    /// There is something in it that is to be given, or it was not removed.
    pub(super) fn check_gap(
        &mut self,
        log: LogId,
        (extent, why): (Extent, GapWhy),
        who: &str,
    ) -> Checked {
        self.refresh(log);
        let Some(known) = self.logs.get(&log).filter(|known| known.harm.is_none()) else {
            // Input: a log that nobody has written to, or that was harmed.
            return Ok(());
        };
        let (is_so, fact) = match why {
            GapWhy::Unused => {
                let first = place_of(extent.first).0.number();
                let mut within = known.places.range(first..=extent.last);
                let found = within.find_map(|(_, at)| {
                    let tile = known.given.get(*at)?;
                    let is_in =
                        tile.extent.first <= extent.last && extent.first <= tile.extent.last;
                    is_in.then_some(tile.extent)
                });
                (found.is_none(), format!("{found:?} is given to others"))
            }
            GapWhy::Retention => {
                let low = self.cluster.low(&known.partition);
                (
                    extent.last < low.number(),
                    format!("all from {low} on is kept"),
                )
            }
            GapWhy::Loss => (false, "nothing was lost".to_owned()),
        };
        if is_so || !self.is_there(known) {
            return Ok(());
        }
        let Extent { first, last } = extent;
        let detail = format!("{who} was told {why:?} for {first} to {last}; {fact}");
        Err(Violation::new("G2 a gap's reason is so", detail))
    }

    /// A node says that it cannot serve a log.
    ///
    /// # Errors
    /// Nothing has happened to the log.
    pub(super) fn check_failure(&mut self, log: LogId, why: &str, who: &str) -> Checked {
        self.refresh(log);
        let is_sound = |known: &TrueLog| known.harm.is_none() && self.is_there(known);
        if !self.logs.get(&log).is_some_and(is_sound) {
            return Ok(());
        }
        let detail = format!("{who} does not serve {log}: {why}");
        Err(Violation::new("G8 a sound log is served", detail))
    }

    /// Takes in what a log was given since.
    fn refresh(&mut self, id: LogId) {
        if !self.logs.contains_key(&id) {
            self.discover();
        }
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that nobody has written to.
            return;
        };
        let low = self.cluster.low(&log.partition);
        if log.harm == Some(Harm::Gone) && low > Offset(1) {
            // Where retention has taken the first record of a topic that was made again, nothing tells it from the other.
            log.harm = Some(Harm::Cut);
            self.doubted.push(id);
        }
        if log.harm.is_some() {
            return;
        }
        for record in self.cluster.history(&log.partition, log.read) {
            log.read += 1;
            log.take(id, &record, &mut self.left_out);
        }
        log.copies.retain(|(at, _)| *at >= low);
        if self.is_late && log.copies.iter().any(|(_, of)| *of < low) {
            log.harm = Some(Harm::Cut);
            self.doubted.push(id);
        }
    }

    /// Looks for logs that were not written to before.
    fn discover(&mut self) {
        for topic in self.cluster.topics() {
            for number in 0..self.cluster.partitions(&topic) {
                let partition = Partition::new(&topic, number);
                let mut known = self.logs.values();
                if known.any(|log| log.partition == partition) {
                    continue;
                }
                let history = self.cluster.history(&partition, 0);
                let Some((batch, _)) = history.iter().find_map(batch_of) else {
                    // Input: a topic of rows, or a log that nobody has written to.
                    continue;
                };
                let log = self.logs.entry(batch.log());
                log.or_insert_with(|| TrueLog::new(partition));
            }
        }
    }
}

/// The batch of a record, and when it was handed over.
fn batch_of(record: &Record) -> Option<(Whole<Batch>, i64)> {
    let value = record.value.clone().filter(|_| record.key.is_none())?;
    let (batch, _) = Batch::check_stored(value).ok()?;
    Some((batch, record.sent_ms?))
}

impl TrueLog {
    fn new(partition: Partition) -> TrueLog {
        TrueLog {
            partition,
            read: 0,
            latest_ms: 0,
            producers: BTreeMap::new(),
            given: Vec::new(),
            places: BTreeMap::new(),
            copies: Vec::new(),
            harm: None,
        }
    }

    fn take(&mut self, id: LogId, record: &Record, left: &mut Left) {
        let Some((batch, sent_ms)) = batch_of(record).filter(|(batch, _)| batch.log() == id) else {
            // Input: the birth record.
            return;
        };
        self.latest_ms = self.latest_ms.max(record.appended_ms);
        if record.appended_ms - sent_ms > STALE_MS {
            left.stragglers += 1;
            return;
        }
        let left_out = self.verdict(&batch, record.offset);
        left.copies += u64::from(left_out > 0);
        let base = record.offset.number();
        let kept = batch.slice(|index, _| u32::from(index) >= left_out);
        let Some(kept) = kept else {
            // Input: a copy.
            return;
        };
        let indexes = batch.heads().map(|(index, _)| index);
        let first = indexes
            .into_iter()
            .find(|index| u32::from(*index) >= left_out);
        let first = if left_out == 0 { 0 } else { first.unwrap_or(0) };
        let kept = if left_out == 0 {
            batch
        } else {
            kept.to_batch()
        };
        let last = kept.numbers() - 1;
        self.places.insert(base, self.given.len());
        self.given.push(Stored {
            base,
            extent: Extent {
                first: base.plus(first.into()),
                last: base.plus(last.into()),
            },
            appended: AppendTime(record.appended_ms * 1000),
            batch: kept,
        });
    }

    /// Number of the first messages of the next batch that are left out.
    fn verdict(&mut self, batch: &Batch, at: Offset) -> u32 {
        let Some(stamp) = batch.producer() else {
            // Input: a batch of nobody who might send it again.
            return 0;
        };
        let messages = batch.numbers();
        let first = stamp.sequence.0;
        let latest_ms = self.latest_ms;
        let known = self.producers.get(&stamp.id);
        let left_out = match known.filter(|last| latest_ms - last.at_ms <= FORGET_MS) {
            Some(last) if stamp.epoch < last.epoch => u64::from(messages),
            Some(last) if stamp.epoch == last.epoch => (last.sequence + 1).saturating_sub(first),
            _ => 0,
        };
        if let Some(last) = known.filter(|_| left_out > 0) {
            self.copies.push((at, last.at));
        }
        let left_out = u32::try_from(left_out).map_or(messages, |n| n.min(messages));
        if left_out < messages {
            let last = Last {
                epoch: stamp.epoch,
                sequence: first + u64::from(messages) - 1,
                at,
                at_ms: latest_ms,
            };
            self.producers.insert(stamp.id, last);
        }
        left_out
    }
}
