//! The disk: its files, the operations under way, and the record of stored data.

use super::damage::Hit;
use super::file::SimFile;
use crate::census::{Census, Kind};
use crate::entropy::Entropy;
use crate::invariants::Violation;
use crate::message::{MessageId, scan};
use crate::swarm::Swarm;
use airmail_log::files::{FileDone, FileName, FileOp, FileToken, Note};
use airmail_model::Mono;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

/// Time that an operation of a slow disk takes longer.
const SLOW_NANOS: u64 = 20_000_000;

/// An operation under way.
#[derive(Debug)]
pub(super) struct Pending {
    /// `None`: nobody is told.
    pub(super) token: Option<FileToken>,
    pub(super) op: FileOp,
    due: Mono,
    number: u64,
}

/// Completion of an operation, on its way to the caller.
#[derive(Debug)]
pub(super) struct Done {
    done: FileDone,
    name: FileName,
    /// It is told then.
    told: Mono,
}

/// The machine's disk, which outlives every process.
#[derive(Debug)]
pub struct Disk {
    pub(super) files: BTreeMap<FileName, SimFile>,
    /// Removed, but the directory has not been synced since: a crash may bring them back.
    pub(super) ghosts: BTreeMap<FileName, SimFile>,
    pub(super) pending: Vec<Pending>,
    pub(super) done: Vec<Done>,
    pub(super) chance: Entropy,
    pub(super) faults: Swarm,
    pub(super) lies: bool,
    pub(super) durable: BTreeSet<MessageId>,
    pub(super) written: BTreeSet<MessageId>,
    pub(super) capacity: u64,
    /// Every sync fails.
    pub(super) ailing: bool,
    /// Everything takes long.
    slow: bool,
    pub(super) census: Census,
    failures: u64,
    /// Damage that was done.
    pub(super) hits: Vec<Hit>,
    /// Number of failures in a row of the read of a place.
    pub(super) failed_reads: BTreeMap<(FileName, u64), u32>,
    now: Mono,
    life: u64,
    submitted: u64,
    /// Reads that have been done.
    reads: u64,
    violation: Option<Violation>,
}

impl Disk {
    /// An empty disk. With `lies` it says of a sync that it is done and does not do it: a planted
    /// bug.
    #[must_use]
    pub fn new(chance: Entropy, faults: Swarm, lies: bool) -> Disk {
        Disk {
            files: BTreeMap::new(),
            ghosts: BTreeMap::new(),
            pending: Vec::new(),
            done: Vec::new(),
            chance,
            faults,
            lies,
            durable: BTreeSet::new(),
            written: BTreeSet::new(),
            capacity: u64::MAX,
            ailing: false,
            slow: false,
            census: Census::default(),
            failures: 0,
            hits: Vec::new(),
            failed_reads: BTreeMap::new(),
            now: Mono(0),
            life: 0,
            submitted: 0,
            reads: 0,
            violation: None,
        }
    }

    /// The process whose operations are taken.
    #[must_use]
    pub const fn life(&self) -> u64 {
        self.life
    }

    pub(super) fn boot(&mut self) -> u64 {
        self.life += 1;
        self.failures = 0;
        self.pending.clear();
        self.done.clear();
        self.undo_untold_damage();
        self.life
    }

    /// Other faults from here on.
    pub fn set_faults(&mut self, faults: Swarm) {
        self.faults = faults;
    }

    /// Room for `bytes` more than there are now; `None`: without bound.
    pub fn set_room(&mut self, bytes: Option<u64>) {
        self.capacity = bytes.map_or(u64::MAX, |bytes| self.used() + bytes);
    }

    /// Makes every sync fail from here on, or as many as the faults say.
    pub fn set_ailing(&mut self, ailing: bool) {
        self.ailing = ailing;
    }

    /// Makes everything take long from here on, or as long as the faults say.
    pub fn set_slow(&mut self, slow: bool) {
        self.slow = slow;
    }

    /// Everything that was on it is gone.
    pub fn wipe(&mut self) {
        self.files.clear();
        self.ghosts.clear();
        self.pending.clear();
        self.done.clear();
    }

    /// Census of its events.
    #[must_use]
    pub const fn census(&self) -> &Census {
        &self.census
    }

