//! Clock of a program. Cores get the time as an argument; the shell reads it here.
//!
//! The one place where the system's clocks are read.

use crate::{Mono, Now, Wall};
use std::fmt;
use std::time::{Instant, SystemTime};

/// Tells the time. Tests pass their own.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Reads both times of this moment; `mono` must run as fast as the runtime's timers.
    fn now(&self) -> Now;

    /// The monotone time alone, which may cost less.
    fn mono(&self) -> Mono {
        self.now().mono
    }
}

/// The system's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotone time begins now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one clock of a program")]
    pub fn new() -> SystemClock {
        SystemClock {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one clock of a program")]
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        // A clock set before 1970 counts backwards from there.
        let wall = match wall {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(error) => i64::try_from(error.duration().as_micros()).map_or(i64::MIN, |n| -n),
        };
        Now {
            mono: self.mono(),
            wall: Wall(wall),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the one clock of a program")]
    fn mono(&self) -> Mono {
        let since = self.start.elapsed().as_nanos();
        Mono(u64::try_from(since).unwrap_or(u64::MAX))
    }
}
