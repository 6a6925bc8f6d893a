//! The tower and the copilots before it, and what each of them has used and carried.

use super::CopilotsArgs;
use crate::hold::{Holder, Throttled};
use crate::hosts::Hosts;
use airmail_bench::counters;
use airmail_bench::family::own_node::{OwnNode, OwnNodeArgs};
use airmail_bench::process::Usage;
use airmail_bench::run::Job;
use anyhow::Context as _;

/// Name of the tower, and of the machine that its clients say they are on.
const TOWER: &str = "tower";
/// Setting by which a node says which machine it is on.
const HOST: &str = "AIRMAIL_CLUSTER_HOST";
/// Metric of the bytes that a node has read for subscribers that did not keep up.
const LATE_BYTES: &str = "airmail_caravan_bytes_total";

/// The nodes. Copilots are told to end before their tower does.
#[derive(Debug)]
pub(super) struct Cluster {
    copilots: Vec<Copilot>,
    tower: OwnNode,
}

/// A copilot, and what holds it, which can go only when nobody is in it.
#[derive(Debug)]
struct Copilot {
    node: OwnNode,
    holder: Option<Holder>,
}

/// Resources that a node has used so far, and bytes on its links.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    pub(super) usage: Usage,
    /// Number of times that it was stopped for having had its share.
    pub(super) throttled: Option<Throttled>,
    /// Bytes that a copilot has received, or that the tower has sent to all.
    pub(super) link_bytes: u64,
    /// Bytes that a copilot has read for subscribers that did not keep up; 0 for the tower.
    pub(super) late_bytes: u64,
}

impl Look {
    /// Increase since an earlier look.
    pub(super) fn since(self, before: &Look) -> Look {
        let throttled = self.throttled.zip(before.throttled);
        Look {
            usage: self.usage.since(&before.usage),
            throttled: throttled.map(|(after, before)| after.since(before)),
            link_bytes: self.link_bytes.saturating_sub(before.link_bytes),
            late_bytes: self.late_bytes.saturating_sub(before.late_bytes),
        }
    }
}

impl Cluster {
    /// Starts a tower and so many copilots, and holds these to their quota as far as the system lets.
    ///
    /// # Errors
    /// A machine cannot be reached, or a node cannot be started.
    pub(super) fn start(
        args: &CopilotsArgs,
        hosts: &Hosts,
        copilots: u32,
    ) -> anyhow::Result<Cluster> {
        let place = hosts.node();
        let own = [
            format!("--name={TOWER}"),
            "--roles=pilot,tower".to_owned(),
            format!("--cluster={}:0", place.address()),
            format!("--log={}", args.log),
        ];
        let options = with(&args.node, &own);
        let environment = [(HOST, TOWER.to_owned())];
        let tower = hosts.start_node_at(place, &options, None, &environment)?;
        let join = tower.cluster().context("the tower lets no nodes connect")?;
        let started = (0..copilots).map(|number| copilot(args, hosts, join, number));
        Ok(Cluster {
            copilots: started.collect::<anyhow::Result<_>>()?,
            tower,
        })
    }

    /// The job for each process: first the publisher at the tower, then each copilot's subscribers.
    pub(super) fn jobs(&self, job: &Job) -> Vec<Job> {
        let at = |node: &OwnNode, host: String| Job {
            target: node.url(),
            host: Some(host),
            apart: 1,
            ..job.clone()
        };
        let copilots = self.copilots.iter().zip(0..);
        let copilots = copilots.map(|(copilot, number)| at(&copilot.node, name(number)));
        let publisher = at(&self.tower, TOWER.to_owned());
        std::iter::once(publisher).chain(copilots).collect()
    }

    /// Looks at all of them: the tower, and the copilots by their numbers.
    ///
    /// # Errors
    /// One of them has ended, or does not answer.
    pub(super) fn look(&mut self) -> anyhow::Result<(Look, Vec<Look>)> {
        let sent = (0..self.copilots.len() as u32).map(|number| carried(&name(number), "sent"));
        let sent: Vec<String> = sent.collect();
        let tower = Look {
            usage: self.tower.usage()?,
            throttled: None,
            link_bytes: sum(&self.tower, &sent)?,
            late_bytes: 0,
        };
        let received = [carried(TOWER, "received")];
        let mut copilots = Vec::new();
        for Copilot { node, holder } in &mut self.copilots {
            let throttled = holder.as_mut().map(Holder::throttled).transpose()?;
            copilots.push(Look {
                usage: node.usage()?,
                throttled: throttled.flatten(),
                link_bytes: sum(node, &received)?,
                late_bytes: sum(node, &[LATE_BYTES.to_owned()])?,
            });
        }
        Ok((tower, copilots))
    }

    /// Enters the limits that were set on copilots, and those that could not be, each once.
    pub(super) fn tell_means(&self, told: &mut Vec<String>) {
        let holders = self.copilots.iter().filter_map(|one| one.holder.as_ref());
        for means in holders.flat_map(|holder| &holder.means) {
            if !told.contains(means) {
                told.push(means.clone());
            }
        }
    }
}

/// Name of a copilot, and of the machine that it and its clients say they are on: no other is as near.
fn name(number: u32) -> String {
    format!("copilot-{}", number + 1)
}

/// Options of a node, with those that were asked for of all nodes behind its own.
fn with(asked: &OwnNodeArgs, own: &[String]) -> OwnNodeArgs {
    OwnNodeArgs {
        data: asked.data.clone(),
        node_options: own.iter().chain(&asked.node_options).cloned().collect(),
    }
}

fn copilot(args: &CopilotsArgs, hosts: &Hosts, join: &str, number: u32) -> anyhow::Result<Copilot> {
    let place = hosts.copilot(number);
    let name = name(number);
    let own = [
        format!("--name={name}"),
        "--roles=copilot".to_owned(),
        format!("--join={join}"),
    ];
    let options = with(&args.node, &own);
    let node = hosts.start_node_at(place, &options, None, &[(HOST, name)])?;
    let holder = args.limits().map(|limits| {
        let pid = node.pid();
        Holder::start(place, pid, limits, hosts.stop())
    });
    Ok(Copilot {
        holder: holder.transpose()?,
        node,
    })
}

/// Metric of the bytes on links to a node.
fn carried(node: &str, direction: &str) -> String {
    format!("airmail_link_bytes_total{{node=\"{node}\",direction=\"{direction}\"}}")
}

fn sum(node: &OwnNode, metrics: &[String]) -> anyhow::Result<u64> {
    let metrics: Vec<&str> = metrics.iter().map(String::as_str).collect();
    let sums = counters::sums(node.http(), &metrics);
    let sums = sums.with_context(|| format!("metrics of the node at {}", node.http()))?;
    Ok(sums.iter().sum::<f64>() as u64)
}
