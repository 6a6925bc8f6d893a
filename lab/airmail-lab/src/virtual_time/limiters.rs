//! `airmail-lab limiters`: the table of all limiters on all systems, and its figures.

mod figures;
mod table;

use super::RunArgs;
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
    let steps = subjects.iter().map(|subject| runs(subject, &plan)).sum();
    let bar = super::progress(steps);
    let reports = super::all(&subjects, |subject| {
        measure(*subject, &plan, &|| bar.inc(1))
            .with_context(|| format!("{} has no knee", subject.name()))
    });
    bar.finish_and_clear();
    let reports: Vec<Report> = reports.into_iter().collect::<anyhow::Result<_>>()?;
    table::print_rows(&reports, args)?;
    super::draw(&args.out, &figures::figures(&reports))
}
