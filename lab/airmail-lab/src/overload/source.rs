//! When a stream's batches are due: by a timetable, or when others are answered.

use super::arrivals::Arrivals;
use airmail_bench::alarm::Alarm;
use airmail_bench::clock::now_us;
use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Gives the times at which batches are due.
#[derive(Debug)]
pub(super) enum Source {
    /// A timetable, whatever becomes of the batches before.
    Open(Box<Timetable>),
    /// When another is answered, which gives a permit back.
    Closed(Arc<Semaphore>),
}

/// Random times, and what waits for them.
#[derive(Debug)]
pub(super) struct Timetable {
    arrivals: Peekable<Arrivals>,
    start_us: u64,
    alarm: Alarm,
}

impl Timetable {
    /// Begins at `start_us`, with `per_s` batches a second in the mean.
    pub(super) fn new(seed: u64, per_s: f64, start_us: u64) -> anyhow::Result<Timetable> {
        Ok(Timetable {
            arrivals: Arrivals::new(seed, per_s).peekable(),
            start_us,
            alarm: Alarm::new()?,
        })
    }
}

impl Source {
    /// Waits until one is due, or for a while.
    pub(super) async fn wait(&mut self, until_us: u64) -> anyhow::Result<()> {
        match self {
            Source::Open(timetable) => {
                let next = timetable.arrivals.peek().copied().unwrap_or(u64::MAX);
                let due_us = timetable.start_us.saturating_add(next);
                timetable.alarm.wait_until(due_us.min(until_us)).await?;
            }
            Source::Closed(permits) => {
                let left = Duration::from_micros(until_us.saturating_sub(now_us()));
                // Given back: it is taken again when the batch is made.
                if let Ok(permit) = timeout(left, permits.acquire()).await {
                    drop(permit?);
                }
            }
        }
        Ok(())
    }

    /// The next one that is due by `now_us` and before `end_us`.
    pub(super) fn take(&mut self, now_us: u64, end_us: u64) -> Option<u64> {
        match self {
            Source::Open(timetable) => {
                let start_us = timetable.start_us;
                let due = |at: &u64| start_us + at <= now_us && start_us + at < end_us;
                Some(start_us + timetable.arrivals.next_if(due)?)
            }
            Source::Closed(permits) => {
                permits.try_acquire().ok()?.forget();
                (now_us < end_us).then_some(now_us)
            }
        }
    }

    /// Number of batches left that were due before `end_us`.
    pub(super) fn left(self, end_us: u64) -> u64 {
        match self {
            Source::Open(timetable) => {
                let Timetable {
                    arrivals, start_us, ..
                } = *timetable;
                arrivals.take_while(|at| start_us + at < end_us).count() as u64
            }
            Source::Closed(_) => 0,
        }
    }
}
