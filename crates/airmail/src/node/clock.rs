//! The shell's clock: cores are told the time, and this is who tells them.

#[cfg(feature = "test-switches")]
mod wrong;

use airmail_model::{Mono, Now, Wall};
use std::fmt;
use std::time::{Instant, SystemTime};
#[cfg(feature = "test-switches")]
pub use wrong::{Offset, WrongClock};

/// Tells the time. Tests pass their own.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Both times of this moment.
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
    #[expect(clippy::disallowed_methods, reason = "the shell's one clock")]
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
    #[expect(clippy::disallowed_methods, reason = "the shell's one clock")]
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

    #[expect(clippy::disallowed_methods, reason = "the shell's one clock")]
    fn mono(&self) -> Mono {
        let since = self.start.elapsed().as_nanos();
        Mono(u64::try_from(since).unwrap_or(u64::MAX))
    }
}
