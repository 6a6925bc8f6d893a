//! `airmail-lab partitioners`: comparison of the policies that choose the partitions of a Kafka
//! topic.
//!
//! Chapter 7 of the paper on load balancing in Kafka clusters, on a Kafka of today, and experiments
//! that it could not make: three brokers, several producers, a broker that is held back, killed and
//! comes back. Records come from Kafka's own performance tool with a producer under it that times
//! every ack, so that percentiles are of all records; each broker has a part of the machine of its
//! own; policies take turns in rounds, so that a slow minute of the machine meets all of them, and
//! a ratio is taken within each round.

mod bench;
mod cluster;
mod contention;
mod desk;
mod faults;
mod jars;
mod load;
mod metric;
mod nodes;
mod outcome;
mod paper;
mod policy;
mod report;
mod runs;
mod scene;
mod tables;

use crate::cli::UsageError;
use crate::experiment::CommonArgs;
use crate::narration::say;
use airmail_bench::clock::now_us;
use airmail_bench::family::Stop;
use airmail_bench::settings::bytes;
use airmail_experiments::results::{Findings, machine};
use bench::{Bench, Times};
use cluster::Resource;
pub(crate) use cluster::keep_brokers;
use jars::Jars;
use policy::Policy;
use runs::Runs;
use scene::{Acks, Topic};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// When no further run is begun of a sample.
const QUICK_US: u64 = 95_000_000;

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Tables 7.1 to 7.18: two brokers, topics B1, B2, U1, U2
    Tables,
    /// Section 6.4: what each of three nodes gets of two topics that overlap
    Nodes,
    /// Three brokers and several producers; a broker held back, killed and back
    Faults,
    /// Many threads on one producer, and their waits
    Contention,
}

/// Limits on each broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Limit {
    /// Processor time, by a control group
    Cpu,
    /// A rate to it and from it, by a network namespace; needs root
    Network,
    /// Nothing
    None,
}

/// Arguments of `airmail-lab partitioners`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PartitionersArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Where kafka/*.jar and kafka-partitioners/*.jar are, as `cargo xtask servers` leaves them
    #[arg(long, value_name = "DIR", default_value = "target/tools/servers")]
    pub(crate) servers: PathBuf,
    /// Where brokers have their data meanwhile [default: /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Only these parts [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) parts: Vec<Part>,
    /// Only these policies [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) policies: Vec<Policy>,
    /// Only these topics of the tables [default: all, with --quick U2]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) topics: Vec<Topic>,
    /// Only these acks in the tables [default: both, with --quick all]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) acks: Vec<Acks>,
    /// The limit on each broker
    #[arg(long, value_name = "WHAT", default_value = "cpu")]
    pub(crate) limit: Limit,
    /// With --limit cpu: cores of each broker, at least 0.1
    #[arg(long, value_name = "N", default_value_t = 0.2)]
    pub(crate) cores: f64,
    /// With --limit network: bytes a second to each broker, and as many from it
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "8MiB")]
    pub(crate) line: u64,
    /// Records of a run that count [default: 1000000, with --quick 60000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: Option<u64>,
    /// Records before them that do not count [default: a quarter as many]
    #[arg(long, value_name = "N")]
    pub(crate) warm_up: Option<u64>,
    /// Bytes of a record
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) size: u32,
    /// Rounds, in which each policy has a run of each kind [default: 5, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
    /// Producers of each run with faults
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) producers: u32,
    /// Records a second, of all producers together, while a broker is killed
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) fault_rate: u64,
    /// Duration of a run with a fault, in seconds: the broker is gone for its second quarter
    /// [default: 24, with --quick 12]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(8..=600))]
    pub(crate) fault_seconds: Option<u64>,
    /// Threads on one producer, whose waits are looked at
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
}

