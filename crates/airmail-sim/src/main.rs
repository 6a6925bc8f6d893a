//! `airmail-sim`: runs seeds until one breaks a guarantee, and prints the command that repeats it.
//!
//! Seeds run side by side, one thread each; output is in the order of seeds, so that it does not
//! depend on the number of threads.

#![forbid(unsafe_code)]

use airmail_sim::census::Place;
use airmail_sim::{Census, Plant, Run, Stage};
use clap::Parser;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// Drives Airmail's cores through simulated faults and holds them to their guarantees.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of seeds to run. Default: 200, or 1 if --seed says which.
    #[arg(long)]
    seeds: Option<u64>,
    /// The first seed. Default: 0.
    #[arg(long)]
    seed: Option<u64>,
    /// Steps with faults in each run.
    #[arg(long, default_value_t = 1_500)]
    steps: u64,
    /// The part to simulate. Default: all, in turn.
    #[arg(long)]
    stage: Option<Stage>,
    /// Plants a bug, which is then to be found.
    #[arg(long)]
    plant: Option<Plant>,
    /// Seeds that run at once. Default: the cores that there are; 1 with --trace.
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// Shows everything that happens.
    #[arg(long)]
    trace: bool,
    /// Goes on after a failure, and tells all of them.
    #[arg(long)]
    all: bool,
    /// Leaves out, at the end, how often each kind of event happened.
    #[arg(long)]
    quiet: bool,
}

impl Arguments {
    fn first(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    fn count(&self) -> u64 {
        let default = if self.seed.is_some() { 1 } else { 200 };
        self.seeds.unwrap_or(default)
    }

    fn stages(&self) -> Vec<Stage> {
        let all = vec![Stage::Storage, Stage::World, Stage::Cluster, Stage::Kafka];
        self.stage.map_or(all, |stage| vec![stage])
    }

    fn threads(&self) -> usize {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let default = if self.trace { 1 } else { cores };
        self.jobs.map_or(default, NonZeroUsize::get)
    }
}

/// Outcomes that each thread may be ahead of what has been told.
const OUTCOMES_AHEAD: usize = 16;

/// Outcome of one seed, in each stage.
struct Outcome {
    census: Census,
    failures: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // So the cores check their invariants after each step, in a release build as well.
    airmail_model::bug::set_panics(true);
    let mut census = Census::default();
    let (run, failed) = run_all(&arguments, |outcome| {
        outcome.failures.iter().for_each(|line| tell(line));
        census.merge(&outcome.census);
    });
    if !arguments.quiet && !arguments.trace {
        tell(&census.to_string());
        holes(&arguments, &census);
    }
    let count = arguments.count();
    tell(&if run < count {
        format!("{run} of {count} seeds, {failed} failures; --all runs the others, too")
    } else {
        format!("{count} seeds, {failed} failures")
    });
    ExitCode::from(u8::from(failed > 0))
}

/// Runs every seed, to the first that fails unless all are wanted, and gives what became of each in their
/// order. Gives how many were run, and how many failures there were.
fn run_all(arguments: &Arguments, mut take: impl FnMut(&Outcome)) -> (u64, u64) {
    let (first, count) = (arguments.first(), arguments.count());
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (mut due, mut failed) = (0, 0);
    thread::scope(|scope| {
        let (done, outcomes) = mpsc::sync_channel(arguments.threads() * OUTCOMES_AHEAD);
        for _ in 0..arguments.threads() {
            let (done, next, stop) = (done.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count
                        || done
                            .send((index, run_one(arguments, first + index)))
                            .is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut waiting = BTreeMap::new();
        for (index, outcome) in outcomes {
            waiting.insert(index, outcome);
            while let Some(outcome) = waiting.remove(&due) {
                due += 1;
                take(&outcome);
                failed += outcome.failures.len() as u64;
                if failed > 0 && !arguments.all {
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
    });
    (due, failed)
}

fn run_one(arguments: &Arguments, seed: u64) -> Outcome {
    let mut outcome = Outcome {
        census: Census::default(),
        failures: Vec::new(),
    };
    for stage in arguments.stages() {
        let run = Run {
            stage,
            seed,
            steps: arguments.steps,
            plant: arguments.plant,
            show: arguments.trace,
        };
        // A panic of a core is a failure as any other.
        let what = match catch_unwind(AssertUnwindSafe(|| run.go())) {
            Ok(Ok(report)) => {
                outcome.census.merge(&report.census);
                continue;
            }
            Ok(Err(violation)) => violation.to_string(),
            Err(_) => "a core panicked".to_owned(),
        };
        let replay = run.command();
        let line = format!("seed {seed} failed\n  {what}\n  replay: {replay}");
        outcome.failures.push(line);
    }
    outcome
}

/// Says what these seeds have not met at all.
fn holes(arguments: &Arguments, census: &Census) {
    for stage in arguments.stages() {
        let place = match stage {
            Stage::Storage => Place::Storage,
            Stage::World => Place::World,
            Stage::Cluster => Place::Cluster,
            Stage::Kafka => Place::Kafka,
        };
        for kind in census.holes(place) {
            tell(&format!("never happened: {} ({stage:?})", kind.text()));
        }
    }
}

fn tell(line: &str) {
    // Nobody may be listening; the exit code says it too.
    let _ = writeln!(std::io::stdout(), "{line}");
}
