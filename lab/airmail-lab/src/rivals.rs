//! `airmail-lab rivals`: the common workloads through Airmail and through others, by one
//! program in one run.
//!
//! Systems take turns in rounds, so that a slow minute of the machine meets all of them, and a
//! ratio is taken within each round. A system is started for each of its runs, with fresh data, and
//! is gone before the next one's. Kafka alone runs throughout, idle in the others' turns, because
//! its users do not have a Java machine that has just begun; so each system also has a first run
//! that is thrown away. Each process is ended, by its id, by the one that started it.

mod criteria;
mod report;
pub(crate) mod server;
mod subject;
mod workload;

use crate::cli::UsageError;
use crate::experiment::CommonArgs;
use crate::hosts::Hosts;
use crate::narration::say;
use airmail_bench::Report;
use airmail_bench::clock::now_us;
use airmail_bench::disk;
use airmail_bench::family::Stop;
use airmail_bench::family::own_node::{OwnNode, OwnNodeArgs, directory};
use airmail_bench::part::Part;
use airmail_bench::process::Usage;
use airmail_bench::run::Job;
use airmail_bench::settings::milliseconds;
use airmail_bench::{Settings, Target};
use anyhow::Context as _;
use server::Server;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use subject::Subject;
use workload::{WORKLOADS, Workload};

/// Rounds and the length of a run, where nobody says them.
const ROUNDS: u32 = 5;
const DURATION_MS: u64 = 5_000;
/// The same with `--quick`, and when no further run is begun.
const QUICK_ROUNDS: u32 = 2;
const QUICK_DURATION_MS: u64 = 700;
const QUICK_US: u64 = 100_000_000;
/// Least warm-up of a system that is not started anew each time.
const KEPT_WARM_UP_MS: u64 = 3_000;
/// Writes a second of the disk alone where the workload has no rate.
const DISK_RATE: u64 = 10_000;
/// The part of a run that is left out of rates and times at its beginning.
const WARMUP_PART: u64 = 4;

/// Arguments of `airmail-lab rivals`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RivalsArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Where nats-server, redis-server and kafka/*.jar are, as `cargo xtask servers` leaves them
    /// [default: nats-server and redis-server in PATH]
    #[arg(long, value_name = "DIR")]
    pub(crate) servers: Option<PathBuf>,
    /// Rounds, in which each system has a run of each workload [default: 5, with --quick 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
    /// Time for which each run publishes, as 5s [default: 5s, with --quick 700ms]
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub(crate) duration: Option<u64>,
    /// Only these workloads: e2e, fanout, latency, publish, unbatched, 1kib, 64kib, topics, each-ack
    /// [default: all, with --quick the first four]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) node: OwnNodeArgs,
}

/// Measurements of a case: a report for each round.
type Rounds = BTreeMap<u32, Report>;

/// All measurements, and the reasons for those that are missing.
#[derive(Debug, Default)]
struct Measured {
    reports: BTreeMap<(&'static str, Subject), Rounds>,
    /// Reason for which a system could not be measured at all.
    absent: BTreeMap<Subject, String>,
    /// Runs that failed, each in a line.
    failed: Vec<String>,
    versions: BTreeMap<Subject, String>,
    /// Whether some rounds were not run.
    is_cut: bool,
}

/// A system that runs.
#[derive(Debug)]
enum Running {
    Node(OwnNode),
    Server(Server),
}

/// The experiment, as it is under way.
#[derive(Debug)]
struct Run<'a> {
    args: &'a RivalsArgs,
    hosts: Hosts,
    began_us: u64,
    runs: u32,
    /// Those that are not started anew each time.
    kept: BTreeMap<Subject, Running>,
}

