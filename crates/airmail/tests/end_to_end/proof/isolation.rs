//! Load at half of the highest rate, while something else of the cluster stands still: a subscriber that reads
//! nothing, a gateway that is stopped, a link that is cut; or while ten thousand subscribers catch up.
//!
//! A publisher and a subscriber are clients of one gateway; whatever stands still is at another, or a stream of its
//! own. That other one has a subscriber, too, of another topic, to which an eighth of all messages go. It and its clients
//! stand for another machine: they give way to the load, and there is a third, to which the clients of a gateway that
//! stands still go. In each round they run beside nobody and beside each of these for as long, in an order that turns, and
//! what is judged, with `AIRMAIL_PROVE_JUDGE`, are medians of the ratios within rounds. That nothing is lost, comes twice or out of
//! order, and that no node's memory grows beyond what its bounds allow, is judged always.

use super::Plan;
use super::nodes::{Nodes, Plot, Who};
use super::victim::client;
use airmail_bench::late::{Backlog, CaughtUp, Crowd, Wanted};
use airmail_client::{Client, Start, Subscription};
use airmail_model::{Limits, Retention, TopicName};
use airmail_testkit::network::Cut;
use airmail_testkit::node::{self, airmail};
use airmail_testkit::scale;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::process::Command;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const NEAR: Who = Who::Gateway(0);
const FAR: Who = Who::Gateway(1);
/// Name of the other gateways' machine: the load's clients keep to the gateway of their own.
const ELSEWHERE: &str = "elsewhere";
/// Beginning of the name of the topic under load.
const NAME: &str = "isolation";
/// The topic of the other gateways' clients, its part of all messages, and the time between two batches of it.
const FAR_TOPIC: &str = "isolation/elsewhere";
const FAR_PART: u64 = 8;
const FAR_EVERY: Duration = Duration::from_millis(10);
/// Settings of the nodes: what a user has.
const SETTINGS: [(&str, &str); 1] = [("AIRMAIL_LOG_LEVEL", "warn")];
/// Memory that no process needs for what waits in it: two caches of 16 MiB, 64 MiB of appends, a stream's 16 MiB,
/// and the windows of its links; with as much again for the allocator.
const MEMORY_MAX_KIB: u64 = 256 << 10;
/// Bytes that are kept of the load.
const KEPT_BYTES: u64 = 1 << 30;
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
}

