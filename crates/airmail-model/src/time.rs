//! Time as an argument: cores never read a clock, they are given the time.

use std::fmt;
use std::time::Duration;

/// Monotone time: nanoseconds since an arbitrary start, for intervals and deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

impl Mono {
    /// Later than every deadline.
    pub const NEVER: Mono = Mono(u64::MAX);

    /// This time and `duration` more.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Mono {
        Mono(
            self.0
                .saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
        )
    }

    /// Time that has passed since `earlier`; zero if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Mono) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Wall-clock time: microseconds since 1970-01-01 UTC. May jump in either direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(pub i64);

/// When the storage took a batch: microseconds since 1970-01-01 UTC. In a log it never decreases, or by no more than
/// the log's storage says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendTime(pub i64);

impl fmt::Display for AppendTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The two times of one moment, as a shell reads them once for each turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Time for intervals and deadlines.
    pub mono: Mono,
    /// Time for users.
    pub wall: Wall,
}
