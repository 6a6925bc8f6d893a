//! One number of clients: a node that is held, clients that stand, rounds of messages.

use super::ClientsArgs;
use super::crowd::{Crowd, Got, Round, Task};
use super::publisher::{self, RoundPublisher};
use crate::hold::{HeldNode, Limits, Throttled};
use crate::hosts::Hosts;
use crate::narration::say;
use airmail_bench::clock::now_us;
use airmail_bench::family::Stop;
use airmail_bench::process::Usage;
use airmail_bench::run::Share;
use std::fmt;
use std::thread::sleep;
use std::time::Duration;

/// Clients of one process at most.
const CROWD: u32 = 10_000;
/// Beginning of the topic that all clients subscribe to.
const TOPIC: &str = "bench/round";
/// Connections that the node takes beside the clients'.
const OTHER_CONNECTIONS: u32 = 50;

/// Plan of a step.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Clients, each with a subscription on a stream of its own.
    pub(super) clients: u32,
    /// Connections that these share; as many, or fewer.
    pub(super) connections: u32,
    /// Rounds of 20 messages.
    pub(super) rounds: u32,
    /// Time from one round's beginning to the next one's.
    pub(super) interval_ms: u64,
    /// Longest round; a longer one has timed out.
    pub(super) timeout_ms: u32,
    /// Payload of a message, in bytes.
    pub(super) size: usize,
    /// Limits of the node.
    pub(super) limits: Option<Limits>,
}

/// Findings of a step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The plan; with fewer rounds if it was stopped.
    pub(super) plan: Plan,
    /// Processes that the clients were spread over.
    pub(super) processes: u32,
    /// Messages that clients got.
    pub(super) got: Got,
    /// Processor time of the node in the rounds, in microseconds.
    pub(super) node_cpu_us: u64,
    /// The same as a share of one core.
    pub(super) node_cpu_share: f64,
    /// While clients connected and subscribed, when it never rests: shows whether it is held.
    pub(super) connecting_cpu_share: f64,
    /// Number of times that it was stopped in them for having had its share.
    pub(super) throttled: Option<Throttled>,
    /// Memory of the node at the end.
    pub(super) rss_bytes: u64,
    /// Limits that were set on the node.
    pub(super) means: Vec<String>,
}

impl Step {
    /// Does it.
    pub(super) fn run(plan: &Plan, args: &ClientsArgs, hosts: &Hosts) -> anyhow::Result<Step> {
        let mut node = node(plan, args, hosts)?;
        let url = node.measured.url();
        let run = hosts.next_run();
        let topic = format!("{TOPIC}/{run:08x}");
        let (idle, connecting_us) = (node.measured.usage()?, now_us());
        let mut crowds = start(plan, hosts, &url, &topic, run)?;
        let before = node.measured.usage()?;
        let connecting_cpu_share = share(before.since(&idle), connecting_us);
        let (clients, connections) = (plan.clients, plan.connections);
        say(&format!(
            "{clients} clients stand, on {connections} connections"
        ));
        let task = publisher::Task {
            target: url,
            topic,
            run,
            size: plan.size,
        };
        let mut publisher = RoundPublisher::start(hosts, &task)?;
        let before_throttled = node.throttled()?;
        let (before, start_us) = (node.measured.usage()?, now_us());
        let rounds = publish(plan, &mut publisher, hosts.stop())?;
        // Before clients go, which is work too.
        let used = node.measured.usage()?.since(&before);
        let node_cpu_share = share(used, start_us);
        let throttled = node.throttled()?.zip(before_throttled);
        let mut got = Got::default();
        for crowd in &mut crowds {
            crowd.stop(rounds)?;
        }
        let processes = crowds.len() as u32;
        for crowd in crowds {
            got.add(crowd.end()?);
        }
        Ok(Step {
            plan: Plan {
                rounds,
                ..plan.clone()
            },
            processes,
            got,
            node_cpu_us: used.cpu_us,
            node_cpu_share,
            connecting_cpu_share,
            throttled: throttled.map(|(after, before)| after.since(before)),
            rss_bytes: used.rss_bytes,
            means: node.means(),
        })
    }

    /// Whether every client got every message, once and in order, however late.
    pub(super) fn is_sound(&self) -> bool {
        let incomplete = self.got.rounds.iter().any(|round| round.incomplete > 0);
        self.got.wrong == 0 && self.got.error.is_none() && !incomplete
    }

