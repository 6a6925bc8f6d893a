//! The cluster under proof, its load, and who is beside it.

use super::super::Plan;
use super::super::nodes::{Nodes, Plot, Who};
use super::super::victim::client;
use super::{Amounts, Beside, Figures};
use airmail_bench::late::{Backlog, CaughtUp, Crowd, Wanted};
use airmail_client::{Client, Start, Subscription};
use airmail_model::{Limits, Retention, TopicName};
use airmail_testkit::network::Cut;
use airmail_testkit::node::{self, airmail};
use airmail_testkit::scale;
use serde_json::Value;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::{JoinHandle, JoinSet};

/// Name of the other gateways' machine: the load's clients keep to the gateway of their own.
const ELSEWHERE: &str = "elsewhere";
/// The gateway of the load, the one that is hurt, and the one that takes its clients then.
const GATEWAYS: [(&str, &str); 3] = [
    ("gateway-1", ""),
    ("gateway-2", ELSEWHERE),
    ("gateway-3", ELSEWHERE),
];
/// Those that have the logs, on Kafka.
const TOWERS: [&str; 2] = ["tower-1", "tower-2"];
/// Beginning of the name of the topic under load.
const NAME: &str = "isolation";
/// The topic of the other gateways' clients, its part of all messages, and the time between two batches of it.
const FAR_TOPIC: &str = "isolation/elsewhere";
pub(super) const FAR_PART: u64 = 8;
const FAR_EVERY: Duration = Duration::from_millis(10);
/// The namespace of the partition that acknowledges nothing, and the broker that it is left to.
const DEAD: &str = "dead";
const DEAD_BROKER: usize = 2;
/// Messages a second for it.
const DEAD_RATE: u64 = 1_000;
/// Settings of the nodes: what a user has.
const SETTINGS: [(&str, &str); 1] = [("AIRMAIL_LOG_LEVEL", "warn")];
/// Memory that no process needs for what waits in it: two caches of 16 MiB, 64 MiB of appends, a stream's 16 MiB,
/// and the windows of its links; with as much again for the allocator.
const MEMORY_MAX_KIB: u64 = 256 << 10;
/// Bytes that are kept of the load.
const KEPT_BYTES: u64 = 1 << 30;
/// Bytes that a storage has read for readers of all its logs.
const READ: &str = "airmail_storage_read_bytes_total";

/// Storage of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum On {
    /// The disk of one tower.
    Disk,
    /// Three brokers of Kafka, for two towers.
    #[cfg_attr(not(feature = "kafka"), expect(dead_code, reason = "it has no Kafka"))]
    Kafka,
}

/// The cluster, and who is beside the load.
pub(super) struct Stage {
    nodes: Nodes,
    on: On,
    /// Its threads give way to the load where that is judged, as if its clients were on another machine.
    runtime: Runtime,
    backlog: Backlog,
    /// Payload of the backlog.
    backlog_bytes: u64,
}

impl Stage {
    /// Starts everything, and stores what is read late; none where brokers were left out.
    pub(super) fn set(directory: &Path, amounts: &Amounts, on: On) -> Option<Stage> {
        let gateways = GATEWAYS.map(|(name, host)| Plot::gateway(name, host));
        let nodes = match on {
            On::Disk => Nodes::start(directory, &gateways, &SETTINGS),
            On::Kafka => {
                let towers = TOWERS.map(|name| Plot::gateway(name, ""));
                let plots: Vec<Plot> = towers.into_iter().chain(gateways).collect();
                Nodes::start_on_kafka(directory, &plots, &SETTINGS)?
            }
        };
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
        let url = format!("airmail://{}", nodes.address(gateway(on, 1)));
        runtime.block_on(bound(&url)).unwrap();
        let backlog = runtime.block_on(Backlog::store(&url, &wanted)).unwrap();
        Some(Stage {
            nodes,
            on,
            runtime,
            backlog_bytes: backlog.messages() * wanted.size as u64,
            backlog,
        })
    }

    /// The gateway of the load.
    fn near(&self) -> Who {
        gateway(self.on, 0)
    }

