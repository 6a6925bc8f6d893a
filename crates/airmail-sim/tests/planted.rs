//! The simulator finds what it is there to find: each planted bug within some seeds.

use airmail_sim::{Plant, Run, Stage};

fn found(plant: Plant, stage: Stage) -> Option<String> {
    (0..100).find_map(|seed| {
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
fn an_ack_before_its_sync_is_found() {
    for stage in [Stage::Storage, Stage::World] {
        let what = found(Plant::AckBeforeSync, stage).expect("not found");
        assert!(what.starts_with("G1"), "{what}");
    }
}

#[test]
fn a_range_rule_that_is_off_by_one_is_found() {
    let what = found(Plant::RangeOffByOne, Stage::World).expect("not found");
    assert!(what.starts_with("G2"), "{what}");
}

#[test]
fn a_producer_check_that_takes_greater_for_next_is_found() {
    let what = found(Plant::ProducerGreaterIsNext, Stage::Storage).expect("not found");
    assert!(what.starts_with("G3"), "{what}");
}