    /// Processor time of the node for each round, in milliseconds.
    pub(super) fn work_ms(&self) -> f64 {
        self.node_cpu_us as f64 / 1e3 / f64::from(self.plan.rounds.max(1))
    }

    /// Deliveries of messages that each client had in each round, on average.
    pub(super) fn deliveries(&self) -> f64 {
        let rounds = u64::from(self.plan.clients) * u64::from(self.plan.rounds);
        self.got.deliveries as f64 / rounds.max(1) as f64
    }

    /// All rounds as one.
    pub(super) fn all(&self) -> Round {
        let mut all = Got {
            rounds: vec![Round::default()],
            ..Got::default()
        };
        for round in &self.got.rounds {
            all.add(Got {
                rounds: vec![round.clone()],
                ..Got::default()
            });
        }
        all.rounds.pop().unwrap_or_default()
    }
}

impl Round {
    /// The mean of those that completed it, in milliseconds.
    pub(super) fn mean_ms(&self) -> f64 {
        self.sum_us as f64 / self.took.count().max(1) as f64 / 1e3
    }

    /// 99 of 100 completed it within this, in milliseconds.
    pub(super) fn p99_ms(&self) -> f64 {
        self.took.percentiles().p99 as f64 / 1e3
    }

    /// The part of the clients for which it took too long, or for ever.
    pub(super) fn timeout_rate(&self) -> f64 {
        let clients = self.took.count() + self.incomplete;
        (self.late + self.incomplete) as f64 / clients.max(1) as f64
    }
}

/// Shows a step to a user who waits for the end.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, Step { plan, got, .. }) = (self.all(), self);
        let (clients, rounds) = (plan.clients, plan.rounds);
        let (mean, p99) = (all.mean_ms(), all.p99_ms());
        let (rate, work) = (all.timeout_rate() * 100.0, self.work_ms());
        write!(
            f,
            "{clients} clients, {rounds} rounds: mean {mean:.1} ms, p99 {p99:.1} ms, timed out \
             {rate:.3} %, the node works {work:.0} ms a round"
        )?;
        if !self.is_sound() {
            write!(
                f,
                "; {} incomplete, {} wrong {:?}",
                all.incomplete, got.wrong, got.error
            )?;
        }
        Ok(())
    }
}

/// Processor time since then, as a share of one core.
fn share(used: Usage, since_us: u64) -> f64 {
    used.cpu_us as f64 / now_us().saturating_sub(since_us).max(1) as f64
}

/// The node of a step, held to its limits.
fn node(plan: &Plan, args: &ClientsArgs, hosts: &Hosts) -> anyhow::Result<HeldNode> {
    let most = plan.connections + OTHER_CONNECTIONS;
    let environment = [("AIRMAIL_LISTEN_CONNECTIONS", most.to_string())];
    let log = Some("--log=memory:".to_owned());
    let measured = args.target.node(hosts, &args.node, log, &environment)?;
    HeldNode::new(measured, hosts, |_| plan.limits.clone())
}

/// The clients' processes, which share clients and connections evenly.
fn start(
    plan: &Plan,
    hosts: &Hosts,
    url: &str,
    topic: &str,
    run: u32,
) -> anyhow::Result<Vec<Crowd>> {
    let machines = hosts.loads().len() as u32;
    let processes = plan.clients.div_ceil(CROWD).max(machines);
    // Clients without a connection of their own need one in their process that they share.
    let processes = processes.min(plan.connections);
    let task = |share: Share| Task {
        target: url.to_owned(),
        topic: topic.to_owned(),
        run,
        connections: share.of(plan.connections).len() as u32,
        clients: share.of(plan.clients).len() as u32,
        timeout_us: plan.timeout_ms * 1000,
    };
    let members = hosts.spread(processes, crate::cli::CROWD, hosts.stop(), task)?;
    members.into_iter().map(Crowd::stand).collect()
}

/// Has rounds published; how many, which is fewer if it is stopped.
fn publish(plan: &Plan, publisher: &mut RoundPublisher, stop: &Stop) -> anyhow::Result<u32> {
    let mut done = 0;
    while done < plan.rounds && !stop.is_set() {
        let begun_us = now_us();
        publisher.round(done)?;
        done += 1;
        let next_us = begun_us + plan.interval_ms * 1000;
        sleep(Duration::from_micros(next_us.saturating_sub(now_us())));
    }
    Ok(done)
}
