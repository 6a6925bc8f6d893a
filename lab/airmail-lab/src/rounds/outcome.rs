//! Outcome of rounds: the times of all clients, and what nodes and processes used meanwhile.

use super::crowd::{Got, Round};
use crate::hold::Throttled;
use std::fmt;

/// Findings of rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Rounds that were published; fewer than planned if it was stopped.
    pub(crate) rounds: u32,
    /// Clients, each with a subscription on a stream of its own.
    pub(crate) clients: u32,
    /// Processes that the clients were spread over.
    pub(crate) processes: u32,
    /// Messages that clients got.
    pub(crate) got: Got,
    /// Nodes in the order in which they were given.
    pub(crate) nodes: Vec<NodeUse>,
    /// Processor time of the publishers' processes, in microseconds.
    pub(crate) publishers_cpu_us: u64,
    /// Duration of the rounds, in seconds.
    pub(crate) seconds: f64,
}

/// Use of its machine by a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeUse {
    /// Clients at it, each with a stream.
    pub(crate) clients: u32,
    /// Connections that these share; as many, or fewer.
    pub(crate) connections: u32,
    /// Processor time in the rounds, in microseconds.
    pub(crate) cpu_us: u64,
    /// The same as a share of one core.
    pub(crate) cpu_share: f64,
    /// Share of one core while clients connected and subscribed, when it never rests: shows whether it is held.
    pub(crate) connecting_cpu_share: f64,
    /// Number of times that it was stopped in the rounds for having had its share.
    pub(crate) throttled: Option<Throttled>,
    /// Memory at the end.
    pub(crate) rss_bytes: u64,
    /// Limits that were set on it, and those that could not be.
    pub(crate) means: Vec<String>,
}

impl Outcome {
    /// Whether every client got every message, once and in order, however late.
    pub(crate) fn is_sound(&self) -> bool {
        let incomplete = self.got.rounds.iter().any(|round| round.incomplete > 0);
        self.got.wrong == 0 && self.got.error.is_none() && !incomplete
    }

    /// Processor time of a node for each round, in milliseconds.
    pub(crate) fn work_ms(&self, node: &NodeUse) -> f64 {
        node.cpu_us as f64 / 1e3 / f64::from(self.rounds.max(1))
    }

    /// Cores that clients' processes had together.
    pub(crate) fn crowd_cores(&self) -> f64 {
        self.cores(self.got.cpu_us)
    }

    /// Cores that publishers' processes had together.
    pub(crate) fn publishers_cores(&self) -> f64 {
        self.cores(self.publishers_cpu_us)
    }

    fn cores(&self, cpu_us: u64) -> f64 {
        cpu_us as f64 / 1e6 / self.seconds.max(1e-6)
    }

    /// Part of the nodes' periods in which they were stopped; `None` where nothing stops them.
    pub(crate) fn stopped_share(&self) -> Option<f64> {
        Throttled::share(self.nodes.iter().filter_map(|node| node.throttled))
    }

    /// Connections of all clients.
    pub(crate) fn connections(&self) -> u32 {
        self.nodes.iter().map(|node| node.connections).sum()
    }

    /// Deliveries of messages that each client had in each round, on average.
    pub(crate) fn deliveries(&self) -> f64 {
        let rounds = u64::from(self.clients) * u64::from(self.rounds);
        self.got.deliveries as f64 / rounds.max(1) as f64
    }

    /// All rounds as one.
    pub(crate) fn all(&self) -> Round {
        let mut all = Round::default();
        for round in &self.got.rounds {
            all.add(round);
        }
        all
    }

    /// Tells what was lost or wrong, behind what is told of it otherwise.
    ///
    /// # Errors
    /// Nobody takes the text.
    pub(crate) fn tell_faults(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_sound() {
            return Ok(());
        }
        let (incomplete, Got { wrong, error, .. }) = (self.all().incomplete, &self.got);
        write!(f, "; {incomplete} incomplete, {wrong} wrong {error:?}")
    }
}

/// Shows it to a user who waits for the end.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, clients, rounds) = (self.all(), self.clients, self.rounds);
        let (mean, p99) = (all.mean_ms(), all.p99_ms());
        let rate = all.timeout_rate() * 100.0;
        write!(
            f,
            "{clients} clients, {rounds} rounds: mean {mean:.1} ms, p99 {p99:.1} ms, timed out {rate:.3} %"
        )
    }
}

impl Round {
    /// Mean of those that completed it, in milliseconds.
    pub(crate) fn mean_ms(&self) -> f64 {
        self.sum_us as f64 / self.took.count().max(1) as f64 / 1e3
    }

    /// Time within which 99 of 100 completed it, in milliseconds.
    pub(crate) fn p99_ms(&self) -> f64 {
        self.took.percentiles().p99 as f64 / 1e3
    }

    /// Clients for which it took too long, or for ever.
    pub(crate) fn timeouts(&self) -> u64 {
        self.late + self.incomplete
    }

    /// The same as a part of all clients.
    pub(crate) fn timeout_rate(&self) -> f64 {
        let clients = self.took.count() + self.incomplete;
        self.timeouts() as f64 / clients.max(1) as f64
    }
}
