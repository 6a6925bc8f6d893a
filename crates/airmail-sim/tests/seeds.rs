//! A sample of seeds, as `airmail-sim --seeds` runs them in thousands.

use airmail_sim::{Run, Stage};

fn run_seeds(stage: Stage, seeds: std::ops::Range<u64>, steps: u64) {
    for seed in seeds {
        let run = Run {
            stage,
            seed,
            steps,
            plant: None,
            show: false,
        };
        if let Err(violation) = run.go() {
            panic!("{violation}\nreplay: {}", run.command());
        }
    }
}

#[test]
fn the_log_alone_keeps_its_guarantees_through_faults() {
    run_seeds(Stage::Storage, 0..60, 1_000);
}

#[test]
fn the_whole_node_keeps_its_guarantees_through_faults() {
    run_seeds(Stage::World, 0..60, 1_000);
}
