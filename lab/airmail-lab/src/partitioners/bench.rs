//! A cluster to measure on, and one run on it.

use super::cluster::{BrokerUsage, Cluster, Resource};
use super::desk::Desk;
use super::jars::Jars;
use super::load::{Flow, Load};
use super::metric::Metric;
use super::outcome::Outcome;
use super::policy::Policy;
use super::scene::Acks;
use super::{Given, PartitionersArgs};
use airmail_bench::clock::now_us;
use airmail_bench::family::Stop;
use anyhow::Context as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// Interval at which a wait for an event looks whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Share of brokers while they warm up, as a multiple of their usual one: in effect no limit.
const UNHELD: f64 = 100.0;
/// Records to warm up brokers with, at least.
const WARM_UP_RECORDS: u64 = 300_000;
/// Runs to warm up, at most; and another follows if one was so many times as quick as the one before.
const WARM_UPS_MAX: u32 = 8;
const WARM_UP_GAIN: f64 = 1.1;

/// Time for the runs.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub(super) stop: Stop,
    /// When no further run is begun.
    pub(super) until_us: Option<u64>,
}

impl Times {
    /// Whether no further run is to begin.
    pub(super) fn are_over(&self) -> bool {
        self.stop.is_set() || self.until_us.is_some_and(|until_us| now_us() > until_us)
    }

    /// Measures one way after the other until the time is over; what those gave that were measured.
    ///
    /// # Errors
    /// The first that fails.
    pub(super) fn each<W, F>(
        &self,
        ways: impl IntoIterator<Item = W>,
        measure: impl FnMut(W) -> anyhow::Result<F>,
    ) -> anyhow::Result<Vec<F>> {
        let ways = ways.into_iter().take_while(|_| !self.are_over());
        ways.map(measure).collect()
    }
}

/// Something that happens to a broker during a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Kill(u32),
    Start(u32),
}

/// A run to be made.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The replicas of each partition, the leader first.
    pub(super) replicas: Vec<Vec<u32>>,
    pub(super) acks: Acks,
    pub(super) policy: Policy,
    /// Each in a process of its own.
    pub(super) producers: u32,
    /// Records of all producers that count, and those before them that do not.
    pub(super) records: u64,
    pub(super) warm_up: u64,
    /// Records a second at most, of all producers.
    pub(super) rate: Option<u64>,
    /// Events by milliseconds from the beginning.
    pub(super) events: Vec<(u64, Event)>,
}

impl Order {
    /// One producer that sends as fast as it can, while nothing happens to anybody.
    pub(super) fn of(
        args: &PartitionersArgs,
        replicas: Vec<Vec<u32>>,
        acks: Acks,
        policy: Policy,
    ) -> Order {
        Order {
            replicas,
            acks,
            policy,
            producers: 1,
            records: args.records(),
            warm_up: args.warm_up(),
            rate: None,
            events: Vec::new(),
        }
    }
}

/// The cluster.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    pub(super) cluster: Cluster,
    pub(super) desk: Desk,
    jars: &'a Jars,
    size: u32,
    brokers: u32,
    resource: Resource,
    stop: Stop,
    /// Directory for files that programs write beside their answers.
    scratch: TempDir,
    topics: u32,
}

