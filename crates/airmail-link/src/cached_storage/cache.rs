//! The cache: what readers were given of logs lately, in a bounded amount of memory.
//!
//! What one reader gets, one behind the other, is a *stretch*: it grows at its end, and goes from its beginning, the
//! oldest of all stretches first. Each lies on a *shelf*: that of everything of its log, or of one topic in it.
//! Stretches of a shelf lie side by side; a number that one of them has is put into no other, but where a batch begins
//! before what the other has.
//!
//! Invariants: the tiles of a stretch follow one another; `bytes` is what all tiles take; a stretch is found by its first
//! number and by the age of its first tile, or has no tile.

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

    /// Puts a tile behind a stretch that its numbers follow, or into a new one; the stretch that it is in. `None`: its last
    /// number is in another one.
    pub(super) fn push(
        &mut self,
        stretch: Option<StretchId>,
        shelf: Shelf,
        tile: Tile,
    ) -> Option<StretchId> {
        let extent = tile.extent();
        if self.find(shelf, extent.last).is_some() {
            return None;
        }
        if let Some(shorter) = self.by_first.get(&(shelf, extent.first)) {
            self.pop(*shorter);
        }
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
            while self.stretches.contains_key(&id) {
                self.pop(id);
            }
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
    use airmail_model::{Lane, LogIndex, NamespaceId};

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
        assert_eq!(cache.push(stretch, whole(0), gap(5, 9)), None);
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
