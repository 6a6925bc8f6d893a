//! The time, as the client is told it.

use airmail_model::{Mono, Now, Wall};
use std::fmt::Debug;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Tells the time. Tests pass their own.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Both times of this moment; `mono` must run as fast as the runtime's timers.
    fn now(&self) -> Now;

    /// `mono` alone, for who needs no more.
    fn mono(&self) -> Mono {
        self.now().mono
    }
}

/// The system's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        #[expect(clippy::disallowed_methods, reason = "the shell's one clock")]
        let start = Instant::now();
        SystemClock { start }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the shell's one clock")]
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = wall.map_or(0, |since| {
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        });
        Now {
            mono: self.mono(),
            wall: Wall(wall),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the shell's one clock")]
    fn mono(&self) -> Mono {
        Mono(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
