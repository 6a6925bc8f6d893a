//! `airmail-lab pilot`: what a pilot on Kafka gives beside librdkafka alone, on the same broker, by one program.
//!
//! Four series. *Rate*: a publisher through a pilot, to the ack; beside it librdkafka with a record for each message, at
//! each linger, and librdkafka with records as large as the batches that the pilot has just stored. *Topics*: the same
//! publisher with more topics. *Latency*: 10,000 messages a second by timetable, from due to delivered. *Pilots*: several
//! of them, each held to a part of a core, and a publisher at each. Whoever is measured takes turns with the others in
//! rounds, and a ratio is taken within a round.
//!
//! The broker is a process that ends with the experiment, or with `--log` one that is there. It runs throughout, because
//! a Java machine that has just begun is slower than its users know it; so there is first a run that counts for nothing.

mod cluster;
mod report;
mod subject;

use crate::cli::UsageError;
use crate::experiment::CommonArgs;
use crate::hosts::Hosts;
use crate::narration::say;
use crate::rivals::server::{Kind, Server};
use airmail_bench::family::Stop;
use airmail_bench::family::kafka_logs::KafkaLogs;
use airmail_bench::family::own_node::{OwnNode, OwnNodeArgs};
use airmail_bench::process::Usage;
use airmail_bench::run::Job;
use airmail_bench::settings::milliseconds;
use airmail_bench::{Report, Settings, Target, Workload, counters};
use anyhow::Context as _;
use cluster::Cluster;
use std::path::PathBuf;
use std::process::ExitCode;
use subject::{Batches, Subject};

/// Messages a second where latency is measured.
const RATE: u64 = 10_000;
/// The part of a run that is left out of rates and times at its beginning.
const WARMUP_PART: u64 = 4;
/// Topics where several pilots are measured, however many they are.
const TOPICS_OF_PILOTS: u32 = 64;
/// Time of the run that counts for nothing, in milliseconds, at least.
const FIRST_RUN_MS: u64 = 3_000;

/// Arguments of `airmail-lab pilot`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PilotArgs {
    /// Where kafka/*.jar are, as `cargo xtask servers` leaves them, for a broker that is started for the experiment
    #[arg(long, value_name = "DIR", required_unless_present = "log")]
    pub(crate) servers: Option<PathBuf>,
    /// A Kafka that is there, as kafka://HOST:PORT?replicas=3&min_insync=2, without a prefix: each node has topics of its
    /// own, which end with it
    #[arg(long, value_name = "URL", conflicts_with = "servers")]
    pub(crate) log: Option<KafkaLogs>,
    /// Parts of the experiment
    #[arg(long, value_name = "SERIES,...", value_delimiter = ',', value_enum, default_values_t = [Series::Rate, Series::Topics, Series::Latency, Series::Pilots])]
    pub(crate) series: Vec<Series>,
    /// Times in milliseconds that librdkafka waits for a batch to fill
    #[arg(long, value_name = "MS,...", value_delimiter = ',', default_values_t = [0, 5, 100], value_parser = clap::value_parser!(u32).range(..=60_000))]
    pub(crate) linger: Vec<u32>,
    /// Numbers of topics
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 16, 256, 100_000], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) topics: Vec<u32>,
    /// Numbers of pilots
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 4], value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) pilots: Vec<u32>,
    /// Cores that each of several pilots may have, in periods of 10 ms
    #[arg(long, value_name = "N", default_value_t = 0.1)]
    pub(crate) quota: f64,
    /// Payload of each message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(24..=1_000_000))]
    pub(crate) size: u32,
    /// Rounds [default: 5, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
    /// Time for which each run publishes, as 5s [default: 5s, with --quick 1s]
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub(crate) duration: Option<u64>,
    #[command(flatten)]
    pub(crate) node: OwnNodeArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// A part of the experiment.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Series {
    /// Messages and bytes a second, to the ack
    Rate,
    /// The same of a pilot, with more topics
    Topics,
    /// From due to delivered, at 10,000 messages a second
    Latency,
    /// Messages a second of several pilots, each held to a part of a core
    Pilots,
}

impl Series {
    /// Name in rows and tables.
    fn name(self) -> &'static str {
        match self {
            Series::Rate => "rate",
            Series::Topics => "topics",
            Series::Latency => "latency",
            Series::Pilots => "pilots",
        }
    }
}

impl PilotArgs {
    fn rounds(&self) -> u32 {
        let usual = if self.common.quick { 1 } else { 5 };
        self.rounds.unwrap_or(usual)
    }

    fn duration_ms(&self) -> u64 {
        let usual = if self.common.quick { 1_000 } else { 5_000 };
        self.duration.unwrap_or(usual).max(WARMUP_PART)
    }

