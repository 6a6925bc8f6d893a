//! The suite's driver: calls a storage, polls it, and checks each completion against the promises
//! that always hold.
//!
//! These hold in every case: a call is answered once; appends to one log in call order; a reader's
//! numbers are tiled without holes and overlaps; nothing reaches a reader before its append was
//! answered, unless others may append; a reader that has ended is silent.
//!
//! Numbers that a case gives and gets are counts of records ([`counted`](super::counted)).

use super::batches::{Maker, spec};
use super::counted::Counted;
use super::provisioning::Provisioned;
use super::reader::{Reader, Seen};
use super::{End, Subject};
use crate::contract::{
    Bounds, Call, Capabilities, Completion, LogSpec, LogStorage, ReaderId, Refusal, Scope, Tag,
    WantEdit,
};
use airmail_model::{AppendTime, Batch, Checked, Extent, LogId, Mono, Now, Sequence, Wall};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

/// A storage, and the suite's side of it.
pub struct Driver<'a, S: Subject> {
    pub(super) subject: &'a mut S,
    storage: Option<S::Storage>,
    pub(super) now: Now,
    last_id: u64,
    pub(super) answers: BTreeMap<Tag, Completion>,
    pub(super) unanswered: BTreeSet<Tag>,
    pub(super) appends: BTreeMap<LogId, VecDeque<Tag>>,
    /// The log that each unanswered call is about.
    asked: BTreeMap<Tag, LogId>,
    pub(super) counted: BTreeMap<LogId, Counted>,
    /// Logs whose deletion was asked for: one that is opened empty is another log.
    pub(super) deleted: BTreeSet<LogId>,
    /// End of each log when it was opened.
    pub(super) found: BTreeMap<LogId, Sequence>,
    /// First numbers of the batches whose append was answered since.
    pub(super) acknowledged: BTreeMap<LogId, BTreeSet<Sequence>>,
    pub(super) readers: BTreeMap<ReaderId, Reader>,
    pub(super) provisioned: BTreeMap<LogId, Provisioned>,
    pub(super) has_many_writers: bool,
}

