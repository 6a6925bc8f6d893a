//! Kafka, for tests: real brokers in processes of their own, which can be killed, held and begun again,
//! and the things that tests do with a cluster.

mod losing;
mod meddling;

use crate::lasting::lasting_address;
use crate::network::{Machine, Network};
use crate::scale;
use crate::waiting::{self, Waiting, alive, waiting};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{BorrowedMessage, Message as _};
use rdkafka::{Offset, TopicPartitionList};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use losing::Copies;

/// Brought by `cargo xtask test`, below the tools' directory.
const JARS: &str = "servers/kafka";
const PATIENCE: Duration = Duration::from_secs(30);
/// 16 bytes in base64: the id of the cluster that a process shares.
const SHARED_ID: &str = "c2hhcmVkLWNsdXN0ZXItMQ";
/// Small, quick to start, and out of each other's way on two cores.
const JAVA: [&str; 5] = [
    "-Xms128m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-cp",
];

/// Waits until `true`, for five minutes at most: brokers begin slowly where others are at work beside them.
#[track_caller]
pub fn wait_patiently(what: &str, mut holds: impl FnMut() -> bool) {
    waiting::until(what, Duration::from_millis(50), || {
        holds().then_some(()).ok_or("it is not so".to_owned())
    });
}

/// The same, for something that tells what it sees.
#[track_caller]
pub fn wait_patiently_for(what: &str, holds: impl FnMut() -> Result<(), String>) {
    waiting::until(what, Duration::from_millis(50), holds);
}

/// A cluster whose nodes are brokers and controllers. Killed when dropped.
pub struct KafkaCluster {
    directory: PathBuf,
    jars: PathBuf,
    brokers: Vec<String>,
    running: Vec<Option<Child>>,
    around: Around,
    _alive: Waiting,
}

/// Environment of a node's process.
type Around = Box<dyn Fn(usize, &Path, &Command) -> Command + Send + Sync>;

/// A shell that runs a command until its own standard input ends, and removes a directory then; and the one around it,
/// if nothing else is there.
const UNTIL_INPUT_ENDS: &str = r#"
    own=$1; shift
    "$@" < /dev/null &
    read -r _
    kill -9 $!
    wait
    rm -rf "$own"
    rmdir "${own%/*}" 2> /dev/null
"#;

/// The bootstrap addresses of a cluster of so many nodes that all tests of this process share; none where it was left
/// out. It is started when it is first asked for, and ends with the process.
pub fn shared(nodes: usize) -> Option<&'static str> {
    static SHARED: OnceLock<Option<(KafkaCluster, String)>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let name = format!("airmail-kafka-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let addresses = || (0..nodes).map(|_| lasting_address()).collect();
        let until_input_ends = |_: usize, own: &Path, broker: &Command| {
            let mut shell = Command::new("sh");
            shell.args(["-c", UNTIL_INPUT_ENDS, "sh"]).arg(own);
            shell.arg(broker.get_program()).args(broker.get_args());
            shell.stdin(Stdio::piped());
            shell
        };
        let (brokers, controllers) = (addresses(), addresses());
        let around = Box::new(until_input_ends);
        let cluster = KafkaCluster::begin(&directory, SHARED_ID, (brokers, controllers), around)?;
        let bootstrap = cluster.bootstrap();
        Some((cluster, bootstrap))
    });
    shared.as_ref().map(|(_, bootstrap)| bootstrap.as_str())
}

impl KafkaCluster {
    /// Starts `nodes` nodes, with 16 bytes as the cluster's id in base64; none where it was left out. Each has a
    /// directory of its own below `directory`.
    pub fn start(directory: &Path, id: &str, nodes: usize) -> Option<KafkaCluster> {
        let addresses = || (0..nodes).map(|_| lasting_address()).collect();
        let as_it_is = |_: usize, _: &Path, broker: &Command| like(broker);
        let (brokers, controllers) = (addresses(), addresses());
        KafkaCluster::begin(directory, id, (brokers, controllers), Box::new(as_it_is))
    }