impl Beside {
    /// Phases that are as long, beside nobody.
    fn compared_with(self) -> Option<Beside> {
        match self {
            Beside::Nobody | Beside::NobodyForLong => None,
            Beside::StoppedSubscriber | Beside::LateSubscribers => Some(Beside::Nobody),
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
    let plan = Plan::new("isolation", 1);
    let amounts = Amounts::of_run();
    let directory = tempfile::tempdir().unwrap();
    let stage = Stage::set(directory.path(), &amounts);
    let all = match scale::prove("ROUNDS") {
        None => 5_000,
        Some(_) => stage.half_load(amounts.seconds[1]),
    };
    let far_rate = all / FAR_PART;
    let rate = all - far_rate;
    let _publishing = stage.publish_far(far_rate);
    let mut ratios_of: BTreeMap<Beside, Vec<[f64; 3]>> = BTreeMap::new();
    for round in plan.rounds() {
        let _watch = plan.watch(round, directory.path());
        let mut turns = vec![
            Beside::Nobody,
            Beside::StoppedSubscriber,
            Beside::StoppedGateway,
            Beside::NobodyForLong,
            Beside::LateSubscribers,
        ];
        if stage.nodes.has_network() {
            turns.push(Beside::CutGateway);
        }
        let turn = round as usize % turns.len();
        turns.rotate_left(turn);
        let mut found = BTreeMap::new();
        for beside in turns {
            let figures = stage.phase(beside, rate, &amounts);
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
    for (beside, ratios) in &ratios_of {
        let medians = [0, 1, 2].map(|figure| median(ratios.iter().map(|of| of[figure])));
        let [rate, p50, p99] = medians;
        plan.tell(
            plan.rounds().end,
            &format!("{beside:?}: medians {medians:.3?}"),
        );
        let holds = rate >= BOUNDS[0] && p50 <= BOUNDS[1] && p99 <= BOUNDS[2];
        assert!(
            holds || scale::prove("JUDGE").is_none(),
            "{beside:?}: {medians:.3?}, bounds {BOUNDS:?}"
        );
    }
    stage.check_memory(&plan);
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The cluster, and who is beside the load.
struct Stage {
    nodes: Nodes,
    /// Its threads give way to the load, as if its clients were on another machine.
    runtime: Runtime,
    backlog: Backlog,
}

impl Stage {
    fn set(directory: &std::path::Path, amounts: &Amounts) -> Stage {
        let nodes = Nodes::start(
            directory,
            &[
                Plot::gateway("gateway-1", ""),
                Plot::gateway("gateway-2", ELSEWHERE),
                Plot::gateway("gateway-3", ELSEWHERE),
            ],
            &SETTINGS,
        );
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .on_thread_start(give_way)
            .enable_all()
            .build()
            .unwrap();
        let wanted = Wanted {
            namespace: "late".to_owned(),
            topics: NonZeroU32::new(amounts.late).unwrap(),
            bytes: amounts.late_bytes,
            size: 1_000,
        };
        let url = format!("airmail://{}", nodes.address(FAR));
        runtime.block_on(bound(&url)).unwrap();
        let backlog = runtime.block_on(Backlog::store(&url, &wanted)).unwrap();
        Stage {
            nodes,
            runtime,
            backlog,
        }
    }

    /// Half of the messages a second that go through as fast as there is room, for so long that what is only in the
    /// system's caches does not count.
    fn half_load(&self, seconds: u64) -> u64 {
        let duration = format!("{seconds}s");
        let report = self.bench(&["e2e", "--duration", &duration]);
        (report["delivered_per_s"].as_f64().unwrap() / 2.0) as u64
    }

    /// Runs the load beside somebody.
    fn phase(&self, beside: Beside, rate: u64, amounts: &Amounts) -> Figures {
        let [short, long] = amounts.seconds;
        let seconds = match beside {
            Beside::StoppedGateway | Beside::CutGateway | Beside::NobodyForLong => long,
            _ => short,
        };
        // Of what is under load, of which nothing is read.
        let unread = (beside == Beside::StoppedSubscriber).then(|| {
            let topic = format!("bench/{NAME}/0");
            self.runtime.block_on(self.subscribe(NEAR, &topic)).unwrap()
        });
        let far = self.runtime.block_on(self.subscribe(FAR, FAR_TOPIC));
        let reading = self.runtime.spawn(read(far.unwrap()));
        let late = (beside == Beside::LateSubscribers).then(|| self.begin_late());
        match beside {
            Beside::StoppedGateway => self.nodes.set_still(FAR, true),
            Beside::CutGateway => self.nodes.cut(FAR, Cut::Both, true),
            _ => {}
        }
        let (rate, duration) = (rate.to_string(), format!("{seconds}s"));
        let report = self.bench(&["latency", "--rate", &rate, "--duration", &duration]);
        match beside {
            Beside::StoppedGateway => self.nodes.set_still(FAR, false),
            Beside::CutGateway => self.nodes.cut(FAR, Cut::Both, false),
            _ => {}
        }
        if let Some(late) = late {
            let caught_up = self.runtime.block_on(late).unwrap();
            assert!(caught_up.is_whole(&self.backlog), "{caught_up:?}");
        }
        reading.abort();
        drop(unread);
        self.nodes.wait_until_well();
        let figure = |name: &str| report[name].as_f64().unwrap();
        let latency = |name: &str| report["latency_us"][name].as_f64().unwrap();
        [figure("delivered_per_s"), latency("p50"), latency("p99")]
    }

    async fn client(&self, at: Who) -> Result<Client, airmail_client::Error> {
        let mut client = client(self.nodes.address(at));
        if at != NEAR {
            client = client.host(ELSEWHERE);
        }
        client.connect().await
    }

    async fn subscribe(&self, at: Who, topic: &str) -> Result<Subscription, airmail_client::Error> {
        let client = self.client(at).await?;
        client.subscribe(topic).from(Start::Latest).open().await
    }

    /// Publishes so many messages a second for the other gateways' clients, until what it gives is dropped.
    fn publish_far(&self, rate: u64) -> JoinSet<()> {
        let client = self.runtime.block_on(self.client(Who::Gateway(2))).unwrap();
        let name = TopicName::new(FAR_TOPIC, &Limits::DEFAULT).unwrap();
        let batch = rate * u64::try_from(FAR_EVERY.as_millis()).unwrap() / 1_000;
        let mut tasks = JoinSet::new();
        tasks.spawn_on(
            async move {
                let publisher = client.publisher();
                let mut ticks = tokio::time::interval(FAR_EVERY);
                loop {
                    ticks.tick().await;
                    for _ in 0..batch {
                        drop(publisher.send_ref(&name, &[b'.'; 100]).await.unwrap());
                    }
                }
            },
            self.runtime.handle(),
        );
        tasks
    }

    fn begin_late(&self) -> tokio::task::JoinHandle<CaughtUp> {
        let crowd = Crowd {
            target: format!("airmail://{}", self.nodes.address(FAR)),
            host: Some(ELSEWHERE.to_owned()),
            connections: NonZeroU32::new(16).unwrap(),
            backlog: self.backlog.clone(),
        };
        self.runtime
            .spawn(async move { crowd.catch_up().await.unwrap() })
    }

    /// Runs the load, as a process of its own; all that it sent must have come, once and in order.
    fn bench(&self, arguments: &[&str]) -> Value {
        let target = format!("airmail://{}", self.nodes.address(NEAR));
        let mut command = airmail();
        command.arg("bench").args(arguments);
        command.args(["--target", &target, "--name", NAME, "--json"]);
        let done = node::run(&mut command, b"").ok();
        serde_json::from_str(&done).unwrap_or_else(|error| panic!("{error}: {done}"))
    }

    /// No process has ever had more memory than its bounds allow.
    fn check_memory(&self, plan: &Plan) {
        for who in [NEAR, FAR, Who::Gateway(2), Who::Tower] {
            let path = format!("/proc/{}/status", self.nodes.pid(who));
            let status = fs::read_to_string(path).unwrap();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = peak.and_then(|rest| rest.split_whitespace().next());
            let kib: u64 = kib.unwrap().parse().unwrap();
            let name = self.nodes.name(who);
            plan.tell(
                plan.rounds().end,
                &format!("{name}: {} MiB at most", kib >> 10),
            );
            assert!(kib <= MEMORY_MAX_KIB, "{name}: {kib} KiB");
        }
    }
}

/// Has this thread run only while nobody else wants its processor. A lower priority would not do: whoever runs, runs on
/// for some milliseconds.
fn give_way() {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let done = Command::new("chrt")
        .args(["--idle", "--pid", "0", &thread])
        .status();
    assert!(done.unwrap().success());
}

/// Has the namespace of the load keep so much and no more: it takes 100 MB in a second.
async fn bound(url: &str) -> Result<(), airmail_client::Error> {
    let client = Client::connect(url).await?;
    let kept = Retention {
        bytes: Some(KEPT_BYTES),
        ..Retention::default()
    };
    let admin = client.admin();
    admin
        .update("default", None, Some(kept), None, None)
        .await?;
    client.close().await
}

/// Reads whatever comes, as long as it is there.
async fn read(mut subscription: Subscription) {
    while let Ok(Some(_)) = subscription.next_batch().await {}
}
