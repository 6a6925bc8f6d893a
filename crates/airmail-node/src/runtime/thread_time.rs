//! Measures how long the shard's thread has worked, or would have if it had had a processor.
//!
//! The runtime knows how long it was not asleep. What it does not know is how long it was awake and
//! had no processor, which is no time that could be given to late subscribers. The system does, for
//! the price of a call: so it is asked only while there are late subscribers, and where it cannot
//! say, the runtime's word counts.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use tokio::runtime::RuntimeMetrics;

/// Stopwatch of the thread that made it.
#[derive(Debug)]
pub(crate) struct ThreadTime {
    /// `nanoseconds that it ran, nanoseconds that it was ready to run and did not, …`
    schedstat: Option<File>,
    runtime: RuntimeMetrics,
    /// The time that was told last.
    told: Duration,
}

impl ThreadTime {
    /// A stopwatch of this thread, which is the one worker of `runtime`.
    pub(crate) fn new(runtime: RuntimeMetrics) -> ThreadTime {
        ThreadTime {
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            runtime,
            told: Duration::ZERO,
        }
    }

    /// Time worked since this was asked last.
    pub(crate) fn more(&mut self) -> Duration {
        let now = match self.scheduled() {
            Some(time) => time,
            None => self.runtime.worker_total_busy_duration(0),
        };
        let more = now.saturating_sub(self.told);
        self.told = now;
        more
    }

    fn scheduled(&self) -> Option<Duration> {
        let mut text = [0; 64];
        let length = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
        let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        // Zeros where the system does not count.
        (ran > 0).then(|| Duration::from_nanos(ran.saturating_add(waited)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_the_thread_works_is_told_once() {
        let mut time = ThreadTime::new(tokio::runtime::Handle::current().metrics());
        let before = time.scheduled();
        time.more();
        // The system counts at its own ticks.
        let counted = (0..20_000_000).any(|_| time.scheduled() != before);
        assert!(counted || before.is_none(), "nothing counts");
        let (told, more) = (time.told, time.more());
        assert_eq!(time.told, told + more);
        assert!(before.is_none() || time.told > Duration::ZERO);
    }
}
