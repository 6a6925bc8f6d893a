//! Readers of a link: where each stands, so that it goes on there after a cut, a hole, or for want of room at
//! the far end.
//!
//! Each start of a reader has a number of its own on the link, its *run*; what comes of an earlier run is
//! dropped. A run's ranges follow one another: each is of all numbers after `previous`. One that begins
//! above the reader's `next` leaves a hole, and the reader is started anew from there. Of one that begins
//! below, the part that was told is cut off.
//!
//! Invariants: `next` never goes back; a reader has one run at most; a run is of one reader.

use super::edits::Edits;
use crate::tiling::Tiling;
use airmail_log::{Call, Completion, ReaderId, Refusal, Scope, ScopeFilter, Stored, WantEdit};
use airmail_model::{LogId, Sequence, bug};
use std::collections::BTreeMap;

/// A reader of the owner.
#[derive(Debug)]
pub(super) struct LinkReader {
    log: LogId,
    scope: Box<Scope>,
    /// Numbers that its owner was told of.
    tiling: Tiling,
    /// Credit that its owner has given and no batch has used, in bytes. Below 0: overdrawn.
    credit: i64,
    /// Part of the credit that the far end has not been told of.
    held_back: u64,
    /// Part of what was overdrawn that the far end does not know of: it is not passed on when it is paid.
    debt: u64,
    run: ReaderId,
    /// The far end has been asked for the run.
    is_started: bool,
    /// A message with more credit is to be sent already.
    has_grant: bool,
    is_stopped: bool,
    tail_told: Option<Sequence>,
    seal_told: bool,
    edits: Edits,
}

/// Consequence of a completion of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// To be told to the owner.
    Tell(Completion),
    /// The reader is to be started anew, as this run.
    Resume(ReaderId),
    /// Nothing: it is of an earlier run, or was told before.
    Nothing,
}

/// Readers by the owner's id, and by run.
#[derive(Debug, Default)]
pub(super) struct Readers {
    readers: BTreeMap<ReaderId, LinkReader>,
    runs: BTreeMap<ReaderId, ReaderId>,
    last_run: u64,
}

impl Readers {
    /// Number of readers.
    pub(super) fn len(&self) -> usize {
        self.readers.len()
    }

    /// A new reader of the owner; its run is to be started.
    pub(super) fn take(
        &mut self,
        r: ReaderId,
        log: LogId,
        from: Sequence,
        scope: Box<Scope>,
        credit: u32,
    ) -> ReaderId {
        let run = self.run(r);
        let reader = LinkReader {
            log,
            scope,
            tiling: Tiling::begin(from),
            credit: credit.into(),
            held_back: 0,
            debt: 0,
            run,
            is_started: false,
            has_grant: false,
            is_stopped: false,
            tail_told: None,
            seal_told: false,
            edits: Edits::default(),
        };
        if self.readers.insert(r, reader).is_some() {
            bug!("{r:?} is started again before it has ended");
        }
        run
    }

    fn run(&mut self, r: ReaderId) -> ReaderId {
        let run = self.new_run();
        self.runs.insert(run, r);
        run
    }

    /// The number of another run, of whatever reader.
    pub(super) fn new_run(&mut self) -> ReaderId {
        self.last_run += 1;
        ReaderId(self.last_run)
    }

    /// Where a reader stands.
    pub(super) fn next_of(&self, r: ReaderId) -> Option<Sequence> {
        self.readers.get(&r).map(|reader| reader.tiling.next())
    }

    /// Takes all readers of a log, each with the run that the far end knows. Those that were stopped end.
    pub(super) fn hand_over(
        &mut self,
        log: LogId,
        told: &mut impl Extend<Completion>,
    ) -> Vec<(ReaderId, LinkReader, Option<ReaderId>)> {
        let of_log = self.readers.iter().filter(|(_, reader)| reader.log == log);
        let of_log: Vec<ReaderId> = of_log.map(|(r, _)| *r).collect();
        let mut handed = Vec::new();
        for r in of_log {
            let Some(mut reader) = self.readers.remove(&r) else {
                bug!("{r:?} is not there");
                continue;
            };
            self.runs.remove(&reader.run);
            let was_started = std::mem::take(&mut reader.is_started);
            let run = reader.edits.known_run(reader.run, was_started);
            reader.has_grant = false;
            if reader.is_stopped {
                told.extend([Completion::Ended { r, why: None }]);
                continue;
            }
            handed.push((r, reader, run));
        }
        handed
    }

