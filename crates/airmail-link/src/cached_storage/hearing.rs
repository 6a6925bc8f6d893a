//! Everything that the storage says: what fetchers get goes to the cache, what bounds say is taken note of, and the
//! rest goes to the owner.

use super::cache::{Shelf, Tile};
use super::reader::Source;
use super::{Asked, CachedStorage, Of};
use airmail_log::{Bounds, Completion, LogStorage, ReaderId, Refusal};
use airmail_model::{LogId, Sequence, bug};
use std::collections::BTreeSet;

impl<S: LogStorage> CachedStorage<S> {
    /// Takes what the storage has told, in order.
    pub(super) fn hear(
        &mut self,
        heard: impl Iterator<Item = Completion>,
        out: &mut Vec<Completion>,
    ) {
        for completion in heard {
            if let Some(above) = completion.reader() {
                match self.above.get(&above).copied() {
                    Some(Of::Fetcher(log)) => self.fetched(log, above, completion, out),
                    Some(Of::Reader(r)) => self.passed_on(r, completion, out),
                    // Input: what comes late of a reader that was given up.
                    None => {}
                }
            } else if completion.tag().is_some() {
                self.answered(completion, out);
            } else {
                self.happened(&completion);
                out.push(completion);
            }
        }
    }

    /// Something has happened to a log.
    fn happened(&mut self, completion: &Completion) {
        match completion {
            Completion::Gained { log, bounds } => {
                self.take_bounds(*log, bounds);
                self.logs.entry(*log).or_default().is_lost = false;
            }
            Completion::Lost { log } => {
                let of_log = self.logs.entry(*log).or_default();
                of_log.is_lost = true;
                let mut begun = std::mem::take(&mut of_log.unasked);
                begun.append(&mut of_log.asking);
                self.set_end(&begun, Sequence(0));
                self.due.insert(*log);
            }
            _ => {}
        }
    }

    fn answered(&mut self, answer: Completion, out: &mut Vec<Completion>) {
        let asked = answer.tag().and_then(|t| self.asked.remove(&t));
        match (asked, &answer) {
            (Some(Asked::End(log)), answer) => return self.end_told(log, answer, out),
            (
                Some(Asked::Bounds(log)),
                Completion::Opened { bounds, .. } | Completion::Bounds { bounds, .. },
            ) => self.take_bounds(log, bounds),
            (Some(Asked::Trim(log, before)), Completion::Done { .. }) => {
                self.cache.drop_below(log, before);
                self.due.insert(log);
            }
            (Some(Asked::Delete(log)), Completion::Done { .. }) => self.may_be_gone(log),
            _ => {}
        }
        out.push(answer);
    }

    fn take_bounds(&mut self, log: LogId, bounds: &Bounds) {
        let of_log = self.logs.entry(log).or_default();
        if of_log.note(bounds) {
            self.cache.drop_log(log);
        } else {
            self.cache.drop_below(log, bounds.first);
        }
        self.due.insert(log);
    }

    /// The end of a log is there, as readers that have begun have asked; or the reason why there is none.
    fn end_told(&mut self, log: LogId, answer: &Completion, out: &mut Vec<Completion>) {
        let of_log = self.logs.entry(log).or_default();
        let asking = std::mem::take(&mut of_log.asking);
        match answer {
            Completion::Bounds { bounds, .. } => {
                self.take_bounds(log, bounds);
                self.set_end(&asking, bounds.next);
            }
            Completion::Refused { why, .. } => {
                for r in asking {
                    out.extend(self.end(r, Some(why.clone())));
                }
            }
            other => bug!("{other:?} is the end of no log"),
        }
        self.due.insert(log);
    }

    fn set_end(&mut self, readers: &BTreeSet<ReaderId>, end: Sequence) {
        for r in readers {
            if let Some(reader) = self.readers.get_mut(r) {
                reader.end = Some(end);
            }
        }
    }

