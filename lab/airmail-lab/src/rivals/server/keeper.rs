//! The process that keeps a rival's server: `airmail-lab server`.

use super::program::{self, Program};
use super::{Kind, Started, Task};
use crate::server_process::ServerProcess;
use airmail_bench::family::leader::{AtEnd, Leader, say};
use airmail_bench::family::own_node::directory;
use airmail_bench::process::Usage;
use anyhow::Context as _;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Keeps a server until the leader is gone, and leaves nothing behind.
///
/// # Errors
/// Its program is not there, or it does not answer.
pub(crate) fn keep_server() -> anyhow::Result<ExitCode> {
    let (leader, task): (Leader, Task) = Leader::open(AtEnd::Tell)?;
    let Task { kind, address, .. } = &task;
    let program = program::find(*kind, task.servers.as_deref())?;
    // Dropped after the server, so that nobody writes any more.
    let data = directory(task.directory.as_deref())?;
    let [port, second] = free_ports(address)?;
    let mut command = command(*kind, &program, address, [port, second], data.path())?;
    let mut server = ServerProcess::start(&mut command, data.path())?;
    server.wait_until_it_listens(address, port)?;
    let started = Started {
        port,
        version: program.version,
    };
    say(&format!("ready {}", serde_json::to_string(&started)?))?;
    while let Ok(question) = leader.line() {
        if question == "usage" {
            let usage = Usage::of(server.child().id());
            say(&format!("usage {}", serde_json::to_string(&usage)?))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Ports that nobody has.
fn free_ports(address: &str) -> anyhow::Result<[u16; 2]> {
    let free = || TcpListener::bind((address, 0)).and_then(|free| Ok((free.local_addr()?, free)));
    // Both are held until both are known, or they might be the same.
    let both = free().and_then(|first| Ok([first, free()?]));
    let both = both.with_context(|| format!("no free port at {address}"))?;
    Ok(both.each_ref().map(|(address, _)| address.port()))
}

/// Command that starts it, with only the options that it needs to be alone on its port and in its
/// directory; all else has its defaults.
fn command(
    kind: Kind,
    program: &Program,
    address: &str,
    [port, controller]: [u16; 2],
    data: &Path,
) -> anyhow::Result<Command> {
    let mut command = Command::new(&program.path);
    match kind {
        Kind::Nats => {
            command.args(["-a", address, "-p", &port.to_string()]);
        }
        Kind::JetStream { always } => {
            // The sync interval has no flag.
            let interval = if always { "always" } else { "2m" };
            let store = data.join("jetstream").display().to_string();
            let text =
                format!("jetstream {{ store_dir: \"{store}\", sync_interval: {interval} }}\n");
            let configuration = data.join("nats.conf");
            fs::write(&configuration, text)?;
            command.args(["-a", address, "-p", &port.to_string(), "-c"]);
            command.arg(configuration);
        }
        Kind::Redis { always } => {
            let sync = if always { "always" } else { "everysec" };
            command.args(["--bind", address, "--port", &port.to_string(), "--dir"]);
            command
                .arg(data)
                .args(["--appendonly", "yes", "--appendfsync", sync]);
            // No second writer beside the one that is measured; and it is at a named address only.
            command.args(["--save", "", "--auto-aof-rewrite-percentage", "0"]);
            command.args(["--protected-mode", "no"]);
        }
        Kind::Kafka => {
            let properties = data.join("kafka.properties");
            fs::write(&properties, kafka(address, port, controller, data))?;
            let format = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c"];
            let formatted = Command::new(&program.path)
                .args(&program.arguments)
                .args(format)
                .arg(&properties)
                .stdin(Stdio::null())
                .output()?;
            anyhow::ensure!(
                formatted.status.success(),
                "kafka.tools.StorageTool: {}",
                String::from_utf8_lossy(&formatted.stderr).trim()
            );
            command.args(HEAP).args(&program.arguments);
            command.arg("kafka.Kafka").arg(&properties);
        }
    }
    Ok(command)
}

/// Options of Kafka's own start script.
const HEAP: [&str; 6] = [
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
];

/// Names the cluster in its directory, which lives no longer than it: 16 bytes in base64.
const CLUSTER: &str = "MkU3OEVBNTcwNTJENDM2Qk";

fn kafka(address: &str, port: u16, controller: u16, data: &Path) -> String {
    let logs = data.join("kafka").display().to_string();
    format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@{address}:{controller}\n\
         listeners=PLAINTEXT://{address}:{port},CONTROLLER://{address}:{controller}\n\
         controller.listener.names=CONTROLLER\n\
         log.dirs={logs}\n\
         offsets.topic.replication.factor=1\n\
         offsets.topic.num.partitions=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         share.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\n\
         group.initial.rebalance.delay.ms=0\n\
         log.segment.delete.delay.ms=1000\n"
    )
}
