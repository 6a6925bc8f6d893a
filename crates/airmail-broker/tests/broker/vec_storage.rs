//! A log storage of vectors: simple enough to be seen right, with handles for what goes wrong.

mod calls;

use airmail_log::{
    AppendClock, Bounds, Call, Capabilities, ClockState, Completion, Dedup, GapWhy, LogSpec,
    LogStorage, Numbering, ReaderId, Refusal, Scope, ScopeFilter, Stored, Tag, TopicPage,
    TopicSeen, Trouble,
};
use airmail_model::{
    AppendTime, Batch, Checked, Durability, Extent, Holder, Incarnation, LogId, Mono, NamespaceId,
    Now, Sequence, StorageName,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
enum Entry {
    Batch(Stored),
    Gap(Extent, GapWhy),
}

impl Entry {
    fn extent(&self) -> Extent {
        match self {
            Entry::Batch(stored) => stored.extent,
            Entry::Gap(extent, _) => *extent,
        }
    }
}

#[derive(Debug)]
struct Log {
    entries: Vec<Entry>,
    first: Sequence,
    next: Sequence,
    incarnation: Incarnation,
    spec: LogSpec,
}

impl Log {
    /// Goes on at the next multiple of 4,096.
    fn leave_hole(&mut self) {
        let next = Sequence((self.next.0 / 4096 + 1) * 4096);
        let hole = Extent {
            first: self.next,
            last: next.before(),
        };
        self.entries.push(Entry::Gap(hole, GapWhy::Unused));
        self.next = next;
    }
}

#[derive(Debug)]
struct Reader {
    log: LogId,
    next: Sequence,
    scope: Scope,
    credit: i64,
    told_tail: Option<Sequence>,
    /// Nobody has said yet what is wanted of it.
    unwanted: bool,
}

/// The storage, and its handles.
#[derive(Debug)]
pub(crate) struct VecStorage {
    logs: BTreeMap<LogId, Log>,
    /// Places in log 0 at which logs were deleted.
    pub(crate) deleted: BTreeMap<LogId, Sequence>,
    readers: BTreeMap<ReaderId, Reader>,
    done: Vec<Completion>,
    waiting: Vec<(Tag, LogId, Checked<Batch>)>,
    /// Appends are not answered, nor readable, while this holds.
    pub(crate) stalled: bool,
    /// Readers of log 0 are given nothing while this holds.
    pub(crate) system_unread: bool,
    /// Namespaces of whose logs readers are given nothing.
    pub(crate) unread: BTreeSet<NamespaceId>,
    /// Refusal of every publish.
    pub(crate) refusal: Option<Refusal>,
    /// Refusal of every new life.
    pub(crate) renewal_refusal: Option<Refusal>,
    /// Error with which every read ends.
    pub(crate) read_failure: Option<Refusal>,
    /// Deletions are neither done nor answered.
    pub(crate) deaf_to_delete: bool,
    pub(crate) topic_index: bool,
    pub(crate) dedup: Dedup,
    /// With holes, each batch begins at the next multiple of 4,096.
    pub(crate) numbering: Numbering,
    pub(crate) clock: AppendClock,
    pub(crate) many_writers: bool,
    pub(crate) strongest: Durability,
    /// Questions for the clock, which are not answered while they are not to be.
    clocks: Vec<Tag>,
    pub(crate) deaf_to_clock: bool,
    /// Microseconds by which the clock of append times is ahead of the owner's.
    pub(crate) ahead_us: i64,
    /// Microseconds by which append times are behind that clock.
    pub(crate) lag_us: i64,
    /// Readers started so far.
    pub(crate) reads: usize,
    /// The most readers that there were at a time.
    pub(crate) readers_most: usize,
    /// Readers make random progress if set.
    pub(crate) chance: Option<SmallRng>,
    pub(crate) incarnation: u64,
}

impl VecStorage {
    pub(crate) fn new() -> VecStorage {
        VecStorage {
            logs: BTreeMap::new(),
            deleted: BTreeMap::new(),
            readers: BTreeMap::new(),
            done: Vec::new(),
            waiting: Vec::new(),
            stalled: false,
            system_unread: false,
            unread: BTreeSet::new(),
            refusal: None,
            renewal_refusal: None,
            read_failure: None,
            deaf_to_delete: false,
            topic_index: true,
            dedup: Dedup::AtAppend,
            numbering: Numbering::Dense,
            clock: AppendClock::Monotone,
            many_writers: false,
            strongest: Durability::FSYNC,
            clocks: Vec::new(),
            deaf_to_clock: false,
            ahead_us: 0,
            lag_us: 0,
            reads: 0,
            readers_most: 0,
            chance: None,
            incarnation: 7,
        }
    }

    pub(crate) fn random(seed: u64) -> VecStorage {
        VecStorage {
            chance: Some(SmallRng::seed_from_u64(seed)),
            ..VecStorage::new()
        }
    }

    /// Restarts the storage: calls under way are forgotten.
    pub(crate) fn restarted(mut self) -> VecStorage {
        self.readers.clear();
        self.done.clear();
        self.clocks.clear();
        self.waiting.clear();
        self.chance = None;
        self
    }

    /// The last batch of a log.
    pub(crate) fn last_batch(&self, log: LogId) -> Checked<Batch> {
        let mut entries = self.logs[&log].entries.iter().rev();
        let batch = entries.find_map(|entry| match entry {
            Entry::Batch(stored) => Some(stored.batch.clone()),
            Entry::Gap(..) => None,
        });
        batch.expect("a batch")
    }

    /// Restarts the storage on an older copy of the files: a log ends before `next`.
    pub(crate) fn set_back(mut self, log: LogId, next: Sequence) -> VecStorage {
        let entry = self.logs.get_mut(&log).expect("open");
        entry.entries.retain(|entry| entry.extent().last < next);
        entry.next = next;
        self.restarted()
    }

    /// Every log but log 0 begins a new life.
    pub(crate) fn reborn(mut self) -> VecStorage {
        self.logs.retain(|id, _| *id == LogId::SYSTEM);
        self.incarnation += 1;
        self.restarted()
    }

    /// Numbers that are skipped at the log's end, for a reason.
    pub(crate) fn skip(&mut self, log: LogId, numbers: u32, why: GapWhy) -> Extent {
        let log = self.logs.get_mut(&log).expect("open");
        let extent = Extent::starting_at(log.next, numbers);
        log.next = extent.next();
        log.entries.push(Entry::Gap(extent, why));
        extent
    }

    /// The batch that holds `at` is damaged, if there is one.
    pub(crate) fn damage(&mut self, log: LogId, at: Sequence) -> Option<Extent> {
        let log = self.logs.get_mut(&log).expect("open");
        let mut entries = log.entries.iter_mut();
        let hit = entries.find(|e| e.extent().contains(at) && matches!(e, Entry::Batch(_)))?;
        *hit = Entry::Gap(hit.extent(), GapWhy::Loss);
        Some(hit.extent())
    }

    pub(crate) fn trim_now(&mut self, log: LogId, before: Sequence) {
        let log = self.logs.get_mut(&log).expect("open");
        log.first = log.first.max(before);
        log.entries.retain(|entry| entry.extent().last >= before);
    }

    pub(crate) fn logs(&self) -> Vec<LogId> {
        self.logs.keys().copied().collect()
    }

    pub(crate) fn spec(&self, log: LogId) -> LogSpec {
        self.logs[&log].spec
    }

    pub(crate) fn readers(&self) -> usize {
        self.readers.len()
    }

    /// Tells something that no call has asked for.
    pub(crate) fn tell(&mut self, unasked: Completion) {
        self.done.push(unasked);
    }

    fn store(&mut self, now: Now) {
        if self.stalled {
            return;
        }
        for (t, id, batch) in std::mem::take(&mut self.waiting) {
            let Some(log) = self.logs.get_mut(&id) else {
                let why = Refusal::NoLog;
                self.done.push(Completion::Refused { t, why });
                continue;
            };
            if self.numbering == Numbering::Sparse {
                log.leave_hole();
            }
            let extent = Extent::starting_at(log.next, batch.numbers());
            log.next = extent.next();
            let appended = AppendTime(now.wall.0 + self.ahead_us - self.lag_us);
            log.entries.push(Entry::Batch(Stored {
                base: extent.first,
                extent,
                appended,
                batch,
            }));
            self.done.push(Completion::Appended {
                t,
                extent,
                at: appended,
                held: log.spec.durability,
                duplicate: false,
                exact: true,
            });
        }
    }

    fn give(&mut self, out: &mut Vec<Completion>) {
        let mut ended = Vec::new();
        for (r, reader) in &mut self.readers {
            if self.chance.as_mut().is_some_and(|c| c.random_bool(0.3)) {
                continue;
            }
            if self.system_unread && reader.log == LogId::SYSTEM {
                continue;
            }
            if self.unread.contains(&reader.log.namespace) || reader.unwanted {
                continue;
            }
            if self.read_failure.is_some() && reader.log != LogId::SYSTEM {
                let why = self.read_failure.clone();
                out.push(Completion::Ended { r: *r, why });
                ended.push(*r);
                continue;
            }
            let Some(log) = self.logs.get(&reader.log) else {
                let why = Some(Refusal::NoLog);
                out.push(Completion::Ended { r: *r, why });
                ended.push(*r);
                continue;
            };
            read(*r, reader, log, self.chance.as_mut(), out);
        }
        for r in ended {
            self.readers.remove(&r);
        }
    }
}

fn read(
    r: ReaderId,
    reader: &mut Reader,
    log: &Log,
    mut chance: Option<&mut SmallRng>,
    out: &mut Vec<Completion>,
) {
    if reader.next < log.first {
        let extent = Extent {
            first: reader.next,
            last: log.first.before(),
        };
        let why = GapWhy::Retention;
        out.push(Completion::Gap { r, extent, why });
        reader.next = log.first;
    }
    let from = log
        .entries
        .partition_point(|e| e.extent().last < reader.next);
    let mut skipped: Option<Extent> = None;
    for entry in &log.entries[from..] {
        if reader.credit <= 0 || chance.as_mut().is_some_and(|c| c.random_bool(0.2)) {
            break;
        }
        let mut extent = entry.extent();
        extent.first = extent.first.max(reader.next);
        let wanted = match (entry, reader.scope.filter) {
            (Entry::Batch(stored), ScopeFilter::Topic(topic)) => {
                stored.batch.topics().any(|entry| entry.hash == topic)
            }
            _ => true,
        };
        reader.next = extent.next();
        if !wanted {
            skipped = Some(Extent {
                first: skipped.map_or(extent.first, |s| s.first),
                last: extent.last,
            });
            continue;
        }
        if let Some(extent) = skipped.take() {
            let why = GapWhy::Unused;
            out.push(Completion::Gap { r, extent, why });
        }
        match entry {
            Entry::Gap(_, why) => out.push(Completion::Gap {
                r,
                extent,
                why: *why,
            }),
            Entry::Batch(stored) => {
                reader.credit -= i64::try_from(stored.batch.bytes().len()).expect("small");
                let stored = Stored {
                    extent,
                    ..stored.clone()
                };
                out.push(Completion::Batch { r, stored });
            }
        }
    }
    if let Some(extent) = skipped.take() {
        let why = GapWhy::Unused;
        out.push(Completion::Gap { r, extent, why });
    }
    if reader.next == log.next && reader.told_tail != Some(log.next) {
        reader.told_tail = Some(log.next);
        let next = log.next;
        out.push(Completion::Tail { r, next });
    }
}

impl LogStorage for VecStorage {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            dedup: self.dedup,
            numbering: self.numbering,
            clock: self.clock,
            strongest: self.strongest,
            topic_index: self.topic_index,
            past_end: false,
            seal: false,
            heal: false,
            many_writers: self.many_writers,
            provisions: false,
            appends_apart: false,
        }
    }

    fn submit(&mut self, call: Call) {
        match call {
            Call::Open { t, log, spec } => self.open(t, log, *spec),
            Call::Append { t, log, batch, .. } => self.append(t, log, batch),
            Call::Read {
                r,
                log,
                from,
                scope,
                credit,
            } => self.read(r, log, from, *scope, credit),
            Call::Credit { r, bytes } => self.credit(r, bytes),
            Call::Want { r, edit, topics } => self.want(r, edit, topics.more),
            Call::Stop { r } => self.stop(r),
            Call::FindTime { t, log, at } => self.find_time(t, log, at),
            Call::Bounds { t, log } => self.bounds(t, log),
            Call::Clock { t, .. } => self.clocks.push(t),
            Call::Topics { t, log, page } => self.topics(t, log, &page),
            Call::Trim { t, log, before } => {
                self.trim_now(log, before);
                self.done.push(Completion::Done { t });
            }
            Call::Seal { t, .. } => self.cannot(t, "seal"),
            Call::Heal { t, .. } => self.cannot(t, "heal"),
            Call::Provision { t, .. } => self.cannot(t, "provision"),
            Call::Withdraw { t, .. } => self.cannot(t, "withdraw"),
            Call::Keep { t, .. } => self.cannot(t, "upkeep"),
            Call::Renew { t, log } => self.renew(t, log),
            Call::Delete {
                t,
                log,
                as_of,
                origin,
            } => self.delete(t, log, as_of, origin.storage),
        }
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        self.store(now);
        if !self.deaf_to_clock {
            let at = AppendTime(now.wall.0 + self.ahead_us);
            let clocks = self.clocks.drain(..);
            self.done
                .extend(clocks.map(|t| Completion::Clock { t, at }));
        }
        if self.chance.as_mut().is_some_and(|c| c.random_bool(0.5)) {
            self.give(out);
            out.append(&mut self.done);
        } else {
            out.append(&mut self.done);
            self.give(out);
        }
        None
    }

    fn opened(&mut self) {}

    fn close(&mut self, _now: Now) {}

    fn is_closed(&self) -> bool {
        self.waiting.is_empty()
    }

    fn trouble(&self) -> Option<Trouble> {
        None
    }

    fn damage(&self) -> u64 {
        0
    }

    fn read_bytes(&self) -> u64 {
        0
    }

    fn clock(&self) -> ClockState {
        ClockState::default()
    }

    fn accept_clock(&mut self, _now: Now) {}
}