    /// Goes on with a reader of another link: its run here, which is to be started.
    pub(super) fn take_over(&mut self, r: ReaderId, mut reader: LinkReader) -> ReaderId {
        let run = self.run(r);
        reader.run = run;
        if self.readers.insert(r, reader).is_some() {
            bug!("{r:?} is taken over twice");
        }
        run
    }

    /// The owner lets a reader give more: the run that has to be told of it.
    pub(super) fn credit(&mut self, r: ReaderId, bytes: u32) -> Option<ReaderId> {
        let reader = self.readers.get_mut(&r)?;
        reader.credit = reader.credit.saturating_add(bytes.into());
        let paid = reader.debt.min(bytes.into());
        reader.debt -= paid;
        reader.held_back = reader.held_back.saturating_add(u64::from(bytes) - paid);
        let tells = reader.is_started && !reader.has_grant && reader.held_back > 0;
        reader.has_grant |= tells;
        tells.then_some(reader.run)
    }

    /// The owner changes what is wanted of a reader: the run that has to be told of it.
    pub(super) fn want(
        &mut self,
        r: ReaderId,
        number: u32,
        topics: Box<WantEdit>,
    ) -> Option<ReaderId> {
        let reader = self.readers.get_mut(&r)?;
        reader.edits.take(number, topics);
        reader.is_started.then_some(reader.run)
    }

    /// The edits of a run, unless it is over.
    pub(super) fn edits(&mut self, run: ReaderId) -> Option<&mut Edits> {
        let reader = self.readers.get_mut(self.runs.get(&run)?)?;
        Some(&mut reader.edits)
    }

    /// The earlier run whose list a reader would have taken over, had it been started.
    pub(super) fn earlier(&self, r: ReaderId) -> Option<ReaderId> {
        let reader = self.readers.get(&r)?;
        reader.edits.earlier().filter(|_| !reader.is_started)
    }

    /// The owner stops a reader: the run that has to be told, or its end where there is nobody to tell.
    pub(super) fn stop(&mut self, r: ReaderId) -> Option<Result<ReaderId, Completion>> {
        let reader = self.readers.get_mut(&r)?;
        if !reader.is_started {
            return Some(Err(self.end(r, None)));
        }
        if reader.is_stopped {
            return None;
        }
        reader.is_stopped = true;
        Some(Ok(reader.run))
    }

    /// The call that starts a run, unless the run is over.
    pub(super) fn start(&mut self, run: ReaderId) -> Option<Call> {
        let reader = self.readers.get_mut(self.runs.get(&run)?)?;
        let credit = u64::try_from(reader.credit).unwrap_or(0);
        reader.debt = reader.credit.min(0).unsigned_abs();
        let told = u32::try_from(credit).unwrap_or(u32::MAX);
        reader.held_back = credit - u64::from(told);
        reader.is_started = true;
        Some(Call::Read {
            r: run,
            log: reader.log,
            from: reader.tiling.next(),
            scope: reader.scope.clone(),
            credit: told,
        })
    }

    /// The call was not sent after all.
    pub(super) fn not_started(&mut self, run: ReaderId) {
        let r = self.runs.get(&run);
        if let Some(reader) = r.and_then(|r| self.readers.get_mut(r)) {
            reader.is_started = false;
        }
    }

    /// The call that passes credit on, unless the run is over.
    pub(super) fn grant(&mut self, run: ReaderId) -> Option<Call> {
        let reader = self.readers.get_mut(self.runs.get(&run)?)?;
        let bytes = u32::try_from(reader.held_back).unwrap_or(u32::MAX);
        Some(Call::Credit { r: run, bytes })
    }

