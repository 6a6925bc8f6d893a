//! The journal together with its files: a [`LogStorage`].

use super::{Journal, JournalConfig, OpenError, Problem};
use crate::contract::{
    AppendClock, Call, Capabilities, ClockState, Completion, Dedup, LogStorage, Numbering, Trouble,
};
use crate::files::{FileDone, Files};
use airmail_model::{Durability, LogId, Mono, Now};

/// Most rounds to the files in one poll, before the caller may do something else.
const ROUNDS_MAX: usize = 64;

/// Logs in the journal of one shard, over its directory of files.
#[derive(Debug)]
pub struct JournalStorage<F> {
    files: F,
    pub(super) journal: Journal,
    done: Vec<FileDone>,
}

impl<F: Files> JournalStorage<F> {
    /// Opens the journal that is in `files`, or begins one. Reads synchronously; writes nothing
    /// before the first poll.
    ///
    /// # Errors
    /// [`OpenError`]: the files cannot be read, or are another's, or a later version's. Damage is
    /// no error: readers get a gap in place of the damaged records.
    pub fn open(
        mut files: F,
        config: JournalConfig,
        now: Now,
    ) -> Result<JournalStorage<F>, OpenError> {
        let journal = super::recover::open(&mut files, config, now)?;
        Ok(JournalStorage {
            files,
            journal,
            done: Vec::new(),
        })
    }

    /// The logs that it has, in order of name.
    pub fn logs(&self) -> impl Iterator<Item = LogId> {
        self.journal.logs.names().map(|(id, _)| id)
    }

    /// Stores nothing from here on, and answers no write under way as stored: the files may not be
    /// this node's any more. It is trouble until [`release`](Self::release).
    pub fn withhold(&mut self, why: &str) {
        self.journal.withhold(why);
    }

    /// The files are this node's again, and nobody has written to them meanwhile.
    pub fn release(&mut self) {
        self.journal.release();
    }

    /// Takes the damage found since the last time, at opening and at reading; each place once in
    /// the journal's life, and a thousand of them at most.
    pub fn take_damage(&mut self) -> Vec<Problem> {
        self.journal.faults.take_damage()
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &F {
        &self.files
    }

    /// The files, to set faults in tests.
    pub fn files_mut(&mut self) -> &mut F {
        &mut self.files
    }

    /// Gives the files back; unfinished operations are lost, as in a crash.
    #[must_use]
    pub fn into_files(self) -> F {
        self.files
    }
}

impl<F: Files> LogStorage for JournalStorage<F> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            dedup: Dedup::AtAppend,
            numbering: Numbering::Dense,
            clock: AppendClock::Monotone,
            strongest: Durability::single(self.journal.config.strongest),
            topic_index: true,
            past_end: true,
            seal: true,
            heal: false,
            many_writers: false,
            provisions: false,
            appends_apart: false,
        }
    }

    fn submit(&mut self, call: Call) {
        let bytes_max = self.journal.config.pending_bytes;
        self.journal.calls.submit(call, bytes_max);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        self.journal.time.set(now);
        self.files.poll(&mut self.done);
        for _ in 0..ROUNDS_MAX {
            for done in self.done.drain(..) {
                self.journal.complete(done);
            }
            self.journal.advance(now);
            let checked = self.journal.is_checked();
            let mut withholding = self.journal.withholding();
            withholding.fail(&mut self.done);
            withholding.answer();
            if checked {
                withholding.check();
            }
            for (token, op) in self.journal.effects.drain() {
                self.files.submit(token, op);
            }
            out.append(self.journal.effects.completions());
            self.files.poll(&mut self.done);
            if self.done.is_empty() {
                if self.journal.is_checked() {
                    self.journal.check();
                }
                return self.journal.deadline();
            }
        }
        Some(now.mono)
    }

    /// Does nothing: a start's work is done as each log is opened.
    fn opened(&mut self) {}

    fn close(&mut self, now: Now) {
        self.journal.close(now);
    }

    fn is_closed(&self) -> bool {
        self.journal.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        let trouble = self.journal.faults.trouble()?;
        Some(Trouble {
            full: trouble.full,
            error: trouble.error.clone(),
        })
    }

    fn damage(&self) -> u64 {
        self.journal.faults.damage().count()
    }

    fn read_bytes(&self) -> u64 {
        self.journal.readers.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.journal.time.state()
    }

    fn accept_clock(&mut self, now: Now) {
        self.journal.time.believe(now);
        self.journal.upkeep.set_retain_at(now.mono);
    }
}
