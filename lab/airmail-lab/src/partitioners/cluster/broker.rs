//! One of Kafka's processes, broker or controller, and its configuration.

use super::super::jars::Jars;
use super::network::Host;
use super::{BrokerUsage, Resource, Task};
use crate::hold::{CpuLimit, Hold, Limits};
use crate::server_process::{ServerProcess, last_lines};
use airmail_bench::process::Usage;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const LOOPBACK: &str = "127.0.0.1";
/// Where a broker with a host of its own listens.
const PORT: u16 = 9092;
/// Names the cluster in its directory, which lives no longer than it: 16 bytes in base64.
const CLUSTER: &str = "MkU3OEVBNTcwNTJENDM2Qk";
/// Options of each Java process. A broker keeps its data in the system's page cache, not here.
const JAVA: [&str; 3] = ["-Xms256m", "-Xmx256m", "-XX:+UseSerialGC"];
/// Option of a process that has only a part of a core: with both of Java's compilers it would go on
/// becoming quicker for longer than an experiment takes, so that the last run would be compared to
/// the first.
const FIRST_COMPILER: &str = "-XX:TieredStopAtLevel=1";

/// Roles of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Broker,
    Controller,
}

/// A process with its place.
#[derive(Clone, Debug)]
struct Seat {
    address: String,
    port: u16,
    /// The namespace that it lives in.
    namespace: Option<String>,
}

/// Addresses of the brokers and of the controller.
#[derive(Debug)]
pub(super) struct Plan {
    jars: Jars,
    data: PathBuf,
    controller: u32,
    /// More options of each Java machine.
    java: &'static [&'static str],
    session_ms: u32,
    /// Addresses by id, the controller's too.
    seats: BTreeMap<u32, Seat>,
    /// Held until all ports are known, or two might be the same.
    free: Vec<TcpListener>,
}

/// A process that runs; killed when this is dropped.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) id: u32,
    process: ServerProcess,
    seat: Seat,
    hold: Option<Hold>,
}

impl Plan {
    /// Plans a controller alone, on the loopback address.
    pub(super) fn new(task: &Task, data: &Path, controller: u32) -> anyhow::Result<Plan> {
        let mut plan = Plan {
            jars: task.jars.clone(),
            data: data.to_owned(),
            controller,
            java: match task.resource {
                Resource::Cores(_) => &[FIRST_COMPILER],
                _ => &[],
            },
            session_ms: task.session_ms,
            seats: BTreeMap::new(),
            free: Vec::new(),
        };
        plan.controller_at(LOOPBACK)?;
        Ok(plan)
    }

    /// The controller listens there instead.
    pub(super) fn controller_at(&mut self, address: &str) -> anyhow::Result<()> {
        let port = self.free_port(address)?;
        let seat = Seat {
            address: address.to_owned(),
            port,
            namespace: None,
        };
        self.seats.insert(self.controller, seat);
        Ok(())
    }

    /// A broker, with a host of its own or on the loopback address.
    pub(super) fn add(&mut self, id: u32, host: Option<&Host>) -> anyhow::Result<()> {
        let seat = match host {
            Some(host) => Seat {
                address: host.address.clone(),
                port: PORT,
                namespace: Some(host.namespace.clone()),
            },
            None => Seat {
                address: LOOPBACK.to_owned(),
                port: self.free_port(LOOPBACK)?,
                namespace: None,
            },
        };
        self.seats.insert(id, seat);
        Ok(())
    }

    fn free_port(&mut self, address: &str) -> anyhow::Result<u16> {
        let free = TcpListener::bind((address, 0));
        let free = free.with_context(|| format!("no free port at {address}"))?;
        let port = free.local_addr()?.port();
        self.free.push(free);
        Ok(port)
    }

    /// Options of these Java processes that others do not have, for the report.
    pub(super) fn means(&self) -> Option<String> {
        let options = self.java.join(" ");
        let said = || format!("brokers' Java machines run with {options}, so as to be warm soon");
        (!options.is_empty()).then(said)
    }

    /// The brokers, as clients are told of them.
    pub(super) fn bootstrap(&self) -> String {
        let brokers = self.seats.iter().filter(|(id, _)| **id != self.controller);
        let addresses = brokers.map(|(_, seat)| format!("{}:{}", seat.address, seat.port));
        addresses.collect::<Vec<_>>().join(",")
    }

