//! Appends: whether a batch may be stored, its numbers, and the answers of a log in their order.
//!
//! The handler borrows only the parts that a batch changes before it is written: no segment is
//! among them.

use super::cache::Cached;
use super::calls::Calls;
use super::commands::Commands;
use super::commits::Commits;
use super::effects::Effects;
use super::entry::{Entry, Recent};
use super::faults::Faults;
use super::id::{FileOffset, Slot};
use super::log::{Answer, LogState};
use super::logs::Logs;
use super::meta::Meta;
use super::producers::{Producers, Verdict};
use super::readers::Readers;
use super::results::Outcome;
use super::time::Time;
use super::{Journal, JournalConfig};
use crate::contract::{Completion, Refusal, Tag};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_model::{Batch, Checked, Extent, Lane, LogId, MapEpoch, Synced, bug};
use std::collections::BTreeSet;

/// Whether a batch that is refused like this may have been stored before: all but one from beyond a hole.
fn may_be_stored(why: &Refusal) -> bool {
    !matches!(why, Refusal::OutOfOrder { expected, found } if found > expected)
}

/// Approximate size of a batch in a segment, with envelope and padding.
pub(super) fn cost(batch: &Batch) -> u64 {
    super::format::padded((super::format::ENVELOPE_BYTES + batch.bytes().len()) as u64)
}

/// The same, as it is counted where the batch waits in memory.
pub(super) fn waiting_cost(batch: &Batch) -> usize {
    memory_bytes(cost(batch))
}

/// A number of bytes as one of memory, of which there is no more than can be addressed.
pub(super) fn memory_bytes(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Asks for a reservation of at least `numbers` where a log needs one.
pub(super) fn reserve(
    config: &JournalConfig,
    log: &mut LogState,
    commands: &mut Commands,
    numbers: u64,
) {
    let ahead = config.reserve_numbers.max(numbers);
    let weak = log.life.spec.durability.synced < Synced::Fsync;
    if weak && log.numbers.reserving < log.numbers.next.plus(ahead / 2) {
        log.numbers.reserving = log.numbers.next.plus(ahead);
        let (slot, until) = (log.slot, log.numbers.reserving);
        commands.give(Meta::Reserve { slot, until }, None);
    }
}

/// The parts of the journal that taking up a batch reads or changes.
pub(super) struct Appending<'j> {
    config: &'j JournalConfig,
    time: &'j Time,
    calls: &'j Calls,
    faults: &'j Faults,
    logs: &'j mut Logs,
    producers: &'j mut Producers,
    commits: &'j mut Commits,
    commands: &'j mut Commands,
    readers: &'j mut Readers,
    effects: &'j mut Effects,
}

impl Journal {
    fn appending(&mut self) -> Appending<'_> {
        Appending {
            config: &self.config,
            time: &self.time,
            calls: &self.calls,
            faults: &self.faults,
            logs: &mut self.logs,
            producers: &mut self.producers,
            commits: &mut self.commits,
            commands: &mut self.commands,
            readers: &mut self.readers,
            effects: &mut self.effects,
        }
    }

    /// Takes up a batch, or refuses it in its turn.
    pub(super) fn append(&mut self, t: Tag, id: LogId, map: MapEpoch, batch: Checked<Batch>) {
        self.appending().append(t, id, map, batch);
    }

    /// Refuses an append that found no room, in its turn.
    pub(super) fn busy(&mut self, t: Tag, id: LogId) {
        self.appending().busy(t, id);
    }

    /// Gives the answers of a log that are due, and lets its readers go on.
    pub(super) fn log_moved(&mut self, slot: Slot) {
        self.appending().log_moved(slot);
    }

    /// The same of several logs.
    pub(super) fn logs_moved(&mut self, moved: BTreeSet<Slot>) {
        for slot in moved {
            self.log_moved(slot);
        }
    }
}

