//! Everything that readers get from the cache, and the fetchers that they need for it.

use super::cache::{Cache, Shelf, Tile};
use super::log::{CachedLog, Fetcher};
use super::reader::{CachedReader, Source};
use super::{Asked, CachedStorage, OWN_TAG, Of};
use airmail_log::{
    Call, Completion, Direction, GapWhy, LogStorage, ReaderId, Scope, ScopeFilter, Tag,
};
use airmail_model::{Extent, LogId, Mono, Sequence, TopicHash, bug};

/// Bytes that are fetched at first before somebody takes them.
const FIRST_WINDOW: u32 = 256 << 10;

/// Outcome for a reader that was given what is there.
enum Given {
    /// It is complete.
    All,
    /// It has no credit, or has had enough for a turn.
    Enough { has_credit: bool },
    /// It stands at something that is not there.
    UpTo(Sequence),
}

impl<S: LogStorage> CachedStorage<S> {
    /// Gives readers what they may have. Logs of which somebody may have more are due again.
    pub(super) fn serve(&mut self, out: &mut Vec<Completion>) {
        let due = std::mem::take(&mut self.due);
        for log in due {
            self.ask_end(log);
            let readers = self.logs.get(&log).map(|log| log.readers.clone());
            for r in readers.into_iter().flatten() {
                self.serve_reader(r, out);
            }
            self.stop_needless_fetchers(log);
            if self.logs.get(&log).is_some_and(CachedLog::is_over) {
                self.logs.remove(&log);
            }
        }
    }

    /// Asks where a log ends, for the readers that have begun since that was asked.
    fn ask_end(&mut self, log: LogId) {
        let Some(of_log) = self.logs.get_mut(&log) else {
            // Input: a log that nobody has read.
            return;
        };
        if of_log.unasked.is_empty() || !of_log.asking.is_empty() {
            return;
        }
        of_log.asking = std::mem::take(&mut of_log.unasked);
        self.last += 1;
        let t = Tag(OWN_TAG | self.last);
        self.asked.insert(t, Asked::End(log));
        self.ask(Call::Bounds { t, log });
    }

    fn serve_reader(&mut self, r: ReaderId, out: &mut Vec<Completion>) {
        let Some(reader) = self
            .readers
            .get_mut(&r)
            .filter(|one| one.source == Source::Cache)
        else {
            // Input: a reader of what is wanted, which has all from above.
            return;
        };
        let log = reader.log;
        if reader.end.is_none() {
            // It is fetched already while the end is asked for.
            let next = reader.next();
            if reader.credit > 0 && !self.cache.has(reader.shelf(), next) {
                self.fetch(r, next);
            }
            return;
        }
        let of_log = self.logs.get(&log);
        let first = of_log.and_then(|log| log.bounds).map(|(first, _)| first);
        let given = give(reader, &self.cache, (r, first), self.limits.turn_bytes, out);
        match given {
            Given::All => out.extend(self.end(r, None)),
            Given::Enough { has_credit } => {
                if has_credit {
                    self.due.insert(log);
                }
            }
            Given::UpTo(next) => self.wait(r, next, out),
        }
    }

    /// A reader waits for what it stands at.
    fn wait(&mut self, r: ReaderId, next: Sequence, out: &mut Vec<Completion>) {
        let Some((reader, log)) = self.reader_and_log(r) else {
            bug!("{r:?} waits and is not there");
            return;
        };
        if let Some((last, map)) = log.sealed.filter(|(last, _)| last.plus(1) == next) {
            if !std::mem::replace(&mut reader.seal_told, true) {
                let next = map;
                out.push(Completion::Sealed { r, last, next });
            }
            return;
        }
        let fetcher = log.fetcher_at(reader.topic(), next);
        let is_at_tail = fetcher.is_some_and(|(_, fetcher)| fetcher.is_at_tail);
        let is_news = reader.tail_told != Some(next) && reader.end.is_some_and(|end| end <= next);
        if is_at_tail && is_news {
            reader.tail_told = Some(next);
            out.push(Completion::Tail { r, next });
        }
        self.fetch(r, next);
    }

    /// Has what a reader stands at fetched: by whoever is there, or by another one.
    fn fetch(&mut self, r: ReaderId, next: Sequence) {
        let window_max = self.limits.fetch_bytes;
        let has_index = self.storage.capabilities().topic_index;
        let Some((reader, log)) = self.reader_and_log(r) else {
            bug!("{r:?} is read for and is not there");
            return;
        };
        let mut shelf = reader.shelf();
        if let Some((above, fetcher)) = log.fetcher_at(shelf.topic, next) {
            if let Some(bytes) = fetcher.more_credit(window_max) {
                self.ask(Call::Credit { r: above, bytes });
            }
            return;
        }
        shelf.topic = shelf.topic.filter(|_| has_index);
        self.begin_fetcher(shelf, next);
    }

    fn reader_and_log(&mut self, r: ReaderId) -> Option<(&mut CachedReader, &mut CachedLog)> {
        let reader = self.readers.get_mut(&r)?;
        let log = self.logs.get_mut(&reader.log)?;
        Some((reader, log))
    }