    /// Makes the directories of all, at once.
    pub(super) fn format(&mut self) -> anyhow::Result<()> {
        self.free.clear();
        let mut formatting = Vec::new();
        for id in self.seats.keys() {
            let directory = self.directory(*id);
            fs::create_dir_all(&directory)?;
            fs::write(self.properties_file(*id), self.properties(*id))?;
            let log = File::create(directory.join("format.log"))?;
            let mut command = Command::new("java");
            command.args([FIRST_COMPILER, "-XX:+UseSerialGC"]);
            command
                .args(self.jars.class_path())
                .args(["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c"])
                .arg(self.properties_file(*id))
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log);
            formatting.push((*id, command.spawn().context("cannot start java")?));
        }
        for (id, mut child) in formatting {
            let status = child.wait()?;
            let log = self.directory(id).join("format.log");
            anyhow::ensure!(
                status.success(),
                "kafka.tools.StorageTool: {}",
                last_lines(&log)
            );
        }
        Ok(())
    }

    /// Starts a process; it does not answer yet.
    pub(super) fn start(&self, role: Role, id: u32) -> anyhow::Result<Broker> {
        let seat = self.seats.get(&id).context("no such process")?.clone();
        let mut command = match &seat.namespace {
            None => Command::new("java"),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace, "java"]);
                command
            }
        };
        command.args(JAVA).args(self.java);
        command.args(self.jars.class_path());
        command.arg("kafka.Kafka").arg(self.properties_file(id));
        let process = ServerProcess::start(&mut command, &self.directory(id));
        Ok(Broker {
            id,
            process: process.with_context(|| format!("{role:?} {id}"))?,
            seat,
            hold: None,
        })
    }

    fn directory(&self, id: u32) -> PathBuf {
        self.data.join(id.to_string())
    }

    fn properties_file(&self, id: u32) -> PathBuf {
        self.directory(id).join("kafka.properties")
    }

    /// Nothing but what a process needs to be in its place, and when a silent one counts as dead; all else is
    /// as it comes.
    fn properties(&self, id: u32) -> String {
        let address = |id: u32| {
            let seat = self.seats.get(&id);
            seat.map_or(String::new(), |seat| {
                format!("{}:{}", seat.address, seat.port)
            })
        };
        let (role, listener) = if id == self.controller {
            ("controller", "CONTROLLER")
        } else {
            ("broker", "PLAINTEXT")
        };
        format!(
            "process.roles={role}\n\
             node.id={id}\n\
             controller.quorum.voters={controller}@{voter}\n\
             listeners={listener}://{own}\n\
             controller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             log.dirs={logs}\n\
             auto.create.topics.enable=false\n\
             broker.heartbeat.interval.ms=500\n\
             broker.session.timeout.ms={session_ms}\n\
             log.cleaner.dedupe.buffer.size=4194304\n\
             log.segment.delete.delay.ms=1000\n",
            controller = self.controller,
            session_ms = self.session_ms,
            voter = address(self.controller),
            own = address(id),
            logs = self.directory(id).join("data").display(),
        )
    }
}

impl Broker {
    /// Waits until it listens.
    ///
    /// # Errors
    /// It ends, or does not listen; the error has what it said.
    pub(super) fn wait_until_it_answers(&mut self) -> anyhow::Result<()> {
        let (address, port) = (&self.seat.address, self.seat.port);
        let waited = self.process.wait_until_it_listens(address, port);
        waited.with_context(|| format!("broker {}", self.id))
    }

    /// Holds its processor time; how that is done.
    pub(super) fn hold(&mut self, quota_us: u64, period_us: u64) -> Vec<String> {
        let cpu = Some(CpuLimit {
            quota_us,
            period_us,
        });
        let limits = Limits {
            cpu,
            ..Limits::default()
        };
        let hold = Hold::on(self.process.child().id(), &limits);
        let means = hold.means.clone();
        self.hold = Some(hold);
        means
    }

    /// Gives it another quota; whether that could be done.
    pub(super) fn allow(&self, quota_us: u64, period_us: u64) -> bool {
        let hold = self.hold.as_ref();
        let limit = CpuLimit {
            quota_us,
            period_us,
        };
        hold.is_some_and(|hold| hold.allow(limit))
    }

    /// Kills it.
    pub(super) fn kill(&mut self) {
        self.process.kill();
    }

    /// Resources that it has used.
    pub(super) fn usage(&self) -> BrokerUsage {
        BrokerUsage {
            process: Usage::of(self.process.child().id()),
            throttled: self.hold.as_ref().and_then(Hold::throttled),
        }
    }
}
