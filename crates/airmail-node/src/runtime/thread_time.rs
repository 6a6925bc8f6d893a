//! Measures how long the shard's thread has worked, or would have if it had had a processor.
//!
//! The runtime knows how long it was not asleep. What it does not know is how long it was awake and
//! had no processor, which is no time that could be given to late subscribers. The system does, for
//! the price of a call: so it is asked only while there are late subscribers, and where it cannot
//! say, the runtime's word counts. What was worked before there were any is told to nobody: it is no part of the time
//! that passes for them, and would be taken off that, however long it was.

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
    /// Somebody was late when it was asked last.
    counts: bool,
}

impl ThreadTime {
    /// A stopwatch of this thread, which is the one worker of `runtime`.
    pub(crate) fn new(runtime: RuntimeMetrics) -> ThreadTime {
        ThreadTime {
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            runtime,
            told: Duration::ZERO,
            counts: false,
        }
    }

    /// Time worked since this was asked last, where somebody is late now and was then.
    pub(crate) fn more_if(&mut self, is_somebody_late: bool) -> Option<Duration> {
        let counted = std::mem::replace(&mut self.counts, is_somebody_late);
        if !is_somebody_late {
            return None;
        }
        let more = self.more();
        counted.then_some(more)
    }

    fn more(&mut self) -> Duration {
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

    #[tokio::test]
    async fn work_of_before_somebody_was_late_is_not_told() {
        let mut time = ThreadTime::new(tokio::runtime::Handle::current().metrics());
        for _ in 0..2 {
            assert_eq!(time.more_if(false), None);
            assert_eq!(time.more_if(true), None);
            let before = time.told;
            let more = time.more_if(true);
            assert_eq!(more, Some(time.told - before));
        }
    }
}
