//! Load at half of the highest rate, while something else of the cluster stands still: a subscriber that reads
//! nothing, a gateway that is stopped, a link that is cut; or while ten thousand subscribers catch up.
//!
//! A publisher and a subscriber are clients of one gateway; whatever stands still is at another, or a stream of its
//! own. That other one has a subscriber, too, of another topic, to which an eighth of all messages go. It and its clients
//! stand for another machine: where the load is judged they give way to it. There is a third gateway, to which the
//! clients of one that stands still go. In each round they run beside nobody and beside each of these for as long, in an
//! order that turns, and what is judged, with `AIRMAIL_PROVE_JUDGE`, are medians of the ratios within rounds. That nothing is lost, comes twice or out of
//! order, and that no node's memory grows beyond what its bounds allow, is judged always.
//!
//! Or the logs are on three brokers of Kafka, of two towers. There they run also beside messages for a partition that
//! acknowledges nothing; and at first the late ones catch up while each tower is killed and started again.

mod stage;

use super::Plan;
use airmail_bench::Spread;
use airmail_testkit::scale;
use stage::{On, Stage};
use std::collections::BTreeMap;

/// Bounds of the medians: rate, p50 and p99 over those beside nobody.
const BOUNDS: [f64; 3] = [0.95, 1.15, 1.5];

/// Neighbours of the load, which stand still or have much to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Beside {
    /// Nobody, for as long as a node stands still.
    NobodyForLong,
    Nobody,
    StoppedSubscriber,
    StoppedGateway,
    CutGateway,
    LateSubscribers,
    DeadPartition,
}

impl Beside {
    /// Phases that are as long, beside nobody.
    fn compared_with(self) -> Option<Beside> {
        match self {
            Beside::Nobody | Beside::NobodyForLong => None,
            Beside::StoppedSubscriber | Beside::LateSubscribers | Beside::DeadPartition => {
                Some(Beside::Nobody)
            }
            Beside::StoppedGateway | Beside::CutGateway => Some(Beside::NobodyForLong),
        }
    }
}

/// Amounts of a run.
struct Amounts {
    /// Length of a phase, and of one in which a node stands still.
    seconds: [u64; 2],
    late: u32,
    late_bytes: u64,
}

impl Amounts {
    fn of_run() -> Amounts {
        match scale::prove("ROUNDS") {
            None => Amounts {
                seconds: [2, 3],
                late: 200,
                late_bytes: 4 << 20,
            },
            Some(_) => Amounts {
                seconds: [8, 20],
                late: 10_000,
                late_bytes: 1 << 30,
            },
        }
    }
}

/// Figures of a phase: messages a second, p50 and p99 in microseconds.
type Figures = [f64; 3];

#[test]
fn what_stands_still_leaves_the_others_as_they_are() {
    if scale::prove("KAFKA").is_none() {
        run(On::Disk);
    }
}

#[cfg(feature = "kafka")]
#[test]
fn what_stands_still_on_kafka_leaves_the_others_as_they_are() {
    if scale::prove("KAFKA").is_some() || scale::prove("ROUNDS").is_none() {
        run(On::Kafka);
    }
}

/// Runs the rounds, and judges them; nothing where brokers were left out.
fn run(on: On) {
    let plan = Plan::new("isolation", 1);
    let amounts = Amounts::of_run();
    let directory = tempfile::tempdir().unwrap();
    let Some(mut stage) = Stage::set(directory.path(), &amounts, on) else {
        return;
    };
    stage.prepare(&plan);
    let all = match scale::prove("ROUNDS") {
        None => 5_000,
        Some(_) => stage.half_load(amounts.seconds[1]),
    };
    let far_rate = all / stage::FAR_PART;
    let rate = all - far_rate;
    let _publishing = stage.publish_far(far_rate);
    let mut ratios_of: BTreeMap<Beside, Vec<[f64; 3]>> = BTreeMap::new();
    for round in plan.rounds() {
        let _watch = plan.watch(round, directory.path());
        let mut turns = stage.neighbours();
        let turn = round as usize % turns.len();
        turns.rotate_left(turn);
        let mut found = BTreeMap::new();
        for beside in turns {
            let figures = stage.phase((&plan, round), beside, rate, &amounts);
            plan.tell(round, &format!("{rate}/s, {beside:?}: {figures:.0?}"));
            found.insert(beside, figures);
        }
        for (beside, with) in &found {
            if let Some(alone) = beside.compared_with().and_then(|alone| found.get(&alone)) {
                let ratios = [0, 1, 2].map(|figure| with[figure] / alone[figure].max(1.0));
                ratios_of.entry(*beside).or_default().push(ratios);
            }
        }
    }
    judge(&plan, &ratios_of);
    stage.check_memory(&plan);
}

/// Tells the medians, and their spreads, and judges them if that is asked for.
fn judge(plan: &Plan, ratios_of: &BTreeMap<Beside, Vec<[f64; 3]>>) {
    let last = plan.rounds().end;
    for (beside, ratios) in ratios_of {
        let of = |figure: usize| Spread::of(ratios.iter().map(|of| of[figure]));
        let spreads = [0, 1, 2].map(|figure| of(figure).unwrap_or_default());
        let [rate, p50, p99] = spreads;
        plan.tell(
            last,
            &format!("{beside:?}: rate {rate:.3}, p50 {p50:.3}, p99 {p99:.3}"),
        );
        let medians = spreads.map(|spread| spread.median);
        let [rate, p50, p99] = medians;
        let holds = rate >= BOUNDS[0] && p50 <= BOUNDS[1] && p99 <= BOUNDS[2];
        assert!(
            holds || scale::prove("JUDGE").is_none(),
            "{beside:?}: {medians:.3?}, bounds {BOUNDS:?}"
        );
    }
}
