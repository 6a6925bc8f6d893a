//! Random calls, checked against a `Vec`: the log's expected contents are written down beside it,
//! and every tile of every reader is compared with them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod subjects;
mod world;

use airmail_log::conformance::{Driver, Subject};
use airmail_log::journal::JournalConfig;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use subjects::{InMemory, OnDisk, OnKept, tiny};
use world::{Action, World, actions};

fn play<S: Subject>(subject: &mut S, actions: Vec<Action>) {
    let mut driver = Driver::new(subject);
    let mut world = World::new(&mut driver);
    for action in actions {
        world.play(&mut driver, action);
    }
    world.finish(&mut driver);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        max_shrink_iters: 2000,
        failure_persistence: None,
        // The same cases in each run; another seed, or more of them, when looking for more.
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_journal_holds_what_the_model_holds(actions in actions(120)) {
        play(&mut OnKept::new(tiny(JournalConfig::default())), actions);
    }

    #[test]
    fn the_memory_storage_holds_what_the_model_holds(actions in actions(120)) {
        play(&mut InMemory::new(tiny(JournalConfig::memory(0))), actions);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12,
        max_shrink_iters: 200,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_disk_storage_holds_what_the_model_holds(actions in actions(80)) {
        play(&mut OnDisk::new(tiny(JournalConfig::default())), actions);
    }
}
