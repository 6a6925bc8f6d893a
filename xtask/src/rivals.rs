//! `cargo xtask rivals`: Airmail beside other systems, by one program in one run.
//!
//! Every figure is a median of rounds, and in a round the systems take turns, each as a fresh
//! process with fresh data: what the machine does to one it does to the next. The ratio is taken
//! within each round, so that slow minutes cancel out. The order turns from round to round.

mod circumstances;
mod criteria;
mod servers;
mod table;
mod workloads;

use crate::process::{self, cargo};
use crate::servers as servers_of_others;
use crate::tools;
use crate::workspace;
use anyhow::Context as _;
use circumstances::Circumstances;
use criteria::Verdict;
use serde::Serialize;
use servers::Server;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use table::Run;
use workloads::{Subject, WORKLOADS, Workload};

/// Seconds that a run takes beside its own: servers start, clients connect, nothing more comes.
const SECONDS_BESIDE: u32 = 3;

/// What to compare, and how often. All workloads, with 5 rounds of 10 s, take about 30 minutes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Rounds of each workload, in which each system runs once.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Seconds of each run.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Only these workloads, by name; without it, all.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the reports go, one JSON for each workload and the tables. Default: target/rivals.
    #[arg(long)]
    out: Option<PathBuf>,
    /// A directory on the disk that is to be measured; fresh ones for data are made in it.
    #[arg(long, default_value = "/var/tmp")]
    disk: PathBuf,
    /// The program to measure with, and as a node, if it is built already (with the feature
    /// `rivals`). Without it, it is built.
    #[arg(long, value_name = "PROGRAM")]
    airmail: Option<PathBuf>,
}

/// What was measured, and where.
#[derive(Serialize)]
struct Measured<'a> {
    circumstances: &'a Circumstances,
    title: &'a str,
    command: String,
    verdicts: &'a [Verdict],
    runs: &'a BTreeMap<&'static str, Vec<Run>>,
}

/// The programs of one run.
struct Programs {
    airmail: PathBuf,
    nats: PathBuf,
}

/// Measures, and prints a table for each workload.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let chosen = chosen(&options.only)?;
    let target = workspace::target_directory()?;
    let programs = Programs {
        nats: tools::bring_nats(&servers_of_others::directory()).context("no nats-server")?,
        airmail: match &options.airmail {
            Some(built) => built.clone(),
            None => build(&target)?,
        },
    };
    let out = options.out.clone().unwrap_or_else(|| target.join("rivals"));
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    println!("about {} minutes", minutes(&chosen, options));
    let circumstances = Circumstances::look(&programs.nats, options.rounds, options.seconds);
    let (mut tables, mut failed) = (String::new(), Vec::new());
    for workload in chosen {
        let mut runs = BTreeMap::new();
        if let Err(error) = measure(workload, options, &programs, &mut runs) {
            println!("{}: {error:#}", workload.name);
            failed.push(workload.name);
        }
        let verdicts = criteria::verdicts(workload, &runs);
        let table = table::of(workload, options.seconds, &runs);
        let table = format!("{table}\n{}\n", criteria::lines(&verdicts));
        println!("\n{table}");
        tables.push_str(&table);
        let measured = Measured {
            circumstances: &circumstances,
            title: workload.title,
            command: format!("airmail bench {}", workload.arguments.join(" ")),
            verdicts: &verdicts,
            runs: &runs,
        };
        let report = serde_json::to_string_pretty(&measured)?;
        fs::write(out.join(format!("{}.json", workload.name)), report)?;
        // What is measured so far is kept, whatever becomes of the rest.
        let paragraph = circumstances.paragraph(&circumstances::load());
        fs::write(out.join("tables.md"), format!("{paragraph}\n{tables}"))?;
    }
    println!("reports: {}", out.display());
    anyhow::ensure!(failed.is_empty(), "not measured to the end: {failed:?}");
    Ok(())
}

/// How long these take, about.
fn minutes(chosen: &[&Workload], options: &Options) -> u32 {
    let runs: usize = chosen.iter().map(|workload| workload.subjects.len()).sum();
    let runs = u32::try_from(runs).unwrap_or(u32::MAX);
    (runs * options.rounds * (options.seconds + SECONDS_BESIDE)).div_ceil(60)
}

fn chosen(only: &[String]) -> anyhow::Result<Vec<&'static Workload>> {
    let known = |name: &String| WORKLOADS.iter().any(|workload| workload.name == name);
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        anyhow::bail!("--only {unknown}: one of {}", names.join(", "));
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|wanted| wanted == name);
    Ok(WORKLOADS.iter().filter(|w| wanted(w.name)).collect())
}

fn build(target: &Path) -> anyhow::Result<PathBuf> {
    process::run(&mut cargo(&[
        "build",
        "--release",
        "--locked",
        "-p",
        "airmail",
        "--features",
        "rivals",
    ]))?;
    Ok(target.join("release/airmail"))
}

/// All rounds of a workload, by system.
fn measure(
    workload: &Workload,
    options: &Options,
    programs: &Programs,
    runs: &mut BTreeMap<&'static str, Vec<Run>>,
) -> anyhow::Result<()> {
    for round in 0..options.rounds {
        for turn in 0..workload.subjects.len() {
            let subject = workload.subjects[(turn + round as usize) % workload.subjects.len()];
            let run = measure_once(workload, subject, options, programs)
                .with_context(|| format!("{} of {}", workload.name, subject.name()))?;
            println!(
                "{}, round {} of {}, {}: {}",
                workload.name,
                round + 1,
                options.rounds,
                subject.name(),
                table::line(workload, &run),
            );
            runs.entry(subject.name()).or_default().push(run);
        }
    }
    Ok(())
}

fn measure_once(
    workload: &Workload,
    subject: Subject,
    options: &Options,
    programs: &Programs,
) -> anyhow::Result<Run> {
    let duration = format!("{}s", options.seconds);
    let mut bench = Command::new(&programs.airmail);
    bench.arg("bench");
    let server = match subject {
        Subject::Disk => {
            bench.arg("disk").arg("--directory").arg(&options.disk);
            None
        }
        _ => {
            let server = Server::start(subject, &programs.airmail, &programs.nats, &options.disk)?;
            bench.args(workload.arguments);
            bench.args(["--target", server.url(), "--pid", &server.pid()]);
            Some(server)
        }
    };
    bench.args(["--duration", &duration, "--json"]);
    let output = bench.output().context("cannot run the bench")?;
    drop(server);
    let told = String::from_utf8_lossy(&output.stdout);
    let report = told.lines().last().unwrap_or_default();
    serde_json::from_str(report).with_context(|| {
        format!(
            "no report ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    })
}
