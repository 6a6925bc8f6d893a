//! The halfway collector between two clusters: brokers and collectors killed, stopped and held at random, while
//! producers send.
//!
//! What must hold: every record that was acknowledged to a producer is in the main cluster. The
//! whole order of each source can be restored from the stamps, each record once. Under `--order
//! pinned` each source's records stand in order in one partition, and under `spread` those of each
//! key do, the first of each counted. The collector's latency is measured by both clusters' own
//! append times.

mod dump;
mod load;
mod trouble;

use crate::collect::{MAIN, SMALL};
use airmail_testkit::kafka::{KafkaCluster, wait_patiently_for};
use airmail_testkit::scale;
use dump::Dumped;
use load::Load;
use std::time::{Duration, Instant};
use trouble::Trouble;

/// Duration of the run in continuous integration.
const SAMPLE: Duration = Duration::from_secs(20);
/// A part of the time, at the beginning, in which nobody is hurt: for the latency.
const CALM_PARTS: u32 = 10;

/// One topic of the small cluster, and how it is collected.
#[derive(Clone, Copy, Debug)]
struct Flow {
    from: &'static str,
    to: &'static str,
    order: &'static str,
    policy: &'static str,
    partitions: i32,
    target_partitions: i32,
}

const FLOWS: [Flow; 2] = [
    Flow {
        from: "spread-in",
        to: "spread-out",
        order: "spread",
        policy: "adaptive",
        partitions: 6,
        target_partitions: 5,
    },
    Flow {
        from: "pinned-in",
        to: "pinned-out",
        order: "pinned",
        policy: "node",
        partitions: 6,
        target_partitions: 4,
    },
];

#[test]
#[expect(clippy::disallowed_methods, reason = "real brokers live in real time")]
fn nothing_acknowledged_is_lost_or_out_of_order_whoever_is_killed() {
    let seed = scale::prove("SEED").unwrap_or(1);
    let minutes = scale::prove("MINUTES");
    let time = minutes.map_or(SAMPLE, |minutes| Duration::from_secs(60 * minutes));
    let directory = tempfile::tempdir().unwrap();
    let start = |name, id, nodes| KafkaCluster::start(&directory.path().join(name), id, nodes);
    let Some(small) = start("small", SMALL, 1) else {
        return;
    };
    let main = start("main", MAIN, 3).unwrap();
    for flow in FLOWS {
        let times = [("message.timestamp.type", "LogAppendTime")];
        small.make_topic(flow.from, flow.partitions, &times);
        main.make_topic(flow.to, flow.target_partitions, &times);
    }
    let mut watch = Watch {
        seed,
        minutes,
        directory: Some(directory),
    };
    let load = Load::start(&small, seed);
    let mut trouble = Trouble::new(small, main, watch.path(), seed);
    let begun = Instant::now();
    trouble.wait_until_collected();
    let calm = trouble.now_ms()..;
    std::thread::sleep(time / CALM_PARTS);
    let calm = calm.start..trouble.now_ms();
    while begun.elapsed() < time {
        let what = trouble.strike();
        if minutes.is_some() {
            let at = begun.elapsed().as_secs();
            scale::say(&format!(
                "prove collect: {at} s: {what}; {} acknowledged\n",
                load.count()
            ));
        }
    }
    trouble.heal();
    let acknowledged = load.stop();
    let mut missing = acknowledged.clone();
    for flow in FLOWS {
        let (small, main) = (&trouble.small, &trouble.main);
        wait_patiently_for("everything is committed", || {
            let ends = small.ends(flow.from, flow.partitions);
            let committed = small.committed(flow.from, flow.from, flow.partitions);
            let differ = || format!("{}: {committed:?} of {ends:?}", flow.from);
            (committed == ends).then_some(()).ok_or_else(differ)
        });
        let dumped = Dumped::read(small, main, flow);
        dumped.check(flow);
        missing = &missing - &dumped.numbers();
        scale::say(&format!(
            "prove collect: {}: {}\n",
            flow.order,
            dumped.report(&calm)
        ));
    }
    assert!(missing.is_empty(), "acknowledged and lost: {missing:?}");
    scale::say(&format!(
        "prove collect: clean, seed {seed}: {} acknowledged, {}\n",
        acknowledged.len(),
        trouble.tally()
    ));
    watch.directory.take();
}

/// Says how to run it again, if it fails, and keeps what there is to look at.
struct Watch {
    seed: u64,
    minutes: Option<u64>,
    directory: Option<tempfile::TempDir>,
}

impl Watch {
    fn path(&self) -> &std::path::Path {
        self.directory.as_ref().unwrap().path()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let kept = self.directory.take().map(tempfile::TempDir::keep);
        scale::say(&format!(
            "prove collect: FAILED with seed {}\nagain: cargo xtask prove collect --minutes {} --seed {}\n\
             logs:  {kept:?}\n",
            self.seed,
            self.minutes.unwrap_or(1),
            self.seed,
        ));
    }
}