    /// The gateway that is hurt.
    fn far(&self) -> Who {
        gateway(self.on, 1)
    }

    /// Those that have the logs.
    fn towers(&self) -> Vec<Who> {
        match self.on {
            On::Disk => vec![Who::Tower],
            On::Kafka => (0..TOWERS.len()).map(Who::Gateway).collect(),
        }
    }

    /// Neighbours of the load, in turn.
    pub(super) fn neighbours(&self) -> Vec<Beside> {
        let mut turns = vec![
            Beside::Nobody,
            Beside::StoppedSubscriber,
            Beside::StoppedGateway,
            Beside::NobodyForLong,
            Beside::LateSubscribers,
        ];
        if self.nodes.has_network() {
            turns.push(Beside::CutGateway);
        }
        if self.on == On::Kafka {
            turns.push(Beside::DeadPartition);
        }
        turns
    }

    /// On Kafka: lets all catch up while each tower is killed and started again, which changes nothing for them; and
    /// makes a namespace whose partition has no more replicas than one.
    pub(super) fn prepare(&mut self, plan: &Plan) {
        if self.on == On::Disk {
            return;
        }
        let late = self.begin_late();
        for tower in self.towers() {
            self.nodes.kill(tower);
            self.nodes.start_again(tower);
            self.nodes.wait_until_well();
        }
        let caught_up = self.runtime.block_on(late).unwrap();
        let first = plan.rounds().start;
        plan.tell(first, &format!("while towers are killed: {caught_up:?}"));
        assert!(caught_up.is_whole(&self.backlog), "{caught_up:?}");
        let before = self.nodes.topics();
        self.runtime.block_on(async {
            let client = self.client(self.far()).await.unwrap();
            let made = client.admin().create(DEAD, Some(1), None, None).await;
            made.unwrap();
            client.close().await.unwrap();
        });
        let mut topics = self.nodes.topics();
        topics.retain(|topic| !before.contains(topic));
        assert!(!topics.is_empty(), "{before:?}");
        self.nodes.leave_to_broker(&topics, DEAD_BROKER);
    }

    /// Half of the messages a second that go through as fast as there is room, for so long that what is only in the
    /// system's caches does not count.
    pub(super) fn half_load(&self, seconds: u64) -> u64 {
        let duration = format!("{seconds}s");
        let report = self.bench(&["e2e", "--duration", &duration]);
        (report["delivered_per_s"].as_f64().unwrap() / 2.0) as u64
    }

    /// Runs the load beside somebody.
    pub(super) fn phase(
        &self,
        plan: (&Plan, u64),
        beside: Beside,
        rate: u64,
        amounts: &Amounts,
    ) -> Figures {
        let [short, long] = amounts.seconds;
        let seconds = match beside {
            Beside::StoppedGateway | Beside::CutGateway | Beside::NobodyForLong => long,
            _ => short,
        };
        // Of what is under load, of which nothing is read.
        let unread = (beside == Beside::StoppedSubscriber).then(|| {
            let topic = format!("bench/{NAME}/0");
            let subscription = self.subscribe(self.near(), &topic);
            self.runtime.block_on(subscription).unwrap()
        });
        let far = self.subscribe(self.far(), FAR_TOPIC);
        let far = self.runtime.block_on(far);
        let reading = self.runtime.spawn(read(far.unwrap()));
        let late = (beside == Beside::LateSubscribers).then(|| (self.begin_late(), self.read()));
        let dead = (beside == Beside::DeadPartition).then(|| self.publish_dead());
        match beside {
            Beside::StoppedGateway => self.nodes.set_still(self.far(), true),
            Beside::CutGateway => self.nodes.cut(self.far(), Cut::Both, true),
            _ => {}
        }
        let (rate, duration) = (rate.to_string(), format!("{seconds}s"));
        let report = self.bench(&["latency", "--rate", &rate, "--duration", &duration]);
        match beside {
            Beside::StoppedGateway => self.nodes.set_still(self.far(), false),
            Beside::CutGateway => self.nodes.cut(self.far(), Cut::Both, false),
            _ => {}
        }
        if let Some((late, read)) = late {
            let caught_up = self.runtime.block_on(late).unwrap();
            assert!(caught_up.is_whole(&self.backlog), "{caught_up:?}");
            self.tell_reads(plan, read);
        }
        reading.abort();
        drop((unread, dead));
        self.nodes.wait_until_well();
        let figure = |name: &str| report[name].as_f64().unwrap();
        let latency = |name: &str| report["latency_us"][name].as_f64().unwrap();
        [figure("delivered_per_s"), latency("p50"), latency("p99")]
    }

