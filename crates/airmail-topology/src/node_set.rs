//! Sets of nodes as bit masks, of any width.
//!
//! The Kafka thesis, section 3.4, "Complexity of function N()": a mask of ⌈n/64⌉ words in place of a list
//! of numbers makes comparison and intersection a handful of operations. Up to 128 nodes a set
//! allocates nothing.
//!
//! A bit is a node's [`Place`], not its id, so that ids may be as far apart as they like. The last word
//! is never 0: so equal sets have equal words, and may be compared and hashed as such.

use smallvec::SmallVec;

/// A node's place among the cluster's nodes in order of their ids, from 0.
pub type Place = u32;

const WORD_BITS: u32 = u64::BITS;
/// Odd, and with as many ones as zeros: 2^64 divided by the golden ratio.
const SPREADING: u64 = 0x9e37_79b9_7f4a_7c15;

/// A set of nodes.
///
/// ```
/// use airmail_topology::NodeSet;
///
/// let one: NodeSet = [0, 1, 999].into_iter().collect();
/// let other: NodeSet = [1, 2, 999].into_iter().collect();
/// assert!(one.intersects(&other));
/// assert_eq!(one.intersection(&other).iter().collect::<Vec<_>>(), [1, 999]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeSet {
    words: SmallVec<[u64; 2]>,
}

impl NodeSet {
    /// Makes an empty set.
    #[must_use]
    pub fn new() -> NodeSet {
        NodeSet::default()
    }

    /// Adds a node.
    pub fn insert(&mut self, place: Place) {
        let word = (place / WORD_BITS) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (place % WORD_BITS);
    }

    /// Whether a node is in it.
    #[must_use]
    pub fn contains(&self, place: Place) -> bool {
        let word = self.words.get((place / WORD_BITS) as usize);
        word.is_some_and(|word| word & (1 << (place % WORD_BITS)) != 0)
    }

    /// Number of nodes in it.
    #[must_use]
    pub fn len(&self) -> usize {
        let ones = self.words.iter().map(|word| word.count_ones() as usize);
        ones.sum()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether some node is in both.
    #[must_use]
    pub fn intersects(&self, other: &NodeSet) -> bool {
        let pairs = self.words.iter().zip(&other.words);
        pairs.into_iter().any(|(mine, theirs)| mine & theirs != 0)
    }

    /// The nodes that are in both.
    #[must_use]
    pub fn intersection(&self, other: &NodeSet) -> NodeSet {
        let pairs = self.words.iter().zip(&other.words);
        let mut words: SmallVec<[u64; 2]> = pairs.map(|(mine, theirs)| mine & theirs).collect();
        while words.last() == Some(&0) {
            words.pop();
        }
        NodeSet { words }
    }

    /// Its nodes, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Place> + '_ {
        (0..).zip(&self.words).flat_map(|(index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                (bit < WORD_BITS).then(|| {
                    rest &= rest - 1;
                    index * WORD_BITS + bit
                })
            })
        })
    }

    /// The same for equal sets, in every process.
    pub(crate) fn digest(&self) -> u64 {
        self.words.iter().fold(0, |digest: u64, word| {
            let mixed = u128::from(digest ^ word ^ SPREADING) * u128::from(SPREADING);
            (mixed as u64) ^ ((mixed >> WORD_BITS) as u64)
        })
    }
}

impl FromIterator<Place> for NodeSet {
    fn from_iter<I: IntoIterator<Item = Place>>(places: I) -> NodeSet {
        let mut set = NodeSet::new();
        for place in places {
            set.insert(place);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_mask_is_a_set(
            one in prop::collection::btree_set(0_u32..300, 0..20),
            other in prop::collection::btree_set(0_u32..300, 0..20),
        ) {
            let masks = [&one, &other].map(|set| set.iter().copied().collect::<NodeSet>());
            let both: BTreeSet<u32> = one.intersection(&other).copied().collect();
            prop_assert_eq!(masks[0].iter().collect::<BTreeSet<_>>(), one.clone());
            prop_assert_eq!(masks[0].len(), one.len());
            prop_assert_eq!(masks[0].is_empty(), one.is_empty());
            prop_assert_eq!(masks[0].intersects(&masks[1]), !both.is_empty());
            prop_assert_eq!(&masks[0].intersection(&masks[1]), &both.into_iter().collect());
            prop_assert_eq!(masks[0] == masks[1], one == other);
        }
    }

    #[test]
    fn what_is_cut_off_leaves_no_trace() {
        let wide: NodeSet = [3, 900].into_iter().collect();
        let narrow: NodeSet = [3].into_iter().collect();
        assert_eq!(wide.intersection(&narrow), narrow);
        assert_eq!(wide.intersection(&narrow).digest(), narrow.digest());
    }
}
