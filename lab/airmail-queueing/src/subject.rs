//! The subjects of the limiters' table: systems of servers and models of a node, run in the same way.

use crate::closed_loop;
use crate::course::{Course, Phase};
use crate::node::{self, BATCH_MESSAGES, Limiters, NODES, NodeModel};
use crate::system::{SYSTEMS, System};
use airmail_flow::GateSettings;

/// N for systems of servers.
const PIPE_WINDOW: u64 = 4_000;
/// N for nodes, of all clients together: 30 ms of messages at the largest throughput.
const NODE_WINDOW: u64 = 100_000;

/// A system that a limiter is put in front of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Subject {
    /// Servers, each message alone, no noise but that of the service times.
    Servers(System),
    /// A node that commits in groups, with batches, clients and noise.
    Node(NodeModel),
}

impl Subject {
    /// All of them, in the order of the tables.
    #[must_use]
    pub fn all() -> Vec<Subject> {
        let systems = SYSTEMS.into_iter().map(Subject::Servers);
        systems
            .chain(NODES.into_iter().map(Subject::Node))
            .collect()
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Subject::Servers(system) => system.name,
            Subject::Node(model) => model.name,
        }
    }

    /// The kind of system that it models.
    #[must_use]
    pub fn stands_for(&self) -> &'static str {
        match self {
            Subject::Servers(system) => system.stands_for,
            Subject::Node(model) => model.stands_for,
        }
    }

    /// N: messages of a window.
    #[must_use]
    pub fn window_messages(&self) -> u64 {
        match self {
            Subject::Servers(_) => PIPE_WINDOW,
            Subject::Node(_) => NODE_WINDOW,
        }
    }

    /// Time of a window at the largest throughput that any bound has, in nanoseconds.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        let capacity_per_s = match self {
            Subject::Servers(system) => system.capacity_per_s(),
            Subject::Node(model) => 1.0 / model.storage.message_s(),
        };
        (self.window_messages() as f64 * 1e9 / capacity_per_s) as u64
    }

    /// The bound with which limiters begin, in messages: for the node's gate a batch,
    /// because none is finer.
    #[must_use]
    pub fn bound_initial(&self) -> u64 {
        match self {
            Subject::Servers(_) => 50,
            Subject::Node(model) if model.limiters == Limiters::Publishers => 200,
            Subject::Node(_) => BATCH_MESSAGES,
        }
    }

    /// The least bound of a sweep, and of the limiters that go no lower than a batch.
    #[must_use]
    pub fn bound_least(&self) -> u64 {
        match self {
            Subject::Node(model) if model.limiters != Limiters::Publishers => BATCH_MESSAGES,
            _ => 1,
        }
    }

    /// Runs it with limiters of these settings through the phases.
    #[must_use]
    pub fn run(&self, settings: GateSettings, phases: &[Phase], seed: u64) -> Course {
        match self {
            Subject::Servers(system) => closed_loop::run(system, settings, phases, seed),
            Subject::Node(model) => node::run(model, settings, phases, seed),
        }
    }
}
