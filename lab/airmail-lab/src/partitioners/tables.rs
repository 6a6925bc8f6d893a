//! Tables 7.1 to 7.18: two brokers, four topics, both kinds of acks, every policy.

use super::bench::{Bench, Order};
use super::cluster::LONG_SESSION_MS;
use super::metric::Metric;
use super::outcome::Outcome;
use super::policy::Policy;
use super::report;
use super::runs::Runs;
use super::scene::{Acks, Scene, Topic};
use super::{Cases, Given, PartitionersArgs};
use crate::narration::say;
use airmail_experiments::results::Findings;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Measurements, scene by scene.
pub(super) type Scenes = BTreeMap<Scene, Runs>;

pub(super) fn run(given: Given<'_>, findings: &mut Findings) -> anyhow::Result<bool> {
    let tables = Cases {
        brokers: 2,
        session_ms: LONG_SESSION_MS,
        measure,
        report: report::tables,
    };
    tables.run(given, findings)
}

fn measure(given: Given<'_>, bench: &mut Bench<'_>, scenes: &mut Scenes) -> anyhow::Result<()> {
    let Given { args, times, .. } = given;
    let warming = Scene::new(Topic::B2, Acks::All);
    bench.warm(&order(args, warming, Policy::BuiltIn))?;
    for round in 1..=args.rounds() {
        for topic in args.topics() {
            for acks in args.acks() {
                let scene = Scene::new(topic, acks);
                for policy in args.policies_in(round) {
                    if times.are_over() {
                        return Ok(());
                    }
                    let outcome = run_one(bench, round, scene, &order(args, scene, policy))?;
                    scenes
                        .entry(scene)
                        .or_default()
                        .enter(policy, round, outcome);
                }
            }
        }
    }
    Ok(())
}

fn order(args: &PartitionersArgs, scene: Scene, policy: Policy) -> Order {
    Order::of(args, scene.topic.replicas(), scene.acks, policy)
}

/// Runs it, and prints its result.
pub(super) fn run_one(
    bench: &mut Bench<'_>,
    round: u32,
    scene: impl Display,
    order: &Order,
) -> anyhow::Result<Outcome> {
    let outcome = bench.run(order)?;
    let policy = order.policy.name();
    say(&format!(
        "round {round}, {scene}, {policy}: {}",
        line(&outcome)
    ));
    Ok(outcome)
}

/// A run in a line.
fn line(outcome: &Outcome) -> String {
    let of = |metric| outcome.metric(metric);
    let shares: Vec<String> = outcome
        .core_shares
        .iter()
        .map(|share| format!("{share:.2}"))
        .collect();
    let failed = match &outcome.first_error {
        Some(error) => format!("; {} not acknowledged: {error}", outcome.failed),
        None => String::new(),
    };
    format!(
        "{:.2} MB/s; mean {:.1} ms, p50 {:.1}, p99 {:.1}, p99.9 {:.1}, at most {:.0}; {:.1} s; \
         batches of {:.0} bytes; brokers' cores {}{failed}",
        of(Metric::Throughput),
        of(Metric::Mean),
        of(Metric::P50),
        of(Metric::P99),
        of(Metric::P999),
        of(Metric::Max),
        of(Metric::Ttc),
        outcome.batch_bytes,
        shares.join(", "),
    )
}