impl PartitionersArgs {
    fn has(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    fn policies(&self) -> Vec<Policy> {
        chosen(&self.policies, &Policy::ALL)
    }

    /// Policies in a round: the first one changes from round to round.
    fn policies_in(&self, round: u32) -> Vec<Policy> {
        let mut policies = self.policies();
        let turn = round as usize % policies.len();
        policies.rotate_left(turn);
        policies
    }

    fn topics(&self) -> Vec<Topic> {
        let all: &[Topic] = if self.common.quick {
            &[Topic::U2]
        } else {
            &Topic::ALL
        };
        chosen(&self.topics, all)
    }

    fn acks(&self) -> Vec<Acks> {
        let all: &[Acks] = if self.common.quick {
            &[Acks::All]
        } else {
            &Acks::ALL
        };
        chosen(&self.acks, all)
    }

    fn records(&self) -> u64 {
        let usual = if self.common.quick { 60_000 } else { 1_000_000 };
        self.records.unwrap_or(usual)
    }

    fn warm_up(&self) -> u64 {
        self.warm_up.unwrap_or(self.records() / 4)
    }

    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.common.quick { 1 } else { 5 })
    }

    fn fault_seconds(&self) -> u64 {
        let usual = if self.common.quick { 12 } else { 24 };
        self.fault_seconds.unwrap_or(usual)
    }

    fn resource(&self) -> Resource {
        match self.limit {
            Limit::Cpu => Resource::Cores(self.cores),
            Limit::Network => Resource::BytesPerSecond(self.line),
            Limit::None => Resource::Shared,
        }
    }

    fn check(&self) -> Result<(), UsageError> {
        let wrong = |what: &str| Err(UsageError(what.to_owned()));
        if self.common.hosts.hosts.is_some() {
            return wrong("--hosts: this experiment has its brokers on one machine");
        }
        if !(0.1..=64.0).contains(&self.cores) {
            return wrong("--cores: from 0.1 to 64");
        }
        if self.line < 100_000 {
            return wrong("--line: at least 100000 bytes a second");
        }
        Ok(())
    }
}

fn chosen<T: Clone>(named: &[T], all: &[T]) -> Vec<T> {
    if named.is_empty() {
        all.to_vec()
    } else {
        named.to_vec()
    }
}

/// Runs it: 0 if every record was acknowledged that should be, nodes got what section 6.4 says, and no
/// thread waited for a lock of ours; else 1.
pub(super) fn run(args: &PartitionersArgs, stop: &Stop) -> anyhow::Result<ExitCode> {
    args.check()?;
    let jars = Jars::find(&args.servers)?;
    let times = Times {
        stop: stop.clone(),
        until_us: args.common.quick.then(|| now_us() + QUICK_US),
    };
    let mut findings = Findings {
        name: "partitioners".to_owned(),
        title: "Partitioners for Kafka's producers".to_owned(),
        about: report::about(args, &jars, &machine()),
        ..Findings::default()
    };
    let given = Given {
        args,
        jars: &jars,
        times: &times,
    };
    let mut sound = true;
    for (part, of) in [
        (Part::Tables, tables::run as PartOf),
        (Part::Nodes, nodes::run),
        (Part::Faults, faults::run),
        (Part::Contention, contention::run),
    ] {
        if !args.has(part) || times.are_over() {
            continue;
        }
        match of(given, &mut findings) {
            Ok(is_sound) => sound &= is_sound,
            Err(_) if stop.is_set() => break,
            Err(error) => return Err(error),
        }
    }
    if times.are_over() {
        let cut = "It ended before all was run: it was stopped, or its time was over.";
        findings.about.push(cut.to_owned());
    }
    crate::experiment::finish(&findings, &args.common)?;
    if !sound {
        say("not everything is as it must be: see the report");
    }
    Ok(ExitCode::from(u8::from(!sound)))
}

/// Arguments of every part.
#[derive(Clone, Copy)]
struct Given<'a> {
    args: &'a PartitionersArgs,
    jars: &'a Jars,
    times: &'a Times,
}

/// Runs a part, and adds its findings; says whether they are as they must be.
type PartOf = fn(Given<'_>, &mut Findings) -> anyhow::Result<bool>;

/// A part that measures case by case.
struct Cases<C> {
    brokers: u32,
    /// Time after which a silent broker counts as dead, in milliseconds.
    session_ms: u32,
    measure: fn(Given<'_>, &mut Bench<'_>, &mut BTreeMap<C, Runs>) -> anyhow::Result<()>,
    report: fn(&PartitionersArgs, &BTreeMap<C, Runs>, &mut Findings),
}

impl<C: Ord> Cases<C> {
    /// Measures on brokers that are held as is asked for, and adds what there is, also where it ended early;
    /// whether every record was acknowledged. Where the user ended it, what failed by that counts for
    /// nothing.
    fn run(&self, given: Given<'_>, findings: &mut Findings) -> anyhow::Result<bool> {
        let held = (given.args.resource(), self.session_ms);
        let mut bench = Bench::start(given, self.brokers, held)?;
        bench.cluster.tell_means(findings);
        let mut cases = BTreeMap::new();
        let measured = (self.measure)(given, &mut bench, &mut cases);
        let failed: u64 = cases.values().map(|runs| runs.failed(None)).sum();
        (self.report)(given.args, &cases, findings);
        match measured {
            Err(error) if !given.times.stop.is_set() => Err(error),
            _ => Ok(failed == 0),
        }
    }
}
