//! The journal: all logs of one shard in common segments, one sync for all waiting batches.
//!
//! A deterministic state machine over [`Files`](crate::files::Files): no clock, no thread, no
//! randomness but a seed. [`JournalStorage`] owns it and the files, and is the
//! [`LogStorage`](crate::contract::LogStorage) under `memory` and `disk`.
//!
//! Invariants, with the line that asserts each (`invariants.rs` has the rest):
//! - A log's numbers: `first ≤ visible ≤ next` (`Numbers::check`, `check_opened`). Readers and
//!   answers depend on `visible` alone, which never goes back (`Numbers::advance`,
//!   `Resuming::recovered`), so nothing told to anyone is ever taken back.
//! - Commits under way are of commands (in segments of their own) or of batches, never both
//!   (`Commits::check`). Commands go first, and alone; so the facts that a batch relies on (its log,
//!   its reservation, the end of a failed segment) are durable before the batch is written
//!   (`Journal::check_commands_first`). The end of a segment that is full may wait: no batch relies
//!   on it.
//! - Only durable batches are in a table; the others are held in memory
//!   (`Journal::check_held_in_memory`), so that a failed file can be left behind at its last durable
//!   end, for ever: nothing is written to it again (`Segment::written_to`).
//! - When the journal opens after an unclean stop, batches that may not be durable are written once
//!   more, elsewhere, before anyone sees them (`Resuming::recovered`).

mod append;
mod asking;
mod block;
mod cache;
mod calls;
mod carrying_out;
mod changing;
mod check;
pub mod checkpoint;
mod checkpointer;
mod checkpointing;
mod choosing;
mod clock_file;
mod clock_guard;
mod codec;
mod commands;
mod commit;
mod commits;
mod config;
mod copies;
mod damage;
mod effects;
mod ended;
pub mod ends;
mod ends_file;
mod entry;
mod failure;
mod faults;
mod fill;
mod follow;
pub mod format;
mod found_commands;
mod gather;
mod given_up;
mod giving_back;
pub mod id;
pub mod index;
mod indexing;
mod invariants;
mod known;
mod lane_queue;
mod life;
mod log;
mod logs;
mod lookup;
pub mod meta;
mod missing;
mod moving;
mod names;
mod numbers;
mod places;
mod placing;
mod producers;
mod read;
mod reader_turns;
mod readers;
mod rebuilding;
mod recent_runs;
mod recover;
mod replay;
mod results;
mod resuming;
mod retention;
mod scan;
mod segment;
mod segment_set;
mod segments;
mod serve;
mod settling;
mod snapshot;
mod stamp_clock;
mod storage;
mod storing;
mod sweeping;
pub mod table;
mod time;
pub mod tombstones;
mod topics;
mod upkeep;
mod withhold;

pub use check::{CheckReport, FileReport, LogReport, check};
pub use clock_guard::HELD_MAX;
pub use config::JournalConfig;
pub use damage::{Problem, Reason};
pub(crate) use names::{is_journals_own, is_segment};
pub use recover::OpenError;
pub use scan::Sound;
pub use storage::JournalStorage;

use crate::contract::{Call, Completion, Refusal, Tag};
use airmail_model::{Mono, Now, bug};
use calls::{Calls, Waiting};
use checkpointer::Checkpointer;
use checkpointing::is_drained;
use commands::Commands;
use commits::Commits;
use effects::{Effects, Purpose};
use ends_file::EndsFile;
use faults::Faults;
use indexing::Indexer;
use logs::Logs;
use producers::Producers;
use readers::Readers;
use segment_set::SegmentSet;
use time::Time;
use upkeep::Upkeep;

/// The state machine. See the module's documentation. Each part owns its state: only its own
/// methods change it, so that its documentation can be checked in one place.
#[derive(Debug)]
struct Journal {
    config: JournalConfig,
    time: Time,
    /// Calls of the owner.
    calls: Calls,
    /// Operations for the files, and completions for the owner.
    effects: Effects,
    logs: Logs,
    producers: Producers,
    segments: SegmentSet,
    /// Batches that wait to be stored, and the writes under way.
    commits: Commits,
    /// The journal's own commands that wait to be written.
    commands: Commands,
    readers: Readers,
    /// The index files on their way, and the tables made again.
    indexer: Indexer,
    checkpointer: Checkpointer,
    /// The file of durable ends.
    ends: EndsFile,
    /// Space to be given up, and the time for it.
    upkeep: Upkeep,
    /// Faults of the files.
    faults: Faults,
}

impl Journal {
    fn new(config: JournalConfig, now: Now) -> Journal {
        let retain_at = now.mono.plus(config.retention_interval);
        Journal {
            time: Time::new(config.clock_jump, now),
            calls: Calls::default(),
            effects: Effects::default(),
            logs: Logs::default(),
            producers: Producers::of(&config),
            segments: SegmentSet::new(now.mono),
            commits: Commits::new(config.normal_share),
            commands: Commands::default(),
            readers: Readers::new(config.normal_share),
            indexer: Indexer::default(),
            checkpointer: Checkpointer::default(),
            ends: EndsFile::default(),
            upkeep: Upkeep::new(retain_at),
            faults: Faults::default(),
            config,
        }
    }

    /// Begins a clean stop.
    fn close(&mut self, now: Now) {
        self.time.set(now);
        self.calls.close();
    }

