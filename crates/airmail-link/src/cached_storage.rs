//! A storage with a cache before it: whatever its readers want is asked of the storage once, for all of them.
//!
//! It stands where the storage is far away, at the near end of a link, or of a tree's. Readers that stand at the same
//! place of a log, mostly its tail, get what one *fetcher* reads for them; those that come later get it from memory, as
//! long as it is there. What is neither there nor being fetched is fetched from where a reader stands on, up to what is
//! there. Everything but reading goes by.
//!
//! - For readers of one topic the storage's index of topics is read, unless they stand where everything is at hand.
//! - A reader of what is *wanted* ([`ScopeFilter::Wanted`](airmail_log::ScopeFilter)) has a reader of its own above:
//!   nobody else wants the same.
//! - The end of a log is asked when a reader begins, so that it is told of no tail which was one before that, and of
//!   nothing that was trimmed. Where the log is lost, it is given what there is.
//!
//! Invariants: those of its parts; a fetcher is one that somebody needs; readers of a fetcher never wait for each
//! other: who takes nothing is left behind, and then is read for by itself.

mod cache;
mod hearing;
mod log;
mod reader;
mod serving;
mod state;

use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, ReaderId, Tag, Trouble};
use airmail_model::{LogId, Mono, Now, Sequence, bug};
use cache::Cache;
use log::CachedLog;
use reader::{CachedReader, Source};
pub use state::CacheState;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Marks tags of its own: the owner's have one of the two highest bits at most.
const OWN_TAG: u64 = 3 << 62;

/// Bounds of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Memory for what readers were given, in bytes, beside what is fetched at a time. Default: 64 MiB.
    pub bytes: u64,
    /// Bytes that are fetched of a log before somebody takes them: at a distance at least what goes through in the
    /// time of a question and its answer. Default: 1 MiB.
    pub fetch_bytes: u32,
    /// Bytes that a reader is given in one poll, about. Default: 1 MiB.
    pub turn_bytes: usize,
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        CacheLimits {
            bytes: 64 << 20,
            fetch_bytes: 1 << 20,
            turn_bytes: 1 << 20,
        }
    }
}

/// Owner of a reader above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// A fetcher of a log.
    Fetcher(LogId),
    /// A reader of the owner.
    Reader(ReaderId),
}

/// A call under way that says something of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Its end, for readers that have begun.
    End(LogId),
    /// Its bounds, for the owner.
    Bounds(LogId),
    Trim(LogId, Sequence),
    Delete(LogId),
}

/// A storage with a cache before it. See the module's documentation.
#[derive(Debug)]
pub struct CachedStorage<S> {
    storage: S,
    limits: CacheLimits,
    cache: Cache,
    logs: BTreeMap<LogId, CachedLog>,
    readers: BTreeMap<ReaderId, CachedReader>,
    /// Readers of the storage.
    above: BTreeMap<ReaderId, Of>,
    asked: BTreeMap<Tag, Asked>,
    /// Count of its own tags and readers.
    last: u64,
    /// Logs of which a reader may be given something.
    due: BTreeSet<LogId>,
    heard: Vec<Completion>,
    told: Vec<Completion>,
    /// Fetchers that are at no tail, by the time since which they are not, where they had been at one.
    behind: BTreeSet<(Mono, ReaderId)>,
    /// It has asked the storage for something since that was polled.
    has_asked: bool,
    now: Mono,
    state: Arc<CacheState>,
}

impl<S: LogStorage> CachedStorage<S> {
    /// A storage of which nothing is in memory yet.
    pub fn new(storage: S, limits: CacheLimits) -> CachedStorage<S> {
        CachedStorage {
            storage,
            limits,
            cache: Cache::new(limits.bytes),
            logs: BTreeMap::new(),
            readers: BTreeMap::new(),
            above: BTreeMap::new(),
            asked: BTreeMap::new(),
            last: 0,
            due: BTreeSet::new(),
            heard: Vec::new(),
            told: Vec::new(),
            behind: BTreeSet::new(),
            has_asked: false,
            now: Mono::default(),
            state: Arc::default(),
        }
    }

    /// The storage itself, to look at.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Its state, for others to look at.
    #[must_use]
    pub fn state(&self) -> Arc<CacheState> {
        Arc::clone(&self.state)
    }

    fn read(&mut self, r: ReaderId, mut reader: CachedReader) {
        let log = reader.log;
        let of_log = self.logs.entry(log).or_default();
        of_log.readers.insert(r);
        let may_share = reader.may_share();
        if of_log.is_lost {
            reader.end = Some(Sequence(0));
        } else if may_share {
            of_log.unasked.insert(r);
        }
        if self.readers.insert(r, reader).is_some() {
            bug!("{r:?} is started again before it has ended");
        }
        if may_share {
            self.due.insert(log);
        } else {
            self.read_above(r);
        }
    }