impl<'a, S: Subject> Driver<'a, S> {
    /// A fresh storage.
    pub fn new(subject: &'a mut S) -> Driver<'a, S> {
        let now = Now {
            mono: Mono(1_000_000_000),
            wall: Wall(1_790_000_000_000_000),
        };
        let storage = subject.fresh(now);
        let has_many_writers = storage.capabilities().many_writers;
        Driver {
            subject,
            storage: Some(storage),
            now,
            last_id: 0,
            answers: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            appends: BTreeMap::new(),
            asked: BTreeMap::new(),
            counted: BTreeMap::new(),
            deleted: BTreeSet::new(),
            found: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            readers: BTreeMap::new(),
            provisioned: BTreeMap::new(),
            has_many_writers,
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    /// Whether stored data outlives the storage.
    #[must_use]
    pub fn outlives(&self) -> bool {
        self.subject.outlives()
    }

    /// The storage's capabilities.
    #[must_use]
    pub fn capabilities(&mut self) -> Capabilities {
        self.storage().capabilities()
    }

    /// Microseconds by which an append time may be before an earlier one, at most.
    #[must_use]
    pub fn clock_back(&mut self) -> i64 {
        self.capabilities().clock.proof(AppendTime(0)).0
    }

    /// Makes a call under a tag of its own, without waiting for the answer.
    pub fn call(&mut self, call: impl FnOnce(Tag) -> Call) -> Tag {
        let tag = Tag(self.id());
        let call = self.numbered(call(tag));
        self.submit(tag, call)
    }

    fn submit(&mut self, tag: Tag, mut call: Call) -> Tag {
        self.unanswered.insert(tag);
        self.asked.extend(call.log().map(|log| (tag, log)));
        if let Call::Delete {
            log, as_of, origin, ..
        } = &mut call
        {
            self.deleted.insert(*log);
            let provisioned = self.provisioned.entry(*log).or_default();
            let known = provisioned.delete(*as_of);
            if origin.provisions.is_none() {
                origin.provisions = known;
            }
        }
        self.storage().submit(call);
        tag
    }

    /// Makes a call and waits for its answer.
    pub fn ask(&mut self, call: impl FnOnce(Tag) -> Call) -> Completion {
        let tag = self.call(call);
        self.answer(tag)
    }

    /// Makes a call that names the storage's own numbers, and waits for its answer.
    pub(super) fn ask_numbers(&mut self, call: impl FnOnce(Tag) -> Call) -> Completion {
        let tag = Tag(self.id());
        self.submit(tag, call(tag));
        self.answer(tag)
    }

    /// Waits for an answer.
    pub fn answer(&mut self, tag: Tag) -> Completion {
        self.until("an answer", |driver| driver.answers.contains_key(&tag));
        let Some(answer) = self.answers.remove(&tag) else {
            panic!("no answer under {tag:?}");
        };
        match self.asked.remove(&tag) {
            Some(log) => self.in_counts(log, answer),
            None => answer,
        }
    }

    /// The log that a call was about whose answer is there and was not fetched.
    pub(super) fn asked_about(&self, tag: Tag) -> Option<LogId> {
        self.asked.get(&tag).copied()
    }

    /// Opens a log with the strongest durability there is.
    pub fn open(&mut self, log: LogId) -> Bounds {
        let durability = self.capabilities().strongest;
        self.open_with(log, &spec(durability))
    }

    /// Opens a log.
    pub fn open_with(&mut self, log: LogId, spec: &LogSpec) -> Bounds {
        match self.try_open(log, spec) {
            Completion::Opened { bounds, .. } => bounds,
            other => panic!("opening {log} was answered with {other:?}"),
        }
    }

    /// Opens a log, or not.
    pub fn try_open(&mut self, log: LogId, spec: &LogSpec) -> Completion {
        let tag = self.begin_open(log, spec);
        self.answer(tag)
    }

    /// Asks for a log to be opened, without waiting.
    pub fn begin_open(&mut self, log: LogId, spec: &LogSpec) -> Tag {
        match self.provisioned_for(log, spec) {
            Ok(spec) => self.call(|t| Call::Open { t, log, spec }),
            Err(refused) => refused,
        }
    }

    /// Bounds of a log.
    pub fn bounds(&mut self, log: LogId) -> Bounds {
        match self.ask(|t| Call::Bounds { t, log }) {
            Completion::Bounds { bounds, .. } => bounds,
            other => panic!("bounds of {log} were answered with {other:?}"),
        }
    }

    /// Appends without waiting.
    pub fn send(&mut self, batch: &Checked<Batch>) -> Tag {
        let log = batch.log();
        let (map, copy) = (batch.map_epoch(), batch.clone());
        let tag = self.call(|t| Call::Append {
            t,
            log,
            map,
            batch: copy,
            sole: false,
        });
        self.appends.entry(log).or_default().push_back(tag);
        tag
    }

    /// Appends and waits.
    pub fn offer(&mut self, batch: &Checked<Batch>) -> Completion {
        let tag = self.send(batch);
        self.answer(tag)
    }

    /// Appends a batch that must be stored, and gives its numbers.
    pub fn store(&mut self, batch: &Checked<Batch>) -> Extent {
        match self.offer(batch) {
            Completion::Appended {
                extent,
                duplicate: false,
                ..
            } => extent,
            other => panic!("an append was answered with {other:?}"),
        }
    }

    /// Stores a batch of no producer with a record for each (topic, payload).
    pub fn append(&mut self, log: LogId, records: &[(&str, &str)]) -> Extent {
        self.store(&Maker::new(log).batch(records))
    }

    /// Appends a batch that must be refused, and gives the refusal.
    pub fn refused(&mut self, batch: &Checked<Batch>) -> Refusal {
        match self.offer(batch) {
            Completion::Refused { why, .. } => why,
            other => panic!("an append was answered with {other:?}, not refused"),
        }
    }

    /// Appends a batch that must be answered as a duplicate, and gives its numbers.
    pub fn duplicate(&mut self, batch: &Checked<Batch>) -> Extent {
        match self.offer(batch) {
            Completion::Appended {
                extent,
                duplicate: true,
                ..
            } => extent,
            other => panic!("a retry was answered with {other:?}"),
        }
    }

    /// Starts a reader.
    pub fn read(&mut self, log: LogId, from: u64, scope: Scope, credit: u32) -> ReaderId {
        let from = self.number_of(log, Sequence(from));
        let until = scope.until.map(|until| self.number_of(log, until));
        self.read_numbers(log, from, Scope { until, ..scope }, credit)
    }

    /// Starts a reader between the storage's own numbers.
    pub(super) fn read_numbers(
        &mut self,
        log: LogId,
        from: Sequence,
        scope: Scope,
        credit: u32,
    ) -> ReaderId {
        let r = ReaderId(self.id());
        self.storage().submit(Call::Read {
            r,
            log,
            from,
            scope: Box::new(scope),
            credit,
        });
        self.readers.insert(r, Reader::new(log, from));
        r
    }

    /// Starts a reader of everything, with credit for it.
    pub fn read_all(&mut self, log: LogId, from: u64) -> ReaderId {
        self.read(log, from, Scope::default(), u32::MAX)
    }

    /// Lets a reader give more.
    pub fn credit(&mut self, r: ReaderId, bytes: u32) {
        self.storage().submit(Call::Credit { r, bytes });
    }

    /// Changes what is wanted of a reader.
    pub fn want(&mut self, r: ReaderId, edit: u32, topics: WantEdit) {
        let topics = Box::new(topics);
        self.storage().submit(Call::Want { r, edit, topics });
    }

    /// Stops a reader.
    pub fn stop(&mut self, r: ReaderId) {
        self.storage().submit(Call::Stop { r });
    }

    /// Takes a reader's deliveries since the last call, when nothing more comes.
    pub fn seen(&mut self, r: ReaderId) -> Vec<Seen> {
        let (log, seen) = self.seen_numbers(r);
        self.seen_in_counts(log, seen)
    }

    /// The log of a reader, and its deliveries as [`Driver::seen`], with the storage's own numbers.
    pub(super) fn seen_numbers(&mut self, r: ReaderId) -> (LogId, Vec<Seen>) {
        self.settle();
        match self.readers.get_mut(&r) {
            Some(reader) => (reader.log, std::mem::take(&mut reader.seen)),
            None => panic!("{r:?} was never started"),
        }
    }

    /// The tiles of [`Driver::seen`]: batches and gaps, without the marks between them.
    pub fn tiles(&mut self, r: ReaderId) -> Vec<Seen> {
        let mut seen = self.seen(r);
        seen.retain(|seen| matches!(seen, Seen::Batch(_) | Seen::Gap(..)));
        seen
    }

    /// The (number, topic, payload) of each record of [`Driver::tiles`], gaps left out.
    pub fn records(&mut self, r: ReaderId) -> Vec<(u64, String, Vec<u8>)> {
        let tiles = self.tiles(r);
        tiles.iter().flat_map(Seen::records).collect()
    }

    /// The first number that a reader has not accounted for.
    #[must_use]
    pub fn next_of(&mut self, r: ReaderId) -> Sequence {
        match self.readers.get(&r) {
            Some(reader) => self.count_of(reader.log, reader.next),
            None => panic!("{r:?} was never started"),
        }
    }

    /// Moves the clock on, and polls.
    pub fn sleep(&mut self, time: Duration) {
        self.now.mono = self.now.mono.plus(time);
        self.now.wall.0 += i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4);
        self.settle();
    }

    /// Sets the wall clock back.
    pub fn turn_back(&mut self, time: Duration) {
        self.now.wall.0 -= i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4);
    }

    /// Sets the wall clock ahead.
    pub fn turn_ahead(&mut self, time: Duration) {
        self.now.wall.0 += i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4);
    }

    /// Asks for a clean stop, and waits for its end.
    pub fn close(&mut self) {
        let now = self.now;
        self.storage().close(now);
        self.until("the end of a clean stop", |driver| {
            driver.storage.as_ref().is_some_and(S::Storage::is_closed)
        });
    }

    /// Ends the storage and opens it again. Its readers are gone, and so are unanswered calls.
    pub fn reopen(&mut self, end: End) {
        if let Some(storage) = self.storage.take() {
            self.storage = Some(self.subject.reopen(storage, end, self.now));
        }
        if !self.outlives() {
            self.counted.clear();
        }
        self.readers.clear();
        self.unanswered.clear();
        self.appends.clear();
        self.asked.clear();
        self.found.clear();
        self.acknowledged.clear();
    }

    /// The storage itself, for methods that are no call.
    pub fn storage(&mut self) -> &mut S::Storage {
        match &mut self.storage {
            Some(storage) => storage,
            None => panic!("there is no storage"),
        }
    }

    fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

impl<S: Subject> fmt::Debug for Driver<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("now", &self.now)
            .field("unanswered", &self.unanswered)
            .finish_non_exhaustive()
    }
}
