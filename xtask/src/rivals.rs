//! `cargo xtask rivals`: Airmail beside other systems, by one program in one run.
//!
//! Every figure is a median of rounds, and in a round the systems take turns, each as a fresh
//! process with fresh data: what the machine does to one it does to the next. The ratio is taken
//! within each round, so that slow minutes cancel out. The order turns from round to round.

mod servers;
mod table;
mod workloads;

use crate::process::{self, cargo};
use crate::tools;
use crate::workspace;
use anyhow::Context as _;
use servers::Server;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use table::Run;
use workloads::{Subject, WORKLOADS, Workload};

/// What to compare, and how often.
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
        nats: tools::bring_nats(&workspace::root().join("target/tools/bin"))
            .context("no nats-server")?,
        airmail: build(&target)?,
    };
    let out = options.out.clone().unwrap_or_else(|| target.join("rivals"));
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut tables = String::new();
    for workload in chosen {
        let runs = measure(workload, options, &programs)?;
        let table = table::of(workload, options.seconds, &runs);
        println!("\n{table}");
        tables.push_str(&table);
        tables.push('\n');
        let report = serde_json::to_string_pretty(&runs)?;
        fs::write(out.join(format!("{}.json", workload.name)), report)?;
    }
    fs::write(out.join("tables.md"), tables)?;
    println!("reports: {}", out.display());
    Ok(())
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
) -> anyhow::Result<BTreeMap<&'static str, Vec<Run>>> {
    let mut runs: BTreeMap<&'static str, Vec<Run>> = BTreeMap::new();
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
    Ok(runs)
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
            bench.args(["--target", server.url()]);
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
