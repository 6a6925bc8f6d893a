//! The simulator: one thread, one seed, the real cores.
//!
//! Files, network, clock and chance are simulated; the journal, the shard and the client are the
//! ones that users run, and there is no routing of its own here. A run goes through a phase of
//! faults and a phase of healing; [`invariants`] are checked against every answer and delivery.

#![forbid(unsafe_code)]

pub mod batching;
pub mod census;
pub mod entropy;
pub mod evidence;
pub mod files;
pub mod invariants;
pub mod ledger;
pub mod lines;
pub mod message;
pub mod plant;
pub mod shape;
pub mod spells;
pub mod storage;
pub mod swarm;
pub mod trace;
pub mod tuning;
pub mod weather;
pub mod world;

pub use census::Census;
pub use invariants::Violation;
pub use plant::Plant;

/// Parts of the system that are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Stage {
    /// The journal alone.
    Storage,
    /// The whole node with clients: one shard.
    World,
    /// The whole node with clients: several shards, and links between them.
    Cluster,
    /// Several whole nodes with clients, whose logs are on Kafka: the real core over a model of brokers.
    Kafka,
}

/// Report of a run that broke nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Hash of the trace: two runs of one seed have the same.
    pub hash: u64,
    /// Census of its events.
    pub census: Census,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The simulated part.
    pub stage: Stage,
    /// Seed of everything in the run.
    pub seed: u64,
    /// Steps with faults, before healing.
    pub steps: u64,
    /// A bug to plant.
    pub plant: Option<Plant>,
    /// Writes the trace to standard output.
    pub show: bool,
}

impl Run {
    /// Runs it.
    ///
    /// # Errors
    /// The first violation of an invariant.
    pub fn go(self) -> Result<Report, Violation> {
        match self.stage {
            Stage::Storage => {
                storage::StorageRun::new(self.seed, self.plant, self.show).run(self.steps)
            }
            stage @ (Stage::World | Stage::Cluster | Stage::Kafka) => {
                world::World::new(stage, self.seed, self.plant, self.show).run(self.steps)
            }
        }
    }

    /// The command that repeats it.
    #[must_use]
    pub fn command(self) -> String {
        let stage = match self.stage {
            Stage::Storage => "storage",
            Stage::World => "world",
            Stage::Cluster => "cluster",
            Stage::Kafka => "kafka",
        };
        let plant = self.plant.map(|plant| format!(" --plant {plant}"));
        format!(
            "cargo run -p airmail-sim -- --stage {stage} --seed {} --steps {}{} --trace",
            self.seed,
            self.steps,
            plant.unwrap_or_default()
        )
    }
}
