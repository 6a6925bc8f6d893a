//! The process that keeps a cluster: `airmail-lab brokers`.
//!
//! It takes orders by lines: `usage`, `kill ID`, `start ID`, `give ID PART`; answers each with `done`; and
//! ends all of them when its input ends.

use super::broker::{Broker, Plan, Role};
use super::network::Network;
use super::{BrokerUsage, Resource, Started, Task};
use airmail_bench::family::leader::{AtEnd, Leader, say};
use airmail_bench::family::own_node::directory;
use anyhow::{Context as _, bail};
use std::process::ExitCode;

/// Length of the periods over which a broker's processor time is spread.
const PERIOD_US: u64 = 10_000;
/// The controller's id.
const CONTROLLER: u32 = 100;

/// The brokers; dropped before what they lived on.
struct Kept {
    /// Brokers by id, from 1.
    brokers: Vec<Broker>,
    _controller: Broker,
    network: Option<Network>,
}

/// Keeps a cluster until the leader is gone, and leaves nothing behind.
///
/// # Errors
/// It cannot be started.
pub(crate) fn keep_brokers() -> anyhow::Result<ExitCode> {
    let (leader, task): (Leader, Task) = Leader::open(AtEnd::Tell)?;
    // Dropped after the brokers, so that nobody writes any more.
    let data = directory(task.directory.as_deref())?;
    let network = match task.resource {
        Resource::BytesPerSecond(rate) => Some(Network::make(task.brokers, rate)?),
        _ => None,
    };
    let mut plan = Plan::new(&task, data.path(), CONTROLLER)?;
    for id in 1..=task.brokers {
        plan.add(id, network.as_ref().and_then(|network| network.host(id)))?;
    }
    if let Some(network) = &network {
        plan.controller_at(network.bridge_address())?;
    }
    plan.format()?;
    let mut kept = Kept {
        _controller: plan.start(Role::Controller, CONTROLLER)?,
        brokers: Vec::new(),
        network,
    };
    for id in 1..=task.brokers {
        kept.brokers.push(plan.start(Role::Broker, id)?);
    }
    let mut means = Vec::from_iter(plan.means());
    for broker in &mut kept.brokers {
        broker.wait_until_it_answers()?;
        means.extend(hold(broker, task.resource));
    }
    means.extend(kept.network.as_ref().map(Network::means));
    means.dedup();
    let started = Started {
        bootstrap: plan.bootstrap(),
        means,
    };
    say(&format!("ready {}", serde_json::to_string(&started)?))?;
    while let Ok(order) = leader.line() {
        let answer = obey(&mut kept, &plan, task.resource, &order).context(order)?;
        say(&format!("done {answer}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn obey(kept: &mut Kept, plan: &Plan, resource: Resource, order: &str) -> anyhow::Result<String> {
    if order == "usage" {
        let usage: Vec<BrokerUsage> = kept.brokers.iter().map(Broker::usage).collect();
        return Ok(serde_json::to_string(&usage)?);
    }
    let mut words = order.split(' ');
    let word = words.next().unwrap_or_default();
    let id: u32 = words.next().context("no broker")?.parse()?;
    let broker = kept.brokers.iter_mut().find(|broker| broker.id == id);
    let broker = broker.context("no such broker")?;
    match word {
        "kill" => broker.kill(),
        "start" => {
            *broker = plan.start(Role::Broker, id)?;
            broker.wait_until_it_answers()?;
            hold(broker, resource);
        }
        "give" => {
            let part: f64 = words.next().context("no part")?.parse()?;
            match (resource, &kept.network) {
                (Resource::Cores(cores), _) => {
                    anyhow::ensure!(broker.allow(quota_us(cores * part), PERIOD_US), "not held");
                }
                (Resource::BytesPerSecond(rate), Some(network)) => {
                    network.set_rate(id, (rate as f64 * part) as u64)?;
                }
                _ => bail!("it has nothing of its own"),
            }
        }
        _ => bail!("no order"),
    }
    Ok(String::new())
}

/// Holds a broker's processor time, where that is what it has; how.
fn hold(broker: &mut Broker, resource: Resource) -> Vec<String> {
    match resource {
        Resource::Cores(cores) => broker.hold(quota_us(cores), PERIOD_US),
        Resource::Shared | Resource::BytesPerSecond(_) => Vec::new(),
    }
}

/// The system takes no quota below a millisecond.
fn quota_us(cores: f64) -> u64 {
    ((cores * PERIOD_US as f64) as u64).max(1_000)
}