    fn settings(&self, series: Series, topics: u32) -> Settings {
        let is_latency = series == Series::Latency;
        Settings {
            workload: if is_latency {
                Workload::Latency
            } else {
                Workload::Pub
            },
            messages: None,
            duration_ms: Some(self.duration_ms()),
            warmup_ms: self.duration_ms() / WARMUP_PART,
            size: self.size as usize,
            topics,
            rate: is_latency.then_some(RATE),
            ..Settings::default()
        }
    }

    fn check(&self) -> Result<(), UsageError> {
        // The system takes no quota below a millisecond.
        if (0.1..=1024.0).contains(&self.quota) {
            return Ok(());
        }
        let wrong = format!("--quota: {}; from 0.1 to 1024", self.quota);
        Err(UsageError(wrong))
    }
}

/// One run of one subject.
#[derive(Clone, Debug)]
struct Run {
    series: Series,
    subject: Subject,
    /// Topics, or of several pilots their number.
    count: u32,
    /// Number of the round, from 1.
    round: u32,
    report: Report,
    /// Bytes of each message in what was stored, with its share of a batch's head.
    stored_bytes_each: f64,
    /// Processor time of the broker, in microseconds, if its process is known.
    broker_cpu_us: Option<u64>,
}

impl Run {
    fn bytes_per_s(&self) -> f64 {
        self.report.published_per_s * self.stored_bytes_each
    }

    fn messages_per_s(&self) -> f64 {
        match self.subject {
            Subject::Records(batches) => self.report.published_per_s * batches.messages_each,
            _ => self.report.published_per_s,
        }
    }
}

/// Everything that was measured.
#[derive(Debug, Default)]
struct Found {
    runs: Vec<Run>,
    /// Limits that were set on pilots, and those that could not be.
    means: Vec<String>,
    /// Version of the broker that was started.
    version: Option<String>,
}

/// The experiment, as it is under way.
#[derive(Debug)]
struct Bench<'a> {
    args: &'a PilotArgs,
    hosts: Hosts,
    broker: Option<Server>,
    logs: KafkaLogs,
    /// Batches of the last run of a pilot.
    batches: Option<Batches>,
}

/// Runs it: 0 unless a message was lost, doubled or out of order.
pub(super) fn run(args: &PilotArgs, stop: &Stop) -> anyhow::Result<ExitCode> {
    args.check()?;
    anyhow::ensure!(
        cfg!(feature = "rivals"),
        "this program has no client of Kafka; build it with `cargo build --release -p airmail-lab --features rivals`"
    );
    let hosts = args.common.hosts.read(None, stop)?;
    let mut found = Found::default();
    let mut bench = Bench::begin(args, hosts)?;
    found.version = bench
        .broker
        .as_ref()
        .map(|broker| broker.version().to_owned());
    match bench.measure(&mut found) {
        Err(error) if !stop.is_set() => return Err(error),
        _ => {}
    }
    crate::experiment::finish(&report::findings(args, &found, &bench.hosts), &args.common)?;
    let is_sound = found.runs.iter().all(|run| run.report.is_sound());
    if !is_sound {
        say("not every message was acknowledged, or arrived once and in order");
    }
    Ok(ExitCode::from(u8::from(!is_sound)))
}

