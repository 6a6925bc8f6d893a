//! Subscribers that take a tenth of their deliveries, beside others that take all.
//!
//! In each round the same messages go to the same quick subscribers twice, on a new node each time:
//! alone, and beside slow ones. The slow ones have little credit, so that the messages that they do
//! not take wait in the node and not on their own side.

pub(super) mod report;

use super::OverloadArgs;
use crate::flow_control::FlowControl;
use crate::hosts::Hosts;
use crate::narration::say;
use airmail_bench::bystander::{Conduct, Taken, Task};
use airmail_bench::family::bystander::Bystander;
use airmail_bench::run::Job;
use airmail_bench::{Report, Settings, Workload};

/// Factor by which a slow subscriber takes fewer messages than are delivered.
const SLOWNESS: u64 = 10;
/// Credit of a slow subscriber, in bytes.
const CREDIT_BYTES: u32 = 64 << 10;
/// Beginning of the topics.
const PREFIX: &str = "bench/deliveries";

/// Options of the experiment, and its findings so far.
#[derive(Debug)]
pub(super) struct Deliveries<'a> {
    args: &'a OverloadArgs,
    hosts: &'a Hosts,
    /// Phases in order.
    pub(super) phases: Vec<Phase>,
}

/// The quick subscribers, once.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    /// Number of the round, from 1.
    pub(super) round: u32,
    /// Number of slow subscribers beside them.
    pub(super) slow: u32,
    /// Messages a second that each of the quick ones got.
    pub(super) goodput_per_s: f64,
    /// Half of their messages' time to delivery.
    pub(super) p50_us: u64,
    /// 99 of 100.
    pub(super) p99_us: u64,
    /// Memory of the node at the end.
    pub(super) rss_bytes: u64,
    /// Messages a second that the slow one took that took most.
    pub(super) slow_per_s: f64,
    /// Nothing was lost, doubled or out of order, on either side.
    pub(super) sound: bool,
}

impl<'a> Deliveries<'a> {
    pub(super) fn new(args: &'a OverloadArgs, hosts: &'a Hosts) -> Deliveries<'a> {
        Deliveries {
            args,
            hosts,
            phases: Vec::new(),
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        self.phases.iter().all(|phase| phase.sound)
    }

    /// Does both, in an order that turns.
    pub(super) fn round(&mut self, round: u32) -> anyhow::Result<()> {
        if self.args.delivery_rate == 0 {
            return Ok(());
        }
        let mut turns = [0, self.args.slow_subscribers];
        if round.is_multiple_of(2) {
            turns.reverse();
        }
        for slow in turns {
            if self.hosts.stop().is_set() {
                return Ok(());
            }
            let phase = self.phase(round, slow)?;
            say(&format!(
                "deliveries beside {slow} slow: {:.0} messages/s each, p99 {} us",
                phase.goodput_per_s, phase.p99_us
            ));
            self.phases.push(phase);
        }
        Ok(())
    }

    fn phase(&self, round: u32, slow: u32) -> anyhow::Result<Phase> {
        let (args, hosts) = (self.args, self.hosts);
        let log = Some("--log=memory:".to_owned());
        let environment = FlowControl::On.environment();
        let node = args.target.node(hosts, &args.node, log, &environment)?;
        let id = hosts.next_run();
        // A target has the topics of other runs.
        let prefix = format!("{PREFIX}/{id:08x}");
        let task = Task {
            target: node.url(),
            namespace: Settings::default().namespace,
            topic: format!("{prefix}/0"),
            conduct: Conduct::Slow,
            per_s: Some((args.delivery_rate / SLOWNESS).max(1)),
            credit_bytes: Some(CREDIT_BYTES),
            yields: true,
        };
        let bystanders =
            hosts.spread(slow, crate::cli::BYSTANDER, hosts.stop(), |_| task.clone())?;
        let bystanders = bystanders.into_iter().map(Bystander::stand);
        let bystanders: Vec<Bystander> = bystanders.collect::<Result<_, _>>()?;
        let job = Job {
            target: node.url(),
            settings: self.settings(),
            id,
            prefix,
            ..Job::default()
        };
        let part = hosts.run(&job)?;
        let rss_bytes = node.usage()?.rss_bytes;
        let taken = bystanders.into_iter().map(Bystander::stop);
        let taken: Vec<Taken> = taken.collect::<Result<_, _>>()?;
        let report = Report::new("airmail", job.settings, part, None);
        if let Some(error) = &report.first_error {
            say(error);
        }
        let slow_per_s = taken.iter().map(taken_per_s).fold(0.0, f64::max);
        Ok(Phase {
            round,
            slow,
            goodput_per_s: report.delivered_per_s / f64::from(args.quick_subscribers),
            p50_us: report.latency_us.p50,
            p99_us: report.latency_us.p99,
            rss_bytes,
            slow_per_s,
            sound: report.is_sound() && taken.iter().all(is_whole),
        })
    }

    fn settings(&self) -> Settings {
        let args = self.args;
        Settings {
            workload: Workload::Latency,
            messages: None,
            duration_ms: Some((args.seconds() * 1e3) as u64),
            warmup_ms: (args.warmup() * 1e3) as u64,
            size: args.size as usize,
            subscribers: args.quick_subscribers,
            rate: Some(args.delivery_rate),
            ..Settings::default()
        }
    }
}

fn taken_per_s(taken: &Taken) -> f64 {
    taken.messages as f64 / (taken.time_us.max(1) as f64 / 1e6)
}

/// True if a slow subscriber took its messages whole and in order.
fn is_whole(taken: &Taken) -> bool {
    [taken.missing, taken.again, taken.strange, taken.gaps] == [0; 4]
}
