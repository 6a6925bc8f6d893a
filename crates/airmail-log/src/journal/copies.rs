//! Copies of log 0's batches: in memory, in commands, and in each checkpoint.
//!
//! Log 0 holds the namespaces, as commands: few and small, and without them nothing else can be
//! reached. So damage to the one place that a batch has in a segment must not lose them. A reader
//! of log 0 gets the copies first; a checkpoint is written when log 0 was appended to.
//!
//! Until that checkpoint is there, each batch is in a command of the journal, too. Commands go
//! first: when the batch is written, its copy is durable in another file, and so it is when the
//! append is answered. If only the copy of a batch is found when the journal opens, the batch is
//! taken for one that may not be durable, and written once more. The copy of a refused batch is
//! taken back by another command before the refusal is told, like the end of a failed segment.
//!
//! Invariant, held by [`Copies::check`]: copies never overlap, and are never more than `BYTES_MAX`
//! bytes.

use super::checkpoint::CopyPart;
use super::commands::Commands;
use super::commits::Commits;
use super::entry::Recent;
use super::format::Envelope;
use super::log::LogState;
use super::logs::Logs;
use super::meta::Meta;
use airmail_model::{Batch, Checked, Sequence};
use std::collections::BTreeMap;

/// Most bytes of copies; a batch beyond it has its segment alone, like every other log's, when the
/// checkpoint is there.
const BYTES_MAX: u64 = 4 << 20;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Copies {
    batches: BTreeMap<Sequence, Recent>,
    bytes: u64,
    /// Number after the last one whose copy is in a durable command.
    told: Sequence,
}

impl Copies {
    /// Takes up a batch, if there is room.
    pub(super) fn take(&mut self, batch: Recent) {
        let bytes = batch.batch.bytes().len() as u64;
        if self.bytes + bytes <= BYTES_MAX && !self.batches.contains_key(&batch.first) {
            self.bytes += bytes;
            self.batches.insert(batch.first, batch);
        }
    }

    /// Carries out a durable command.
    pub(super) fn apply(&mut self, meta: &Meta) {
        match meta {
            Meta::Copy {
                first,
                numbers,
                time,
                bytes,
                ..
            } => {
                let copy = CopyPart {
                    first: *first,
                    numbers: *numbers,
                    time: *time,
                    bytes: bytes.clone(),
                };
                if let Some(copy) = copy.sound() {
                    self.told = self.told.max(copy.next());
                    self.take(copy);
                }
            }
            Meta::TakenBack { from, .. } => self.take_back(*from),
            _ => {}
        }
    }

    /// The batch that holds `number`.
    pub(super) fn at(&self, number: Sequence) -> Option<&Recent> {
        let (_, batch) = self.batches.range(..=number).next_back()?;
        (number < batch.next()).then_some(batch)
    }

    /// Those that hold a number from `from` on, in order.
    pub(super) fn from(&self, from: Sequence) -> impl Iterator<Item = &Recent> {
        let all = self.batches.values();
        all.filter(move |batch| batch.next() > from)
    }

    /// The log is trimmed.
    pub(super) fn forget(&mut self, before: Sequence) {
        self.retain(|batch| batch.next() > before);
    }

    /// Numbers from `from` on are given again.
    fn take_back(&mut self, from: Sequence) {
        self.told = self.told.min(from);
        self.retain(|batch| batch.first < from);
    }

    /// Number after the last one whose copy is in a durable command.
    pub(super) fn told(&self) -> Sequence {
        self.told
    }

    /// Asserts the invariant of the module's documentation.
    pub(super) fn check(&self) {
        let all = self.batches.values();
        let sum: u64 = all
            .clone()
            .map(|copy| copy.batch.bytes().len() as u64)
            .sum();
        assert_eq!(
            sum,
            self.bytes,
            "the bytes of {} copies",
            self.batches.len()
        );
        assert!(self.bytes <= BYTES_MAX, "{} bytes of copies", self.bytes);
        let mut pairs = all.clone().zip(all.skip(1));
        assert!(
            pairs.all(|(one, next)| one.next() <= next.first),
            "copies overlap"
        );
    }

    fn retain(&mut self, stays: impl Fn(&Recent) -> bool) {
        let bytes = &mut self.bytes;
        self.batches.retain(|_, batch| {
            let stays = stays(batch);
            if !stays {
                *bytes -= batch.batch.bytes().len() as u64;
            }
            stays
        });
    }
}

/// Numbers of log 0 from `from` on are given again: no crash may bring back what had them.
pub(super) fn take_back_copies(
    log: &mut LogState,
    from: Sequence,
    commands: &mut Commands,
    commits: &Commits,
) {
    let slot = log.slot;
    let is_copy = |meta: &Meta| matches!(meta, Meta::Copy { first, .. } if *first >= from);
    commands.retain(|meta| !is_copy(meta));
    let mut written = commits.parts().flat_map(|part| &part.metas);
    if log.copies.told > from || written.any(|(meta, _)| is_copy(meta)) {
        commands.give(Meta::TakenBack { slot, from }, None);
    }
    log.copies.take_back(from);
}

/// The batches of which only the copy was found.
pub(super) fn only_copied(logs: &Logs) -> Vec<(Envelope, Checked<Batch>)> {
    let alone = |log: &LogState| {
        let copies = log.copies.from(log.numbers.first);
        let copies = copies.filter(|copy| !log.has(copy.first, copy.next()));
        let copies = copies.map(|copy| (copy.envelope(log.slot), copy.batch.clone()));
        copies.collect::<Vec<_>>()
    };
    logs.iter().flat_map(alone).collect()
}