/// Runs it: 0 unless Airmail failed or lost something.
pub(super) fn run(args: &RivalsArgs, stop: &Stop) -> anyhow::Result<ExitCode> {
    let chosen = chosen(args)?;
    let hosts = args.common.hosts.read(None, stop)?;
    let mut run = Run {
        args,
        hosts,
        began_us: now_us(),
        runs: 0,
        kept: BTreeMap::new(),
    };
    let machine = airmail_experiments::results::machine();
    let mut measured = Measured::default();
    let subjects = run.warm_up(&chosen, &mut measured);
    for round in 0..args.rounds() {
        for workload in &chosen {
            let mut partakers = subjects.clone();
            partakers.retain(|subject| workload.has(*subject));
            let turn = round as usize % partakers.len().max(1);
            partakers.rotate_left(turn);
            for subject in partakers {
                run.enter(workload, subject, round, &mut measured);
            }
        }
    }
    let hosts = run.hosts.paragraph();
    run.kept.clear();
    let findings = report::findings(&measured, &chosen, args, &[machine, hosts]);
    crate::experiment::finish(&findings, &args.common)?;
    Ok(ExitCode::from(u8::from(!measured.airmail_is_sound())))
}

fn chosen(args: &RivalsArgs) -> anyhow::Result<Vec<&'static Workload>> {
    let only = &args.only;
    let known = |name: &String| WORKLOADS.iter().any(|workload| workload.name == name);
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        let wrong = format!("--only {unknown}: is none of {}", names.join(", "));
        return Err(UsageError(wrong).into());
    }
    let wanted = |workload: &&Workload| {
        if only.is_empty() {
            workload.is_usual(args.common.quick)
        } else {
            only.iter().any(|wanted| wanted == workload.name)
        }
    };
    Ok(WORKLOADS.iter().filter(wanted).collect())
}

impl RivalsArgs {
    fn rounds(&self) -> u32 {
        let quick = self.common.quick;
        self.rounds
            .unwrap_or(if quick { QUICK_ROUNDS } else { ROUNDS })
    }

    /// Time for which each run publishes, warm-up included.
    fn duration_ms(&self) -> u64 {
        let usual = if self.common.quick {
            QUICK_DURATION_MS
        } else {
            DURATION_MS
        };
        self.duration.unwrap_or(usual).max(WARMUP_PART)
    }
}

impl Measured {
    /// Whether Airmail ran, and lost, doubled and reordered nothing.
    fn airmail_is_sound(&self) -> bool {
        let mut own = self.reports.iter().filter(|((_, s), _)| s.is_airmail());
        let failed = self.absent.keys().any(|subject| subject.is_airmail());
        !failed && own.all(|(_, rounds)| rounds.values().all(Report::is_sound))
    }
}

