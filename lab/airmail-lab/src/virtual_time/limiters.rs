//! `airmail-lab limiters`: the table of all limiters on all systems, and its figures.

mod figures;
mod table;

use super::RunArgs;
use crate::experiment;
use crate::narration::{print, say};
use airmail_queueing::limiters::{Plan, Report, measure, runs};
use airmail_queueing::subject::Subject;
use anyhow::Context as _;

pub(crate) use figures::colour;

pub(super) fn run(args: &RunArgs) -> anyhow::Result<()> {
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
    experiment::tell(&findings, &args.out, args.json)
}
