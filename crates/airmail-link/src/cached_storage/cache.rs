//! The cache: what readers were given of logs lately, in a bounded amount of memory.
//!
//! What one reader gets, one behind the other, is a *stretch*: it grows at its end, and goes from its beginning, the
//! oldest of all stretches first. Each lies on a *shelf*: that of everything of its log, or of one topic in it.
//! Stretches of a shelf lie side by side, and no number is in two of them: of a batch that another one has a part of, the
//! rest is put, and one that has more than another takes its place.
//!
//! Invariants: the tiles of a stretch follow one another; stretches of a shelf have no number in common; `bytes` is what
//! all tiles take; a stretch is found by its first number and by the age of its first tile, or has no tile.

use airmail_log::{GapWhy, Stored};
use airmail_model::{Extent, LogId, Sequence, TopicHash, bug};
use std::collections::{BTreeMap, VecDeque};

/// Bytes that a tile takes beside its batch.
const TILE_BYTES: u64 = 128;

/// Everything of a log, or what it has of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shelf {
    pub(super) log: LogId,
    /// `None`: everything.
    pub(super) topic: Option<TopicHash>,
}

impl Shelf {
    /// Everything of a log.
    pub(super) const fn whole(log: LogId) -> Shelf {
        Shelf { log, topic: None }
    }
}

/// A stretch, by a number that no other has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StretchId(u64);

/// Numbers of a log, accounted for.
#[derive(Clone, Debug)]
pub(super) enum Tile {
    Batch(Stored),
    Gap(Extent, GapWhy),
}

impl Tile {
    pub(super) fn extent(&self) -> Extent {
        match self {
            Tile::Batch(stored) => stored.extent,
            Tile::Gap(extent, _) => *extent,
        }
    }

    /// The part of it from a number on and before another, if there is one.
    fn part(self, from: Sequence, until: Sequence) -> Option<Tile> {
        let whole = self.extent();
        let extent = Extent {
            first: whole.first.max(from),
            last: whole.last.min(until.before()),
        };
        if until <= extent.first || extent.last < extent.first {
            return None;
        }
        let mut stored = match self {
            Tile::Gap(_, why) => return Some(Tile::Gap(extent, why)),
            Tile::Batch(stored) => stored,
        };
        let base = stored.base;
        let is_inside = |index: u16, _| extent.contains(base.plus(index.into()));
        let Some(slice) = stored.batch.slice(is_inside) else {
            // Input: a batch some of whose numbers have no records.
            return Some(Tile::Gap(extent, GapWhy::Unused));
        };
        stored.extent = extent;
        stored.batch = slice.to_batch();
        Some(Tile::Batch(stored))
    }

    fn bytes(&self) -> u64 {
        match self {
            Tile::Batch(stored) => TILE_BYTES + stored.batch.bytes().len() as u64,
            Tile::Gap(..) => TILE_BYTES,
        }
    }
}

#[derive(Debug)]
struct Stretch {
    shelf: Shelf,
    /// Each with its age.
    tiles: VecDeque<(u64, Tile)>,
}

impl Stretch {
    fn first(&self) -> Option<(u64, Sequence)> {
        let (age, tile) = self.tiles.front()?;
        Some((*age, tile.extent().first))
    }

