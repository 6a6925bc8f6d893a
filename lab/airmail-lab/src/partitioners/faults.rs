//! Experiments that the paper could not make: three brokers and several producers, on a topic that
//! a fault has left uneven; a broker that has a quarter of the others' resources; a broker that is
//! killed and comes back.

use super::bench::{Bench, Event, Order};
use super::cluster::SESSION_MS;
use super::policy::Policy;
use super::report;
use super::runs::Runs;
use super::scene::Acks;
use super::tables::run_one;
use super::{Cases, Given, PartitionersArgs};
use airmail_experiments::results::Findings;
use std::collections::BTreeMap;

/// The broker to which something happens.
const BROKER: u32 = 3;
/// Part of its resources that a broker keeps when it is held back.
const PART: f64 = 0.25;

/// Cases, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Case {
    /// Nothing, on a topic whose nodes lead 3, 2 and 1 of its partitions.
    Uneven,
    /// A broker is held back.
    HeldBack,
    /// A broker is killed, and started again.
    Killed,
}

/// Measurements, case by case.
pub(super) type Measured = BTreeMap<Case, Runs>;

impl Case {
    const ALL: [Case; 3] = [Case::Uneven, Case::HeldBack, Case::Killed];

    /// Name in rows and names of figures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Case::Uneven => "uneven",
            Case::HeldBack => "held-back",
            Case::Killed => "killed",
        }
    }

    /// The replicas of each partition: with all there, or after a fourth node is lost.
    fn replicas(self) -> Vec<Vec<u32>> {
        let pairs = match self {
            Case::Uneven => [[1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [1, 2]],
            Case::HeldBack | Case::Killed => [[1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2]],
        };
        pairs.map(|pair| pair.to_vec()).to_vec()
    }
}

pub(super) fn run(given: Given<'_>, findings: &mut Findings) -> anyhow::Result<bool> {
    let faults = Cases {
        brokers: 3,
        session_ms: SESSION_MS,
        measure,
        report: report::faults,
    };
    faults.run(given, findings)
}

fn measure(given: Given<'_>, bench: &mut Bench<'_>, cases: &mut Measured) -> anyhow::Result<()> {
    let Given { args, times, .. } = given;
    bench.warm(&order(args, Case::HeldBack, Policy::BuiltIn))?;
    for round in 1..=args.rounds() {
        for case in Case::ALL {
            if case == Case::HeldBack && !hold_back(args, bench, PART)? {
                continue;
            }
            for policy in args.policies_in(round) {
                if times.are_over() {
                    return Ok(());
                }
                let order = order(args, case, policy);
                let outcome = run_one(bench, round, case.name(), &order)?;
                cases.entry(case).or_default().enter(policy, round, outcome);
            }
            if case == Case::HeldBack {
                hold_back(args, bench, 1.0)?;
            }
        }
    }
    Ok(())
}

/// Gives the broker a part of what it has; whether it has anything of its own.
fn hold_back(args: &PartitionersArgs, bench: &mut Bench<'_>, part: f64) -> anyhow::Result<bool> {
    if args.limit == super::Limit::None {
        return Ok(false);
    }
    bench.cluster.give(BROKER, part)?;
    Ok(true)
}

fn order(args: &PartitionersArgs, case: Case, policy: Policy) -> Order {
    let order = Order {
        producers: args.producers,
        ..Order::of(args, case.replicas(), Acks::All, policy)
    };
    if case != Case::Killed {
        return order;
    }
    // At a rate, so that the fault is in the same place of every run, and none of it is warm-up.
    let (rate, ms) = (args.fault_rate, args.fault_seconds() * 1_000);
    Order {
        records: rate * args.fault_seconds(),
        warm_up: 0,
        rate: Some(rate),
        events: vec![
            (ms / 4, Event::Kill(BROKER)),
            (ms / 2, Event::Start(BROKER)),
        ],
        ..order
    }
}
