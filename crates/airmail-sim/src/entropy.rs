//! The one source of chance of a run: splitmix64 from a seed, so that a seed means the same run on
//! every machine and with every version of every dependency.

use airmail_model::random;

/// A stream of chance. Two with one seed give the same.
#[derive(Clone, Debug)]
pub struct Entropy {
    state: u64,
}

impl Entropy {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Entropy {
        Entropy { state: seed }
    }

    /// Another stream, so that one consumer's draws do not shift another's.
    pub const fn fork(&mut self) -> Entropy {
        Entropy::new(self.next())
    }

    /// 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(random::STEP);
        random::mixed(self.state)
    }

    /// A number in `[0, bound)`; 0 if `bound` is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// A number in `[low, high]`.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// An index of something that has `length` elements.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// True in `per_million` of a million cases.
    pub const fn chance(&mut self, per_million: u32) -> bool {
        self.below(1_000_000) < per_million as u64
    }

    /// True in half of the cases.
    pub const fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// One of them. `None` if there are none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.index(of.len()))
    }
}