    /// Bytes taken by all files.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.files.values().map(SimFile::length).sum()
    }

    /// Operations of this process that have failed.
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.failures
    }

    /// Whether a message has been on the disk, whole and synced.
    #[must_use]
    pub fn is_durable(&self, id: MessageId) -> bool {
        self.durable.contains(&id)
    }

    /// Whether a message has been handed to the operating system, whole.
    #[must_use]
    pub fn is_written(&self, id: MessageId) -> bool {
        self.written.contains(&id)
    }

    /// Takes the journal's violation of what it must never do. Returned once.
    pub fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    pub(super) fn list(&self) -> Vec<(FileName, u64)> {
        let entry = |(name, file): (&FileName, &SimFile)| (name.clone(), file.length());
        self.files.iter().map(entry).collect()
    }

    pub(super) fn load(&self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes> {
        let file = self.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        let from = usize::try_from(at)
            .unwrap_or(usize::MAX)
            .min(file.seen.len());
        let to = from.saturating_add(length as usize).min(file.seen.len());
        Ok(Bytes::copy_from_slice(&file.seen[from..to]))
    }

    pub(super) fn submit(&mut self, token: FileToken, op: FileOp) {
        self.check_submitted(&op);
        self.enqueue(Some(token), op);
    }

    /// Has a note written, some time after the sync that it was with: the write that it was with
    /// may be answered before, and a crash may come between.
    pub(super) fn follow(&mut self, note: Note) {
        let op = FileOp::Write {
            name: note.name,
            at: note.at,
            parts: vec![note.bytes],
            sync: false,
            note: None,
        };
        self.enqueue(None, op);
    }

    fn enqueue(&mut self, token: Option<FileToken>, op: FileOp) {
        let most = if matches!(op, FileOp::Read { .. }) {
            self.faults.read_delay
        } else {
            self.faults.write_delay
        };
        let most = u64::try_from(most.as_nanos()).unwrap_or(0);
        let mut delay = self.chance.between(0, most);
        if self.chance.chance(self.faults.stall) {
            self.census.count(Kind::Stalled);
            delay = delay.saturating_mul(100);
        }
        if self.slow {
            delay += SLOW_NANOS;
        }
        let mut due = self.now.plus(Duration::from_nanos(delay));
        for earlier in &self.pending {
            if must_follow(&earlier.op, &op) {
                due = due.max(earlier.due);
            }
        }
        self.submitted += 1;
        self.pending.push(Pending {
            token,
            op,
            due,
            number: self.submitted,
        });
    }

    /// A file whose sync has failed is never synced again, once the journal knows.
    fn check_submitted(&mut self, op: &FileOp) {
        let (FileOp::Write {
            name, sync: true, ..
        }
        | FileOp::Fill { name, .. }) = op
        else {
            return;
        };
        if self.files.get(name).is_some_and(|file| file.failure_told) {
            self.violation.get_or_insert_with(|| {
                Violation::new("G1 failed sync is final", format!("{name} synced again"))
            });
        }
    }

    /// Carries out the operations that are due, in order.
    pub fn advance(&mut self, now: Mono) {
        self.now = now;
        loop {
            let next = self
                .pending
                .iter()
                .enumerate()
                .filter(|(_, p)| p.due <= now);
            let Some((index, _)) = next.min_by_key(|(_, p)| (p.due, p.number)) else {
                return;
            };
            let mut pending = self.pending.remove(index);
            let name = name_of(&pending.op).clone();
            let records = match &mut pending.op {
                FileOp::Read { records, .. } => std::mem::take(records),
                _ => Vec::new(),
            };
            let is_read = matches!(pending.op, FileOp::Read { .. });
            let is_sync = matches!(pending.op, FileOp::Write { sync: true, .. });
            let result = self.effect(pending.op);
            self.failures += u64::from(result.is_err());
            self.reads += u64::from(is_read);
            if let Some(token) = pending.token {
                let told = if is_sync { self.late() } else { self.now };
                // What is asked of one file is told in order.
                let earlier = self.done.iter().filter(|done| done.name == name);
                let told = earlier.map(|done| done.told).fold(told, Mono::max);
                let done = FileDone::of_read(token, result, &records);
                self.done.push(Done { done, name, told });
            }
        }
    }

    /// When a sync that is done now is told to be so.
    fn late(&mut self) -> Mono {
        if !self.chance.chance(self.faults.confirms_late) {
            return self.now;
        }
        self.census.count(Kind::ConfirmedLate);
        self.now.plus(a_while(&mut self.chance))
    }

    /// When something becomes due or is told, if anything is under way.
    #[must_use]
    pub fn next_due(&self) -> Option<Mono> {
        let pending = self.pending.iter().map(|pending| pending.due);
        pending.chain(self.done.iter().map(|done| done.told)).min()
    }

    /// Reads that have been done, over all processes.
    #[must_use]
    pub const fn reads(&self) -> u64 {
        self.reads
    }

    /// Completions are there to be taken.
    #[must_use]
    pub fn has_done(&self) -> bool {
        self.done.iter().any(|done| done.told <= self.now)
    }

    pub(super) fn poll(&mut self, out: &mut Vec<FileDone>) {
        let now = self.now;
        for Done { done, name, .. } in self.done.extract_if(.., |done| done.told <= now) {
            if done.result.is_err()
                && let Some(file) = self.files.get_mut(&name)
            {
                file.failure_told |= file.failed;
            }
            out.push(done);
        }
    }

    pub(super) fn note_written(&mut self, bytes: &[u8]) {
        scan(bytes, |id, _| {
            self.written.insert(id);
        });
    }

    pub(super) fn note_durable(&mut self, bytes: &[u8]) {
        scan(bytes, |id, _| {
            self.durable.insert(id);
        });
    }
}

/// Longer than a delay: most clients wait so long, some do not.
pub(crate) fn a_while(chance: &mut Entropy) -> Duration {
    let most = if chance.chance(200_000) {
        5_000_000
    } else {
        300_000
    };
    Duration::from_micros(chance.below(most))
}

/// The file that an operation is about; for a rename, the one that is there afterwards.
pub(super) const fn name_of(op: &FileOp) -> &FileName {
    match op {
        FileOp::Create { name }
        | FileOp::Write { name, .. }
        | FileOp::Fill { name, .. }
        | FileOp::Read { name, .. }
        | FileOp::Cut { name, .. }
        | FileOp::Remove { name }
        | FileOp::Rename { to: name, .. } => name,
    }
}

fn must_follow(earlier: &FileOp, later: &FileOp) -> bool {
    if matches!(later, FileOp::Read { .. }) || matches!(earlier, FileOp::Read { .. }) {
        return false;
    }
    let from = |op: &FileOp| match op {
        FileOp::Rename { from, .. } => Some(from.clone()),
        _ => None,
    };
    let touches =
        |op: &FileOp, name: &FileName| name_of(op) == name || from(op).as_ref() == Some(name);
    touches(earlier, name_of(later)) || from(later).is_some_and(|name| touches(earlier, &name))
}