    async fn client(&self, at: Who) -> Result<Client, airmail_client::Error> {
        let mut client = client(self.nodes.address(at));
        if at != self.near() {
            client = client.host(ELSEWHERE);
        }
        client.connect().await
    }

    async fn subscribe(&self, at: Who, topic: &str) -> Result<Subscription, airmail_client::Error> {
        let client = self.client(at).await?;
        client.subscribe(topic).from(Start::Latest).open().await
    }

    /// Publishes so many messages a second for the other gateways' clients, until what it gives is dropped.
    pub(super) fn publish_far(&self, rate: u64) -> JoinSet<()> {
        let client = self.client(gateway(self.on, 2));
        let client = self.runtime.block_on(client).unwrap();
        self.publish(client, FAR_TOPIC, rate)
    }

    /// Publishes at the load's gateway for the partition that acknowledges nothing, until what it gives is dropped.
    fn publish_dead(&self) -> JoinSet<()> {
        let client = client(self.nodes.address(self.near())).namespace(DEAD);
        let client = self.runtime.block_on(client.connect()).unwrap();
        self.publish(client, DEAD, DEAD_RATE)
    }

    fn publish(&self, client: Client, topic: &str, rate: u64) -> JoinSet<()> {
        let name = TopicName::new(topic, &Limits::DEFAULT).unwrap();
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

    fn begin_late(&self) -> JoinHandle<CaughtUp> {
        let crowd = Crowd {
            target: format!("airmail://{}", self.nodes.address(self.far())),
            host: Some(ELSEWHERE.to_owned()),
            connections: NonZeroU32::new(16).unwrap(),
            backlog: self.backlog.clone(),
        };
        self.runtime
            .spawn(async move { crowd.catch_up().await.unwrap() })
    }

    /// Bytes that the towers have read for readers so far.
    fn read(&self) -> f64 {
        let towers = self.towers().into_iter();
        let read = towers.map(|tower| self.nodes.metric(tower, READ));
        read.sum()
    }

    /// Tells how much the towers have read meanwhile. It is of all logs, that under load too, so it is not judged;
    /// `airmail bench late` tells it of one.
    fn tell_reads(&self, (plan, round): (&Plan, u64), before: f64) {
        let times = (self.read() - before) / self.backlog_bytes as f64;
        let what = format!("read by towers: {times:.3} times what is read late");
        plan.tell(round, &what);
    }

    /// Runs the load, as a process of its own; all that it sent must have come, once and in order.
    fn bench(&self, arguments: &[&str]) -> Value {
        let target = format!("airmail://{}", self.nodes.address(self.near()));
        let mut command = airmail();
        command.arg("bench").args(arguments);
        command.args(["--target", &target, "--name", NAME, "--json"]);
        let done = node::run(&mut command, b"").ok();
        serde_json::from_str(&done).unwrap_or_else(|error| panic!("{error}: {done}"))
    }

    /// No process has ever had more memory than its bounds allow.
    pub(super) fn check_memory(&self, plan: &Plan) {
        let gateways = (0..GATEWAYS.len()).map(|number| gateway(self.on, number));
        for who in gateways.chain(self.towers()) {
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

/// A gateway, behind the towers where these are among the nodes.
fn gateway(on: On, number: usize) -> Who {
    match on {
        On::Disk => Who::Gateway(number),
        On::Kafka => Who::Gateway(TOWERS.len() + number),
    }
}

/// Has this thread run only while nobody else wants its processor, where the load is judged. A lower priority would not do: whoever runs, runs on
/// for some milliseconds.
fn give_way() {
    if scale::prove("JUDGE").is_none() {
        return;
    }
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