    /// Starts a node on each of these machines.
    pub fn start_on(
        directory: &Path,
        id: &str,
        (network, machines): (&Arc<Network>, Vec<Machine>),
    ) -> Option<KafkaCluster> {
        let addresses = |port: u16| {
            let of_machine = |machine| format!("{}:{port}", network.address_of(machine));
            machines.iter().copied().map(of_machine).collect()
        };
        let (brokers, controllers) = (addresses(9092), addresses(9093));
        let network = Arc::clone(network);
        let around = move |node: usize, _: &Path, broker: &Command| {
            let mut there = network.on(machines[node], broker);
            there.stdin(Stdio::null());
            there
        };
        KafkaCluster::begin(directory, id, (brokers, controllers), Box::new(around))
    }

    fn begin(
        directory: &Path,
        id: &str,
        (brokers, controllers): (Vec<String>, Vec<String>),
        around: Around,
    ) -> Option<KafkaCluster> {
        let nodes = brokers.len();
        scale::program("java", "kafka")?;
        let jars = scale::tool(JARS)?;
        let mut cluster = KafkaCluster {
            directory: directory.to_owned(),
            jars,
            brokers,
            running: Vec::new(),
            around,
            _alive: alive("a cluster of Kafka"),
        };
        let format = |node| {
            let own = cluster.own(node);
            fs::create_dir_all(&own).unwrap();
            let properties = own.join("kafka.properties");
            fs::write(&properties, cluster.properties(node, &controllers)).unwrap();
            let mut format = cluster.java();
            format.args(["kafka.tools.StorageTool", "format", "-t", id, "-c"]);
            format.arg(properties).stdout(Stdio::null());
            format.stderr(File::create(own.join("format.log")).unwrap());
            format.spawn().unwrap()
        };
        let formats: Vec<Child> = (0..nodes).map(format).collect();
        let _waiting = waiting("Kafka's tool to format a directory");
        for mut format in formats {
            assert!(format.wait().unwrap().success(), "{}", directory.display());
        }
        for node in 0..nodes {
            let running = cluster.spawn(node);
            cluster.running.push(Some(running));
        }
        for node in 0..nodes {
            cluster.wait_for(node);
        }
        Some(cluster)
    }

    /// HOST:PORT of each node, with commas between.
    pub fn bootstrap(&self) -> String {
        self.brokers.join(",")
    }

    /// HOST:PORT of a node, by its place. Its id is one more.
    pub fn broker(&self, node: usize) -> &str {
        &self.brokers[node]
    }

    /// `kill -9` of a node, by its place.
    pub fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.running[node].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts a node that was killed; it is not waited for.
    pub fn revive(&mut self, node: usize) {
        if self.running[node].is_none() {
            self.running[node] = Some(self.spawn(node));
        }
    }

    /// Lets a node stand still, so that its connections are open and it says nothing, or go on.
    pub fn hold(&self, node: usize, is_held: bool) {
        let signal = if is_held { Signal::STOP } else { Signal::CONT };
        if let Some(child) = &self.running[node] {
            kill_process(Pid::from_child(child), signal).unwrap();
        }
    }

    /// Whether every node is there, as far as its port says.
    pub fn is_whole(&self) -> bool {
        let all = self.running.iter().all(Option::is_some);
        all && self
            .brokers
            .iter()
            .all(|broker| TcpStream::connect(broker).is_ok())
    }