    /// Has something fetched from a number on, up to what is here.
    fn begin_fetcher(&mut self, shelf: Shelf, next: Sequence) {
        let (above, credit) = (
            self.new_above(Of::Fetcher(shelf.log)),
            self.limits.fetch_bytes.min(FIRST_WINDOW),
        );
        let of_log = self.logs.entry(shelf.log).or_default();
        let fetcher = Fetcher::begin(shelf.topic, next, credit);
        of_log.fetchers.insert(above, fetcher);
        let scope = Scope {
            filter: shelf.topic.map_or(ScopeFilter::All, ScopeFilter::Topic),
            until: self.cache.next_first(shelf, next),
            direction: Direction::Forward,
        };
        self.ask(Call::Read {
            r: above,
            log: shelf.log,
            from: next,
            scope: Box::new(scope),
            credit,
        });
    }

    /// Has a reader read for by one of its own.
    pub(super) fn read_above(&mut self, r: ReaderId) {
        let above = self.new_above(Of::Reader(r));
        let Some(reader) = self.readers.get_mut(&r) else {
            bug!("{r:?} is read for and is not there");
            return;
        };
        reader.source = Source::Above(above);
        let call = Call::Read {
            r: above,
            log: reader.log,
            from: reader.next(),
            scope: reader.scope.clone(),
            credit: u32::try_from(reader.credit).unwrap_or(u32::MAX),
        };
        self.ask(call);
    }

    /// Stops those that fetch what nobody waits for, or what is here, or what another one fetches.
    fn stop_needless_fetchers(&mut self, log: LogId) {
        let Some(of_log) = self.logs.get_mut(&log) else {
            // Input: a log that nobody has read.
            return;
        };
        let readers = of_log.readers.iter().filter_map(|r| self.readers.get(r));
        let readers = readers.filter(|reader| reader.source == Source::Cache);
        let places: Vec<(Option<TopicHash>, Sequence)> = readers
            .map(|reader| (reader.topic(), reader.next()))
            .collect();
        let whole = of_log.fetchers.values().filter(|one| one.topic.is_none());
        let whole: Vec<Sequence> = whole.map(|fetcher| fetcher.next).collect();
        let mut seen = Vec::new();
        let cache = &self.cache;
        let needless = of_log.fetchers.extract_if(.., |_, fetcher| {
            let (topic, next) = (fetcher.topic, fetcher.next);
            let shelf = Shelf { log, topic };
            let is_followed = places.iter().any(|(of_reader, place)| {
                let is_in_stretch = fetcher
                    .stretch
                    .is_some_and(|stretch| cache.stretch_has(stretch, *place));
                fetcher.serves(*of_reader, *place)
                    || is_in_stretch && (topic.is_none() || topic == *of_reader)
            });
            let is_first = !seen.contains(&(topic, next));
            seen.push((topic, next));
            let is_whole_fetched = topic.is_some() && whole.contains(&next);
            !is_followed || !is_first || is_whole_fetched || cache.has(shelf, next)
        });
        let needless: Vec<(ReaderId, Option<Mono>)> = needless
            .map(|(above, fetcher)| (above, fetcher.behind_since))
            .collect();
        for (above, since) in needless {
            self.above.remove(&above);
            self.note_behind(above, since, None);
            self.ask(Call::Stop { r: above });
        }
    }
}

/// Gives a reader what is there, from where it stands on.
fn give(
    reader: &mut CachedReader,
    cache: &Cache,
    (r, first): (ReaderId, Option<Sequence>),
    mut turn_bytes: usize,
    out: &mut Vec<Completion>,
) -> Given {
    loop {
        if reader.is_complete() {
            return Given::All;
        }
        let (has_credit, next) = (reader.credit > 0, reader.next());
        if !has_credit || turn_bytes == 0 {
            return Given::Enough { has_credit };
        }
        if let Some(first) = first.filter(|first| next < *first) {
            let last = first.before();
            let trimmed = Tile::Gap(Extent { first: next, last }, GapWhy::Retention);
            out.extend(give_tile(reader, r, &trimmed).0);
            continue;
        }
        for tile in cache.tiles(reader.shelf(), next) {
            if reader.is_complete() || reader.credit <= 0 || turn_bytes == 0 {
                break;
            }
            let (given, bytes) = give_tile(reader, r, tile);
            turn_bytes = turn_bytes.saturating_sub(bytes);
            out.extend(given);
        }
        if reader.next() == next {
            return Given::UpTo(next);
        }
    }
}

/// Gives a reader a tile: what it is told, and the bytes of it.
fn give_tile(reader: &mut CachedReader, r: ReaderId, tile: &Tile) -> (Option<Completion>, usize) {
    let (mut extent, why) = match tile {
        Tile::Gap(extent, why) => (*extent, *why),
        Tile::Batch(stored) => {
            let bytes = stored.batch.bytes().len();
            let mut topics = stored.batch.topic_hashes();
            let wanted = reader.topic();
            if wanted.is_none_or(|wanted| topics.any(|topic| topic == wanted)) {
                reader.spend(bytes);
                return (reader.tiling.batch(r, stored.clone()), bytes);
            }
            (stored.extent, GapWhy::Unused)
        }
    };
    if let Some(until) = reader.scope.until {
        extent.last = extent.last.min(until.before());
    }
    (reader.tiling.gap(r, extent, why), 1)
}
