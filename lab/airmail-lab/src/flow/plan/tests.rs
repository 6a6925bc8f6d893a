use super::*;
use clap::Parser as _;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: FlowArgs,
}

/// Makes the plan for a command line.
pub(crate) fn plan(line: &str) -> Plan {
    let words = std::iter::once("flow").chain(line.split_whitespace());
    Plan::new(&Line::try_parse_from(words).unwrap().args)
}

#[test]
fn presets_have_the_papers_parameters_and_its_limiters() {
    let memory = plan("--preset memory");
    let numbers = |plan: &Plan| {
        let gate = plan.throttling(LimiterKind::Adaptive);
        let Throttling {
            bound_initial,
            window_messages,
            delta,
            ..
        } = gate;
        (bound_initial, window_messages, delta, plan.messages)
    };
    assert_eq!(numbers(&memory), (200, 25_000, 20, Some(8_000_000)));
    assert_eq!(memory.storages, [Storage::Memory]);
    let kafka = plan("--preset kafka");
    assert_eq!(numbers(&kafka), (1_000, 50_000, 100, Some(70_000_000)));
    assert_eq!(kafka.storages, [Storage::Disk]);
    for plan in [memory, kafka] {
        assert_eq!((&*plan.topics, plan.duration_ms), (&[1, 16, 256][..], None));
        assert_eq!(plan.distributions, Distribution::ALL);
        assert_eq!(
            (&*plan.publishers, &*plan.places),
            (&[2][..], &[Place::Publisher][..])
        );
        let limiters = plan.limiters(Place::Publisher);
        assert_eq!(
            limiters,
            [LimiterKind::LastThreePoints, LimiterKind::Adaptive]
        );
    }
}

#[test]
fn on_kafka_roles_are_together_and_apart_and_no_capacity_changes() {
    let there = plan("--log kafka://a:1");
    assert_eq!(there.storages, [Storage::Kafka, Storage::KafkaApart]);
    assert!(there.changing_setups().is_empty());
    let paper = plan("--preset kafka --log kafka://a:1 --storages kafka-apart");
    assert_eq!(paper.storages, [Storage::KafkaApart]);
    assert_eq!(paper.initial(), 1_000);
    let both = plan("--log kafka://a:1 --storages memory,kafka");
    assert!(!both.changing_setups().is_empty());
}

#[test]
fn every_combination_is_a_case_once_and_a_fixed_bound_is_in_each_setup() {
    let plan = plan("--topics 1,16,1 --storages disk --limiters gradient,fixed --publishers 1,8");
    let cases = plan.cases();
    assert_eq!(cases.len(), 2 * 3 * 2 * 2 * 2);
    for (at, case) in cases.iter().enumerate() {
        assert!(!cases[..at].contains(case), "{case}");
    }
    let of = |limiter| cases.iter().filter(move |case| case.limiter == limiter);
    assert_eq!(of(LimiterKind::Fixed).count(), plan.setups().len());
}

#[test]
fn quick_has_both_storages_and_places_for_a_short_time() {
    let plan = plan("--quick --messages 7");
    assert_eq!(
        (plan.setups().len(), plan.repeat, plan.messages),
        (4, 1, Some(7))
    );
    let seconds = plan.duration_ms.unwrap() * plan.cases().len() as u64 / 1000;
    assert!(seconds <= 60 && plan.changing_setups().is_empty());
}

#[test]
fn a_target_has_the_storage_that_it_has() {
    let plan = plan("--target airmail://a --storages disk");
    assert_eq!(plan.storages, [Storage::Target]);
    assert_eq!(plan.places, [Place::Publisher]);
    assert!(plan.changing_setups().is_empty());
}

#[test]
fn what_the_pilot_limits_the_publishers_do_not() {
    let plan = plan("--quick --side pilot");
    let setup = plan.setups()[0];
    let gate = plan.fixed(64, 0.0);
    let load = plan.load(&setup, gate, plan.until());
    assert_eq!(load.throttling.bound_initial, UNBOUNDED);
    assert!(load.watch_pilot && load.throttling.gate().validate().is_ok());
    let place = Place::Publisher;
    let load = plan.load(&Setup { place, ..setup }, gate, plan.until());
    assert_eq!((load.throttling, load.watch_pilot), (gate, false));
}

#[test]
fn a_fixed_bound_has_windows_of_four_bounds_and_of_30_ms() {
    let plan = plan("--window 500");
    for (bound, rate_per_s, expected) in [
        (10, 0.0, 500),
        (1_000, 0.0, 4_000),
        (10, 1e6, 30_000),
        (20_000, 1e6, 80_000),
    ] {
        assert_eq!(plan.fixed(bound, rate_per_s).window_messages, expected);
    }
}

#[test]
fn the_pilots_sweep_begins_with_a_batch() {
    assert_eq!(plan("").lowest_bound(Place::Pilot), 545);
    assert_eq!(plan("--size 1048576").lowest_bound(Place::Pilot), 1);
    assert_eq!(plan("").lowest_bound(Place::Publisher), 1);
}
