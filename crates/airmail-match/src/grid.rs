//! Bitmaps of the conjunctions that a value of an axis leaves possible.
//!
//! An axis is a name; cuts divide its keys into at most 256 buckets. For each bucket, and for *absent*, a
//! line of bits says which rows a record there may fulfil: those whose interval touches the bucket, and those that
//! do not name the axis. Absent has the latter alone. A record picks one line of each axis, and what is in all of
//! them is left.
//!
//! Rows come in blocks of 512, whose lines are a cache line each ([`line_store`](crate::line_store)). Above them a
//! summary has a bit for each block in which a line has any: where the rows of a block lie near each other, the
//! summaries pass over it.
//!
//! Invariants: the bit of a free row is 0 in every line; a summary's bit is 1 just where the block's line is not
//! 0; a line's count is the number of its bits in all blocks.

use crate::key::{Interval, Key};
use crate::line_store::{Line, LineStore, WORDS};
use crate::name_table::NameId;
use crate::row::Row;
use smallvec::SmallVec;

/// Names that can be axes.
pub(crate) const AXES_MAX: usize = 16;
const BUCKETS: usize = Axis::BUCKETS;
/// Lines of an axis: its buckets, and absent.
const LINES: usize = BUCKETS + 1;
/// Lines that are read before a look at what they have left.
const LINES_AT_ONCE: usize = 4;
/// Rows of a block.
pub(crate) const BLOCK_ROWS: usize = WORDS * 64;

/// A row's place: its block, and its bit there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GridRow(pub(crate) u32);

impl GridRow {
    fn split(self) -> (usize, usize) {
        let at = self.0 as usize;
        (at / BLOCK_ROWS, at % BLOCK_ROWS)
    }
}

/// A line of an axis, over all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineId(u32);

/// The lines that a record picks, one of each axis.
pub(crate) type Picks = SmallVec<[LineId; AXES_MAX]>;

/// A name whose values are divided into buckets.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) name: NameId,
    /// The first key of each bucket but the first, ascending; fewer than 256.
    cuts: Box<[Key]>,
}

impl Axis {
    /// Buckets of an axis, at most.
    pub(crate) const BUCKETS: usize = 256;

    /// An axis cut where these keys are densest, so that about as many of them are in each bucket.
    pub(crate) fn new(name: NameId, mut keys: Vec<Key>) -> Axis {
        keys.sort_unstable();
        let mut cuts = keys.clone();
        cuts.dedup();
        if cuts.len() >= BUCKETS {
            let at = |bucket| keys[bucket * keys.len() / BUCKETS];
            cuts = (1..BUCKETS).map(at).collect();
            cuts.dedup();
        }
        Axis {
            name,
            cuts: cuts.into_boxed_slice(),
        }
    }

    /// The bucket of a key.
    #[inline]
    pub(crate) fn bucket(&self, key: Key) -> usize {
        self.cuts.partition_point(|cut| *cut <= key)
    }

    /// The buckets that an interval touches.
    pub(crate) fn buckets(&self, interval: Interval) -> std::ops::RangeInclusive<usize> {
        self.bucket(interval.low)..=self.bucket(interval.high)
    }
}

/// Rows in blocks, with their bitmaps.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    axes: Vec<Axis>,
    blocks: Vec<Block>,
    /// The lines of all axes.
    lines: LineStore,
    /// The summary of each line: `stride` words.
    summaries: Vec<u64>,
    stride: usize,
    /// Rows in each line.
    counts: Vec<u32>,
    rows: usize,
    /// Every block before it is full.
    first_free: usize,
}

#[derive(Debug)]
struct Block {
    used: Line,
    rows: Box<[Row]>,
}

impl Grid {
    /// A grid without rows.
    pub(crate) fn new(axes: Vec<Axis>) -> Grid {
        let lines = axes.len() * LINES;
        Grid {
            axes,
            summaries: vec![0; lines],
            stride: 1,
            counts: vec![0; lines],
            lines: LineStore::new(lines),
            ..Grid::default()
        }
    }

