//! The course of it: clients that stand, rounds that publishers are told to publish in turn, and what the
//! nodes used meanwhile.

use super::crowd::{Crowd, Got, Task};
use super::outcome::{NodeUse, Outcome};
use super::publisher::{self, RoundPublisher};
use crate::hold::{HeldNode, Look};
use crate::hosts::Hosts;
use crate::narration::say;
use airmail_bench::clock::now_us;
use airmail_bench::family::Stop;
use airmail_bench::run::Share;
use std::thread::sleep;
use std::time::Duration;

/// Clients of one process at most.
const CROWD: u32 = 10_000;
/// Beginning of the topic that all clients subscribe to.
const TOPIC: &str = "bench/round";
/// Connections that a node takes beside the clients'.
pub(crate) const OTHER_CONNECTIONS: u32 = 50;
/// Files and sockets of a process that are no clients' connections.
pub(crate) const OTHER_FILES: u32 = 200;

/// Plan of rounds. Each node has at least one client.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Clients, each with a subscription on a stream of its own.
    pub(crate) clients: u32,
    /// Connections that these share; as many, or fewer, and one for each node at least.
    pub(crate) connections: u32,
    /// Publishers, which take turns.
    pub(crate) publishers: u32,
    /// Rounds of 20 messages.
    pub(crate) rounds: u32,
    /// Time from one round's beginning to the next one's.
    pub(crate) interval_ms: u64,
    /// Longest round; a longer one has timed out.
    pub(crate) timeout_ms: u32,
    /// Payload of a message, in bytes.
    pub(crate) size: usize,
}

/// A node that clients use.
#[derive(Debug)]
pub(crate) struct Server {
    /// The node.
    pub(crate) held: HeldNode,
    /// Name of the machine that its clients say they are on, as it does: so none goes elsewhere. Absent: the
    /// system's.
    pub(crate) host: Option<String>,
}

/// Runs it on these nodes, at least one.
///
/// # Errors
/// A node or a process of clients fails, or it is stopped before all clients stand.
pub(crate) fn run(plan: &Plan, servers: &mut [Server], hosts: &Hosts) -> anyhow::Result<Outcome> {
    let run = hosts.next_run();
    let topic = format!("{TOPIC}/{run:08x}");
    let (idle, connecting_us) = (looks(servers)?, now_us());
    let mut crowds = start(plan, servers, hosts, (&topic, run))?;
    let connecting_us = now_us().saturating_sub(connecting_us);
    let connected = since(looks(servers)?, &idle);
    let Plan {
        clients,
        connections,
        ..
    } = plan;
    say(&format!(
        "{clients} clients stand, on {connections} connections"
    ));
    let task = |server: &Server| publisher::Task {
        target: server.held.measured.url(),
        host: server.host.clone(),
        topic: topic.clone(),
        run,
        size: plan.size,
    };
    let of_publisher = servers.iter().cycle().take(plan.publishers as usize);
    let publishers = of_publisher.map(|server| RoundPublisher::start(hosts, &task(server)));
    let mut publishers = publishers.collect::<anyhow::Result<Vec<_>>>()?;
    let (before, start_us) = (looks(servers)?, now_us());
    let rounds = publish(plan, &mut publishers, hosts.stop())?;
    // Before clients go, which is work too.
    let used = since(looks(servers)?, &before);
    let took_us = now_us().saturating_sub(start_us);
    let mut got = Got::default();
    for crowd in &mut crowds {
        crowd.stop(rounds)?;
    }
    let processes = crowds.len() as u32;
    for crowd in crowds {
        got.add(crowd.end()?);
    }
    let parts = servers.len() as u32;
    let nodes = servers.iter().zip(used.iter().zip(&connected)).zip(0..);
    let nodes = nodes.map(|((server, (used, connected)), part)| NodeUse {
        clients: Share { part, parts }.of(plan.clients).len() as u32,
        connections: Share { part, parts }.of(plan.connections).len() as u32,
        cpu_us: used.usage.cpu_us,
        cpu_share: used.usage.cpu_us as f64 / took_us.max(1) as f64,
        connecting_cpu_share: connected.usage.cpu_us as f64 / connecting_us.max(1) as f64,
        throttled: used.throttled,
        rss_bytes: used.usage.rss_bytes,
        means: server.held.means(),
    });
    Ok(Outcome {
        rounds,
        clients: plan.clients,
        processes,
        got,
        nodes: nodes.collect(),
        publishers_cpu_us: publishers.iter().map(|publisher| publisher.cpu_us).sum(),
        seconds: took_us as f64 / 1e6,
    })
}

fn looks(servers: &mut [Server]) -> anyhow::Result<Vec<Look>> {
    servers
        .iter_mut()
        .map(|server| server.held.look())
        .collect()
}

fn since(after: Vec<Look>, before: &[Look]) -> Vec<Look> {
    let each = after.into_iter().zip(before);
    each.map(|(after, before)| after.since(before)).collect()
}

/// The clients' processes, as many for each node as for any other, which share clients and connections evenly.
fn start(
    plan: &Plan,
    servers: &[Server],
    hosts: &Hosts,
    (topic, run): (&str, u32),
) -> anyhow::Result<Vec<Crowd>> {
    let nodes = servers.len() as u32;
    let machines = hosts.loads().len() as u32;
    let each = plan.clients.div_ceil(nodes).div_ceil(CROWD);
    let each = each.max(machines.div_ceil(nodes));
    // Clients without a connection of their own need one in their process that they share.
    let each = each.min(plan.connections / nodes).max(1);
    let task = |share: Share| {
        let server = &servers[(share.part % nodes) as usize];
        Task {
            target: server.held.measured.url(),
            host: server.host.clone(),
            topic: topic.to_owned(),
            run,
            connections: share.of(plan.connections).len() as u32,
            clients: share.of(plan.clients).len() as u32,
            timeout_us: plan.timeout_ms * 1000,
        }
    };
    let members = hosts.spread(each * nodes, crate::cli::CROWD, hosts.stop(), task)?;
    members.into_iter().map(Crowd::stand).collect()
}

/// Has rounds published; how many, which is fewer if it is stopped.
fn publish(plan: &Plan, publishers: &mut [RoundPublisher], stop: &Stop) -> anyhow::Result<u32> {
    let mut done = 0;
    while done < plan.rounds && !stop.is_set() {
        let begun_us = now_us();
        let turn = done as usize % publishers.len().max(1);
        if let Some(publisher) = publishers.get_mut(turn) {
            publisher.round(done)?;
        }
        done += 1;
        let next_us = begun_us + plan.interval_ms * 1000;
        sleep(Duration::from_micros(next_us.saturating_sub(now_us())));
    }
    Ok(done)
}
