//! The journal: all logs of one shard in common segments, one sync for all that waits.
//!
//! A deterministic state machine over [`Files`](crate::files::Files): no clock, no thread, no
//! randomness but a seed. [`JournalStorage`] owns it and the files, and is the
//! [`LogStorage`](crate::contract::LogStorage) under `memory` and `disk`.
//!
//! What holds at any time:
//! - A log's numbers: `first ≤ visible ≤ next`. Readers and answers depend on `visible` alone,
//!   which never goes back, so nothing told to anyone is ever taken back.
//! - What is under way to be committed is commands (in segments of their own) or batches, never both.
//!   Commands go first, and alone; so whatever a batch relies on (its log, its reservation, the end of a
//!   failed segment) is durable before the batch is written.
//! - Only what is durable is in a table; what is not is held in memory, so that a failed file can
//!   be left behind at its last durable end, for ever.
//! - When the journal opens after an unclean stop, what may not be durable is written once more,
//!   elsewhere, before anyone sees it.

mod append;
mod check;
pub mod checkpoint;
mod checkpointing;
mod clock_file;
mod clock_guard;
mod codec;
mod commit;
mod config;
mod copies;
mod damage;
pub mod ends;
mod failure;
mod follow;
pub mod format;
mod gather;
mod given_up;
mod giving_back;
pub mod index;
mod indexing;
mod known;
mod log;
mod lookup;
pub mod meta;
mod missing;
mod moving;
mod producers;
mod read;
mod recover;
mod replay;
mod results;
mod retention;
mod scan;
mod segment;
mod segments;
mod serve;
mod storage;
pub mod table;
mod topics;
mod withhold;

pub use check::{CheckReport, FileReport, LogReport, check};
pub use clock_guard::HELD_MAX;
pub use config::JournalConfig;
pub use damage::{Problem, Reason};
pub use recover::OpenError;
pub use scan::Sound;
pub(crate) use segment::{is_journals_own, is_segment};
pub use storage::JournalStorage;

use crate::contract::{Call, Completion, ReaderId, Tag};
use crate::files::{FileOp, FileToken};
use airmail_model::{LogId, Mono, Now};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A call that is taken up at the next step.
#[derive(Debug)]
enum Waiting {
    Call(Call),
    /// An append for which there was no room; refused in its turn.
    Busy {
        t: Tag,
        log: LogId,
    },
}

/// What an operation on a file was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A commit's write, by its place in the commit.
    Commit(usize),
    /// A segment's file was made.
    Made(u64),
    /// A segment's file was filled up to here.
    Filled(u64, u64),
    /// A reader's read of a segment.
    Read(ReaderId, u64, u64),
    /// A reader's read of an index, by segment and block.
    Pages(ReaderId, u64, u32),
    /// A block was read, to make its table again.
    Rebuild(u64, u32),
    /// A step of the index file under way.
    Index,
    /// A step of the checkpoint under way.
    Checkpoint,
    /// An emptied segment's file was renamed or removed.
    Left(u64),
    /// A block was read, to be written once more.
    Moved(u64, u32),
    /// The file of durable ends was made or written.
    Ends,
    /// The file of the trusted time was made or written.
    Clock,
    /// Its failure changes nothing.
    Minor,
}

/// The segments of a class that take batches.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    active: Option<u64>,
    prepared: Option<u64>,
    /// The active one whose successor was prepared, not needed, and given back: it gets none again.
    spared: Option<u64>,
}

/// Why nothing is stored at the moment.
#[derive(Clone, Debug)]
struct Trouble {
    full: bool,
    error: String,
    retry_at: Mono,
}

/// The state machine. See the module's documentation.
#[derive(Debug)]
struct Journal {
    config: JournalConfig,
    now: Now,
    clock: clock_guard::ClockGuard,
    clock_file: clock_file::ClockFile,
    logs: BTreeMap<u32, log::LogState>,
    slots: BTreeMap<LogId, u32>,
    next_slot: u32,
    /// Lives that logs have begun since the journal opened.
    renewals: u64,
    producers: producers::Producers,

    segments: BTreeMap<u64, segment::Segment>,
    next_segment: u64,
    /// When a segment was made last.
    made_at: Mono,
    classes: BTreeMap<u16, Class>,
    /// Emptied segments' files, and their lengths.
    free: Vec<(u64, u64)>,

    calls: VecDeque<Waiting>,
    /// Of the batches in `calls`.
    call_bytes: u64,
    pending: VecDeque<log::Entry>,
    pending_bytes: u64,
    metas: VecDeque<(meta::Meta, Option<Tag>)>,
    meta_count: u64,
    gathering: commit::Gathering,
    /// Under way, in order; more than one only of batches, to one segment.
    commits: VecDeque<commit::Commit>,
    commit_places: usize,
    /// Commands to be given when what may not be durable has been written once more.
    recovering: Option<Vec<meta::Meta>>,
    /// They are given, and not yet durable.
    settling: bool,
    trouble: Option<Trouble>,
    /// The files may not be this node's: nothing is written or answered as stored.
    withheld: bool,
    failures: u32,
    failed: BTreeSet<u32>,