    /// Whether a clean stop has come to its end.
    fn is_closed(&self) -> bool {
        let is_kept = self.checkpointer.is_closed(self.commands.count());
        let kept = is_kept || self.config.new_incarnations;
        self.calls.is_closing() && (self.faults.trouble().is_some() || (self.is_drained() && kept))
    }

    /// Takes up the completion of an operation.
    fn complete(&mut self, done: crate::files::FileDone) {
        let Some(purpose) = self.effects.ended(done.token) else {
            bug!("{:?} has ended, and was not asked for", done.token);
            return;
        };
        let result = done.result;
        match purpose {
            Purpose::Commit(place) => {
                let result = self.faults.unless_withheld(result.map(drop));
                self.commit_done(place, result);
            }
            Purpose::Made(id) => self.segment_made(id, result.map(drop)),
            Purpose::Filled(id, to) => self.segment_filled(id, to, result.map(drop)),
            Purpose::Read(r, segment, at) => {
                self.reading().read_done(r, segment, at, result, done.sound);
            }
            Purpose::Pages(r, block) => self.reading().pages_read(r, block, result),
            Purpose::Rebuild(block) => self.block_read(block, result),
            Purpose::Moved(block) => self.block_to_move(block, result),
            Purpose::Index => self.index_step_done(result.map(drop)),
            Purpose::Checkpoint => self.checkpointing().step_done(result.map(drop)),
            Purpose::Left(id) => self.segment_left(id, result.map(drop)),
            Purpose::Ends => self.ends.step_done(&result.map(drop)),
            Purpose::Clock => self.time.file().step_done(&result.map(drop)),
            Purpose::Minor => {}
        }
    }

    /// Does everything that can be done without waiting for a file.
    fn advance(&mut self, now: Now) {
        self.time.step(now);
        self.resume();
        if self.takes_calls() {
            while let Some(waiting) = self.calls.next() {
                match waiting {
                    Waiting::Call(call) => self.take(call),
                    Waiting::Busy { t, log } => self.busy(t, log),
                }
            }
            self.calls.taken_up();
            self.retain_in_time();
        }
        self.probe();
        self.go_on_moving();
        self.start_checkpoint();
        let before = self.effects.len();
        self.start_commit();
        // The ends go with a commit and before it, so that the shard is woken once for both.
        if self.tell_ends() {
            self.effects.bring_forward(before);
        }
        self.write_index();
        self.sweep();
        self.save_clock();
        self.readers.wake_reading(self.config.reads_max.max(1));
        self.reading().run_readers();
        self.readers.wake_reading(self.config.reads_max.max(1));
    }

    fn take(&mut self, call: Call) {
        match call {
            Call::Open { t, log, spec } => self.open_log(t, log, *spec),
            Call::Append {
                t, log, map, batch, ..
            } => self.append(t, log, map, batch),
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
            Call::Want { r, edit, topics } => self.want(r, edit, topics.more),
            Call::Stop { r } => self.stop_reader(r),
            Call::FindTime { t, log, at } => self.find_time(t, log, at),
            Call::Bounds { t, log } => self.tell_bounds(t, log),
            Call::Clock { t, log } => self.tell_clock(t, log),
            Call::Topics { t, log, page } => self.list_topics(t, log, *page),
            Call::Trim { t, log, before } => self.trim_log(t, log, before),
            Call::Seal { t, log, next } => self.seal_log(t, log, next),
            Call::Heal { t, .. } => self.cannot(t, "heal"),
            Call::Provision { t, .. } => self.cannot(t, "provision"),
            Call::Withdraw { t, .. } => self.cannot(t, "withdraw"),
            Call::Keep { t, .. } => self.cannot(t, "upkeep"),
            Call::Renew { t, log } => self.renew_log(t, log),
            Call::Delete {
                t,
                log,
                as_of,
                origin,
            } => self.delete_log(t, log, as_of, origin.storage),
        }
    }

    fn cannot(&mut self, t: Tag, what: &'static str) {
        let why = Refusal::Unsupported(what.into());
        self.effects.tell(Completion::Refused { t, why });
    }

    /// When to poll again if no file has anything to say.
    fn deadline(&self) -> Option<Mono> {
        let mut at = self.may_take_calls().then_some(self.upkeep.retain_at());
        let mut earlier = |other: Mono| at = Some(at.map_or(other, |at| at.min(other)));
        // Calls may have waited for the end of a recovery that has just come.
        if self.readers.can_go_on() || (self.may_take_calls() && !self.calls.is_empty()) {
            earlier(self.time.mono());
        }
        if let Some(trouble) = self.faults.trouble() {
            earlier(trouble.retry_at);
        }
        let gathered = self.gathers_until().filter(|_| self.commits.are_idle());
        if let Some(gathered) = gathered {
            earlier(gathered);
        }
        // What a sync has to wait for (a commit, commands that go first) tells when it ends.
        let may_sync = self.commits.are_idle() && self.commands.is_empty() && gathered.is_none();
        for id in self.segments.active().filter(|_| may_sync) {
            let active = self.segments.get(id);
            if let Some(since) = active.and_then(|segment| segment.unsynced_since()) {
                earlier(since.plus(self.config.unsynced_time));
            }
        }
        at
    }

    /// Whether all that was accepted is durable.
    fn is_drained(&self) -> bool {
        is_drained(&self.calls, &self.commands, &self.commits, &self.segments)
    }
}

#[cfg(test)]
mod tests;
