//! `airmail-lab`: limiters and dispatch policies in front of queues, simulated in virtual time. No
//! node takes part, and one seed gives one result on any machine.

mod dispatch;
mod limiters;

use crate::narration::print;
use airmail_plot::Figure;
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use serde_json::Value;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use limiters::{LimitersArgs, colour as limiter_colour};

/// Options of an experiment in virtual time.
#[derive(clap::Args, Debug)]
pub(crate) struct RunArgs {
    /// Runs of each case, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) seeds: u64,
    /// Print a line of JSON for each row
    #[arg(long)]
    pub(crate) json: bool,
    /// Where files go
    #[arg(long, value_name = "DIR", default_value = "airmail-lab")]
    pub(crate) out: PathBuf,
}

/// Runs what `airmail-lab limiters` does.
///
/// # Errors
/// The report cannot be written, or what it is to be held against cannot be read.
pub(crate) fn limiters(args: &LimitersArgs) -> anyhow::Result<ExitCode> {
    limiters::run(args)
}

/// Runs what `airmail-lab dispatch` does.
///
/// # Errors
/// The pictures cannot be written.
pub(crate) fn dispatch(args: &RunArgs) -> anyhow::Result<ExitCode> {
    dispatch::run(args)?;
    Ok(ExitCode::SUCCESS)
}

/// Does every job, on all processors; the results are in the jobs' order.
fn all<T: Sync, R: Send>(jobs: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((job, result)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(index).zip(results.get(index))
        } {
            let done = each(job);
            *result.lock() = Some(done);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 1..threads.min(jobs.len()) {
            scope.spawn(work);
        }
        work();
    });
    results.into_iter().filter_map(Mutex::into_inner).collect()
}

/// Prints a line of JSON for each row.
fn print_json(rows: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    let mut out = String::new();
    for row in rows {
        writeln!(out, "{row}")?;
    }
    print(&out)
}

/// A bar on standard error, where that is a terminal.
fn progress(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %, {eta} left");
    let bar = ProgressBar::new(steps);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Writes the figures and says where.
#[expect(clippy::print_stderr, reason = "standard output is for the rows")]
fn draw(out: &Path, figures: &[(String, Figure)]) -> anyhow::Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let written = all(figures, |(name, figure)| figure.write(&out.join(name)));
    for files in written {
        let [svg, _] = files?;
        eprintln!("airmail-lab: drawn: {} and .png", svg.display());
    }
    Ok(())
}