    /// Makes a topic with these settings, and waits until every partition is led.
    pub fn make_topic(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let admin: AdminClient<DefaultClientContext> = self.client().create().unwrap();
        let copies = i32::try_from(self.brokers.len()).unwrap();
        let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(copies));
        for (name, value) in settings {
            topic = topic.set(name, value);
        }
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        // The controller may not know all nodes yet.
        wait_patiently("a topic is made", || {
            let made = runtime.block_on(admin.create_topics([&topic], &options));
            made.is_ok_and(|made| made.iter().all(Result::is_ok))
        });
        let consumer: BaseConsumer = self.client().create().unwrap();
        wait_patiently("a topic is led", || {
            let metadata = consumer.fetch_metadata(Some(name), PATIENCE);
            metadata.is_ok_and(|metadata| {
                let led = metadata.topics()[0].partitions();
                led.len() == partitions as usize && led.iter().all(|one| one.leader() >= 0)
            })
        });
    }

    /// Configuration of every client of the brokers.
    pub fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.bootstrap());
        config.set("reconnect.backoff.max.ms", "500");
        config.set_log_level(RDKafkaLogLevel::Critical);
        config
    }

    /// Names of all topics.
    pub fn topics(&self) -> Vec<String> {
        let consumer: BaseConsumer = self.client().create().unwrap();
        let mut names = Vec::new();
        wait_patiently("topics are told", || {
            let metadata = consumer.fetch_metadata(None, PATIENCE);
            metadata.is_ok_and(|metadata| {
                let topics = metadata.topics().iter();
                names = topics.map(|topic| topic.name().to_owned()).collect();
                true
            })
        });
        names
    }

    /// Leaves the first partition of each of these topics to one node, by its place, whatever its topic asks for.
    pub fn leave_to(&self, topics: &[String], node: usize) {
        let one = |topic: &String| {
            let id = node + 1;
            format!(r#"{{"topic":"{topic}","partition":0,"replicas":[{id}]}}"#)
        };
        let moved: Vec<String> = topics.iter().map(one).collect();
        let plan = format!(r#"{{"version":1,"partitions":[{}]}}"#, moved.join(","));
        let file = self.directory.join("reassignment.json");
        fs::write(&file, plan).unwrap();
        let reassign = |step: &str| {
            let mut tool = self.java();
            tool.arg("org.apache.kafka.tools.reassign.ReassignPartitionsCommand");
            tool.args(["--bootstrap-server", &self.bootstrap(), step]);
            tool.arg("--reassignment-json-file").arg(&file);
            let said = tool.output().unwrap();
            assert!(said.status.success(), "{said:?}");
            String::from_utf8_lossy(&said.stdout).into_owned()
        };
        reassign("--execute");
        wait_patiently("topics are moved", || {
            let said = reassign("--verify");
            said.matches("is completed").count() == topics.len()
        });
    }

    /// Where each partition of a topic ends.
    pub fn ends(&self, topic: &str, partitions: i32) -> BTreeMap<i32, i64> {
        let consumer: BaseConsumer = self.client().create().unwrap();
        let mut ends = BTreeMap::new();
        for partition in 0..partitions {
            wait_patiently("an end is told", || {
                let found = consumer.fetch_watermarks(topic, partition, PATIENCE);
                found.is_ok_and(|(_, end)| ends.insert(partition, end).is_none())
            });
        }
        ends
    }

    /// Offsets that a group has committed for the partitions of a topic.
    pub fn committed(&self, group: &str, topic: &str, partitions: i32) -> BTreeMap<i32, i64> {
        let mut config = self.client();
        let consumer: BaseConsumer = config.set("group.id", group).create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_range(topic, 0, partitions - 1);
        let mut committed = TopicPartitionList::new();
        // Whoever coordinates the group may just not be there.
        wait_patiently("what is committed is told", || {
            let told = consumer.committed_offsets(list.clone(), PATIENCE);
            told.is_ok_and(|told| {
                committed = told;
                true
            })
        });
        let elements = committed.elements();
        let offset = |offset| match offset {
            Offset::Offset(at) => at,
            _ => 0,
        };
        elements
            .iter()
            .map(|one| (one.partition(), offset(one.offset())))
            .collect()
    }

    /// Shows every record of a topic, partition by partition in order.
    pub fn read(&self, topic: &str, partitions: i32, mut each: impl FnMut(&BorrowedMessage<'_>)) {
        for (partition, end) in self.ends(topic, partitions) {
            // A consumer of its own, so that the end of one is not behind what others have ahead.
            let mut config = self.client();
            config
                .set("group.id", "reader")
                .set("enable.auto.commit", "false");
            let consumer: BaseConsumer = config.create().unwrap();
            let mut list = TopicPartitionList::new();
            list.add_partition_offset(topic, partition, Offset::Beginning)
                .unwrap();
            consumer.assign(&list).unwrap();
            let (mut next, mut silent) = (0, 0);
            let _waiting = waiting(format!("all of {topic}/{partition}"));
            while next < end {
                match consumer.poll(Duration::from_secs(1)) {
                    Some(Ok(message)) => {
                        next = message.offset() + 1;
                        silent = 0;
                        each(&message);
                    }
                    _ => silent += 1,
                }
                assert!(
                    silent < 300,
                    "{topic}/{partition} ends at {next}, not {end}"
                );
            }
            consumer.unassign().unwrap();
        }
    }

    fn own(&self, node: usize) -> PathBuf {
        self.directory.join(format!("node-{}", node + 1))
    }

    fn java(&self) -> Command {
        let mut java = Command::new("java");
        java.args(JAVA)
            .arg(self.jars.join("*"))
            .stdin(Stdio::null());
        java
    }

    fn spawn(&self, node: usize) -> Child {
        let own = self.own(node);
        let log = File::options()
            .create(true)
            .append(true)
            .open(own.join("kafka.log"))
            .unwrap();
        let mut broker = self.java();
        broker.arg("kafka.Kafka").arg(own.join("kafka.properties"));
        let mut broker = (self.around)(node, &own, &broker);
        broker
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .current_dir(&own);
        broker.spawn().unwrap()
    }

    fn wait_for(&mut self, node: usize) {
        let broker = self.brokers[node].clone();
        let log = self.own(node).join("kafka.log");
        let child = self.running[node].as_mut().unwrap();
        wait_patiently("a broker answers", || {
            let ended = child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "{}",
                fs::read_to_string(&log).unwrap_or_default()
            );
            TcpStream::connect(&broker).is_ok()
        });
    }

    fn properties(&self, node: usize, controllers: &[String]) -> String {
        let nodes = self.brokers.len();
        let voters = controllers.iter().zip(1..);
        let voters: Vec<String> = voters
            .map(|(address, id)| format!("{id}@{address}"))
            .collect();
        let in_sync = nodes.div_ceil(2);
        format!(
            "process.roles=broker,controller\n\
             node.id={id}\n\
             controller.quorum.voters={voters}\n\
             listeners=PLAINTEXT://{broker},CONTROLLER://{controller}\n\
             controller.listener.names=CONTROLLER\n\
             log.dirs={logs}\n\
             num.partitions=1\n\
             auto.create.topics.enable=false\n\
             default.replication.factor={nodes}\n\
             min.insync.replicas={in_sync}\n\
             offsets.topic.replication.factor={nodes}\n\
             offsets.topic.num.partitions=3\n\
             transaction.state.log.replication.factor={nodes}\n\
             transaction.state.log.min.isr={in_sync}\n\
             share.coordinator.state.topic.replication.factor={nodes}\n\
             share.coordinator.state.topic.min.isr={in_sync}\n\
             group.initial.rebalance.delay.ms=0\n\
             broker.session.timeout.ms=3000\n\
             broker.heartbeat.interval.ms=500\n\
             replica.lag.time.max.ms=3000\n",
            id = node + 1,
            voters = voters.join(","),
            broker = self.brokers[node],
            controller = controllers[node],
            logs = self.own(node).join("logs").display(),
        )
    }
}

/// A command as this one.
fn like(command: &Command) -> Command {
    let mut like = Command::new(command.get_program());
    like.args(command.get_args()).stdin(Stdio::null());
    like
}

impl fmt::Debug for KafkaCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaCluster")
            .field("brokers", &self.brokers)
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

impl Drop for KafkaCluster {
    fn drop(&mut self) {
        for child in self.running.iter_mut().flatten() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