    fn credit(&mut self, r: ReaderId, bytes: u32) {
        let Some(reader) = self.readers.get_mut(&r) else {
            // Input: an owner that gives credit to a reader which has just ended.
            return;
        };
        reader.credit = reader.credit.saturating_add(bytes.into());
        match reader.source {
            Source::Above(above) => self.storage.submit(Call::Credit { r: above, bytes }),
            Source::Cache => {
                self.due.insert(reader.log);
            }
        }
    }

    fn stop(&mut self, r: ReaderId) {
        let Some(reader) = self.readers.get(&r) else {
            // Input: an owner that stops a reader which has just ended.
            return;
        };
        match reader.source {
            // What has come of it by then is told before its end.
            Source::Above(above) => self.storage.submit(Call::Stop { r: above }),
            Source::Cache => {
                let ended = self.end(r, None);
                self.told.extend(ended);
            }
        }
    }

    /// Takes note of since when a fetcher is behind, and was taken to be before.
    fn note_behind(&mut self, above: ReaderId, before: Option<Mono>, since: Option<Mono>) {
        if before != since {
            if let Some(before) = before {
                self.behind.remove(&(before, above));
            }
            self.behind.extend(since.map(|since| (since, above)));
        }
    }

    /// Asks the storage for something of its own.
    fn ask(&mut self, call: Call) {
        self.has_asked = true;
        self.storage.submit(call);
    }

    /// Another reader of the storage.
    fn new_above(&mut self, of: Of) -> ReaderId {
        self.last += 1;
        let above = ReaderId(self.last);
        self.above.insert(above, of);
        above
    }

    /// Takes note of a call whose answer says something of a log.
    fn note(&mut self, call: &Call) {
        let (t, asked) = match call {
            Call::Open { t, log, .. } | Call::Renew { t, log } | Call::Bounds { t, log } => {
                (*t, Asked::Bounds(*log))
            }
            Call::Trim { t, log, before } => (*t, Asked::Trim(*log, *before)),
            Call::Delete { t, log, .. } => (*t, Asked::Delete(*log)),
            _ => return,
        };
        self.asked.insert(t, asked);
    }

    fn check(&self) {
        self.cache.check();
        let fetchers = self.logs.values().flat_map(|log| &log.fetchers);
        let behind = fetchers.filter_map(|(above, one)| Some((one.behind_since?, *above)));
        assert_eq!(self.behind, behind.collect(), "fetchers that are behind");
        for (above, of) in &self.above {
            let is_known = match of {
                Of::Fetcher(log) => {
                    let log = self.logs.get(log);
                    log.is_some_and(|log| log.fetchers.contains_key(above))
                }
                Of::Reader(r) => {
                    let reader = self.readers.get(r);
                    reader.is_some_and(|reader| reader.source == Source::Above(*above))
                }
            };
            assert!(is_known, "{above:?} is of {of:?}");
        }
    }
}

impl<S: LogStorage> LogStorage for CachedStorage<S> {
    fn capabilities(&self) -> Capabilities {
        self.storage.capabilities()
    }

    fn submit(&mut self, call: Call) {
        match call {
            Call::Read {
                r,
                log,
                from,
                scope,
                credit,
            } => self.read(r, CachedReader::new(log, from, scope, credit)),
            Call::Credit { r, bytes } => self.credit(r, bytes),
            Call::Stop { r } => self.stop(r),
            Call::Want { r, edit, topics } => {
                let reader = self.readers.get(&r);
                if let Some(Source::Above(r)) = reader.map(|reader| reader.source) {
                    self.storage.submit(Call::Want { r, edit, topics });
                }
            }
            call => {
                self.note(&call);
                self.storage.submit(call);
            }
        }
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        self.now = now.mono;
        out.append(&mut self.told);
        // What is asked now goes out with this poll.
        self.serve(out);
        let mut heard = std::mem::take(&mut self.heard);
        let deadline = self.storage.poll(now, &mut heard);
        self.has_asked = false;
        self.hear(heard.drain(..), out);
        self.heard = heard;
        self.serve(out);
        self.cache.evict();
        let behind_since = self.behind.first().map(|(since, _)| *since);
        self.state.set(self.cache.bytes(), behind_since);
        if bug::is_checking() {
            self.check();
        }
        if self.has_asked || !self.due.is_empty() {
            return Some(now.mono);
        }
        deadline
    }

    fn opened(&mut self) {
        self.storage.opened();
    }

    fn close(&mut self, now: Now) {
        self.storage.close(now);
    }

    fn is_closed(&self) -> bool {
        self.told.is_empty() && self.storage.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.storage.trouble()
    }

    fn damage(&self) -> u64 {
        self.storage.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.storage.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.storage.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.storage.accept_clock(now);
    }
}