    /// The first number behind it.
    fn next(&self) -> Option<Sequence> {
        self.tiles.back().map(|(_, tile)| tile.extent().next())
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Cache {
    most_bytes: u64,
    bytes: u64,
    stretches: BTreeMap<StretchId, Stretch>,
    by_first: BTreeMap<(Shelf, Sequence), StretchId>,
    by_age: BTreeMap<u64, StretchId>,
    /// Count of the stretches, and of the tiles, that there ever were.
    last_stretch: u64,
    last_age: u64,
}

impl Cache {
    /// An empty one, for so many bytes.
    pub(super) fn new(most_bytes: u64) -> Cache {
        Cache {
            most_bytes,
            bytes: 0,
            stretches: BTreeMap::new(),
            by_first: BTreeMap::new(),
            by_age: BTreeMap::new(),
            last_stretch: 0,
            last_age: 0,
        }
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts a tile behind a stretch that its numbers follow, or into a new one, as far as it is in no other; the stretch
    /// that it is in. `None`: all of it is there.
    pub(super) fn push(
        &mut self,
        stretch: Option<StretchId>,
        shelf: Shelf,
        mut tile: Tile,
    ) -> Option<StretchId> {
        while let Some((other, _)) = self.find(shelf, tile.extent().last) {
            let (_, first) = other.first()?;
            tile = tile.part(Sequence(0), first)?;
        }
        if let Some((other, _)) = self.find(shelf, tile.extent().first)
            && other.first()?.1 < tile.extent().first
        {
            let next = other.next()?;
            tile = tile.part(next, Sequence::MAX)?;
        }
        let extent = tile.extent();
        let inside = (shelf, extent.first)..=(shelf, extent.last);
        let shorter: Vec<StretchId> = self.by_first.range(inside).map(|(_, id)| *id).collect();
        shorter.into_iter().for_each(|id| self.drop_stretch(id));
        let stretch = stretch.filter(|stretch| self.next(*stretch) == Some(extent.first));
        let id = stretch.unwrap_or_else(|| {
            self.last_stretch += 1;
            StretchId(self.last_stretch)
        });
        let tiles = VecDeque::new();
        let stretch = self.stretches.entry(id).or_insert(Stretch { shelf, tiles });
        self.last_age += 1;
        self.bytes += tile.bytes();
        if stretch.tiles.is_empty() {
            self.by_first.insert((shelf, extent.first), id);
            self.by_age.insert(self.last_age, id);
        }
        stretch.tiles.push_back((self.last_age, tile));
        Some(id)
    }

    /// The first number behind a stretch, as long as it has any.
    fn next(&self, stretch: StretchId) -> Option<Sequence> {
        self.stretches.get(&stretch)?.next()
    }

    /// The stretch that has a number, and the place of its tile there.
    fn find(&self, shelf: Shelf, number: Sequence) -> Option<(&Stretch, usize)> {
        let mut before = self.by_first.range((shelf, Sequence(0))..=(shelf, number));
        let (_, id) = before.next_back()?;
        let stretch = self.stretches.get(id)?;
        if stretch.next()? <= number {
            return None;
        }
        let is_before = |(_, tile): &(u64, Tile)| tile.extent().last < number;
        Some((stretch, stretch.tiles.partition_point(is_before)))
    }

    /// Whether a number is on a shelf, or on that of everything.
    pub(super) fn has(&self, shelf: Shelf, number: Sequence) -> bool {
        let whole = self.find(Shelf::whole(shelf.log), number);
        whole.or_else(|| self.find(shelf, number)).is_some()
    }

    /// Whether a stretch has a number.
    pub(super) fn stretch_has(&self, stretch: StretchId, number: Sequence) -> bool {
        let stretch = self.stretches.get(&stretch);
        let bounds = stretch.and_then(|stretch| Some((stretch.first()?.1, stretch.next()?)));
        bounds.is_some_and(|(first, next)| (first..next).contains(&number))
    }

    /// Tiles from the one with a number on, as far as they follow one another in a stretch of a shelf, or of that of
    /// everything.
    pub(super) fn tiles(&self, shelf: Shelf, number: Sequence) -> impl Iterator<Item = &Tile> {
        let whole = self.find(Shelf::whole(shelf.log), number);
        let found = whole.or_else(|| self.find(shelf, number));
        let tiles = found.map(|(stretch, place)| stretch.tiles.range(place..));
        tiles.into_iter().flatten().map(|(_, tile)| tile)
    }

    /// The first number above this one with which a stretch of a shelf begins, or of that of everything.
    pub(super) fn next_first(&self, shelf: Shelf, number: Sequence) -> Option<Sequence> {
        let of_shelf = |shelf: Shelf| {
            let mut after = self.by_first.range((shelf, number.plus(1))..);
            let ((found, first), _) = after.next()?;
            (*found == shelf).then_some(*first)
        };
        let firsts = [shelf, Shelf::whole(shelf.log)].map(of_shelf);
        firsts.into_iter().flatten().min()
    }

    /// Gives up the oldest until what is left is no more than it may be.
    pub(super) fn evict(&mut self) {
        while self.bytes > self.most_bytes {
            let Some((_, stretch)) = self.by_age.first_key_value() else {
                bug!("{} bytes of no tile", self.bytes);
                self.bytes = 0;
                return;
            };
            self.pop(*stretch);
        }
    }

    /// Gives up what a log has below a number.
    pub(super) fn drop_below(&mut self, log: LogId, number: Sequence) {
        for id in self.stretches_of(log) {
            let is_below = |cache: &Cache| {
                let stretch = cache.stretches.get(&id);
                let first = stretch.and_then(|stretch| stretch.tiles.front());
                first.is_some_and(|(_, tile)| tile.extent().last < number)
            };
            while is_below(self) {
                self.pop(id);
            }
        }
    }

    /// Gives up all that a log has.
    pub(super) fn drop_log(&mut self, log: LogId) {
        for id in self.stretches_of(log) {
            self.drop_stretch(id);
        }
    }

    fn drop_stretch(&mut self, id: StretchId) {
        while self.stretches.contains_key(&id) {
            self.pop(id);
        }
    }

    fn stretches_of(&self, log: LogId) -> Vec<StretchId> {
        let of_log = self.by_first.range((Shelf::whole(log), Sequence(0))..);
        let of_log = of_log.take_while(|((shelf, _), _)| shelf.log == log);
        of_log.map(|(_, stretch)| *stretch).collect()
    }

    /// Gives up the first tile of a stretch, and a stretch without a tile.
    fn pop(&mut self, id: StretchId) {
        let Some(stretch) = self.stretches.get_mut(&id) else {
            bug!("{id:?} is not there");
            return;
        };
        let shelf = stretch.shelf;
        if let Some((age, first)) = stretch.first() {
            self.by_first.remove(&(shelf, first));
            self.by_age.remove(&age);
        }
        let popped = stretch.tiles.pop_front();
        self.bytes -= popped.map_or(0, |(_, tile)| tile.bytes());
        match stretch.first() {
            Some((age, first)) => {
                self.by_first.insert((shelf, first), id);
                self.by_age.insert(age, id);
            }
            None => {
                self.stretches.remove(&id);
            }
        }
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        let tiles = self.stretches.values().flat_map(|stretch| &stretch.tiles);
        let bytes: u64 = tiles.map(|(_, tile)| tile.bytes()).sum();
        assert_eq!(self.bytes, bytes, "bytes of all tiles");
        assert_eq!(self.by_first.len(), self.stretches.len());
        assert_eq!(self.by_age.len(), self.stretches.len());
        let ends = self.by_first.iter().filter_map(|((shelf, _), id)| {
            let next = self.stretches.get(id)?.next()?;
            Some((*shelf, next))
        });
        let firsts = self.by_first.keys().skip(1);
        let mut beside = ends.zip(firsts);
        let is_apart = |((of, next), (shelf, first)): ((Shelf, Sequence), &(Shelf, Sequence))| {
            of != *shelf || next <= *first
        };
        assert!(beside.all(is_apart), "two stretches have a number");
        for (id, stretch) in &self.stretches {
            let (age, first) = stretch.first().unwrap_or_default();
            assert_eq!(self.by_first.get(&(stretch.shelf, first)), Some(id));
            assert_eq!(self.by_age.get(&age), Some(id));
            let follow = |(one, other): (&(u64, Tile), &(u64, Tile))| {
                one.0 < other.0 && one.1.extent().next() == other.1.extent().first
            };
            assert!(
                stretch
                    .tiles
                    .iter()
                    .zip(stretch.tiles.iter().skip(1))
                    .all(follow)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_log::conformance::Maker;
    use airmail_model::{AppendTime, Lane, LogIndex, NamespaceId};

    fn log(index: u16) -> LogId {
        LogId {
            namespace: NamespaceId(7),
            lane: Lane::Normal,
            index: LogIndex(index),
        }
    }

    fn whole(index: u16) -> Shelf {
        Shelf::whole(log(index))
    }

    fn gap(first: u64, last: u64) -> Tile {
        let (first, last) = (Sequence(first), Sequence(last));
        Tile::Gap(Extent { first, last }, GapWhy::Unused)
    }

    fn found(cache: &Cache, index: u16, from: u64) -> Vec<(u64, u64)> {
        let tiles = cache.tiles(whole(index), Sequence(from)).map(Tile::extent);
        tiles.map(|tile| (tile.first.0, tile.last.0)).collect()
    }

    #[test]
    fn what_follows_one_another_is_one_run_and_what_is_there_is_not_put_there_again() {
        let mut cache = Cache::new(u64::MAX);
        let stretch = cache.push(None, whole(0), gap(1, 3));
        assert_eq!(cache.push(stretch, whole(0), gap(4, 4)), stretch);
        let other = cache.push(None, whole(0), gap(9, 9));
        assert_ne!(other, stretch);
        assert_eq!(cache.push(None, whole(0), gap(2, 4)), None);
        assert_eq!(found(&cache, 0, 2), [(1, 3), (4, 4)]);
        assert_eq!(found(&cache, 0, 5), []);
        assert_eq!(found(&cache, 1, 1), []);
        assert_eq!(cache.next_first(whole(0), Sequence(1)), Some(Sequence(9)));
        assert_eq!(cache.next_first(whole(0), Sequence(9)), None);
        // A tile that does not follow is another stretch, and a longer one goes in the place of its first.
        assert_ne!(cache.push(stretch, whole(0), gap(6, 7)), stretch);
        assert!(cache.push(None, whole(0), gap(6, 8)).is_some());
        assert_eq!(found(&cache, 0, 6), [(6, 8)]);
        cache.check();
    }

    /// A fetcher asks for what is before a stretch, and is given a batch whole that ends in it.
    #[test]
    fn of_a_batch_that_ends_in_another_run_the_beginning_is_put() {
        let mut cache = Cache::new(u64::MAX);
        let batch = Maker::new(log(0)).batch(&[("a", "1"), ("a", "2"), ("a", "3")]);
        let whole_batch = Stored {
            base: Sequence(1),
            extent: Extent {
                first: Sequence(1),
                last: Sequence(3),
            },
            appended: AppendTime(1),
            batch,
        };
        cache.push(None, whole(0), gap(3, 9));
        cache.push(None, whole(0), Tile::Batch(whole_batch.clone()));
        assert_eq!(found(&cache, 0, 1), [(1, 2)]);
        let records = |tile: &Tile| match tile {
            Tile::Batch(stored) => stored.batch.iter().count(),
            Tile::Gap(..) => 0,
        };
        let tiles = cache.tiles(whole(0), Sequence(1));
        assert_eq!(tiles.map(records).collect::<Vec<_>>(), [2]);
        cache.check();
        // Where there are several, too; and nothing where all of it is there.
        cache.push(None, whole(1), gap(2, 2));
        cache.push(None, whole(1), gap(3, 9));
        cache.push(None, whole(1), Tile::Batch(whole_batch.clone()));
        assert_eq!(found(&cache, 1, 1), [(1, 1)]);
        assert_eq!(cache.push(None, whole(1), Tile::Batch(whole_batch)), None);
        cache.check();
    }

    #[test]
    fn no_number_is_in_two_runs() {
        let mut cache = Cache::new(u64::MAX);
        cache.push(None, whole(0), gap(12, 13));
        let stretch = cache.push(None, whole(0), gap(1, 9));
        assert_eq!(cache.push(stretch, whole(0), gap(10, 20)), stretch);
        cache.check();
        assert_eq!(found(&cache, 0, 9), [(1, 9), (10, 20)]);
        // What is behind a run goes behind it, wherever a tile begins.
        assert_eq!(cache.push(stretch, whole(0), gap(15, 30)), stretch);
        cache.check();
        assert_eq!(found(&cache, 0, 20), [(10, 20), (21, 30)]);
        while cache.has(whole(0), Sequence(1)) {
            cache.most_bytes = cache.bytes() - 1;
            cache.evict();
            cache.check();
        }
    }

    #[test]
    fn the_oldest_goes_first_whatever_it_is_of() {
        let mut cache = Cache::new(3 * TILE_BYTES);
        let one = cache.push(None, whole(0), gap(1, 1));
        let two = cache.push(None, whole(1), gap(5, 5));
        cache.push(one, whole(0), gap(2, 2));
        cache.push(two, whole(1), gap(6, 6));
        cache.push(two, whole(1), gap(7, 7));
        cache.evict();
        assert_eq!(cache.bytes(), 3 * TILE_BYTES);
        assert_eq!(found(&cache, 0, 1), []);
        assert_eq!(found(&cache, 0, 2), [(2, 2)]);
        assert_eq!(found(&cache, 1, 6), [(6, 6), (7, 7)]);
        cache.check();
    }

    #[test]
    fn what_is_trimmed_goes_and_a_log_goes_as_a_whole() {
        let mut cache = Cache::new(u64::MAX);
        let stretch = cache.push(None, whole(0), gap(1, 3));
        cache.push(stretch, whole(0), gap(4, 6));
        cache.push(None, whole(1), gap(1, 1));
        cache.drop_below(log(0), Sequence(3));
        assert_eq!(found(&cache, 0, 1), [(1, 3), (4, 6)]);
        cache.drop_below(log(0), Sequence(4));
        assert_eq!(found(&cache, 0, 4), [(4, 6)]);
        assert!(!cache.has(whole(0), Sequence(3)));
        cache.check();
        cache.drop_log(log(0));
        assert_eq!(cache.bytes(), TILE_BYTES);
        cache.check();
    }

    #[test]
    fn a_topic_has_a_shelf_of_its_own_and_is_found_on_that_of_everything() {
        let mut cache = Cache::new(u64::MAX);
        let of_topic = |topic| Shelf {
            topic: Some(TopicHash(topic)),
            ..whole(0)
        };
        cache.push(None, of_topic(1), gap(1, 9));
        assert!(cache.has(of_topic(1), Sequence(9)));
        assert!(!cache.has(of_topic(2), Sequence(9)) && !cache.has(whole(0), Sequence(9)));
        cache.push(None, whole(0), gap(5, 20));
        assert!(cache.has(of_topic(2), Sequence(9)));
        assert_eq!(
            cache.next_first(of_topic(2), Sequence(1)),
            Some(Sequence(5))
        );
        cache.drop_below(log(0), Sequence(10));
        assert!(!cache.has(of_topic(1), Sequence(4)) && cache.has(whole(0), Sequence(20)));
        cache.drop_log(log(0));
        assert_eq!(cache.bytes(), 0);
        cache.check();
    }
}
