//! One call, as it is recorded.

use serde::{Deserialize, Serialize};

/// Kinds of requests. Their numbers stand in files: they are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Whether the node answers.
    Ping,
    /// Send one message (the paper's insert_message).
    Send,
    /// Read the oldest for me (read_message, getMessage).
    Read,
    /// Read a broadcast (read_message_broadcast).
    ReadBroadcast,
    /// Find a message from a sender (query_message).
    Find,
    /// List the queues that have something for me (get_queues).
    Queues,
}

impl Kind {
    /// All of them, by number.
    pub const ALL: [Kind; 6] = [
        Kind::Ping,
        Kind::Send,
        Kind::Read,
        Kind::ReadBroadcast,
        Kind::Find,
        Kind::Queues,
    ];

    /// Its number in files.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind of a number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number)).copied()
    }

    /// Name of the kind in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ping => "ping",
            Kind::Send => "send",
            Kind::Read => "read",
            Kind::ReadBroadcast => "read broadcast",
            Kind::Find => "find",
            Kind::Queues => "queues",
        }
    }
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request was done.
    Done,
    /// There was nothing, which is no failure.
    Nothing,
    /// It failed.
    Failed,
}

impl Outcome {
    /// Its number in files.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The outcome of a number.
    #[must_use]
    pub fn from_number(number: u8) -> Outcome {
        match number {
            0 => Outcome::Done,
            1 => Outcome::Nothing,
            _ => Outcome::Failed,
        }
    }
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The client that made it.
    pub client: u32,
    /// The kind of request.
    pub kind: Kind,
    /// When it was answered, by [`airmail_bench::clock`].
    pub ended_us: u64,
    /// Time that it took.
    pub took_us: u64,
    /// Its outcome.
    pub outcome: Outcome,
    /// Messages sent or received.
    pub messages: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_kinds_belong_together() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(kind.number()), Some(kind));
        }
        assert_eq!(Kind::from_number(Kind::ALL.len() as u8), None);
        for outcome in [Outcome::Done, Outcome::Nothing, Outcome::Failed] {
            assert_eq!(Outcome::from_number(outcome.number()), outcome);
        }
    }
}
