//! The conformance suite on a leaf of a tree: one link below the root, and three; by lines that are calm, and by ones that
//! are slow and cut; with everything tiny.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

#[path = "../../airmail-log/tests/subjects/mod.rs"]
mod subjects;
mod wire;

use airmail_link::{CacheLimits, LinkLimits};
use airmail_log::conformance::{End, Subject};
use airmail_log::journal::JournalConfig;
use airmail_model::Now;
use subjects::OnKept;
use wire::line::Weather;
use wire::tree::Treed;

/// A storage as a leaf of a tree has it.
struct InTree {
    storage: OnKept,
    depth: usize,
    limits: (LinkLimits, CacheLimits),
    weather: Weather,
}

impl Subject for InTree {
    type Storage = Treed<<OnKept as Subject>::Storage>;

    fn fresh(&mut self, now: Now) -> Self::Storage {
        let storage = self.storage.fresh(now);
        Treed::new(storage, self.depth, self.limits, self.weather)
    }

    fn reopen(&mut self, mut storage: Self::Storage, end: End, mut now: Now) -> Self::Storage {
        if end == End::Clean {
            now = subjects::close_before(&mut storage, &mut self.storage, now);
        }
        let storage = self.storage.reopen(storage.into_storage(), end, now);
        Treed::new(storage, self.depth, self.limits, self.weather)
    }

    fn outlives(&self) -> bool {
        self.storage.outlives()
    }

    fn busy(&self) -> bool {
        self.storage.busy()
    }

    fn wait(&mut self) {
        self.storage.wait();
    }
}

fn in_tree(depth: usize, limits: (LinkLimits, CacheLimits), weather: Weather) -> InTree {
    InTree {
        storage: OnKept::new(JournalConfig::default()),
        depth,
        limits,
        weather,
    }
}

fn usual() -> (LinkLimits, CacheLimits) {
    (LinkLimits::default(), CacheLimits::default())
}

/// Bounds so small that hardly anything is kept, and everything waits for room.
fn narrow() -> (LinkLimits, CacheLimits) {
    let link = LinkLimits {
        window_bytes: 300,
        reader_bytes: 100,
        marks: 4,
        wants: 1_000,
        turn_messages: 3,
        ..LinkLimits::default()
    };
    let cache = CacheLimits {
        bytes: 1_000,
        fetch_bytes: 200,
        turn_bytes: 100,
    };
    (link, cache)
}

/// Nothing is kept of what was given.
fn without_memory() -> (LinkLimits, CacheLimits) {
    let cache = CacheLimits {
        bytes: 0,
        ..CacheLimits::default()
    };
    (LinkLimits::default(), cache)
}

fn bad(seed: u64) -> Weather {
    Weather {
        seed,
        delay: 5,
        cuts: 60,
        cuts_max: 1_000,
        ..Weather::calm(16)
    }
}

mod below_the_root {
    use super::{Weather, in_tree, usual};

    airmail_log::conformance!(in_tree(1, usual(), Weather::calm(16)));
}

mod three_links_down {
    use super::{Weather, in_tree, usual};

    airmail_log::conformance!(in_tree(3, usual(), Weather::calm(16)));
}

mod three_links_down_slow_and_cut {
    use super::{bad, in_tree, usual};

    airmail_log::conformance!(in_tree(3, usual(), bad(2)));
}

mod narrow_slow_and_cut {
    use super::{bad, in_tree, narrow};

    airmail_log::conformance!(in_tree(2, narrow(), bad(3)));
}

mod without_memory_for_what_was_given {
    use super::{Weather, in_tree, without_memory};

    airmail_log::conformance!(in_tree(1, without_memory(), Weather::calm(16)));
}
