//! `airmail-lab limiters --like`: what the model of a node predicts from the two ends of each sweep of a run of
//! `airmail-lab flow`, beside everything else that the run measured.
//!
//! The model begins without a cost that is its own: what it knows of a setup is the number of its publishers and
//! the place of its limiters, and all else is of the ends ([`airmail_queueing::fit`]).

mod comparison;
mod report;
mod setup;

use super::super::{RunArgs, all, progress};
use crate::experiment;
use crate::flow::Written;
use crate::narration::say;
use anyhow::bail;
use comparison::Comparison;
use setup::Compared;
use std::path::Path;
use std::process::ExitCode;

/// Reads what a run has written, prints and writes what is predicted beside it. 1 if it is judged and anything
/// is farther off than it may be.
pub(super) fn run(directory: &Path, args: &RunArgs, judge: bool) -> anyhow::Result<ExitCode> {
    let written = Written::read(directory)?;
    if written.sweeps.is_empty() {
        bail!(
            "{} has no sweep of a storage in memory or on a disk",
            directory.display()
        );
    }
    let limiters = written.sweeps.iter();
    let limiters = limiters.map(|(setup, _)| written.limiters(*setup).count() as u64);
    let bar = progress(limiters.map(|limiters| 1 + limiters * args.seeds).sum());
    let compared = all(&written.sweeps, |(setup, sweep)| {
        let limiters = written.limiters(*setup).copied().collect::<Vec<_>>();
        Compared::new(*setup, sweep, &limiters, args.seeds, &|| bar.inc(1))
    });
    bar.finish_and_clear();
    let compared: Vec<Compared> = compared.into_iter().collect::<anyhow::Result<_>>()?;
    experiment::tell(
        &report::findings(&compared, args.seeds),
        &args.out,
        args.json,
    )?;
    let missed: Vec<&Comparison> = compared
        .iter()
        .flat_map(|compared| &compared.comparisons)
        .filter(|comparison| !comparison.is_within())
        .collect();
    for comparison in &missed {
        say(&comparison.to_string());
    }
    Ok(ExitCode::from(u8::from(judge && !missed.is_empty())))
}
