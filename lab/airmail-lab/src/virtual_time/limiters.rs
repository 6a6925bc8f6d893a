//! `airmail-lab limiters`: the table of all limiters on all systems, and its figures; or, with `--like`, the
//! model of a node held against a node that was measured.

mod figures;
mod like;
mod table;

use super::RunArgs;
use crate::experiment;
use crate::narration::{print, say};
use airmail_queueing::limiters::{Plan, Report, measure, runs};
use airmail_queueing::subject::Subject;
use anyhow::Context as _;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use figures::colour;

/// Arguments of `airmail-lab limiters`.
#[derive(clap::Args, Debug)]
pub(crate) struct LimitersArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Instead of the table: directory that `airmail-lab flow` has written. Of each of its sweeps the two ends
    /// are given to the model of a node, and what it predicts stands beside what was measured
    #[arg(long, value_name = "DIR")]
    like: Option<PathBuf>,
    /// End with 1 if a knee is predicted with more than 15 % too much or too little throughput, or more than
    /// two rungs of √2 from its bound, or a limiter's share of its throughput is off by more than 0.1
    #[arg(long, requires = "like")]
    judge: bool,
}

pub(super) fn run(args: &LimitersArgs) -> anyhow::Result<ExitCode> {
    match &args.like {
        Some(directory) => like::run(directory, &args.run, args.judge),
        None => table(&args.run),
    }
}

fn table(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let plan = Plan {
        seeds: args.seeds,
        ..Plan::default()
    };
    let subjects = Subject::all();
    let steps = subjects.len() as u64 * runs(&plan);
    let bar = super::progress(steps);
    let reports = super::all(&subjects, |subject| {
        measure(*subject, &plan, &|| bar.inc(1))
            .with_context(|| format!("{} has no knee", subject.name()))
    });
    bar.finish_and_clear();
    let reports: Vec<Report> = reports.into_iter().collect::<anyhow::Result<_>>()?;
    let seconds = bar.elapsed().as_secs_f64();
    say(&format!(
        "{steps} runs of limiters, {} seeds each, took {seconds:.0} s",
        args.seeds
    ));
    let findings = table::findings(&reports, args.seeds);
    if !args.json {
        print(&format!("{}\n\n", findings.about.join("\n\n")))?;
    }
    experiment::tell(&findings, &args.out, args.json)?;
    Ok(ExitCode::SUCCESS)
}
