//! The policies by name.

use std::fmt;

/// Policies by which a dispatcher chooses a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The next one in turn; each dispatcher has a turn of its own.
    RoundRobin,
    /// Any.
    Random,
    /// Join shortest queue, asking all of them for each job.
    ShortestQueue,
    /// Join shortest queue by what all of them answered when last asked, and the own jobs since.
    ShortestQueueStale {
        /// Interval at which each dispatcher asks, in mean service times.
        update_period: f64,
    },
    /// JSQ(d): the shortest of `d` random ones, asked for each job.
    ShortestOf {
        /// Number of queues that are asked.
        d: usize,
    },
    /// Join idle queue, as the paper has it: a queue that becomes idle tells every dispatcher, and
    /// jobs wait at the dispatcher until one does.
    IdleQueue,
    /// Join idle queue with a random choice where no idle one is known, and a queue that becomes
    /// idle tells one random dispatcher. So no job waits for a message.
    IdleQueueOrRandom,
}

impl Policy {
    /// The policies that are compared.
    #[must_use]
    pub fn table() -> Vec<Policy> {
        let stale = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];
        let stale = stale.map(|update_period| Policy::ShortestQueueStale { update_period });
        let mut all = vec![Policy::Random, Policy::RoundRobin, Policy::ShortestQueue];
        all.extend(stale);
        all.extend([2, 3].map(|d| Policy::ShortestOf { d }));
        all.extend([Policy::IdleQueue, Policy::IdleQueueOrRandom]);
        all
    }

    /// Its name without its numbers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Policy::RoundRobin => "round-robin",
            Policy::Random => "random",
            Policy::ShortestQueue => "jsq",
            Policy::ShortestQueueStale { .. } => "jsq-stale",
            Policy::ShortestOf { .. } => "jsq-d",
            Policy::IdleQueue => "jiq",
            Policy::IdleQueueOrRandom => "jiq-or-random",
        }
    }

    /// Interval at which its dispatchers ask, in mean service times, if they do so by the clock.
    #[must_use]
    pub fn update_period(self) -> Option<f64> {
        match self {
            Policy::ShortestQueueStale { update_period } => Some(update_period),
            _ => None,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::ShortestQueueStale { update_period } => {
                f.pad(&format!("jsq, asked every {update_period}"))
            }
            Policy::ShortestOf { d } => f.pad(&format!("jsq({d})")),
            policy => f.pad(policy.name()),
        }
    }
}
