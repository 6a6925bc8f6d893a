//! A storage whose numbers have holes: the journal in memory, with numbers as an engine with an order of
//! its own would give them.
//!
//! A batch's number is its place in that order times 4,096, plus the record's index; every third place is
//! void. Append times are of several clocks. What is asked for and told is translated, and nothing else done.

use airmail_log::conformance::{End, Subject};
use airmail_log::{
    AppendClock, Bounds, Call, Capabilities, ClockState, Completion, Dedup, GapWhy, LogStorage,
    Numbering, ReaderId, Refusal, Stored, Tag, Trouble,
};
use airmail_model::{AppendTime, Extent, LogId, Mono, Now, Sequence};
use std::collections::BTreeMap;
use std::time::Duration;

/// Most records of a place.
const PLACE_NUMBERS: u64 = 4096;

/// The batches of a log, as the dense storage below numbers them.
#[derive(Debug, Default)]
struct Batches {
    firsts: Vec<Sequence>,
    next: Option<Sequence>,
}

impl Batches {
    fn take(&mut self, extent: Extent) {
        self.firsts.push(extent.first);
        self.next = Some(extent.next());
    }

    /// The first number of the batch with this index; 0 is the first.
    fn place(index: usize) -> Sequence {
        Sequence((index + index / 3 + 1) as u64 * PLACE_NUMBERS)
    }

    fn next(&self) -> Sequence {
        self.next.unwrap_or(Sequence::FIRST)
    }

    /// The index of the batch that holds a dense number, or of the next one.
    fn index(&self, dense: Sequence) -> usize {
        if dense < self.next() {
            let upto = self.firsts.partition_point(|first| *first <= dense);
            upto.saturating_sub(1)
        } else {
            self.firsts.len()
        }
    }

    fn to_sparse(&self, dense: Sequence) -> Sequence {
        let index = self.index(dense);
        let first = self.firsts.get(index).copied().unwrap_or(self.next());
        Self::place(index).plus(dense.0.saturating_sub(first.0))
    }

    /// The dense number of the record that has a number, or of the next one.
    fn to_dense(&self, sparse: Sequence) -> Sequence {
        for (index, first) in self.firsts.iter().enumerate() {
            let next = self.firsts.get(index + 1).copied().unwrap_or(self.next());
            let dense = first.plus(sparse.0.saturating_sub(Self::place(index).0));
            if dense < next {
                return dense;
            }
        }
        self.next()
    }

    fn extent(&self, dense: Extent) -> Extent {
        let first = self.to_sparse(dense.first);
        Extent {
            first,
            last: first.plus(dense.numbers() - 1),
        }
    }

    /// The time of a batch by the clock that stamped it: up to two seconds behind.
    fn time(&self, dense: Sequence, at: AppendTime) -> AppendTime {
        let behind = [0, 2_000_000, 1_000_000][self.index(dense) % 3];
        AppendTime(at.0 - behind)
    }

    fn bounds(&self, bounds: Bounds) -> Bounds {
        Bounds {
            first: self.to_sparse(bounds.first),
            next: self.to_sparse(bounds.next),
            reach: self.to_sparse(bounds.reach),
            first_time: bounds.first_time.map(|at| self.time(bounds.first, at)),
            ..bounds
        }
    }
}

/// A reader, in the numbers with holes.
#[derive(Debug)]
struct Reading {
    log: LogId,
    next: Sequence,
    until: Option<Sequence>,
    stopped: bool,
}

/// The storage. See the module's documentation.
#[derive(Debug)]
pub(crate) struct Sparse<S> {
    dense: S,
    logs: BTreeMap<LogId, Batches>,
    asked: BTreeMap<Tag, LogId>,
    readers: BTreeMap<ReaderId, Reading>,
    refused: Vec<Completion>,
    /// Reason that is told of the holes.
    hole: GapWhy,
}

impl<S: LogStorage> Sparse<S> {
    fn new(dense: S, hole: GapWhy) -> Sparse<S> {
        Sparse {
            dense,
            logs: BTreeMap::new(),
            asked: BTreeMap::new(),
            readers: BTreeMap::new(),
            refused: Vec::new(),
            hole,
        }
    }

    /// A call in dense numbers; `None` if it is refused here.
    fn in_dense(&mut self, call: Call) -> Option<Call> {
        Some(match call {
            Call::Read {
                r,
                log,
                from,
                mut scope,
                credit,
            } => {
                let batches = self.logs.entry(log).or_default();
                if from > batches.to_sparse(batches.next()) {
                    let why = Some(Refusal::Unsupported("past_end".into()));
                    self.refused.push(Completion::Ended { r, why });
                    return None;
                }
                let reading = Reading {
                    log,
                    next: from,
                    until: scope.until,
                    stopped: false,
                };
                self.readers.insert(r, reading);
                scope.until = scope.until.map(|until| batches.to_dense(until));
                Call::Read {
                    r,
                    log,
                    from: batches.to_dense(from),
                    scope,
                    credit,
                }
            }
            Call::Stop { r } => {
                if let Some(reading) = self.readers.get_mut(&r) {
                    reading.stopped = true;
                }
                Call::Stop { r }
            }
            Call::Trim { t, log, before } => {
                let batches = self.logs.entry(log).or_default();
                let before = batches.to_dense(before);
                Call::Trim { t, log, before }
            }
            call => call,
        })
    }

