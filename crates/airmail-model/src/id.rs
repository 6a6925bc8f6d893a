//! Typed ids, which cannot be mixed up: logs, sequence numbers, producers, namespaces.
//!
//! Each is a newtype over an integer, in the width that the batch format gives it. Arithmetic is
//! offered only where it has a meaning (a sequence number has a successor; a namespace id has not).

use crate::error::{Error, ErrorCode};
use std::fmt;
use std::str::FromStr;

macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

newtype!(
    /// A namespace, by the number it was given when created. Never reused; 0 is the system's own.
    NamespaceId(u32)
);
newtype!(
    /// Index of a log within a namespace and lane. Never reused within a namespace: a new map epoch
    /// with more logs takes new indices.
    LogIndex(u16)
);
newtype!(
    /// Version of a namespace's map from topics to logs. The first is 1.
    MapEpoch(u32)
);
newtype!(
    /// A record's place in its log. Strictly increasing, not dense; the first possible is 1.
    Sequence(u64)
);
newtype!(
    /// One life of a log. A `memory` log has a new one each time it is opened, so that a position
    /// from an earlier life is recognised. Durable logs keep theirs for ever.
    Incarnation(u64)
);
newtype!(
    /// A publishing client, as chosen by itself at random. 0 means none: not de-duplicated.
    ProducerId(u64)
);
newtype!(
    /// One life of a producer. A higher one fences every lower one of the same id.
    ProducerEpoch(u32)
);
newtype!(
    /// A producer's own count of its messages in one log, from 0, without holes (G3).
    ProducerSequence(u64)
);
newtype!(
    /// A role: one or more who may receive what is addressed to it.
    RoleId(u32)
);
newtype!(
    /// A node, by the number that was chosen at random when its data directory was made. In files and for
    /// people it is written in 16 hexadecimal digits.
    NodeId(u64)
);

impl fmt::LowerHex for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

newtype!(
    /// A replica group: nodes that agree on the contents of logs.
    GroupId(u32)
);
newtype!(
    /// One reign of a leader in a group. It only grows; 0 is before the first.
    Term(u64)
);
newtype!(
    /// XXH3-128 of a topic's name, seeded with its namespace's id.
    TopicHash(u128)
);

impl Sequence {
    /// The first number that any log can give.
    pub const FIRST: Sequence = Sequence(1);
    /// Above every number.
    pub const MAX: Sequence = Sequence(u64::MAX);

    /// The number `n` places further on; stops at [`Sequence::MAX`].
    #[must_use]
    pub const fn plus(self, n: u64) -> Sequence {
        Sequence(self.0.saturating_add(n))
    }

    /// The number before this one; stops at 0, which is before every number.
    #[must_use]
    pub const fn before(self) -> Sequence {
        Sequence(self.0.saturating_sub(1))
    }
}

/// A closed range of sequence numbers, owned by one batch or covered by one gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The first number covered.
    pub first: Sequence,
    /// The last number covered; never less than `first`.
    pub last: Sequence,
}

impl Extent {
    /// The extent of `numbers` numbers from `first` on. `numbers` must be at least 1.
    #[must_use]
    pub const fn starting_at(first: Sequence, numbers: u32) -> Extent {
        Extent {
            first,
            last: Sequence(first.0 + numbers as u64 - 1),
        }
    }

    /// Number of sequence numbers that it covers.
    #[must_use]
    pub const fn numbers(self) -> u64 {
        self.last.0 - self.first.0 + 1
    }

    /// The first number after it.
    #[must_use]
    pub const fn next(self) -> Sequence {
        self.last.plus(1)
    }

    /// Whether `sequence` lies in it.
    #[must_use]
    pub const fn contains(self, sequence: Sequence) -> bool {
        self.first.0 <= sequence.0 && sequence.0 <= self.last.0
    }
}

/// Priority class. Each lane of a namespace has logs of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lane {
    /// The lane of everything that asks for nothing else.
    #[default]
    Normal = 0,
    /// Overtakes [`Lane::Normal`] wherever messages wait. Order holds within a topic and lane.
    High = 1,
}

impl Lane {
    /// Every lane, in order of number.
    pub const ALL: [Lane; 2] = [Lane::Normal, Lane::High];

    /// The one of the two that this is not.
    #[must_use]
    pub const fn other(self) -> Lane {
        match self {
            Lane::Normal => Lane::High,
            Lane::High => Lane::Normal,
        }
    }

    /// The lane of a name: `normal` or `high`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Lane> {
        Lane::ALL.into_iter().find(|lane| lane.to_string() == name)
    }

    /// The lane of a number on the wire.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Lane> {
        match value {
            0 => Some(Lane::Normal),
            1 => Some(Lane::High),
            _ => None,
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lane::Normal => "normal",
            Lane::High => "high",
        })
    }
}

impl FromStr for Lane {
    type Err = Error;

    /// Reads a lane's name, as [`Lane::of_name`] does.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for anything else.
    fn from_str(name: &str) -> Result<Lane, Error> {
        Lane::of_name(name).ok_or_else(|| {
            Error::new(ErrorCode::InvalidArgument)
                .field("lane")
                .value(name)
                .limit("normal or high")
        })
    }
}

/// One log: the unit of ordering, storage and replication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId {
    /// The namespace whose topics it carries.
    pub namespace: NamespaceId,
    /// The lane whose messages it carries.
    pub lane: Lane,
    /// Index among that namespace and lane's logs.
    pub index: LogIndex,
}

impl LogId {
    /// Log 0: namespaces, tenants and maps, as commands. Its state is the fold.
    pub const SYSTEM: LogId = LogId {
        namespace: NamespaceId(0),
        lane: Lane::Normal,
        index: LogIndex(0),
    };
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.lane, self.index)
    }
}

impl FromStr for LogId {
    type Err = &'static str;

    /// Parses the output of `Display`, such as `7/normal/0`.
    ///
    /// # Errors
    /// What would have been right.
    fn from_str(text: &str) -> Result<LogId, &'static str> {
        let parse = || {
            let mut parts = text.split('/');
            let (namespace, lane, index) = (parts.next()?, parts.next()?, parts.next()?);
            let lane = Lane::of_name(lane)?;
            parts.next().is_none().then_some(())?;
            Some(LogId {
                namespace: NamespaceId(namespace.parse().ok()?),
                lane,
                index: LogIndex(index.parse().ok()?),
            })
        };
        parse().ok_or("a log as it is shown, such as 7/normal/0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_read_as_it_is_shown_and_the_error_says_what_else_was_there() {
        for lane in Lane::ALL {
            assert_eq!(lane.to_string().parse(), Ok(lane));
        }
        for name in ["", "High", "low", "normal "] {
            let error = name.parse::<Lane>().unwrap_err();
            let facts = (error.code(), error.field_name(), error.found());
            assert_eq!(facts, (ErrorCode::InvalidArgument, "lane", name));
            assert!(
                error.to_string().contains("limit: normal or high"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_log_is_read_as_it_is_shown_and_nothing_else_is() {
        let log = LogId {
            namespace: NamespaceId(7),
            lane: Lane::High,
            index: LogIndex(3),
        };
        assert_eq!(log.to_string().parse(), Ok(log));
        for text in [
            "",
            "7",
            "7/normal",
            "7/low/0",
            "7/normal/0/0",
            "7/normal/65536",
        ] {
            assert!(text.parse::<LogId>().is_err(), "{text}");
        }
    }
}
