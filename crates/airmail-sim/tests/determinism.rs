//! One seed is one run: a difference between two runs of it comes from a hidden source.

use airmail_sim::{Run, Stage};

#[test]
fn one_seed_run_twice_gives_one_trace() {
    for stage in [Stage::Storage, Stage::World, Stage::Cluster, Stage::Kafka] {
        for seed in 1_000..1_008 {
            let run = Run {
                stage,
                seed,
                steps: 800,
                plant: None,
                show: false,
            };
            let (once, again) = (run.go(), run.go());
            assert_eq!(once, again, "{}", run.command());
        }
    }
}

#[test]
fn two_seeds_give_two_traces() {
    let run = |seed| Run {
        stage: Stage::Storage,
        seed,
        steps: 200,
        plant: None,
        show: false,
    };
    assert_ne!(run(1).go(), run(2).go());
}
