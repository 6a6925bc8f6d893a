//! A tower, and pilots that append to its logs by themselves, each held to a part of a core.

use super::PilotArgs;
use crate::hold::{CpuLimit, Holder, Limits};
use crate::hosts::Hosts;
use airmail_bench::family::kafka_logs::KafkaLogs;
use airmail_bench::family::own_node::{OwnNode, OwnNodeArgs};
use airmail_bench::process::Usage;
use airmail_bench::run::Job;
use anyhow::Context as _;

/// Setting by which a node says which machine it is on.
const HOST: &str = "AIRMAIL_CLUSTER_HOST";
/// Period of the quota: short beside a publish that waits for its end.
const PERIOD_US: u64 = 10_000;

/// The nodes. Pilots end before their tower does.
#[derive(Debug)]
pub(super) struct Cluster {
    pilots: Vec<Pilot>,
    _tower: OwnNode,
}

/// A pilot, and what holds it, which can go only when nobody is in it.
#[derive(Debug)]
struct Pilot {
    node: OwnNode,
    holder: Holder,
}

impl Cluster {
    /// Starts a tower and so many pilots on the same topics of Kafka.
    ///
    /// # Errors
    /// A node cannot be started.
    pub(super) fn start(
        args: &PilotArgs,
        hosts: &Hosts,
        logs: &KafkaLogs,
        pilots: u32,
    ) -> anyhow::Result<Cluster> {
        let (place, log) = (hosts.node(), logs.next_option());
        let own = [
            "--name=tower".to_owned(),
            "--roles=tower,copilot".to_owned(),
            format!("--cluster={}:0", place.address()),
            log.clone(),
        ];
        let tower = hosts.start_node_at(place, &with(&args.node, &own), None, &[])?;
        let join = tower.cluster().context("the tower lets no nodes connect")?;
        let started = (0..pilots).map(|number| pilot(args, hosts, (join, &log), number));
        Ok(Cluster {
            pilots: started.collect::<anyhow::Result<_>>()?,
            _tower: tower,
        })
    }

    /// The job of each pilot's publisher.
    pub(super) fn jobs(&self, job: &Job) -> Vec<Job> {
        let pilots = self.pilots.iter().zip(0..);
        let jobs = pilots.map(|(pilot, number)| Job {
            target: pilot.node.url(),
            host: Some(name(number)),
            ..job.clone()
        });
        jobs.collect()
    }

    pub(super) fn pilots(&self) -> Vec<&OwnNode> {
        self.pilots.iter().map(|pilot| &pilot.node).collect()
    }

    /// Resources that all pilots have used.
    ///
    /// # Errors
    /// One of them has ended.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        let mut sum = Usage::default();
        for pilot in &self.pilots {
            let used = pilot.node.usage()?;
            sum.cpu_us += used.cpu_us;
            sum.rss_bytes += used.rss_bytes;
        }
        Ok(sum)
    }

    /// Enters the limits that were set on pilots, and those that could not be, each once.
    pub(super) fn tell_means(&self, told: &mut Vec<String>) {
        for means in self.pilots.iter().flat_map(|pilot| &pilot.holder.means) {
            if !told.contains(means) {
                told.push(means.clone());
            }
        }
    }
}

/// Name of a pilot, and of the machine that it and its publisher say they are on: no other is as near.
fn name(number: u32) -> String {
    format!("pilot-{}", number + 1)
}

/// Options of a node, with those that were asked for of all nodes behind its own.
fn with(asked: &OwnNodeArgs, own: &[String]) -> OwnNodeArgs {
    OwnNodeArgs {
        data: asked.data.clone(),
        node_options: own.iter().chain(&asked.node_options).cloned().collect(),
    }
}

fn pilot(
    args: &PilotArgs,
    hosts: &Hosts,
    (join, log): (&str, &str),
    number: u32,
) -> anyhow::Result<Pilot> {
    let (place, name) = (hosts.node(), name(number));
    let own = [
        format!("--name={name}"),
        "--roles=pilot".to_owned(),
        format!("--join={join}"),
        log.to_owned(),
    ];
    let node = hosts.start_node_at(place, &with(&args.node, &own), None, &[(HOST, name)])?;
    let limits = Limits {
        cpu: Some(CpuLimit::cores(args.quota, PERIOD_US)),
        ..Limits::default()
    };
    let holder = Holder::start(place, node.pid(), limits, hosts.stop())?;
    Ok(Pilot { node, holder })
}
