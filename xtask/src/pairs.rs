//! `cargo xtask pairs`: two versions of Airmail beside one another, by ratios.
//!
//! Each version is measured by its own bench, with its own client and its own node, because the
//! question is the cost of a change to users of the whole. Both run in turn, and the first of the
//! two changes from round to round; a ratio is taken within its round, so that slow minutes of the
//! machine cancel out. The median of the ratios counts; a bound is a bound on that.
//!
//! The base beside itself (`--base HEAD`) shows the ratio that the machine alone makes.

mod comparison;
mod figures;
mod run;
mod versions;
mod workloads;

use crate::workspace;
use anyhow::Context as _;
use comparison::{Bounds, Comparison};
use figures::Figures;
use run::Measurement;
use serde::Serialize;
use std::fs;
use std::path::PathBuf;
use versions::Version;
use workloads::Workload;

/// The versions to compare, the number of rounds, and the bounds to keep. 15 rounds of `e2e` and
/// `latency` take ten minutes, beside the builds.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The version that the other is compared with: whatever git takes for a commit.
    #[arg(long, value_name = "COMMIT", value_parser = versions::known)]
    base: Version,
    /// The version that is judged; changes that are not committed are left out.
    #[arg(long, value_name = "COMMIT", value_parser = versions::known, default_value = "HEAD")]
    head: Version,
    /// Rounds of each workload, in which each version runs once.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The workloads to measure.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "e2e,latency")]
    workloads: Vec<Workload>,
    /// Duration of each run, as 10s or 500ms; `memory` takes as long as it takes.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = run::duration)]
    duration: std::time::Duration,
    /// Where the nodes' data is meanwhile [default: as the bench has it, /var/tmp].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    bounds: Bounds,
}

/// All that was measured, as it is kept.
#[derive(Serialize)]
struct Kept<'a> {
    base: &'a Version,
    head: &'a Version,
    duration_ms: u128,
    /// Processes that were running or waiting, on average of a minute.
    load_before: String,
    load_after: String,
    comparisons: &'a [Comparison],
}

/// Builds both, measures them in turn, and prints the ratios. Fails if one is beyond its bound.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let directory = workspace::target_directory()?.join("pairs");
    let programs = [&options.base, &options.head].map(|version| version.build(&directory));
    let [base, head] = programs;
    let programs = [base?, head?];
    versions::tell_what_is_left_out(&options.head);
    let load_before = load();
    let mut comparisons = Vec::new();
    for workload in &options.workloads {
        let rounds = measure(*workload, options, &programs, &directory)?;
        let comparison = Comparison::of(*workload, rounds);
        println!("\n{}", comparison.table(&options.base, &options.head));
        comparisons.push(comparison);
    }
    let kept = Kept {
        base: &options.base,
        head: &options.head,
        duration_ms: options.duration.as_millis(),
        load_before,
        load_after: load(),
        comparisons: &comparisons,
    };
    let (before, after) = (&kept.load_before, &kept.load_after);
    println!("load of the machine: {before} before, {after} after");
    let path = directory.join(format!(
        "{}-{}.json",
        options.base.short, options.head.short
    ));
    fs::write(&path, serde_json::to_string_pretty(&kept)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("every run: {}", path.display());
    judge(options, &comparisons)
}

/// All rounds of a workload: base and head of each.
fn measure(
    workload: Workload,
    options: &Options,
    programs: &[PathBuf; 2],
    directory: &std::path::Path,
) -> anyhow::Result<Vec<[Figures; 2]>> {
    let measurement = Measurement {
        workload,
        duration: options.duration,
        data: options.data.as_deref(),
        scratch: directory,
    };
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        let mut pair = [Figures::default(), Figures::default()];
        for turn in 0..2 {
            let side = (turn + round as usize) % 2;
            let name = ["base", "head"][side];
            let figures = measurement
                .take(&programs[side])
                .with_context(|| format!("{}, round {}, {name}", workload.name(), round + 1))?;
            let (number, rounds, told) = (round + 1, options.rounds, figures.line());
            println!(
                "{}, round {number} of {rounds}, {name}: {told}",
                workload.name()
            );
            pair[side] = figures;
        }
        rounds.push(pair);
    }
    Ok(rounds)
}

/// Says of each bound whether it was kept.
fn judge(options: &Options, comparisons: &[Comparison]) -> anyhow::Result<()> {
    let mut beyond = Vec::new();
    for comparison in comparisons {
        for verdict in comparison.judge(&options.bounds) {
            println!("{verdict}");
            if !verdict.holds {
                beyond.push(verdict.to_string());
            }
        }
        beyond.extend(comparison.unsound());
    }
    if options.bounds.is_empty() {
        println!(
            "no bound was given, so none was looked at (--max-cpu 1.02, --min-rate 0.97, ...)"
        );
    }
    anyhow::ensure!(beyond.is_empty(), "pairs: {}", beyond.join("; "));
    Ok(())
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}
