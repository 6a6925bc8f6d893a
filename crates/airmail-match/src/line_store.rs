//! Lines of bits, one for each bucket of each axis, over all blocks: those of a line lie beside each other.
//!
//! A record reads a few lines from the first block to the last. In this order that is a few streams of memory, which the
//! processor fetches ahead; block by block each line would be a cache line from elsewhere, and the record would wait for most of
//! them. Blocks come in stretches, so that room for more is never a copy of everything.

/// Words of a line in one block.
pub(crate) const WORDS: usize = 8;

/// Bits of a line in one block: one for each of its rows.
pub(crate) type Line = [u64; WORDS];

/// Blocks of a stretch.
const STRETCH: usize = 64;

/// Blocks for which room is made at once, at most.
const ROOM_MORE: usize = 8;

/// Lines of some blocks that follow one another.
#[derive(Debug)]
struct Stretch {
    /// Blocks that there is room for.
    room: usize,
    /// By line, and then by block.
    bits: Vec<Line>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct LineStore {
    lines: usize,
    blocks: usize,
    stretches: Vec<Stretch>,
}

impl LineStore {
    /// Lines of no block yet.
    pub(crate) fn new(lines: usize) -> LineStore {
        LineStore {
            lines,
            ..LineStore::default()
        }
    }

    /// Adds a block, whose bits are all 0.
    pub(crate) fn push_block(&mut self) {
        let within = self.blocks % STRETCH;
        if within == 0 {
            self.stretches.push(Stretch {
                room: 1,
                bits: vec![[0; WORDS]; self.lines],
            });
        } else if let Some(last) = self.stretches.last_mut().filter(|last| last.room == within) {
            let room = (within * 2).min(within + ROOM_MORE);
            let mut bits = vec![[0; WORDS]; self.lines * room];
            let old = last.bits.chunks(within);
            for (new, old) in bits.chunks_mut(room).zip(old) {
                new[..within].copy_from_slice(old);
            }
            *last = Stretch { room, bits };
        }
        self.blocks += 1;
    }

    /// Takes the last block out, whose bits are all 0.
    pub(crate) fn pop_block(&mut self) {
        self.blocks -= 1;
        if self.blocks.is_multiple_of(STRETCH) {
            self.stretches.pop();
        }
    }

    /// A line in a block.
    #[inline]
    pub(crate) fn line(&self, line: usize, block: usize) -> &Line {
        let stretch = &self.stretches[block / STRETCH];
        &stretch.bits[line * stretch.room + block % STRETCH]
    }

    /// A line in a block.
    pub(crate) fn line_mut(&mut self, line: usize, block: usize) -> &mut Line {
        let stretch = &mut self.stretches[block / STRETCH];
        &mut stretch.bits[line * stretch.room + block % STRETCH]
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let lines = self.stretches.iter().map(|stretch| stretch.bits.len());
        lines.sum::<usize>() * size_of::<Line>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_stays_where_it_was_put_whatever_number_of_blocks_comes_and_goes() {
        let mut store = LineStore::new(3);
        let mark = |line: usize, block: usize| [(line * 1_000 + block + 1) as u64; WORDS];
        for block in 0..200 {
            store.push_block();
            for line in 0..3 {
                assert_eq!(*store.line(line, block), [0; WORDS]);
                *store.line_mut(line, block) = mark(line, block);
            }
            for before in 0..=block {
                assert_eq!(*store.line(2, before), mark(2, before));
            }
        }
        for block in (50..200).rev() {
            (0..3).for_each(|line| *store.line_mut(line, block) = [0; WORDS]);
            store.pop_block();
        }
        store.push_block();
        assert_eq!(*store.line(1, 50), [0; WORDS]);
        assert_eq!(*store.line(1, 49), mark(1, 49));
        assert_eq!(store.bytes(), 3 * 64 * size_of::<Line>());
    }
}
