//! Many publishers and few subscribers: the load that the paper left for later. As fast as there is room, and
//! at a rate that is the same for all modes and numbers of publishers, for the time from publish to delivery.
//!
//! Publishers and subscribers are the bench's, spread evenly over the nodes, with its accounts of every
//! message. Each publisher has a connection of its own, and all have one topic.

use super::ModesArgs;
use super::cluster::Cluster;
use super::mode::Mode;
use crate::hold::{Look, Throttled};
use crate::hosts::Hosts;
use airmail_bench::clock::now_us;
use airmail_bench::run::Job;
use airmail_bench::{Report, Settings, Workload};
use std::fmt;

/// Messages of all publishers together that may wait for their acks: no more than publishers may be ahead of
/// subscribers, or each process would wait for what the others wait to send.
const IN_FLIGHT: u32 = 1 << 16;

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) mode: Mode,
    /// Number of the repetition, from 1.
    pub(super) repeat: u32,
    pub(super) publishers: u32,
    /// Messages a second; absent: as fast as there was room.
    pub(super) rate: Option<u64>,
    pub(super) report: Report,
    /// Nodes in the mode's order, with what each used.
    pub(super) nodes: Vec<Look>,
    /// Limits that were set on nodes, and those that could not be.
    pub(super) means: Vec<String>,
    /// Time that nodes were looked at, in seconds.
    pub(super) seconds: f64,
}

impl Run {
    /// Makes it, on nodes of its own.
    ///
    /// # Errors
    /// A node or a process of clients fails, or it is stopped.
    pub(super) fn make(
        args: &ModesArgs,
        hosts: &Hosts,
        (mode, repeat, publishers): (Mode, u32, u32),
        rate: Option<u64>,
    ) -> anyhow::Result<Run> {
        // A publisher at each node, and all subscribers, and who prepares the run.
        let connections = publishers + args.publish.subscribers + 1;
        let mut cluster = Cluster::start(mode, args, hosts, connections)?;
        let settings = settings(args, publishers, rate);
        let id = hosts.next_run();
        let job = Job {
            settings: settings.clone(),
            id,
            prefix: format!("bench/modes/{id:08x}"),
            ..Job::default()
        };
        let (before, begun_us) = (cluster.look()?, now_us());
        let parts = hosts.run_each(cluster.jobs(&job))?;
        let after = cluster.look()?;
        let seconds = now_us().saturating_sub(begun_us).max(1) as f64 / 1e6;
        let nodes = after.into_iter().zip(&before);
        let means = cluster
            .servers
            .iter()
            .flat_map(|server| server.held.means());
        let sum = parts.into_iter().reduce(|mut sum, part| {
            sum.add(&part);
            sum
        });
        Ok(Run {
            mode,
            repeat,
            publishers,
            rate,
            report: Report::new("airmail", settings, sum.unwrap_or_default(), None),
            nodes: nodes.map(|(after, before)| after.since(before)).collect(),
            means: means.collect(),
            seconds,
        })
    }

    /// Cores that a node had.
    pub(super) fn cores(&self, node: &Look) -> f64 {
        node.usage.cpu_us as f64 / 1e6 / self.seconds
    }

    /// Cores that all nodes had together.
    pub(super) fn node_cores(&self) -> f64 {
        self.nodes.iter().map(|node| self.cores(node)).sum()
    }

    /// Cores of the node that all publishes come to.
    pub(super) fn first_cores(&self) -> f64 {
        let first = self.nodes.first();
        first.map_or(f64::NAN, |node| self.cores(node))
    }

    /// Part of that node's periods in which it was stopped, in percent; NaN, which counts nowhere, where
    /// nothing stops it.
    pub(super) fn first_stopped_percent(&self) -> f64 {
        let first = self.nodes.iter().take(1);
        let share = Throttled::share(first.filter_map(|node| node.throttled));
        share.map_or(f64::NAN, |share| share * 100.0)
    }

    /// Cores that the processes of publishers and subscribers had together.
    pub(super) fn client_cores(&self) -> f64 {
        self.report.client_cpu_us as f64 / 1e6 / self.report.seconds.max(1e-6)
    }
}

/// Shows a run to a user who waits for the end.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mode, publishers) = (self.mode.name(), self.publishers);
        write!(f, "{mode}, {publishers} publishers: ")?;
        match self.rate {
            None => write!(f, "{:.0} messages/s", self.report.published_per_s)?,
            Some(rate) => {
                let p99_ms = self.report.latency_us.p99 as f64 / 1e3;
                write!(f, "p99 {p99_ms:.1} ms at {rate}/s")?;
            }
        }
        if !self.report.is_sound() {
            write!(f, "; {}", self.report.complaint())?;
        }
        Ok(())
    }
}

fn settings(args: &ModesArgs, publishers: u32, rate: Option<u64>) -> Settings {
    let duration_ms = (args.seconds() * 1e3) as u64;
    Settings {
        workload: rate.map_or(Workload::E2e, |_| Workload::Latency),
        messages: rate.map(|rate| (rate * duration_ms / 1000).max(1)),
        duration_ms: rate.is_none().then_some(duration_ms),
        warmup_ms: duration_ms / 5,
        size: args.size as usize,
        publishers,
        subscribers: args.publish.subscribers,
        rate,
        in_flight: Some((IN_FLIGHT / publishers).max(4)),
        ..Settings::default()
    }
}
