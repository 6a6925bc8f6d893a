//! The simulator finds what it is there to find: each planted bug within some seeds, and as the
//! guarantee that it breaks.

use airmail_sim::{Plant, Run, Stage};

const SEEDS: u64 = 200;

fn found(plant: Plant, stage: Stage) -> Option<String> {
    (0..SEEDS).find_map(|seed| {
        let run = Run {
            stage,
            seed,
            steps: 1_000,
            plant: Some(plant),
            show: false,
        };
        run.go().err().map(|violation| violation.to_string())
    })
}

#[test]
fn every_planted_bug_is_found_as_what_it_breaks() {
    for plant in Plant::all() {
        let what = found(*plant, plant.stage());
        let what = what.unwrap_or_else(|| panic!("{plant} is not found in {SEEDS} seeds"));
        let known = plant.breaks().iter().any(|start| what.starts_with(start));
        assert!(known, "{plant} is found as {what}");
    }
}

#[test]
fn an_ack_before_its_sync_is_found_through_the_whole_node() {
    let what = found(Plant::AckBeforeSync, Stage::World).expect("not found");
    assert!(what.starts_with("G1"), "{what}");
}
