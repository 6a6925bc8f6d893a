//! Faults that are done to brokers and collectors, all by a seed.

use super::FLOWS;
use crate::collect::Collector;
use airmail_testkit::kafka::{KafkaCluster, wait_patiently};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Collectors of each flow.
const INSTANCES: usize = 2;

/// Brokers and collectors that can be hurt.
pub(super) struct Trouble {
    pub(super) small: KafkaCluster,
    pub(super) main: KafkaCluster,
    directory: PathBuf,
    random: SmallRng,
    /// Collectors by flow, then by instance.
    collectors: Vec<Option<Collector>>,
    tally: BTreeMap<&'static str, u32>,
}

impl Trouble {
    /// Starts the collectors.
    pub(super) fn new(
        small: KafkaCluster,
        main: KafkaCluster,
        directory: &Path,
        seed: u64,
    ) -> Trouble {
        let mut trouble = Trouble {
            small,
            main,
            directory: directory.to_owned(),
            random: SmallRng::seed_from_u64(seed ^ 0x5eed),
            collectors: Vec::new(),
            tally: BTreeMap::new(),
        };
        for at in 0..FLOWS.len() * INSTANCES {
            let collector = trouble.collector(at);
            trouble.collectors.push(Some(collector));
        }
        trouble
    }

    fn collector(&self, at: usize) -> Collector {
        let flow = FLOWS[at / INSTANCES];
        let source = format!("kafka://{}", self.small.bootstrap());
        let target = format!("kafka://{}", self.main.bootstrap());
        let topic = format!("{}={}", flow.from, flow.to);
        let arguments = [
            ["--source", &source],
            ["--target", &target],
            ["--topic", &topic],
            ["--order", flow.order],
            ["--policy", flow.policy],
            ["--group", flow.from],
            ["--session", "6s"],
            ["--hand-over", "3s"],
            ["--commit-every", "500ms"],
        ];
        let log = self.directory.join(format!("collector-{at}.log"));
        Collector::start(arguments.as_flattened(), &log)
    }

    /// Waits until every flow has collected something.
    pub(super) fn wait_until_collected(&self) {
        wait_patiently("every flow is collected", || {
            self.collectors.chunks(INSTANCES).all(|flow| {
                let collectors = flow.iter().flatten();
                let collected = collectors.map(|one| one.metric("airmail_collect_collected_total"));
                collected.sum::<f64>() > 0.0
            })
        });
    }

    /// Hurts somebody, and lets some time pass; says whom.
    pub(super) fn strike(&mut self) -> &'static str {
        let what = match self.random.random_range(0..10) {
            0..3 => self.kill_collector(),
            3 => self.stop_collector(),
            4 => self.hold_collector(),
            5..8 => self.kill_main_broker(),
            8 => self.kill_small_broker(),
            _ => self.kill_both(),
        };
        *self.tally.entry(what).or_default() += 1;
        self.rest(500..3_000);
        what
    }

    fn kill_collector(&mut self) -> &'static str {
        let at = self.random.random_range(0..self.collectors.len());
        self.collectors[at] = None;
        self.rest(0..3_000);
        self.collectors[at] = Some(self.collector(at));
        "a collector killed"
    }

    fn stop_collector(&mut self) -> &'static str {
        let at = self.random.random_range(0..self.collectors.len());
        if let Some(collector) = self.collectors[at].take() {
            collector.stop();
        }
        self.rest(0..2_000);
        self.collectors[at] = Some(self.collector(at));
        "a collector stopped in order"
    }

    /// Holds a collector, mostly for longer than its session: it comes back, and thinks that it is
    /// still a member.
    fn hold_collector(&mut self) -> &'static str {
        let at = self.random.random_range(0..self.collectors.len());
        let send = |signal| {
            if let Some(collector) = &self.collectors[at] {
                collector.signal(signal);
            }
        };
        send(Signal::STOP);
        let held = Duration::from_millis(self.random.random_range(2_000..10_000));
        thread::sleep(held);
        send(Signal::CONT);
        "a collector held"
    }

    fn kill_main_broker(&mut self) -> &'static str {
        self.wait_until_whole();
        let node = self.random.random_range(0..3);
        self.main.kill(node);
        self.rest(500..5_000);
        self.main.revive(node);
        "a broker of the main cluster killed"
    }

    fn kill_small_broker(&mut self) -> &'static str {
        self.small.kill(0);
        self.rest(0..2_000);
        self.small.revive(0);
        "the broker of the small cluster killed"
    }

    fn kill_both(&mut self) -> &'static str {
        self.wait_until_whole();
        let node = self.random.random_range(0..3);
        let at = self.random.random_range(0..self.collectors.len());
        self.main.kill(node);
        self.collectors[at] = None;
        self.rest(0..3_000);
        self.collectors[at] = Some(self.collector(at));
        self.main.revive(node);
        "a broker and a collector killed"
    }

    fn rest(&mut self, millis: std::ops::Range<u64>) {
        thread::sleep(Duration::from_millis(self.random.random_range(millis)));
    }

    /// Two of three copies are needed, so nobody is hurt while another is down.
    fn wait_until_whole(&self) {
        wait_patiently("the main cluster is whole", || self.main.is_whole());
        // Whoever is back has to catch up before he counts as a copy.
        thread::sleep(Duration::from_secs(1));
    }

    /// Everybody is well again.
    pub(super) fn heal(&mut self) {
        self.small.revive(0);
        for node in 0..3 {
            self.main.revive(node);
        }
        for at in 0..self.collectors.len() {
            if self.collectors[at].is_none() {
                self.collectors[at] = Some(self.collector(at));
            }
        }
    }

    /// Number of times that each was done.
    pub(super) fn tally(&self) -> String {
        let parts = self
            .tally
            .iter()
            .map(|(what, times)| format!("{what}: {times}"));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Reads the system's clock: the clusters' append times go by it.
    #[expect(
        clippy::disallowed_methods,
        reason = "compared with what brokers have written"
    )]
    pub(super) fn now_ms(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(now.as_millis()).unwrap()
    }
}