    /// Places of deleted logs: (segment, block, slot), until the deletion is durable.
    gone: Vec<(u64, u32, u32)>,

    cache_order: VecDeque<(u32, u64, u64)>,
    cache_bytes: u64,
    readers: BTreeMap<ReaderId, read::Reader>,
    runnable: BTreeSet<ReaderId>,
    reads: usize,
    read_queue: VecDeque<ReaderId>,

    /// What refusals of `failed` logs' appends will say.
    failure: Option<crate::contract::Refusal>,
    /// Segments whose files are being kept for new ones.
    recycling: BTreeSet<u64>,
    out: Vec<Completion>,
    to_index: VecDeque<(u64, u32)>,
    indexing: Option<indexing::Indexing>,
    /// No index file is begun before this time.
    index_at: Mono,
    rebuilding: BTreeMap<(u64, u32), indexing::Rebuild>,
    checkpoints: checkpointing::Checkpoints,
    checkpointing: Option<checkpointing::Checkpointing>,
    ends_changed: bool,
    ends_busy: bool,
    ends_made: bool,
    ends_count: u64,
    /// Logs appended to since the last checkpoint.
    touched: BTreeSet<u32>,
    /// And those before the one under way.
    touched_before: BTreeSet<u32>,
    retention_at: Mono,
    damage: damage::Damage,
    closing: bool,
    ops: Vec<(FileToken, FileOp)>,
    /// A segment may have come to hold nothing that is kept.
    sweep_due: bool,
    moves: moving::Moves,
    purposes: BTreeMap<FileToken, Purpose>,
    next_token: u64,
}

impl Journal {
    fn new(config: JournalConfig, now: Now) -> Journal {
        let producers = producers::Producers::of(&config);
        let retention_at = now.mono.plus(config.retention_interval);
        Journal {
            clock: clock_guard::ClockGuard::new(config.clock_jump, None, now),
            config,
            now,
            clock_file: clock_file::ClockFile::default(),
            logs: BTreeMap::new(),
            slots: BTreeMap::new(),
            next_slot: 1,
            renewals: 0,
            producers,
            segments: BTreeMap::new(),
            next_segment: 1,
            made_at: now.mono,
            classes: BTreeMap::new(),
            free: Vec::new(),
            calls: VecDeque::new(),
            call_bytes: 0,
            pending: VecDeque::new(),
            pending_bytes: 0,
            metas: VecDeque::new(),
            meta_count: 1,
            gathering: commit::Gathering::default(),
            commits: VecDeque::new(),
            commit_places: 0,
            recovering: None,
            settling: false,
            trouble: None,
            withheld: false,
            failures: 0,
            failed: BTreeSet::new(),
            gone: Vec::new(),
            cache_order: VecDeque::new(),
            cache_bytes: 0,
            readers: BTreeMap::new(),
            runnable: BTreeSet::new(),
            reads: 0,
            read_queue: VecDeque::new(),
            failure: None,
            recycling: BTreeSet::new(),
            out: Vec::new(),
            to_index: VecDeque::new(),
            indexing: None,
            index_at: Mono(0),
            rebuilding: BTreeMap::new(),
            checkpoints: checkpointing::Checkpoints {
                next: 1,
                ..Default::default()
            },
            checkpointing: None,
            ends_changed: false,
            ends_busy: false,
            ends_made: false,
            ends_count: 0,
            touched: BTreeSet::new(),
            touched_before: BTreeSet::new(),
            retention_at,
            damage: damage::Damage::default(),
            closing: false,
            ops: Vec::new(),
            sweep_due: true,
            moves: moving::Moves::default(),
            purposes: BTreeMap::new(),
            next_token: 0,
        }
    }

    #[cfg(feature = "sabotage")]
    fn has_bug(&self, bug: crate::sabotage::Bug) -> bool {
        self.config.bug == Some(bug)
    }

    /// Begins a clean stop.
    fn close(&mut self, now: Now) {
        self.now = now;
        self.closing = true;
    }

    /// Whether a clean stop has come to its end.
    fn is_closed(&self) -> bool {
        let kept = self.checkpoints.closed || self.config.new_incarnations;
        self.closing && (self.trouble.is_some() || (self.is_drained() && kept))
    }

    /// Has an operation done.
    fn submit(&mut self, purpose: Purpose, op: FileOp) {
        self.next_token += 1;
        let token = FileToken(self.next_token);
        self.purposes.insert(token, purpose);
        self.ops.push((token, op));
    }

