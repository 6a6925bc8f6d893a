//! `airmail-sim`: runs seeds until one breaks a guarantee, and says how to see it again.

#![forbid(unsafe_code)]

use airmail_sim::{Plant, Run, Stage};
use clap::Parser;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Drives Airmail's cores through simulated faults and holds them to their guarantees.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds to run. Default: 200, or 1 if --seed says which.
    #[arg(long)]
    seeds: Option<u64>,
    /// The first seed. Default: 0.
    #[arg(long)]
    seed: Option<u64>,
    /// Steps with faults in each run.
    #[arg(long, default_value_t = 1_500)]
    steps: u64,
    /// What is simulated. Default: both, in turn.
    #[arg(long)]
    stage: Option<Stage>,
    /// Plants a bug, which is then to be found.
    #[arg(long)]
    plant: Option<Plant>,
    /// Shows everything that happens.
    #[arg(long)]
    trace: bool,
    /// Goes on after a failure, and tells all of them.
    #[arg(long)]
    all: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let first = arguments.seed.unwrap_or(0);
    let default = if arguments.seed.is_some() { 1 } else { 200 };
    let count = arguments.seeds.unwrap_or(default);
    let stages = arguments
        .stage
        .map_or(vec![Stage::Storage, Stage::World], |stage| vec![stage]);
    let mut failed = 0_u64;
    for seed in first..first.saturating_add(count) {
        for stage in &stages {
            let run = Run {
                stage: *stage,
                seed,
                steps: arguments.steps,
                plant: arguments.plant,
                show: arguments.trace,
            };
            let Some(line) = failure(run) else { continue };
            tell(&line);
            failed += 1;
            if !arguments.all {
                return ExitCode::FAILURE;
            }
        }
    }
    tell(&format!("{count} seeds, {failed} failures"));
    ExitCode::from(u8::from(failed > 0))
}

/// Runs it; what to say if it fails, be it by a violation or by a panic of a core.
fn failure(run: Run) -> Option<String> {
    let what = match catch_unwind(AssertUnwindSafe(|| run.go())) {
        Ok(Ok(_)) => return None,
        Ok(Err(violation)) => violation.to_string(),
        Err(_) => "a core panicked".to_owned(),
    };
    Some(format!(
        "seed {} failed\n  {what}\n  replay: {}",
        run.seed,
        run.command()
    ))
}

fn tell(line: &str) {
    // Nobody may be listening; the exit code says it too.
    let _ = writeln!(std::io::stdout(), "{line}");
}
