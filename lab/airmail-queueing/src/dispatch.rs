//! Dispatch policies (Kafka thesis, chapter 5): the queue that a job goes to, its wait, and the
//! messages that dispatchers and queues exchange for it.
//!
//! Queues are alike: exponential times with mean 1, first come first served. Jobs are a Poisson
//! stream, each at a random dispatcher. So times are in mean service times, and the arrival rate of
//! each queue is the load. A message costs nothing but is counted: a question and its answer are
//! two.

mod cluster;
mod policy;
pub mod theory;

use cluster::Cluster;
pub use policy::Policy;

/// The system that is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// The policy that chooses a queue.
    pub policy: Policy,
    /// Queues, each with one server.
    pub queues: usize,
    /// Dispatchers, each with its share of the jobs and its own knowledge.
    pub dispatchers: usize,
    /// Jobs for each queue in the time in which it can serve one; below 1.
    pub load: f64,
}

/// Waiting times of one run or several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waits {
    /// The mean time from a job's arrival at a dispatcher until it is being served.
    pub mean: f64,
    /// The time that 99 % wait at most.
    pub p99: f64,
    /// Messages between dispatchers and queues for each job.
    pub messages_per_job: f64,
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The system that was simulated.
    pub setting: Setting,
    /// The means over the seeds.
    pub waits: Waits,
    /// The standard error of the mean wait; 0 for one seed.
    pub error: f64,
    /// The mean wait by theory, with the theory's name.
    pub theory: Option<(&'static str, f64)>,
}

/// Extent of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Runs of each setting. Default: 20.
    pub seeds: u64,
    /// Jobs of a run, after a fifth as many that are not counted. Default: 100,000.
    pub jobs: usize,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            seeds: 20,
            jobs: 100_000,
        }
    }
}

/// Queues in the table.
pub const QUEUES: usize = 10;
/// Dispatchers in the table.
pub const DISPATCHERS: [usize; 2] = [1, 10];
/// Loads in the table.
pub const LOADS: [f64; 6] = [0.3, 0.5, 0.7, 0.8, 0.9, 0.95];

/// The table's settings, in its order.
#[must_use]
pub fn settings() -> Vec<Setting> {
    let mut settings = Vec::new();
    for load in LOADS {
        for dispatchers in DISPATCHERS {
            settings.extend(Policy::table().into_iter().map(|policy| Setting {
                policy,
                queues: QUEUES,
                dispatchers,
                load,
            }));
        }
    }
    settings
}

/// One run.
#[must_use]
pub fn run(setting: Setting, jobs: usize, seed: u64) -> Waits {
    Cluster::new(setting, seed).run(jobs)
}

/// Simulates a setting with every seed.
#[must_use]
pub fn measure(setting: Setting, plan: &Plan) -> Row {
    let seeds = plan.seeds.max(1);
    let all: Vec<Waits> = (0..seeds)
        .map(|seed| run(setting, plan.jobs, seed))
        .collect();
    let count = all.len() as f64;
    let mean = |of: fn(&Waits) -> f64| all.iter().map(of).sum::<f64>() / count;
    let waits = Waits {
        mean: mean(|waits| waits.mean),
        p99: mean(|waits| waits.p99),
        messages_per_job: mean(|waits| waits.messages_per_job),
    };
    let squares: f64 = all.iter().map(|run| (run.mean - waits.mean).powi(2)).sum();
    let error = if seeds > 1 {
        (squares / (count - 1.0) / count).sqrt()
    } else {
        0.0
    };
    Row {
        setting,
        waits,
        error,
        theory: theory::mean_wait(&setting),
    }
}