impl Bench<'_> {
    fn begin(args: &PilotArgs, hosts: Hosts) -> anyhow::Result<Bench<'_>> {
        let (broker, logs) = match &args.log {
            Some(logs) => (None, logs.clone()),
            None => {
                let (servers, data) = (args.servers.clone(), args.node.data.clone());
                let broker = Server::start(&hosts, Kind::Kafka, servers, data)?;
                let logs = format!("{}?replicas=1&min_insync=1", broker.url()).parse()?;
                (Some(broker), logs)
            }
        };
        Ok(Bench {
            args,
            hosts,
            broker,
            logs,
            batches: None,
        })
    }

    fn measure(&mut self, found: &mut Found) -> anyhow::Result<()> {
        self.run_for_nothing()?;
        for round in 1..=self.args.rounds() {
            for series in self.args.series.clone() {
                self.measure_series(series, round, found)?;
                if self.hosts.stop().is_set() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn run_for_nothing(&mut self) -> anyhow::Result<()> {
        let mut settings = self.args.settings(Series::Rate, 1);
        settings.duration_ms = Some(self.args.duration_ms().max(FIRST_RUN_MS));
        self.pilot(settings.clone())?;
        self.bare(&Subject::Linger(0), settings)?;
        Ok(())
    }

    fn measure_series(
        &mut self,
        series: Series,
        round: u32,
        found: &mut Found,
    ) -> anyhow::Result<()> {
        let mut cases = self.cases(series);
        let turn = round as usize % cases.len().max(1);
        cases.rotate_left(turn);
        for (subject, count) in cases {
            if self.hosts.stop().is_set() {
                return Ok(());
            }
            let before = self.broker_usage()?;
            let (report, stored_bytes_each) = match subject {
                Subject::Pilot if series == Series::Pilots => self.pilots(count, found)?,
                Subject::Pilot => self.pilot(self.args.settings(series, count))?,
                bare => self.bare(&bare, self.args.settings(series, count))?,
            };
            let after = self.broker_usage()?;
            let used = after
                .zip(before)
                .map(|(after, before)| after.since(&before).cpu_us);
            let run = Run {
                series,
                subject,
                count,
                round,
                report,
                stored_bytes_each,
                broker_cpu_us: used,
            };
            say(&report::line(&run));
            found.runs.push(run);
        }
        Ok(())
    }

    /// Subjects of a series, each with its number of topics or of pilots.
    fn cases(&self, series: Series) -> Vec<(Subject, u32)> {
        let pilot = |count: &u32| (Subject::Pilot, *count);
        match series {
            Series::Topics => self.args.topics.iter().map(pilot).collect(),
            Series::Pilots => self.args.pilots.iter().map(pilot).collect(),
            Series::Latency => vec![(Subject::Pilot, 1), (Subject::Linger(0), 1)],
            Series::Rate => {
                let records = self.batches.map(Subject::Records);
                let linger = self.args.linger.iter().map(|ms| Subject::Linger(*ms));
                let all = std::iter::once(Subject::Pilot).chain(records).chain(linger);
                all.map(|subject| (subject, 1)).collect()
            }
        }
    }

    /// A run through a pilot of its own: the report, and the bytes that each message took in what was stored.
    fn pilot(&mut self, settings: Settings) -> anyhow::Result<(Report, f64)> {
        let option = Some(self.logs.next_option());
        let node = self.hosts.start_node(&self.args.node, option, &[])?;
        let before = node.usage()?;
        let part = self.hosts.run(&self.job(node.url(), &settings))?;
        let used = node.usage()?.since(&before);
        let batches = stored(&[&node])?;
        self.batches = Some(batches);
        let report = Report::new("airmail", settings, part, Some(used));
        Ok((report, batches.bytes_each / batches.messages_each))
    }

    /// A run of several pilots, with a publisher at each.
    fn pilots(&self, pilots: u32, found: &mut Found) -> anyhow::Result<(Report, f64)> {
        let cluster = Cluster::start(self.args, &self.hosts, &self.logs, pilots)?;
        cluster.tell_means(&mut found.means);
        let mut settings = self.args.settings(Series::Pilots, TOPICS_OF_PILOTS);
        settings.publishers = pilots;
        let before = cluster.usage()?;
        let parts = self
            .hosts
            .run_each(cluster.jobs(&self.job(String::new(), &settings)))?;
        let used = cluster.usage()?.since(&before);
        let batches = stored(&cluster.pilots())?;
        let sum = parts.into_iter().reduce(|mut sum, part| {
            sum.add(&part);
            sum
        });
        let report = Report::new("airmail", settings, sum.unwrap_or_default(), Some(used));
        Ok((report, batches.bytes_each / batches.messages_each))
    }

    /// A run of librdkafka alone.
    fn bare(&self, subject: &Subject, mut settings: Settings) -> anyhow::Result<(Report, f64)> {
        if let Subject::Records(batches) = subject {
            settings.size = batches.bytes_each as usize;
        }
        let job = self.job(self.logs.bare_url(subject.linger_ms()), &settings);
        let target: Target = job.target.parse()?;
        let part = self.hosts.run(&job)?;
        let bytes_each = settings.size as f64;
        Ok((Report::new(target.name(), settings, part, None), bytes_each))
    }

    fn job(&self, target: String, settings: &Settings) -> Job {
        let id = self.hosts.next_run();
        Job {
            target,
            id,
            prefix: format!("bench/pilot/{id:08x}"),
            settings: settings.clone(),
            ..Job::default()
        }
    }

    fn broker_usage(&self) -> anyhow::Result<Option<Usage>> {
        self.broker.as_ref().map(Server::usage).transpose()
    }
}

/// The batches that nodes have stored since they began.
fn stored(nodes: &[&OwnNode]) -> anyhow::Result<Batches> {
    let mut sums = [0.0; 3];
    for node in nodes {
        let metrics = [
            "airmail_published_batches_total",
            "airmail_published_messages_total",
            "airmail_published_bytes_total",
        ];
        let values = counters::sums(node.http(), &metrics);
        let values = values.with_context(|| format!("metrics of the node at {}", node.http()))?;
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
    let [batches, messages, bytes] = sums;
    anyhow::ensure!(batches > 0.0, "a pilot has stored nothing");
    Ok(Batches {
        messages_each: messages / batches,
        bytes_each: bytes / batches,
    })
}