impl<'a> Bench<'a> {
    /// Starts a cluster, in which a broker counts as dead that is silent for `session_ms`.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(
        given: Given<'a>,
        brokers: u32,
        (resource, session_ms): (Resource, u32),
    ) -> anyhow::Result<Bench<'a>> {
        let Given { args, jars, times } = given;
        let stop = &times.stop;
        let scratch = tempfile::tempdir()?;
        let directory = args.data.clone();
        let cluster = Cluster::start(jars, directory, brokers, (resource, session_ms), stop)?;
        let desk = Desk::open(jars, &cluster.bootstrap, scratch.path(), stop)?;
        Ok(Bench {
            cluster,
            desk,
            jars,
            size: args.size,
            brokers,
            resource,
            stop: stop.clone(),
            scratch,
            topics: 0,
        })
    }

    /// Runs what counts for nothing, with as much of the machine for the brokers as there is, until that no
    /// longer makes it quicker: Java machines that have just begun are not what users have, and with a part
    /// of a core they would stay so for minutes.
    ///
    /// # Errors
    /// As [`Bench::run`].
    pub(super) fn warm(&mut self, order: &Order) -> anyhow::Result<()> {
        let order = Order {
            policy: Policy::BuiltIn,
            records: order.records.max(WARM_UP_RECORDS),
            rate: None,
            events: Vec::new(),
            ..order.clone()
        };
        self.give_all(UNHELD)?;
        let mut before = 0.0;
        for _ in 0..WARM_UPS_MAX {
            let rate = self.run(&order)?.metric(Metric::Throughput);
            if rate < before * WARM_UP_GAIN {
                break;
            }
            before = rate;
        }
        self.give_all(1.0)
    }

    /// Gives each broker a part of what it shall have.
    fn give_all(&mut self, part: f64) -> anyhow::Result<()> {
        let is_held = self.resource != Resource::Shared;
        for broker in (1..=self.brokers).filter(|_| is_held) {
            self.cluster.give(broker, part)?;
        }
        Ok(())
    }

    /// A name that no topic has had.
    pub(super) fn new_topic(&mut self) -> String {
        self.topics += 1;
        format!("topic-{}", self.topics)
    }

    /// Bytes of a record.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Where programs write beside their answers.
    pub(super) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A process for flows; nothing is sent yet.
    pub(super) fn load(&self, flows: &[Flow]) -> anyhow::Result<Load> {
        let bootstrap = &self.cluster.bootstrap;
        Load::start(self.jars, bootstrap, flows, self.scratch.path(), &self.stop)
    }

    /// Runs it on a topic of its own, which is gone afterwards.
    ///
    /// # Errors
    /// The cluster or a producer fails, or what is under way is stopped. A record that is not acknowledged
    /// is told in the outcome.
    pub(super) fn run(&mut self, order: &Order) -> anyhow::Result<Outcome> {
        let topic = self.new_topic();
        self.desk.create(&topic, &order.replicas)?;
        let producers = u64::from(order.producers);
        let flow = Flow {
            topic: topic.clone(),
            acks: order.acks,
            policy: order.policy,
            records: (order.records / producers).max(1),
            warm_up: order.warm_up / producers,
            size: self.size,
            rate: order.rate.map(|rate| (rate / producers).max(1)),
            is_in_step: false,
            number: 0,
            properties: Vec::new(),
        };
        let mut loads = Vec::new();
        for number in 0..order.producers {
            loads.push(self.load(&[Flow {
                number,
                ..flow.clone()
            }])?);
        }
        for load in &mut loads {
            load.ready()?;
        }
        let (before, began_us) = (self.cluster.usage()?, now_us());
        for load in &mut loads {
            load.go()?;
        }
        self.let_happen(&order.events, began_us)?;
        let mut told = Vec::new();
        for load in loads {
            told.push(load.end().context("a producer")?);
        }
        let took_us = now_us() - began_us;
        let after = self.cluster.usage()?;
        let partitions = self.desk.records(&topic)?;
        self.desk.delete(&topic)?;
        let mut outcome = Outcome::of(&told, self.size, partitions);
        outcome.core_shares = core_shares(&before, &after, took_us);
        Ok(outcome)
    }

    fn let_happen(&mut self, events: &[(u64, Event)], began_us: u64) -> anyhow::Result<()> {
        for (at_ms, event) in events {
            while now_us() < began_us + at_ms * 1_000 {
                if self.stop.is_set() {
                    return Ok(());
                }
                sleep(LOOK);
            }
            match event {
                Event::Kill(broker) => self.cluster.kill(*broker)?,
                Event::Start(broker) => self.cluster.start_again(*broker)?,
            }
        }
        Ok(())
    }
}

/// Share of a core that each broker used, in a run that took `took_us`. A broker that was killed
/// meanwhile began anew.
fn core_shares(before: &[BrokerUsage], after: &[BrokerUsage], took_us: u64) -> Vec<f64> {
    let pairs = before.iter().zip(after);
    let cpu_us = pairs.map(|(before, after)| match after.process.cpu_us {
        after if after >= before.process.cpu_us => after - before.process.cpu_us,
        after => after,
    });
    cpu_us
        .map(|cpu_us| cpu_us as f64 / took_us.max(1) as f64)
        .collect()
}