impl Run<'_> {
    /// Gives every system a run that counts for nothing; those that could have one take part.
    fn warm_up(&mut self, chosen: &[&Workload], measured: &mut Measured) -> Vec<Subject> {
        let mut subjects = Vec::new();
        let mut wanted = Subject::all(self.args.common.quick);
        wanted.retain(|subject| chosen.iter().any(|workload| workload.has(*subject)));
        for subject in wanted {
            if self.is_over() {
                measured.is_cut = true;
                break;
            }
            let why = if subject.needs_feature() && !cfg!(feature = "rivals") {
                Some(
                    "this program has no client for it; build it with `cargo build --release -p \
                     airmail-lab --features rivals`"
                        .to_owned(),
                )
            } else {
                self.try_out(subject, measured)
                    .err()
                    .map(|e| format!("{e:#}"))
            };
            match why {
                None => subjects.push(subject),
                Some(_) if self.hosts.stop().is_set() => measured.is_cut = true,
                Some(why) => {
                    say(&format!("{} is not measured: {why}", subject.name()));
                    measured.absent.insert(subject, why);
                }
            }
        }
        subjects
    }

    fn try_out(&mut self, subject: Subject, measured: &mut Measured) -> anyhow::Result<()> {
        if subject == Subject::Disk {
            let here = self.hosts.node().is_here();
            anyhow::ensure!(here, "it is on another machine");
            return Ok(());
        }
        let running = self.start(subject)?;
        if let Running::Server(server) = &running {
            measured
                .versions
                .insert(subject, server.version().to_owned());
        }
        let duration_ms = if subject.is_kept() {
            self.args.duration_ms().max(KEPT_WARM_UP_MS)
        } else {
            self.args.duration_ms()
        };
        self.load(subject, &running, WORKLOADS[0].settings(duration_ms))?;
        if subject.is_kept() {
            self.kept.insert(subject, running);
        }
        Ok(())
    }

    /// Measures one run, and enters its report.
    fn enter(
        &mut self,
        workload: &Workload,
        subject: Subject,
        round: u32,
        measured: &mut Measured,
    ) {
        if self.is_over() {
            measured.is_cut = true;
            return;
        }
        let settings = workload.settings(self.args.duration_ms());
        let report = match self.kept.remove(&subject) {
            _ if subject == Subject::Disk => self.measure_disk(settings),
            Some(running) => {
                let report = self.load(subject, &running, settings);
                self.kept.insert(subject, running);
                report
            }
            None => self
                .start(subject)
                .and_then(|running| self.load(subject, &running, settings)),
        };
        let name = format!("{}, round {}, {}", workload.name, round + 1, subject.name());
        match report {
            Ok(report) => {
                if !self.args.common.json {
                    say(&format!("{name}: {}", workload.line(&report)));
                }
                let rounds = measured.reports.entry((workload.name, subject));
                rounds.or_default().insert(round, report);
            }
            Err(_) if self.hosts.stop().is_set() => measured.is_cut = true,
            Err(error) => {
                let line = format!("{name}: {error:#}");
                say(&line);
                measured.failed.push(line);
            }
        }
    }

    /// Measures the disk alone, with as many writes a second as the workload has messages.
    fn measure_disk(&self, settings: Settings) -> anyhow::Result<Report> {
        let directory = directory(self.args.node.data.as_deref())?;
        let rate = settings.rate.unwrap_or(DISK_RATE);
        let path = directory.path().join("file");
        let found = disk::measure(&path, self.args.duration_ms(), rate)?;
        Ok(Report {
            latency_us: found.latency_us,
            ..Report::new("disk", settings, Part::default(), None)
        })
    }

    /// Whether no further run is to begin.
    fn is_over(&self) -> bool {
        let late = self.args.common.quick && now_us() > self.began_us + QUICK_US;
        late || self.hosts.stop().is_set()
    }

    fn start(&self, subject: Subject) -> anyhow::Result<Running> {
        let RivalsArgs { node, servers, .. } = self.args;
        Ok(match subject.server() {
            None => {
                let mut options = node.clone();
                options.node_options.extend(subject.node_options());
                Running::Node(self.hosts.start_node(&options, None, &[])?)
            }
            Some(kind) => {
                let directory = node.data.clone();
                let started = Server::start(&self.hosts, kind, servers.clone(), directory);
                Running::Server(started?)
            }
        })
    }

    fn load(
        &mut self,
        subject: Subject,
        running: &Running,
        settings: Settings,
    ) -> anyhow::Result<Report> {
        self.runs += 1;
        let id = std::process::id();
        let job = Job {
            target: running.url(),
            id: id.wrapping_mul(31).wrapping_add(self.runs),
            prefix: format!("bench/rivals-{id:x}-{}", self.runs),
            settings: settings.clone(),
            ..Job::default()
        };
        let target: Target = job.target.parse().context(subject.name())?;
        let before = running.usage()?;
        let part = self.hosts.run(&job)?;
        let used = running.usage()?.since(&before);
        Ok(Report::new(target.name(), settings, part, Some(used)))
    }
}

impl Running {
    fn url(&self) -> String {
        match self {
            Running::Node(node) => node.url(),
            Running::Server(server) => server.url().to_owned(),
        }
    }

    fn usage(&self) -> anyhow::Result<Usage> {
        match self {
            Running::Node(node) => Ok(node.usage()?),
            Running::Server(server) => server.usage(),
        }
    }
}
