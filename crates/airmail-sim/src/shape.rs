//! Size of a run: each seed draws its own mix of namespaces, topics, producers, subscribers and
//! sizes. Mostly small, because small runs meet more in the same time; now and then large, because
//! some things happen in crowds alone. The work in all is bounded: the more there are, the fewer
//! the steps.

use crate::entropy::Entropy;

/// The sizes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Namespaces. 1 to 8.
    pub spaces: u64,
    /// Topics of a namespace, at most. 1 to 2,000.
    pub topics: u64,
    /// Publishers. 1 to 50.
    pub publishers: u64,
    /// Streams of subscribers. 0 to 100.
    pub clients: u64,
    /// Messages that one call publishes, at most.
    pub burst: u64,
    /// Bytes of a payload beyond the least, at most.
    pub filler: u64,
}

impl Shape {
    /// The sizes of a seed.
    #[must_use]
    pub fn of(chance: &mut Entropy) -> Shape {
        Shape {
            spaces: skewed(chance, 8),
            topics: skewed(chance, 2_000),
            publishers: skewed(chance, 50),
            clients: skewed(chance, 101) - 1,
            burst: 1 << chance.between(1, 4),
            filler: 1 << chance.between(4, 10),
        }
    }

    /// Number of steps that this run takes, out of `steps`.
    #[must_use]
    pub const fn steps(&self, steps: u64) -> u64 {
        const USUAL: u64 = 20;
        let ends = self.publishers + self.clients;
        steps * 2 * USUAL / (USUAL + if ends > USUAL { ends } else { USUAL })
    }
}

/// A number from 1 to `high`: each order of magnitude is as likely as the next.
fn skewed(chance: &mut Entropy, high: u64) -> u64 {
    let bits = u64::from(high.ilog2()) + 1;
    let top = (1 << chance.between(1, bits)) - 1;
    chance.between(top / 2 + 1, top).min(high)
}

/// One of `count` things, of which some are far more popular than others.
pub fn popular(chance: &mut Entropy, count: u64) -> u64 {
    let most = chance.below(count) + 1;
    let most = if chance.coin() {
        chance.below(most) + 1
    } else {
        most
    };
    chance.below(most)
}