    fn tell(&mut self, completion: Completion, out: &mut Vec<Completion>) {
        let told = match completion {
            Completion::Batch { r, stored } => self.batch(r, stored, out),
            Completion::Gap { r, extent, why } => {
                let next = self.of_reader(r).to_sparse(extent.next());
                self.gap(r, next, why, out);
                return;
            }
            Completion::Tail { r, next } => {
                let next = self.of_reader(r).to_sparse(next);
                self.gap(r, next, self.hole, out);
                Completion::Tail { r, next }
            }
            Completion::Sealed { r, last, next: map } => {
                let next = self.of_reader(r).to_sparse(last.plus(1));
                self.gap(r, next, self.hole, out);
                let last = next.before();
                Completion::Sealed { r, last, next: map }
            }
            Completion::Effective { r, edit, .. } => {
                let at = Some(self.readers[&r].next);
                Completion::Effective { r, edit, at }
            }
            Completion::Ended { r, why } => {
                let reading = self.readers.get(&r);
                let until = reading.filter(|of| !of.stopped && why.is_none());
                if let Some(until) = until.and_then(|of| of.until) {
                    self.gap(r, until, self.hole, out);
                }
                self.readers.remove(&r);
                Completion::Ended { r, why }
            }
            answer => self.answer(answer),
        };
        out.push(told);
    }

    fn of_reader(&self, r: ReaderId) -> &Batches {
        &self.logs[&self.readers[&r].log]
    }

    fn batch(&mut self, r: ReaderId, stored: Stored, out: &mut Vec<Completion>) -> Completion {
        let batches = self.of_reader(r);
        let stored = Stored {
            base: batches.to_sparse(stored.base),
            extent: batches.extent(stored.extent),
            appended: batches.time(stored.base, stored.appended),
            batch: stored.batch,
        };
        self.gap(r, stored.extent.first, self.hole, out);
        let reading = self.readers.get_mut(&r).unwrap();
        reading.next = stored.extent.next();
        Completion::Batch { r, stored }
    }

    /// Tells a reader that it gets nothing more before `next`, if it does not know.
    fn gap(&mut self, r: ReaderId, next: Sequence, why: GapWhy, out: &mut Vec<Completion>) {
        let reading = self.readers.get_mut(&r).unwrap();
        if reading.next < next {
            let extent = Extent {
                first: reading.next,
                last: next.before(),
            };
            reading.next = next;
            out.push(Completion::Gap { r, extent, why });
        }
    }

    fn answer(&mut self, answer: Completion) -> Completion {
        let Some(t) = answer.tag() else {
            return answer;
        };
        let log = self.asked.remove(&t).unwrap();
        let batches = self.logs.entry(log).or_default();
        match answer {
            Completion::Appended {
                t,
                extent,
                at,
                held,
                duplicate,
                exact,
            } => Completion::Appended {
                t,
                extent: batches.extent(extent),
                at: batches.time(extent.first, at),
                held,
                duplicate,
                exact,
            },
            Completion::Opened { t, bounds } => {
                if bounds.next == Sequence::FIRST {
                    // It has never held anything, whatever a log of this name has.
                    *batches = Batches::default();
                }
                Completion::Opened {
                    t,
                    bounds: batches.bounds(bounds),
                }
            }
            Completion::Bounds { t, bounds } => Completion::Bounds {
                t,
                bounds: batches.bounds(bounds),
            },
            Completion::Found { t, at } => Completion::Found {
                t,
                at: batches.to_sparse(at),
            },
            Completion::Topics { t, mut page } => {
                for topic in &mut page {
                    topic.last = batches.to_sparse(topic.last);
                }
                Completion::Topics { t, page }
            }
            other => other,
        }
    }
}

impl<S: LogStorage> LogStorage for Sparse<S> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            dedup: Dedup::AtApply,
            numbering: Numbering::Sparse,
            clock: AppendClock::Within(Duration::from_secs(2)),
            past_end: false,
            ..self.dense.capabilities()
        }
    }

    fn submit(&mut self, call: Call) {
        self.asked.extend(call.tag().zip(call.log()));
        if let Some(call) = self.in_dense(call) {
            self.dense.submit(call);
        }
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        out.append(&mut self.refused);
        let mut told = Vec::new();
        let deadline = self.dense.poll(now, &mut told);
        for completion in &told {
            if let Completion::Appended {
                t,
                extent,
                duplicate: false,
                ..
            } = completion
            {
                let log = self.asked[t];
                self.logs.entry(log).or_default().take(*extent);
            }
        }
        for completion in told {
            self.tell(completion, out);
        }
        deadline
    }

    fn opened(&mut self) {
        self.dense.opened();
    }

    fn close(&mut self, now: Now) {
        self.dense.close(now);
    }

    fn is_closed(&self) -> bool {
        self.dense.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.dense.trouble()
    }

    fn damage(&self) -> u64 {
        self.dense.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.dense.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.dense.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.dense.accept_clock(now);
    }
}

/// A storage that nothing outlives, with holes in its numbers.
pub(crate) struct WithHoles<D> {
    dense: D,
    hole: GapWhy,
}

impl<D: Subject> WithHoles<D> {
    /// Over a storage that nothing outlives: after another start the translation would be lost.
    pub(crate) fn new(dense: D, hole: GapWhy) -> WithHoles<D> {
        assert!(!dense.outlives());
        WithHoles { dense, hole }
    }
}

impl<D: Subject> Subject for WithHoles<D> {
    type Storage = Sparse<D::Storage>;

    fn fresh(&mut self, now: Now) -> Self::Storage {
        Sparse::new(self.dense.fresh(now), self.hole)
    }

    fn reopen(&mut self, storage: Self::Storage, end: End, now: Now) -> Self::Storage {
        Sparse::new(self.dense.reopen(storage.dense, end, now), self.hole)
    }

    fn outlives(&self) -> bool {
        self.dense.outlives()
    }

    fn busy(&self) -> bool {
        self.dense.busy()
    }

    fn wait(&mut self) {
        self.dense.wait();
    }
}
