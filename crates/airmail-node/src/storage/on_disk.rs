//! A shard's journal on a disk, in a directory that the process has taken.
//!
//! What the journal finds damaged is told here: once in the log, and by a count.

use super::directory::Directory;
use crate::config::Config;
use airmail_broker::needed_by;
use airmail_log::disk::{DiskFiles, DiskOptions};
use airmail_log::journal::{JournalConfig, JournalStorage, Problem};
use airmail_log::{
    Call, Capabilities, ClockState, Completion, LogStorage, Needs, Refusal, Tag, Trouble, Waker,
};
use airmail_model::{Batch, LogId, Mono, Now};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct OnDisk {
    pub(super) journal: JournalStorage<DiskFiles>,
    shard: u16,
    /// Changes of the directory's standing that the journal has been told.
    told: u64,
    /// Appends to log 0 that are not answered, in order. Those that the journal was not given have the reason.
    of_system: VecDeque<(Tag, Option<String>)>,
    /// After the others, so that their threads have ended before the locks are let go.
    directory: Arc<Directory>,
}

impl OnDisk {
    /// Opens a shard's journal in a directory; blocks while it recovers.
    pub(super) fn open(
        directory: &Arc<Directory>,
        shard: u16,
        (config, seed): (&Config, u64),
        now: Now,
        waker: &Waker,
    ) -> Result<OnDisk, Box<dyn std::error::Error + Send + Sync>> {
        let data = directory.data();
        let files = data.files(shard, &DiskOptions::default(), Arc::clone(waker))?;
        let journal = JournalConfig {
            cluster: data.identity().cluster,
            node: data.identity().node,
            shard: shard.into(),
            seed,
            renewed: data.new_life_due(),
            segment_bytes: config.segment.0,
            cache_bytes: config.cache.0,
            run_cache_bytes: config.cache.0,
            pending_bytes: config.pending.0,
            clock_jump: config.clock_jump.0,
            ..JournalConfig::default()
        };
        let journal = JournalStorage::open(files, journal, now)?;
        Ok(OnDisk {
            journal,
            shard,
            told: 0,
            of_system: VecDeque::new(),
            directory: Arc::clone(directory),
        })
    }

    /// Takes note of an append to log 0; whether it may go to the journal. Before the first role is written there, or the word
    /// that there are lanes, the directory says so, and no program opens it that would give to everybody what is for some,
    /// or what is urgent to nobody. That waits for the disk, once or twice in the life of a directory.
    fn append_to_system(&mut self, t: Tag, batch: &Batch) -> bool {
        let noted = match needed_by(batch) {
            Needs::Nothing => Ok(()),
            needs => self.directory.data().note_needs(needs),
        };
        let refused = noted.err().map(|error| error.to_string());
        let is_taken = refused.is_none();
        self.of_system.push_back((t, refused));
        is_taken
    }

    /// Refuses what the journal was not given, behind the answers to what came before. `answers` are the journal's.
    fn refuse_in_order(&mut self, answers: usize, out: &mut Vec<Completion>) {
        if self.of_system.is_empty() {
            return;
        }
        let tags = out.iter().skip(answers).filter_map(Completion::tag);
        let answered: Vec<Tag> = tags.collect();
        self.of_system.retain(|(t, _)| !answered.contains(t));
        while let Some((t, Some(reason))) = self.of_system.pop_front_if(|(_, why)| why.is_some()) {
            let why = Refusal::Io(reason);
            out.push(Completion::Refused { t, why });
        }
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
        if let Call::Append { t, log, batch, .. } = &call
            && *log == LogId::SYSTEM
            && !self.append_to_system(*t, batch)
        {
            return;
        }
        self.journal.submit(call);
    }

    /// A poll of the journal, with what the directory and the journal have to say besides.
    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        match self.directory.standing().change(&mut self.told) {
            Some(Some(why)) => self.journal.withhold(&why),
            Some(None) => self.journal.release(),
            None => {}
        }
        let answers = out.len();
        let deadline = self.journal.poll(now, out);
        self.refuse_in_order(answers, out);
        for problem in self.journal.take_damage() {
            tell(&self.directory.data().shard(self.shard), &problem);
        }
        deadline
    }

    fn opened(&mut self) {
        self.directory.opened();
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

    /// The first shard counts what was found in the directory itself.
    fn damage(&self) -> u64 {
        let in_directory = match self.shard {
            0 => self.directory.data().problems().len() as u64,
            _ => 0,
        };
        in_directory + self.journal.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.journal.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.journal.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.journal.accept_clock(now);
    }
}

/// Says once in the log what is damaged, and what to do.
pub(super) fn tell(directory: &Path, problem: &Problem) {
    tracing::warn!(
        file = %directory.join(&problem.file).display(),
        at = problem.at,
        log = problem.log.map(tracing::field::display),
        number = problem.number.map(tracing::field::display),
        found = %problem.reason,
        "damage: {}", problem.reason.advice()
    );
}
