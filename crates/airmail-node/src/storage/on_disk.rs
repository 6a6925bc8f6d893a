//! Journals on a disk, one for each shard, in a directory that the process has taken once: with its locks, and
//! with somebody who looks whether it is still there.
//!
//! What a journal finds damaged is told here: once in the log, and by a count.

use super::data_dir_watcher::{DataDirWatcher, Standing};
use crate::config::Config;
use airmail_log::disk::{DataDir, DiskFiles, DiskOptions, Identity};
use airmail_log::journal::{JournalConfig, JournalStorage, Problem};
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble, Waker};
use airmail_model::clock::Clock;
use airmail_model::random;
use airmail_model::{LogId, Mono, NodeId, Now};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// The cause why a storage cannot be opened.
pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A data directory that this process has, for all of its shards.
#[derive(Debug)]
pub(super) struct Taken {
    watcher: Option<DataDirWatcher>,
    /// Shards that have not opened all of their logs.
    unopened: AtomicU16,
    /// After the watcher, whose thread ends before the locks are let go.
    directory: DataDir,
}

impl Taken {
    /// Takes what is at `path`. `waker` is called when its standing changes.
    pub(super) fn new(
        path: &Path,
        (config, seed): (&Config, u64),
        clock: &Arc<dyn Clock>,
        waker: Waker,
        standing: &Arc<Standing>,
    ) -> Result<Arc<Taken>, Failure> {
        let new = Identity {
            cluster: random::nth(seed, 0),
            node: NodeId(random::nth(seed, 1)),
            shards: config.shards,
            created: clock.now().wall,
        };
        let directory = DataDir::open(path, &new)?;
        if directory.is_new() {
            tracing::info!(directory = %path.display(), "made a new data directory");
        }
        if let Some(exposed) = directory.exposed()? {
            tracing::warn!("{exposed}");
        }
        for problem in directory.problems() {
            tell(path, &problem);
        }
        let watcher = directory.guard()?.map(|guard| {
            let (clock, standing) = (Arc::clone(clock), Arc::clone(standing));
            DataDirWatcher::start(guard, clock, standing, waker)
        });
        if directory.new_life_due() {
            tracing::warn!(
                data = %path.display(),
                "each log begins a new life, as was asked for after a restore"
            );
        }
        Ok(Arc::new(Taken {
            watcher: watcher.transpose()?,
            unopened: AtomicU16::new(config.shards),
            directory,
        }))
    }

    /// Takes note that one more shard has opened all of its logs. An order to this start is carried out when
    /// all have.
    fn opened(&self) {
        let last = self.unopened.fetch_sub(1, Ordering::AcqRel) == 1;
        if last
            && self.directory.new_life_due()
            && let Err(error) = self.directory.new_life_begun()
        {
            tracing::warn!(%error, "the next start begins a new life of each log once more");
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct OnDisk {
    pub(super) journal: JournalStorage<DiskFiles>,
    shard: u16,
    /// Changes of the directory's standing that the journal has been told of.
    seen: u64,
    /// After the journal, whose threads end before the locks are let go.
    taken: Arc<Taken>,
}

impl OnDisk {
    /// Opens a shard of the directory, with settings of one shard; blocks while it recovers.
    pub(super) fn open(
        taken: &Arc<Taken>,
        shard: u16,
        (config, seed): (&Config, u64),
        clock: &Arc<dyn Clock>,
        waker: Waker,
    ) -> Result<OnDisk, Failure> {
        let directory = &taken.directory;
        let files = directory.files(shard, &DiskOptions::default(), waker)?;
        let journal = JournalConfig {
            cluster: directory.identity().cluster,
            node: directory.identity().node,
            shard: shard.into(),
            seed,
            renewed: directory.new_life_due(),
            segment_bytes: config.segment.0,
            cache_bytes: config.cache.0,
            pending_bytes: config.pending.0,
            clock_jump: config.clock_jump.0,
            ..JournalConfig::default()
        };
        let journal = JournalStorage::open(files, journal, clock.now())?;
        Ok(OnDisk {
            journal,
            shard,
            seen: 0,
            taken: Arc::clone(taken),
        })
    }

    /// The logs that it has.
    pub(super) fn logs(&self) -> Vec<LogId> {
        self.journal.logs().collect()
    }
}

impl LogStorage for OnDisk {
    fn capabilities(&self) -> Capabilities {
        self.journal.capabilities()
    }

    fn submit(&mut self, call: Call) {
        self.journal.submit(call);
    }

    /// A poll of the journal, with what the directory and the journal have to say besides.
    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let watcher = self.taken.watcher.as_ref();
        let change = watcher.and_then(|of| of.standing().change(&mut self.seen));
        match change {
            Some(Some(why)) => self.journal.withhold(&why),
            Some(None) => self.journal.release(),
            None => {}
        }
        let deadline = self.journal.poll(now, out);
        for problem in self.journal.take_damage() {
            tell(&self.taken.directory.shard(self.shard), &problem);
        }
        deadline
    }

    fn opened(&mut self) {
        self.taken.opened();
    }

    fn close(&mut self, now: Now) {
        self.journal.close(now);
    }

    fn is_closed(&self) -> bool {
        self.journal.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.journal.trouble()
    }

    fn damage(&self) -> u64 {
        // The directory's is told by one of its shards.
        let directory = if self.shard == 0 {
            self.taken.directory.problems().len() as u64
        } else {
            0
        };
        directory + self.journal.damage()
    }

    fn clock(&self) -> ClockState {
        self.journal.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.journal.accept_clock(now);
    }
}

/// Says once in the log what is damaged, and what to do.
fn tell(directory: &Path, problem: &Problem) {
    tracing::warn!(
        file = %directory.join(&problem.file).display(),
        at = problem.at,
        log = problem.log.map(tracing::field::display),
        number = problem.number.map(tracing::field::display),
        found = %problem.reason,
        "damage: {}", problem.reason.advice()
    );
}
