//! A journal on a disk, with the locks of the directory that it is in, and somebody who looks whether
//! the directory is still there.
//!
//! What the journal finds damaged is told here: once in the log, and by a count.

use super::data_dir_watcher::{DataDirWatcher, Standing};
use crate::config::Config;
use airmail_log::disk::{DataDir, DiskFiles, DiskOptions, Identity};
use airmail_log::journal::{JournalConfig, JournalStorage, Problem};
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble, Waker};
use airmail_model::clock::Clock;
use airmail_model::random;
use airmail_model::{Mono, NodeId, Now};
use std::path::Path;
use std::sync::Arc;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct OnDisk {
    pub(super) journal: JournalStorage<DiskFiles>,
    watcher: Option<DataDirWatcher>,
    /// After the others, so that their threads have ended before the locks are let go.
    directory: DataDir,
}

impl OnDisk {
    /// Opens what is at `path`; blocks while it recovers.
    pub(super) fn open(
        path: &Path,
        (config, seed): (&Config, u64),
        clock: &Arc<dyn Clock>,
        waker: &Waker,
        standing: &Arc<Standing>,
    ) -> Result<OnDisk, Box<dyn std::error::Error + Send + Sync>> {
        let now = clock.now();
        let new = Identity {
            cluster: random::nth(seed, 0),
            node: NodeId(random::nth(seed, 1)),
            shards: 1,
            created: now.wall,
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
            DataDirWatcher::start(guard, clock, standing, Arc::clone(waker))
        });
        let watcher = watcher.transpose()?;
        let files = directory.files(0, &DiskOptions::default(), Arc::clone(waker))?;
        let journal = JournalConfig {
            cluster: directory.identity().cluster,
            node: directory.identity().node,
            seed,
            renewed: directory.new_life_due(),
            segment_bytes: config.segment.0,
            cache_bytes: config.cache.0,
            pending_bytes: config.pending.0,
            clock_jump: config.clock_jump.0,
            ..JournalConfig::default()
        };
        if journal.renewed {
            tracing::warn!(
                data = %path.display(),
                "each log begins a new life, as was asked for after a restore"
            );
        }
        let journal = JournalStorage::open(files, journal, now)?;
        Ok(OnDisk {
            journal,
            watcher,
            directory,
        })
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
        let change = self.watcher.as_ref().and_then(|of| of.standing().change());
        match change {
            Some(Some(why)) => self.journal.withhold(&why),
            Some(None) => self.journal.release(),
            None => {}
        }
        let deadline = self.journal.poll(now, out);
        for problem in self.journal.take_damage() {
            tell(&self.directory.shard(0), &problem);
        }
        deadline
    }

    fn opened(&mut self) {
        if self.directory.new_life_due()
            && let Err(error) = self.directory.new_life_begun()
        {
            tracing::warn!(%error, "the next start begins a new life of each log once more");
        }
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
        let directory = self.directory.problems().len() as u64;
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