impl Appending<'_> {
    fn append(&mut self, t: Tag, id: LogId, map: MapEpoch, batch: Checked<Batch>) {
        let Some(slot) = self.logs.slot_of(id).filter(|_| batch.log() == id) else {
            // Input: an owner that names a log which is not open, or sends it another's batch.
            return self.effects.tell(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        let verdict = match batch.producer() {
            Some(stamp) => self.producers.verdict(slot, stamp, batch.numbers()),
            None => Verdict::Next,
        };
        let refused = self.refusal(slot, map, &batch);
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} of {id} has no log");
            let why = Refusal::OutcomeUnknown;
            return self.effects.tell(Completion::Refused { t, why });
        };
        match (verdict, refused) {
            // That it was stored is no help to anyone, if nobody finds it again.
            (Verdict::Duplicate(_), Some(why)) if self.faults.is_withheld() => log.refuse(t, why),
            (Verdict::Duplicate(known), _) => {
                let extent = Extent::starting_at(known.first, known.records);
                let at = known.time;
                log.answers.push_back(Answer::Waiting {
                    t,
                    extent,
                    at,
                    duplicate: true,
                });
            }
            // Whoever is told of the seal publishes it elsewhere: only what was surely never stored.
            (Verdict::Refuse(why), Some(Refusal::Sealed { .. })) if may_be_stored(&why) => {
                log.refuse(t, why);
            }
            (_, Some(why)) | (Verdict::Refuse(why), None) => log.refuse(t, why),
            (Verdict::Next, None) => self.accept(slot, t, batch),
        }
        self.log_moved(slot);
    }

    /// Refuses an append that found no room, in its turn.
    fn busy(&mut self, t: Tag, id: LogId) {
        let why = Refusal::Busy {
            retry_after: self.config.probe_interval,
        };
        let log = self.logs.named_mut(id);
        match log {
            Some(log) => {
                log.refuse(t, why);
                log.answer(self.effects.completions());
            }
            None => self.effects.tell(Completion::Refused {
                t,
                why: Refusal::NoLog,
            }),
        }
    }

    /// The refusal of a batch that is no retry and cannot be taken up.
    fn refusal(&self, slot: Slot, map: MapEpoch, batch: &Batch) -> Option<Refusal> {
        let log = self.logs.get(slot)?;
        let retry_after = self.config.probe_interval;
        let sealed = log.life.sealed;
        #[cfg(feature = "sabotage")]
        let sealed = sealed.filter(|_| !self.config.has_bug(Bug::SealForgotten));
        if let Some(next) = sealed {
            // While nothing is stored, not even this: what is asked for may have been stored before.
            let told = log.life.tells_seal() && !self.faults.is_withheld();
            let why = self.faults.trouble().filter(|_| !told);
            let sealed = Refusal::Sealed { next };
            return Some(why.map_or(sealed, |why| why.refusal(retry_after)));
        }
        if map != log.life.spec.epoch {
            return Some(Refusal::StaleMap {
                current: log.life.spec.epoch,
            });
        }
        if let Some(trouble) = self.faults.trouble() {
            return Some(trouble.refusal(retry_after));
        }
        let (waiting, lane) = (self.commits.lane_bytes(), batch.log().lane);
        let most = memory_bytes(self.config.pending_bytes);
        let room = waiting.fits(lane, waiting_cost(batch), most);
        let busy = self.calls.is_closing() || !room;
        busy.then_some(Refusal::Busy { retry_after })
    }

    /// Gives a batch its numbers.
    fn accept(&mut self, slot: Slot, t: Tag, batch: Checked<Batch>) {
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} takes a batch and has no log");
            let why = Refusal::OutcomeUnknown;
            return self.effects.tell(Completion::Refused { t, why });
        };
        let numbers = batch.numbers();
        let (first, time) = (log.numbers.next, log.clock.read(self.time.now()));
        log.numbers.next = log.numbers.next.plus(u64::from(numbers));
        let extent = Extent::starting_at(first, numbers);
        log.answers.push_back(Answer::Waiting {
            t,
            extent,
            at: time,
            duplicate: false,
        });
        log.recent.push_back(Recent {
            first,
            numbers,
            time,
            batch: batch.clone(),
        });
        let bytes = cost(&batch);
        // What is to overtake others waits for the commits under way, and not for more to go along.
        let awaited = log.life.spec.durability.synced > Synced::Memory || log.id.lane == Lane::High;
        self.logs.cached(Cached { slot, first, bytes });
        let undo = batch.producer().map(|stamp| {
            let sequence = stamp.sequence;
            let outcome = Outcome {
                sequence,
                records: numbers,
                first,
                time,
            };
            (stamp, self.producers.accept(slot, stamp, outcome))
        });
        let entry = Entry {
            slot,
            first,
            numbers,
            time,
            batch,
            offset: FileOffset::START,
            undo,
            copy: false,
        };
        self.commits.accept(entry, awaited, self.time.mono());
        self.copy_first(slot);
        self.reserve(slot, u64::from(numbers));
    }

    /// Asks for a reservation of numbers where the log needs one.
    fn reserve(&mut self, slot: Slot, numbers: u64) {
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} reserves numbers and has no log");
            return;
        };
        reserve(self.config, log, self.commands, numbers);
    }

    /// Has a batch of log 0 that was taken up copied, before it is written. In memory there is no damage.
    fn copy_first(&mut self, slot: Slot) {
        let log = self.logs.get(slot);
        let kept = log.filter(|log| log.id == LogId::SYSTEM && !self.config.new_incarnations);
        if let Some(newest) = kept.and_then(|log| log.recent.back()) {
            let copy = Meta::Copy {
                slot,
                first: newest.first,
                numbers: newest.numbers,
                time: newest.time,
                bytes: newest.batch.bytes().clone(),
            };
            self.commands.give(copy, None);
        }
    }

    /// Gives the answers of a log that are due, and lets its readers go on.
    fn log_moved(&mut self, slot: Slot) {
        let backlog = self.commits.bytes() > self.config.pending_bytes / 2;
        let Some(log) = self.logs.get_mut(slot) else {
            // Input: a log that was deleted while its batches were on their way.
            return;
        };
        // A crash could bring back what had its numbers before: they are told when they are written, behind the command
        // that excludes that.
        let backlog = backlog || log.life.unsettled;
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(Bug::SeenBeforeSync) {
            log.numbers.visible = log.numbers.next;
        }
        let moved = log
            .numbers
            .advance(log.life.spec.durability.synced, backlog);
        log.answer(self.effects.completions());
        if moved {
            self.readers.wake_all(log.at_tail.drain(..));
        }
    }
}