    /// Whether a name is an axis.
    #[inline]
    pub(crate) fn has_axis(&self, name: NameId) -> bool {
        self.axes.iter().any(|axis| axis.name == name)
    }

    /// The axes, the most used name first.
    pub(crate) fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn row(&self, at: GridRow) -> &Row {
        let (block, bit) = at.split();
        &self.blocks[block].rows[bit]
    }

    /// Puts a row in, with all bounds of its conjunction, also those that it does not hold itself.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "four thousand million rows do not fit any bound of bytes"
    )]
    pub(crate) fn insert(&mut self, row: Row, bounds: &[(NameId, Interval)]) -> GridRow {
        let block = self.block_with_room();
        let used = &mut self.blocks[block].used;
        let word = used.iter().position(|word| *word != u64::MAX).unwrap_or(0);
        let bit = word * 64 + (!used[word]).trailing_zeros() as usize % 64;
        set(used, bit);
        self.blocks[block].rows[bit] = row;
        self.rows += 1;
        for axis in 0..self.axes.len() {
            let name = self.axes[axis].name;
            let bound = bounds.iter().find(|(other, _)| *other == name);
            let lines = match bound {
                Some((_, bound)) => self.axes[axis].buckets(*bound),
                None => 0..=BUCKETS,
            };
            for line in lines {
                self.set(axis * LINES + line, block, bit);
            }
        }
        GridRow((block * BLOCK_ROWS + bit) as u32)
    }

    fn set(&mut self, line: usize, block: usize, bit: usize) {
        set(self.lines.line_mut(line, block), bit);
        self.summaries[line * self.stride + block / 64] |= 1 << (block % 64);
        self.counts[line] += 1;
    }

    /// Takes a row out.
    pub(crate) fn remove(&mut self, at: GridRow) {
        let (block, bit) = at.split();
        let (word, mask) = (bit / 64, 1 << (bit % 64));
        let there = &mut self.blocks[block];
        there.used[word] &= !mask;
        there.rows[bit] = Row::NONE;
        for line in 0..self.counts.len() {
            let bits = self.lines.line_mut(line, block);
            if bits[word] & mask != 0 {
                bits[word] &= !mask;
                self.counts[line] -= 1;
                if *bits == [0; WORDS] {
                    self.summaries[line * self.stride + block / 64] &= !(1 << (block % 64));
                }
            }
        }
        self.rows -= 1;
        self.first_free = self.first_free.min(block);
        while self
            .blocks
            .last()
            .is_some_and(|block| block.used == [0; WORDS])
        {
            self.blocks.pop();
            self.lines.pop_block();
        }
        self.first_free = self.first_free.min(self.blocks.len());
    }

    /// The first block with a free row, made if there is none.
    fn block_with_room(&mut self) -> usize {
        let full = [u64::MAX; WORDS];
        let is_full = |block: &&Block| block.used == full;
        self.first_free += self.blocks[self.first_free..]
            .iter()
            .take_while(is_full)
            .count();
        if self.first_free == self.blocks.len() {
            self.lines.push_block();
            self.blocks.push(Block {
                used: [0; WORDS],
                rows: vec![Row::NONE; BLOCK_ROWS].into_boxed_slice(),
            });
            if self.blocks.len() > self.stride * 64 {
                self.widen();
            }
        }
        self.first_free
    }

    /// Gives each summary twice the words.
    fn widen(&mut self) {
        let mut wider = vec![0; self.summaries.len() * 2];
        let lines = self.summaries.chunks(self.stride);
        for (new, old) in wider.chunks_mut(self.stride * 2).zip(lines) {
            new[..self.stride].copy_from_slice(old);
        }
        self.summaries = wider;
        self.stride *= 2;
    }

    /// The lines of a record whose keys stand at their names' numbers: those with the fewest rows first.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "sixteen axes have four thousand lines"
    )]
    pub(crate) fn pick(&self, keys: &[Key], picks: &mut Picks) {
        picks.clear();
        if self.rows == 0 {
            return;
        }
        for (at, axis) in self.axes.iter().enumerate() {
            let key = keys.get(axis.name.index()).copied();
            let line = match key.unwrap_or(Key::ABSENT) {
                Key::ABSENT => BUCKETS,
                key => axis.bucket(key),
            };
            picks.push(LineId((at * LINES + line) as u32));
        }
        picks.sort_unstable_by_key(|line| (self.counts[line.0 as usize], line.0));
    }

    /// The first block from `from` on in which each of these lines has a row; and how many words were read.
    #[inline]
    pub(crate) fn next_block(&self, picks: &Picks, from: usize) -> (Option<usize>, u32) {
        let mut read = 0;
        if picks.is_empty() {
            return (None, read);
        }
        let mut mask = u64::MAX << (from % 64);
        for word in from / 64..self.blocks.len().div_ceil(64) {
            let of = |line: &LineId| self.summaries[line.0 as usize * self.stride + word];
            let both = picks.iter().map(of).fold(mask, |all, one| all & one);
            read += 1;
            if both != 0 {
                return (Some(word * 64 + both.trailing_zeros() as usize), read);
            }
            mask = u64::MAX;
        }
        (None, read)
    }

    /// The rows of a block that are in each of these lines; and how many lines were read.
    #[inline]
    pub(crate) fn in_all(&self, picks: &Picks, block: usize) -> (Line, u32) {
        let mut all = self.blocks[block].used;
        let mut read = 0;
        // Several at once before a look at what is left: their loads do not wait for one another.
        for lines in picks.chunks(LINES_AT_ONCE) {
            for line in lines {
                let line = self.lines.line(line.0 as usize, block);
                for (all, bits) in all.iter_mut().zip(line) {
                    *all &= bits;
                }
            }
            read += u32::try_from(lines.len()).unwrap_or_default();
            if all == [0; WORDS] {
                break;
            }
        }
        (all, read)
    }

    /// The row at a bit of a block.
    #[inline]
    pub(crate) fn row_in(&self, block: usize, bit: usize) -> &Row {
        &self.blocks[block].rows[bit]
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let block = size_of::<Block>() + BLOCK_ROWS * size_of::<Row>();
        self.blocks.len() * block
            + self.lines.bytes()
            + self.summaries.len() * size_of::<u64>()
            + self.counts.len() * size_of::<u32>()
            + self.axes.len() * (size_of::<Axis>() + BUCKETS * size_of::<Key>())
    }

    /// Asserts the invariants.
    pub(crate) fn check(&self) {
        let mut counts = vec![0; self.counts.len()];
        let mut rows = 0;
        for (at, block) in self.blocks.iter().enumerate() {
            rows += ones(&block.used);
            assert!(
                at >= self.first_free || ones(&block.used) == BLOCK_ROWS,
                "block {at} is before the first with room, and has some"
            );
            for line in 0..self.counts.len() {
                let bits = self.lines.line(line, at);
                let free = bits
                    .iter()
                    .zip(&block.used)
                    .any(|(bits, used)| bits & !used != 0);
                assert!(!free, "line {line} of block {at} has a free row");
                let summary = self.summaries[line * self.stride + at / 64] >> (at % 64) & 1;
                assert_eq!(summary == 1, *bits != [0; WORDS], "line {line}, block {at}");
                counts[line] += ones(bits);
            }
        }
        assert_eq!(rows, self.rows, "rows in use");
        let kept = self.counts.iter().map(|count| *count as usize);
        assert!(kept.eq(counts), "rows of each line");
    }
}

fn set(line: &mut Line, bit: usize) {
    line[bit / 64] |= 1 << (bit % 64);
}

fn ones(line: &Line) -> usize {
    line.iter().map(|word| word.count_ones() as usize).sum()
}
