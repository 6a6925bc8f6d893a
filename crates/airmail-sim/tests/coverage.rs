//! Coverage of the simulation: every kind of event happens within some seeds. A kind that is never
//! met is a hole in the simulation.

use airmail_sim::census::{Kind, Place};
use airmail_sim::{Census, Run, Stage};

/// Kinds that were not met. Of a cluster, or nodes on Kafka: those that only these can meet; the others are asked of the
/// node.
fn open(census: &Census, place: Place) -> Vec<Kind> {
    let holes = census.holes(place).into_iter();
    let is_of_many = matches!(place, Place::Cluster | Place::Kafka);
    let is_asked = |kind: &Kind| !is_of_many || kind.place() == place;
    holes.filter(is_asked).collect()
}

fn holes(stage: Stage, place: Place, seeds: u64) -> Vec<&'static str> {
    let mut census = Census::default();
    for seed in 0..seeds {
        let run = Run {
            stage,
            seed,
            steps: 1_500,
            plant: None,
            show: false,
        };
        match run.go() {
            Ok(report) => census.merge(&report.census),
            Err(violation) => panic!("{violation}\nreplay: {}", run.command()),
        }
        if open(&census, place).is_empty() {
            break;
        }
    }
    let holes = open(&census, place).into_iter();
    holes.map(Kind::text).collect()
}

#[test]
fn everything_that_can_happen_to_a_log_happens() {
    assert_eq!(holes(Stage::Storage, Place::Storage, 1_000), [""; 0]);
}

#[test]
fn everything_that_can_happen_between_shards_happens() {
    let between: Vec<&str> = holes(Stage::Cluster, Place::Cluster, 40);
    assert_eq!(between, [""; 0]);
}

#[test]
fn everything_that_can_happen_on_kafka_happens() {
    assert_eq!(holes(Stage::Kafka, Place::Kafka, 300), [""; 0]);
}

#[test]
fn everything_that_can_happen_to_a_node_happens() {
    assert_eq!(holes(Stage::World, Place::World, 1_000), [""; 0]);
}