    /// The call that [`Readers::grant`] gave was sent; whether there is more to be passed on.
    pub(super) fn granted(&mut self, run: ReaderId) -> bool {
        let r = self.runs.get(&run);
        let Some(reader) = r.and_then(|r| self.readers.get_mut(r)) else {
            bug!("credit was granted to {run:?}, which is over");
            return false;
        };
        reader.held_back = reader.held_back.saturating_sub(u32::MAX.into());
        reader.has_grant = reader.held_back > 0;
        reader.has_grant
    }

    /// Whether a run is under way.
    pub(super) fn is_running(&self, run: ReaderId) -> bool {
        self.runs.contains_key(&run)
    }

    /// The connection is gone. Readers that were stopped end; the others are to be resumed when there is one.
    pub(super) fn cut(&mut self, told: &mut impl Extend<Completion>) {
        self.runs.clear();
        let stopped = self.readers.iter().filter(|(_, reader)| reader.is_stopped);
        let stopped: Vec<ReaderId> = stopped.map(|(r, _)| *r).collect();
        told.extend(stopped.into_iter().map(|r| self.end(r, None)));
        for (r, reader) in &mut self.readers {
            reader.has_grant = false;
            let was_started = std::mem::take(&mut reader.is_started);
            if reader.edits.cut(was_started) {
                told.extend([Completion::WantsLost { r: *r }]);
            }
        }
    }

    /// Runs of every reader, which are to be started.
    pub(super) fn resume_all(&mut self) -> Vec<ReaderId> {
        let readers: Vec<ReaderId> = self.readers.keys().copied().collect();
        let runs = readers.into_iter().filter_map(|r| self.resume(r));
        runs.collect()
    }

    /// A planted bug: the numbers of runs begin anew.
    #[cfg(feature = "sabotage")]
    pub(super) fn number_anew(&mut self) {
        self.last_run = 0;
    }

    /// A planted bug: every reader is taken to stand one number further.
    #[cfg(feature = "sabotage")]
    pub(super) fn skip_one(&mut self) {
        for reader in self.readers.values_mut() {
            reader.tiling.skip_one();
        }
    }

    /// A planted bug: the credit that a run begins with is passed on once more.
    #[cfg(feature = "sabotage")]
    pub(super) fn hold_back_again(&mut self, run: ReaderId) {
        let r = self.runs.get(&run);
        if let Some(reader) = r.and_then(|r| self.readers.get_mut(r)) {
            reader.held_back = u64::try_from(reader.credit).unwrap_or(0);
        }
    }

    /// Another run of a reader.
    fn resume(&mut self, r: ReaderId) -> Option<ReaderId> {
        let run = self.run(r);
        let reader = self.readers.get_mut(&r)?;
        let earlier = std::mem::replace(&mut reader.run, run);
        if reader.is_started && reader.scope.filter == ScopeFilter::Wanted {
            reader.edits.resume(earlier);
        }
        reader.is_started = false;
        reader.has_grant = false;
        self.runs.remove(&earlier);
        Some(run)
    }

    fn end(&mut self, r: ReaderId, why: Option<Refusal>) -> Completion {
        if let Some(reader) = self.readers.remove(&r) {
            self.runs.remove(&reader.run);
        }
        Completion::Ended { r, why }
    }

    /// The far end has stopped a run for want of room.
    pub(super) fn behind(&mut self, run: ReaderId) -> Reading {
        let Some(&r) = self.runs.get(&run) else {
            // Input: a run that was stopped, or resumed, before this was said.
            return Reading::Nothing;
        };
        match self.readers.get(&r) {
            Some(reader) if reader.is_stopped => Reading::Tell(self.end(r, None)),
            _ => self.resumed(r),
        }
    }

    fn resumed(&mut self, r: ReaderId) -> Reading {
        self.resume(r).map_or(Reading::Nothing, Reading::Resume)
    }

