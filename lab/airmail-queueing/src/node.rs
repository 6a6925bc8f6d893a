//! A node under load, as far as a limiter meets it: group commits, batches, and clients that take time.
//!
//! The storage works on one *group* at a time: everything that was there when it began. A group costs a
//! fixed time, and a little for each batch and each message of it, so under a bound b throughput is
//! b/(c + mb), a hyperbola. Clients make messages one after another and send them in batches; what comes
//! back from one group is therefore spread when it arrives again, and once that takes longer than the
//! storage waits for a group to gather, there are two groups, each waiting for the other's commit.
//!
//! Limiters stand in the node or in its clients ([`Limiters`]). What may not go yet waits in the node's
//! line, or is not made at all.

mod agenda;
mod client;
mod noise;
mod run;
mod storage;

pub use noise::Noise;
pub use run::run;

/// Messages of a batch at most: 64 KiB of messages of 100 bytes.
pub const BATCH_MESSAGES: u64 = 545;

/// A model of a node with its clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeModel {
    /// Its name in tables.
    pub name: &'static str,
    /// The case that it models.
    pub stands_for: &'static str,
    /// The storage.
    pub storage: Storing,
    /// Number of clients.
    pub clients: u32,
    /// A client's own time.
    pub client: ClientTimes,
    /// Place of the limiters.
    pub limiters: Limiters,
    /// The noise of the machine.
    pub noise: Noise,
}

/// The time that a storage takes. At half the capacity all of it is twice as long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Storing {
    /// Time of each group, c, in microseconds; with the time in which it gathers.
    pub group_us: f64,
    /// Time of each batch of a group, in microseconds.
    pub batch_us: f64,
    /// Time of each message of a group, in nanoseconds; with the share of a full batch it is m.
    pub message_ns: f64,
    /// Time in which a group gathers before it begins, in microseconds.
    pub gather_us: f64,
}

impl Storing {
    /// A disk, as publishers meet it: a write and a sync for each group, and the way of its batches from a
    /// socket to the disk's thread and of the answer back.
    pub const DISK: Storing = Storing {
        group_us: 350.0,
        batch_us: 5.0,
        message_ns: 291.0,
        gather_us: 30.0,
    };
    /// The same, as the pilot meets it: the next group's batches are in its line already.
    pub const DISK_BEHIND_LINE: Storing = Storing {
        group_us: 200.0,
        ..Storing::DISK
    };
    /// Memory: a turn of the node, from socket to socket, for each group.
    pub const MEMORY: Storing = Storing {
        group_us: 130.0,
        ..Storing::DISK
    };

    /// m: the time of a message in full batches, in seconds.
    #[must_use]
    pub fn message_s(&self) -> f64 {
        self.message_ns / 1e9 + self.batch_us / 1e6 / BATCH_MESSAGES as f64
    }

    /// c: the time of a group, in seconds.
    #[must_use]
    pub fn group_s(&self) -> f64 {
        self.group_us / 1e6
    }
}

/// The time that a client takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientTimes {
    /// The mean time to make a message, in nanoseconds.
    pub message_ns: f64,
    /// The mean time until it sees an acknowledgement that has come, in microseconds.
    pub wake_us: f64,
}

impl ClientTimes {
    /// Times on the processors of the node.
    pub const NEAR: ClientTimes = ClientTimes {
        message_ns: 130.0,
        wake_us: 5.0,
    };
}

/// Places of limiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiters {
    /// One in the node, for all its clients. Each client keeps so many full batches between making them and
    /// having their acknowledgements.
    Pilot {
        /// Batches that a client keeps.
        held_batches: u32,
        /// Whether the storage answers within the turn in which it is asked: W is 0 then, and no bound holds
        /// anything back.
        in_turn: bool,
    },
    /// One in each client, which always has more to send.
    Publishers,
}

/// Batches that a client with 2 MiB for its messages keeps. A message of 100 bytes takes about 240 there, for
/// by Little's law the measured time to delivery is that of half as many as 2 MiB would hold.
pub const HELD_BATCHES: u32 = 16;

const fn pilot(
    name: &'static str,
    stands_for: &'static str,
    storage: Storing,
    in_turn: bool,
) -> NodeModel {
    NodeModel {
        name,
        stands_for,
        storage,
        clients: 2,
        client: ClientTimes::NEAR,
        limiters: Limiters::Pilot {
            held_batches: HELD_BATCHES,
            in_turn,
        },
        noise: Noise::MEASURED,
    }
}

const fn publishers(
    name: &'static str,
    stands_for: &'static str,
    storage: Storing,
    clients: u32,
) -> NodeModel {
    NodeModel {
        name,
        stands_for,
        storage,
        clients,
        client: ClientTimes::NEAR,
        limiters: Limiters::Publishers,
        noise: Noise::MEASURED,
    }
}

/// The nodes of the table.
pub const NODES: [NodeModel; 7] = [
    pilot(
        "node-disk",
        "the pilot of a node on a disk: 200 µs a commit, 0.3 µs a message; two clients of 2 MiB",
        Storing::DISK_BEHIND_LINE,
        false,
    ),
    pilot(
        "node-memory",
        "the pilot of a node in memory, whose storage answers within the turn: W is 0",
        Storing::MEMORY,
        true,
    ),
    publishers(
        "disk-alone",
        "one publisher with a limiter of its own, and a node on a disk: 350 µs a commit",
        Storing::DISK,
        1,
    ),
    publishers(
        "disk-two",
        "two publishers that compete for a node on a disk",
        Storing::DISK,
        2,
    ),
    publishers(
        "disk-eight",
        "eight publishers that compete for a node on a disk",
        Storing::DISK,
        8,
    ),
    publishers(
        "memory-two",
        "two publishers that compete for a node in memory: 130 µs a turn",
        Storing::MEMORY,
        2,
    ),
    publishers(
        "memory-eight",
        "eight publishers that compete for a node in memory",
        Storing::MEMORY,
        8,
    ),
];
