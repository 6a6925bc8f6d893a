//! Planted bugs: the simulator finds each within some seeds, and as the guarantee that it breaks,
//! or as the invariant of a core's state, which the core asserts at the end of the step that breaks
//! it.

use airmail_sim::{Plant, Run, Stage};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds within which each is found, where nothing else is said.
const SEEDS: u64 = 200;
/// Seeds within which those are found that want several shards, or Kafka; and one that a run with moves shows once in
/// a hundred times.
const RARE_SEEDS: u64 = 1_000;

fn found(plant: Plant, stage: Stage) -> Option<String> {
    // In a release too, the cores assert their invariants.
    airmail_model::bug::set_panics(true);
    (0..seeds(plant, stage)).find_map(|seed| {
        let run = Run {
            stage,
            seed,
            steps: 1_000,
            plant: Some(plant),
            show: false,
        };
        match catch_unwind(AssertUnwindSafe(|| run.go())) {
            Ok(ended) => ended.err().map(|violation| violation.to_string()),
            Err(panicked) => {
                let text = panicked.downcast::<String>();
                text.ok().map(|text| asserted(&text))
            }
        }
    })
}

const fn seeds(plant: Plant, stage: Stage) -> u64 {
    match stage {
        _ if matches!(plant, Plant::TakenBeforeSealed) => RARE_SEEDS,
        Stage::Cluster | Stage::Kafka => RARE_SEEDS,
        Stage::Storage | Stage::World => SEEDS,
    }
}

/// Message of an assertion, without its form.
fn asserted(panicked: &str) -> String {
    let said = panicked.strip_prefix("assertion `left == right` failed: ");
    said.unwrap_or(panicked).to_owned()
}

/// Tries all that are planted in some stages.
fn all_are_found(stages: [Stage; 2]) {
    let plants = Plant::all().iter();
    for plant in plants.filter(|plant| stages.contains(&plant.stage())) {
        let what = found(*plant, plant.stage());
        let what = what.unwrap_or_else(|| {
            let seeds = seeds(*plant, plant.stage());
            panic!("{plant} is not found in {seeds} seeds")
        });
        let known = plant.breaks().iter().any(|start| what.starts_with(start));
        assert!(known, "{plant} is found as {what}");
    }
}

#[test]
fn every_bug_planted_in_one_shard_is_found_as_what_it_breaks() {
    all_are_found([Stage::Storage, Stage::World]);
}

#[test]
fn every_bug_planted_in_several_is_found_as_what_it_breaks() {
    all_are_found([Stage::Cluster, Stage::Kafka]);
}

#[test]
fn an_ack_before_its_sync_is_found_through_the_whole_node() {
    let what = found(Plant::AckBeforeSync, Stage::World).expect("not found");
    assert!(what.starts_with("G1"), "{what}");
}