    /// The next numbers of a run.
    pub(super) fn range(&mut self, previous: Sequence, completion: Completion) -> Reading {
        let run = completion.reader();
        let Some(&r) = run.and_then(|run| self.runs.get(&run)) else {
            // Input: what comes late of an earlier run.
            return Reading::Nothing;
        };
        let Some(reader) = self.readers.get_mut(&r) else {
            bug!("{run:?} is of {r:?}, which is not there");
            return Reading::Nothing;
        };
        if reader.is_stopped {
            return Reading::Nothing;
        }
        if previous.plus(1) > reader.tiling.next() {
            return self.resumed(r);
        }
        let cut = match completion {
            Completion::Batch { stored, .. } => reader.batch(r, stored),
            Completion::Gap { extent, why, .. } => reader.tiling.gap(r, extent, why),
            // Input: a far end that tells something else as a range.
            _ => None,
        };
        cut.map_or(Reading::Nothing, Reading::Tell)
    }

    /// A mark of a run: its place, the end of a sealed log, or its end.
    pub(super) fn mark(&mut self, mut completion: Completion) -> Reading {
        let run = completion.reader();
        let Some(&r) = run.and_then(|run| self.runs.get(&run)) else {
            // Input: what comes late of an earlier run.
            return Reading::Nothing;
        };
        let Some(reader) = self.readers.get_mut(&r) else {
            bug!("{run:?} is of {r:?}, which is not there");
            return Reading::Nothing;
        };
        let (next, until) = (reader.tiling.next(), reader.scope.until);
        let (at, is_news) = match completion {
            Completion::Ended { why, .. } => {
                let is_short = !reader.is_stopped && why.is_none();
                return if is_short && until.is_some_and(|until| next < until) {
                    self.resumed(r)
                } else {
                    Reading::Tell(self.end(r, why))
                };
            }
            Completion::Tail { next: at, .. } => (at, reader.tail_told != Some(at) && at == next),
            Completion::Sealed { last, .. } => {
                (last.plus(1), !reader.seal_told && last.plus(1) == next)
            }
            Completion::Effective { edit, at, .. } => return self.effective(r, edit, at),
            Completion::WantsLost { .. } => {
                reader.edits.lose();
                return Reading::Tell(Completion::WantsLost { r });
            }
            // Input: a far end that tells something else as a mark.
            _ => return Reading::Nothing,
        };
        if reader.is_stopped {
            return Reading::Nothing;
        }
        if at > next {
            return self.resumed(r);
        }
        if !is_news {
            return Reading::Nothing;
        }
        match completion {
            Completion::Sealed { .. } => reader.seal_told = true,
            _ => reader.tail_told = Some(at),
        }
        completion.set_reader(r);
        Reading::Tell(completion)
    }

    /// An edit has taken effect, or there was no room for it.
    fn effective(&mut self, r: ReaderId, number: u32, at: Option<Sequence>) -> Reading {
        let Some(reader) = self.readers.get_mut(&r).filter(|reader| !reader.is_stopped) else {
            // Input: a reader that its owner has stopped.
            return Reading::Nothing;
        };
        if at.is_some_and(|at| at > reader.tiling.next()) {
            return self.resumed(r);
        }
        reader.edits.effective(number);
        let at = at.map(|_| reader.tiling.next());
        let edit = number;
        Reading::Tell(Completion::Effective { r, edit, at })
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        for (run, r) in &self.runs {
            let reader = self.readers.get(r);
            assert!(
                reader.is_some_and(|reader| reader.run == *run),
                "{run:?} is the run of {r:?}"
            );
        }
    }
}

impl LinkReader {
    /// Filter of its scope.
    pub(super) fn filter(&self) -> ScopeFilter {
        self.scope.filter
    }

    /// Its list of what is wanted is that of a run at the new far end, with edits that have no answer there.
    pub(super) fn go_on_with(&mut self, run: ReaderId, edits: Edits) {
        self.edits = edits;
        self.edits.resume(run);
    }

    /// Nobody knows what is wanted of it.
    pub(super) fn lose_edits(&mut self) {
        self.edits = Edits::default();
    }

    /// The part of a batch that is new, if any is.
    fn batch(&mut self, r: ReaderId, stored: Stored) -> Option<Completion> {
        let bytes = i64::try_from(stored.batch.bytes().len()).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_sub(bytes);
        self.tiling.batch(r, stored)
    }
}