    /// A log was deleted, unless there is a later order: its readers ask.
    fn may_be_gone(&mut self, log: LogId) {
        self.cache.drop_log(log);
        let of_log = self.logs.entry(log).or_default();
        let shares = |r: &&ReaderId| {
            let reader = self.readers.get(*r);
            reader.is_some_and(|reader| reader.source == Source::Cache)
        };
        of_log.is_gone = true;
        of_log.unasked = of_log.readers.iter().filter(shares).copied().collect();
        self.due.insert(log);
    }

    /// Something of a fetcher.
    fn fetched(
        &mut self,
        log: LogId,
        above: ReaderId,
        completion: Completion,
        out: &mut Vec<Completion>,
    ) {
        self.due.insert(log);
        let now = self.now;
        let of_log = self.logs.entry(log).or_default();
        let Some(fetcher) = of_log.fetchers.get_mut(&above) else {
            bug!("{above:?} fetches nothing of {log}");
            return;
        };
        let topic = fetcher.topic;
        let shelf = Shelf { log, topic };
        let before = fetcher.behind_since;
        match completion {
            Completion::Batch { stored, .. } => {
                let bytes = stored.batch.bytes().len() as u64;
                self.state.fetched(bytes);
                fetcher.credit = fetcher.credit.saturating_sub_unsigned(bytes);
                let extent = stored.extent;
                fetcher.gave(now, extent);
                fetcher.stretch = self.cache.push(fetcher.stretch, shelf, Tile::Batch(stored));
            }
            Completion::Gap { extent, why, .. } => {
                fetcher.gave(now, extent);
                fetcher.stretch = self
                    .cache
                    .push(fetcher.stretch, shelf, Tile::Gap(extent, why));
            }
            Completion::Tail { next, .. } => fetcher.at_tail(next),
            Completion::Sealed { last, next, .. } => of_log.sealed = Some((last, next)),
            Completion::Ended { why, .. } => {
                let next = fetcher.next;
                of_log.fetchers.remove(&above);
                self.above.remove(&above);
                self.note_behind(above, before, None);
                if let Some(why) = why {
                    self.not_fetched((shelf, next), &why, out);
                }
                return;
            }
            other => bug!("{other:?} for a fetcher"),
        }
        let since = fetcher.behind_since;
        self.note_behind(above, before, since);
    }

    /// Nothing more is fetched of a log: whoever waits for it ends, and whoever reads the log if that is gone.
    fn not_fetched(
        &mut self,
        (shelf, next): (Shelf, Sequence),
        why: &Refusal,
        out: &mut Vec<Completion>,
    ) {
        let log = shelf.log;
        let is_gone = *why == Refusal::NoLog;
        if is_gone {
            self.cache.drop_log(log);
        }
        let readers = self.logs.get(&log).map(|log| log.readers.clone());
        for r in readers.unwrap_or_default() {
            let ends = self.readers.get(&r).is_some_and(|reader| {
                let is_served = shelf.topic.is_none() || shelf == reader.shelf();
                let waits = reader.next() == next && is_served;
                reader.source == Source::Cache && (waits || is_gone)
            });
            if ends {
                out.extend(self.end(r, Some(why.clone())));
            }
        }
    }

    /// Something of a reader that has one of its own above.
    fn passed_on(&mut self, r: ReaderId, mut completion: Completion, out: &mut Vec<Completion>) {
        if let Completion::Batch { stored, .. } = &completion {
            self.state.fetched(stored.batch.bytes().len() as u64);
        }
        if matches!(completion, Completion::Ended { .. }) {
            self.end(r, None);
        }
        completion.set_reader(r);
        out.push(completion);
    }

    /// Ends a reader: what its owner is told.
    pub(super) fn end(&mut self, r: ReaderId, why: Option<Refusal>) -> Option<Completion> {
        let reader = self.readers.remove(&r)?;
        if let Source::Above(above) = reader.source {
            self.above.remove(&above);
        }
        if let Some(log) = self.logs.get_mut(&reader.log) {
            log.readers.remove(&r);
            log.unasked.remove(&r);
            log.asking.remove(&r);
        }
        self.due.insert(reader.log);
        Some(Completion::Ended { r, why })
    }
}
