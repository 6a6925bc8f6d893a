//! One partition of the model: records in order, a first offset, a clock.

use crate::brokers::{NewRecord, Produced, Record, Settings};
use crate::place::Offset;
use airmail_model::Mono;
use std::collections::{BTreeSet, VecDeque};

/// Records behind which older ones of the same key are left out, in a compacted topic: Kafka leaves the newest
/// segment alone.
const UNCOMPACTED: usize = 4;
/// Time for which a compaction leaves the removal of a key as a record, in milliseconds, as `delete.retention.ms` has it.
const REMOVAL_MS: i64 = 24 * 60 * 60 * 1000;

/// A leader that was, and does not know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldLeader {
    /// Until when it answers whoever still asks it.
    pub(super) until: Mono,
    pub(super) low: Offset,
    pub(super) high: Offset,
}

/// A partition.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelPartition {
    pub(super) records: VecDeque<Record>,
    /// Every record that was ever stored.
    pub(super) history: Vec<Record>,
    pub(super) old_leader: Option<OldLeader>,
    low: u64,
    high: u64,
    /// Distance of the leader's clock from true time, in milliseconds.
    pub(super) skew_ms: i64,
    /// Until when nothing is stored or answered.
    pub(super) stopped_until: Mono,
    /// When older records of a key are left out next, in a compacted topic.
    pub(super) compacted_at: Option<Mono>,
}

impl ModelPartition {
    pub(super) fn low(&self) -> Offset {
        Offset(self.low)
    }

    pub(super) fn high(&self) -> Offset {
        Offset(self.high)
    }

    pub(super) fn append(&mut self, record: NewRecord, clock_ms: i64) -> Produced {
        let produced = Produced {
            offset: Offset(self.high),
            appended_ms: clock_ms + self.skew_ms,
        };
        let record = Record {
            offset: produced.offset,
            appended_ms: produced.appended_ms,
            sent_ms: Some(record.sent_ms),
            key: record.key,
            value: record.value,
        };
        self.history.push(record.clone());
        self.records.push_back(record);
        self.high += 1;
        produced
    }

    /// Leaves an offset without a record.
    pub(super) fn skip(&mut self) {
        self.high += 1;
    }

    /// Leaves the leader as it is to whoever still asks it, while another one goes on.
    pub(super) fn isolate_leader(&mut self, until: Mono) {
        self.old_leader = Some(OldLeader {
            until,
            low: self.low(),
            high: self.high(),
        });
    }

    /// The first offset and the high watermark as a leader knows them: the present one, or one that was.
    pub(super) fn bounds(&mut self, now: Mono, is_old: bool) -> (Offset, Offset) {
        let old = self.old_leader.filter(|old| old.until > now);
        self.old_leader = old;
        match old.filter(|_| is_old) {
            Some(old) => (old.low, old.high),
            None => (self.low(), self.high()),
        }
    }

    /// The first record from an offset on.
    pub(super) fn from(&self, offset: Offset) -> Option<&Record> {
        let at = self.records.partition_point(|r| r.offset < offset);
        self.records.get(at)
    }

    /// The first record that was appended at a time or later.
    pub(super) fn at(&self, at_ms: i64) -> Option<Offset> {
        let found = self.records.iter().find(|r| r.appended_ms >= at_ms);
        found.map(|record| record.offset)
    }

    /// Removes what is before an offset.
    pub(super) fn remove_before(&mut self, before: Offset) {
        let before = before.0.min(self.high);
        self.low = self.low.max(before);
        while self.records.front().is_some_and(|r| r.offset.0 < self.low) {
            self.records.pop_front();
        }
    }

    /// Removes what is from an offset on: its leader never had it.
    pub(super) fn cut(&mut self, at: Offset) {
        self.high = self.high.min(at.0).max(self.low);
        let high = self.high;
        self.records.retain(|record| record.offset.0 < high);
    }

    /// Removes what the topic's settings say, at this time.
    pub(super) fn retain(&mut self, settings: &Settings, now: Mono, clock_ms: i64) {
        let number = |name: &str| settings.get(name).and_then(|v| v.parse::<i64>().ok());
        if is_compacted(settings) {
            if self.compacted_at.is_some_and(|at| at <= now) {
                self.compacted_at = None;
                self.compact(clock_ms);
            }
            return;
        }
        if let Some(keep_ms) = number("retention.ms").filter(|ms| *ms >= 0) {
            let is_old = |record: &Record| clock_ms - record.appended_ms > keep_ms;
            let old = self.records.iter().take_while(|r| is_old(r)).count();
            self.remove_first(old);
        }
        if let Some(keep) = number("retention.bytes").filter(|bytes| *bytes >= 0) {
            let keep = keep.unsigned_abs();
            let mut all: u64 = self.records.iter().map(Record::bytes).sum();
            let mut count = 0;
            for record in &self.records {
                if all <= keep {
                    break;
                }
                all -= record.bytes();
                count += 1;
            }
            self.remove_first(count);
        }
    }

    fn remove_first(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let next = self.records.get(count).map(|record| record.offset);
        self.remove_before(next.unwrap_or(self.high()));
    }

    /// Leaves out records of which there is a later one with their key, and removals that are old.
    pub(super) fn compact(&mut self, clock_ms: i64) {
        let head = self.records.len().saturating_sub(UNCOMPACTED);
        let mut later = BTreeSet::new();
        let mut is_kept = VecDeque::with_capacity(self.records.len());
        for (at, record) in self.records.iter().enumerate().rev() {
            let is_last = later.insert(record.key.clone());
            let is_over = record.value.is_none() && clock_ms - record.appended_ms > REMOVAL_MS;
            is_kept.push_front(at >= head || is_last && !is_over);
        }
        let mut is_kept = is_kept.into_iter();
        self.records.retain(|_| is_kept.next().unwrap_or(true));
    }
}

/// Whether a topic is compacted, by its settings.
pub(super) fn is_compacted(settings: &Settings) -> bool {
    let policy = settings.get("cleanup.policy");
    policy.is_some_and(|policy| policy == "compact")
}
