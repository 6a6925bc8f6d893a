//! The systems on which limiters are run: their servers, their speed, and their distance.

use crate::service::Service;

/// A system under a limiter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct System {
    /// Its name in tables.
    pub name: &'static str,
    /// The kind of system that it models.
    pub stands_for: &'static str,
    /// The servers.
    pub servers: Servers,
    /// Distribution of the service times.
    pub service: Service,
    /// Time that each message takes on the way, beside being served, in microseconds.
    pub round_trip_us: u32,
    /// The way in which it loses half its capacity.
    pub halving: Halving,
}

impl System {
    /// Throughput that no bound exceeds, in messages a second.
    #[must_use]
    pub fn capacity_per_s(&self) -> f64 {
        match self.servers {
            Servers::Queue { count, mean_us } => f64::from(count) * 1e6 / f64::from(mean_us),
            Servers::Commits { message_ns, .. } => 1e9 / f64::from(message_ns),
        }
    }
}

/// Kinds of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// Servers with one queue, first come first served.
    Queue {
        /// Number of servers that work at once (the c of M/M/c).
        count: u32,
        /// The mean service time in microseconds.
        mean_us: u32,
    },
    /// All that waits is served at once, as by a write and a sync.
    Commits {
        /// Time of each commit, in microseconds.
        commit_us: u32,
        /// Time that each message adds to it, in nanoseconds.
        message_ns: u32,
    },
}

/// Ways in which a system loses half its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halving {
    /// Everything takes twice as long.
    Speed,
    /// Half the servers are gone.
    Servers,
}

/// The systems of the table.
pub const SYSTEMS: [System; 8] = [
    System {
        name: "mm1",
        stands_for: "one server, nothing on the way (M/M/1)",
        servers: Servers::Queue {
            count: 1,
            mean_us: 100,
        },
        service: Service::Exponential,
        round_trip_us: 0,
        halving: Halving::Speed,
    },
    System {
        name: "mm16",
        stands_for: "16 servers, of which 8 go and return (M/M/16)",
        servers: Servers::Queue {
            count: 16,
            mean_us: 1600,
        },
        service: Service::Exponential,
        round_trip_us: 0,
        halving: Halving::Servers,
    },
    System {
        name: "mm1-far",
        stands_for: "one server behind a network (M/M/1)",
        servers: Servers::Queue {
            count: 1,
            mean_us: 100,
        },
        service: Service::Exponential,
        round_trip_us: 5_000,
        halving: Halving::Speed,
    },
    System {
        name: "md1-far",
        stands_for: "the same with constant times, so that the knee is sharp (M/D/1)",
        servers: Servers::Queue {
            count: 1,
            mean_us: 100,
        },
        service: Service::Constant,
        round_trip_us: 5_000,
        halving: Halving::Speed,
    },
    System {
        name: "mm4-far",
        stands_for: "four shards behind a network (M/M/4)",
        servers: Servers::Queue {
            count: 4,
            mean_us: 100,
        },
        service: Service::Exponential,
        round_trip_us: 5_000,
        halving: Halving::Servers,
    },
    System {
        name: "heavy-tail",
        stands_for: "eight servers, Pareto times (exponent 1.5, longest 100 times the shortest)",
        servers: Servers::Queue {
            count: 8,
            mean_us: 400,
        },
        service: Service::Pareto {
            shape: 1.5,
            span: 100.0,
        },
        round_trip_us: 2_000,
        halving: Halving::Speed,
    },
    System {
        name: "payloads",
        stands_for: "two servers, every tenth payload takes 20 times longer",
        servers: Servers::Queue {
            count: 2,
            mean_us: 200,
        },
        service: Service::Payloads {
            large_share: 0.1,
            large: 20.0,
        },
        round_trip_us: 4_000,
        halving: Halving::Speed,
    },
    System {
        name: "commits",
        stands_for: "a disk with group commit: 2 ms a sync, and 10 µs a message",
        servers: Servers::Commits {
            commit_us: 2_000,
            message_ns: 10_000,
        },
        service: Service::Constant,
        round_trip_us: 500,
        halving: Halving::Speed,
    },
];