    /// Takes up what has become of an operation.
    fn complete(&mut self, done: crate::files::FileDone) {
        let Some(purpose) = self.purposes.remove(&done.token) else {
            return;
        };
        let result = done.result;
        match purpose {
            Purpose::Commit(place) => {
                let result = self.unless_withheld(result.map(drop));
                self.commit_done(place, result);
            }
            Purpose::Made(id) => self.segment_made(id, result.map(drop)),
            Purpose::Filled(id, to) => self.segment_filled(id, to, result.map(drop)),
            Purpose::Read(r, segment, at) => self.read_done(r, segment, at, result, done.sound),
            Purpose::Pages(r, segment, block) => self.pages_read(r, segment, block, result),
            Purpose::Rebuild(segment, block) => self.block_read(segment, block, result),
            Purpose::Moved(segment, block) => self.block_to_move(segment, block, result),
            Purpose::Index => self.index_step_done(result.map(drop)),
            Purpose::Checkpoint => self.checkpoint_step_done(result.map(drop)),
            Purpose::Left(id) => self.segment_left(id, result.map(drop)),
            Purpose::Ends => self.ends_done(result.map(drop)),
            Purpose::Clock => self.clock_step_done(&result.map(drop)),
            Purpose::Minor => {}
        }
    }

    /// Does everything that can be done without waiting for a file.
    fn advance(&mut self, now: Now) {
        self.now = now;
        self.clock.step(now);
        if self.recovering.is_some() && self.pending.is_empty() && self.commits.is_empty() {
            self.recovered();
        }
        if self.takes_calls() {
            while let Some(waiting) = self.calls.pop_front() {
                match waiting {
                    Waiting::Call(call) => self.take(call),
                    Waiting::Busy { t, log } => self.busy(t, log),
                }
            }
            self.call_bytes = 0;
            self.retain_in_time();
        }
        self.probe();
        self.go_on_moving();
        self.start_checkpoint();
        let before = self.ops.len();
        self.start_commit();
        // The ends go with a commit and before it, so that the shard is woken once for both.
        if self.tell_ends() {
            self.ops[before..].rotate_right(1);
        }
        self.write_index();
        self.sweep();
        self.save_clock();
        self.wake_reading();
        self.run_readers();
        self.wake_reading();
    }

    fn take(&mut self, call: Call) {
        match call {
            Call::Open { t, log, spec } => self.open_log(t, log, spec),
            Call::Append { t, log, map, batch } => self.append(t, log, map, batch),
            Call::Read {
                r,
                log,
                from,
                scope,
                credit,
            } => {
                self.start_reader(r, log, from, *scope, credit);
            }
            Call::Credit { r, bytes } => self.add_credit(r, bytes),
            Call::Stop { r } => self.stop_reader(r),
            Call::FindTime { t, log, at } => self.find_time(t, log, at),
            Call::Bounds { t, log } => self.tell_bounds(t, log),
            Call::Topics { t, log, page } => self.list_topics(t, log, *page),
            Call::Trim { t, log, before } => self.trim_log(t, log, before),
            Call::Seal { t, log, next } => self.seal_log(t, log, next),
            Call::Heal { t, .. } => {
                let why = crate::contract::Refusal::Unsupported("heal");
                self.out.push(Completion::Refused { t, why });
            }
            Call::Renew { t, log } => self.renew_log(t, log),
            Call::Delete { t, log } => self.delete_log(t, log),
        }
    }

    /// When to poll again if no file has anything to say.
    fn deadline(&self) -> Option<Mono> {
        let mut at = self.may_take_calls().then_some(self.retention_at);
        let mut earlier = |other: Mono| at = Some(at.map_or(other, |at| at.min(other)));
        // Calls may have waited for the end of a recovery that has just come.
        if !self.runnable.is_empty() || (self.may_take_calls() && !self.calls.is_empty()) {
            earlier(self.now.mono);
        }
        if let Some(trouble) = &self.trouble {
            earlier(trouble.retry_at);
        }
        let gathered = self.gathers_until().filter(|_| self.commits.is_empty());
        if let Some(gathered) = gathered {
            earlier(gathered);
        }
        // What a sync has to wait for (a commit, commands that go first) tells when it ends.
        let may_sync = self.commits.is_empty() && self.metas.is_empty() && gathered.is_none();
        let idle = self.classes.values().filter(|_| may_sync);
        for class in idle {
            let active = class.active.and_then(|id| self.segments.get(&id));
            if let Some(since) = active.and_then(|segment| segment.unsynced_since) {
                earlier(since.plus(self.config.unsynced_time));
            }
        }
        at
    }

    /// Whether all that was accepted is durable.
    fn is_drained(&self) -> bool {
        self.calls.is_empty()
            && self.pending.is_empty()
            && self.metas.is_empty()
            && self.commits.is_empty()
            && self.recovering.is_none()
            && self
                .segments
                .values()
                .all(|segment| segment.unsynced.is_empty())
    }
}

#[cfg(test)]
mod tests;
