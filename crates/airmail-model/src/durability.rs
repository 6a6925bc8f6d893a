//! Durability: the promise of an ack, on two axes.
//!
//! How far a message is from being lost on the machine that has it, and how many machines have it so. Neither
//! axis makes up for the other: two copies in memory survive the loss of a machine and no common power cut,
//! one copy on a disk the reverse. So durabilities have no order; one *satisfies* another, or does not.

use std::fmt;
use std::str::FromStr;

/// Distance of a message from being lost, on the machine that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Synced {
    /// Lost when the process ends.
    Memory = 0,
    /// Stored in the operating system's hands: survives the process, not a power cut.
    Os = 1,
    /// Stored on the disk: survives a power cut.
    #[default]
    Fsync = 2,
}

impl Synced {
    /// All of them, from the strongest to the weakest.
    pub const ALL: [Synced; 3] = [Synced::Fsync, Synced::Os, Synced::Memory];

    /// The one of a number on the wire or on disk.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Synced> {
        match value {
            0 => Some(Synced::Memory),
            1 => Some(Synced::Os),
            2 => Some(Synced::Fsync),
            _ => None,
        }
    }
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Synced::Memory => "memory",
            Synced::Os => "os",
            Synced::Fsync => "fsync",
        })
    }
}

/// Promise that an acknowledgement makes. See the module's documentation.
///
/// ```
/// use airmail_model::Durability;
/// let two: Durability = "os:2".parse().unwrap();
/// assert!(two.satisfies(Durability::OS) && two.satisfies(Durability::MEMORY));
/// assert!(!two.satisfies(Durability::FSYNC) && !Durability::FSYNC.satisfies(two));
/// assert_eq!((two.to_string(), Durability::OS.to_string()), ("os:2".into(), "os".into()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Durability {
    /// The promise of each copy.
    pub synced: Synced,
    /// Number of nodes that hold it so, at least 1.
    pub copies: u8,
}

impl Durability {
    /// One copy, lost when the process ends.
    pub const MEMORY: Durability = Durability::single(Synced::Memory);
    /// One copy in the operating system's hands.
    pub const OS: Durability = Durability::single(Synced::Os);
    /// One copy on a disk.
    pub const FSYNC: Durability = Durability::single(Synced::Fsync);

    /// One copy.
    #[must_use]
    pub const fn single(synced: Synced) -> Durability {
        Durability { synced, copies: 1 }
    }

    /// Whether what is held so is held as `asked`: on both axes at least.
    #[must_use]
    pub const fn satisfies(self, asked: Durability) -> bool {
        self.synced as u8 >= asked.synced as u8 && self.copies >= asked.copies
    }
}

impl Default for Durability {
    fn default() -> Durability {
        Durability::FSYNC
    }
}

/// `fsync`, `os` or `memory`; with more than one copy `fsync:3`.
impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.copies {
            1 => self.synced.fmt(f),
            copies => write!(f, "{}:{copies}", self.synced),
        }
    }
}

/// Error of a text that is no durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseDurabilityError;

impl ParseDurabilityError {
    /// The texts that are durabilities.
    pub const EXPECTED: &str =
        "fsync, os or memory, with :2 to :255 behind it for more than one copy";
}

impl fmt::Display for ParseDurabilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", ParseDurabilityError::EXPECTED)
    }
}

impl std::error::Error for ParseDurabilityError {}

impl FromStr for Durability {
    type Err = ParseDurabilityError;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Durability, ParseDurabilityError> {
        let (name, copies) = match text.split_once(':') {
            Some((name, copies)) => (name, copies.parse().map_err(|_| ParseDurabilityError)?),
            None => (text, 1),
        };
        let synced = Synced::ALL.into_iter().find(|s| s.to_string() == name);
        let synced = synced.ok_or(ParseDurabilityError)?;
        match copies {
            0 => Err(ParseDurabilityError),
            copies => Ok(Durability { synced, copies }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Durability> {
        let copies = [1, 2, 255];
        let each = move |synced| copies.map(|copies| Durability { synced, copies });
        Synced::ALL.into_iter().flat_map(each)
    }

    #[test]
    fn a_durability_satisfies_what_is_less_on_neither_axis() {
        for held in all() {
            for asked in all() {
                let enough = held.synced >= asked.synced && held.copies >= asked.copies;
                assert_eq!(held.satisfies(asked), enough, "{held} for {asked}");
            }
        }
    }

    #[test]
    fn two_durabilities_that_satisfy_each_other_are_the_same() {
        for one in all() {
            for other in all() {
                let both = one.satisfies(other) && other.satisfies(one);
                assert_eq!(both, one == other, "{one} and {other}");
            }
        }
    }

    #[test]
    fn a_durability_is_read_as_written_and_nothing_else_is() {
        for durability in all() {
            assert_eq!(durability.to_string().parse(), Ok(durability));
        }
        for text in [
            "",
            "disk",
            "fsync:",
            "fsync:0",
            "fsync:256",
            "fsync:-1",
            ":2",
            "fsync:2:2",
        ] {
            assert_eq!(
                text.parse::<Durability>(),
                Err(ParseDurabilityError),
                "{text}"
            );
        }
    }
}
