//! Distance that publishers may run ahead of subscribers where no rate is set.
//!
//! Without a bound, a publisher that is faster than the subscribers fills every buffer on the way,
//! and the measurement shows which system has the largest buffers, or drops. The same bound holds
//! for every system.

use super::Job;
use super::levels::{Level, Levels};
use crate::clock::now_us;
use crate::settings::Settings;
use crate::system::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// Messages that may be under way to a subscriber.
const MESSAGES_MAX: u64 = 1 << 16;
/// Bytes of payload that may be under way to a subscriber, and to all together.
const BYTES_MAX: (u64, u64) = (16 << 20, 128 << 20);
/// Time that a publisher waits for room before it looks again, and interval at which processes
/// exchange their levels.
const PAUSE: Duration = Duration::from_millis(1);

/// Messages sent, and messages that each subscriber has had: of this process, and of the others
/// together.
#[derive(Debug)]
pub(super) struct Window {
    /// `u64::MAX`: there is no bound.
    messages: u64,
    sent: AtomicU64,
    delivered: Vec<AtomicU64>,
    sent_elsewhere: AtomicU64,
    least_elsewhere: AtomicU64,
}

impl Window {
    pub(super) fn new(settings: &Settings, subscribers: usize) -> Window {
        let (one, all) = BYTES_MAX;
        let bytes = one.min(all / u64::from(settings.subscribers.max(1)));
        let bounded = settings.publishes() && settings.subscribes() && settings.rate.is_none();
        Window {
            messages: if bounded {
                // What each publisher waits to send counts as sent.
                let least = u64::from(settings.publishers);
                MESSAGES_MAX.min(bytes / settings.size as u64).max(least)
            } else {
                u64::MAX
            },
            sent: AtomicU64::new(0),
            delivered: (0..subscribers).map(|_| AtomicU64::new(0)).collect(),
            sent_elsewhere: AtomicU64::new(0),
            least_elsewhere: AtomicU64::new(u64::MAX),
        }
    }

    /// Lets the processes of a job know of one another, until what comes back is dropped.
    pub(super) fn join(self: &Arc<Window>, job: &Job) -> Result<JoinSet<()>, Failure> {
        let mut exchanging = JoinSet::new();
        let path = job.levels.as_ref().filter(|_| self.messages != u64::MAX);
        let Some(path) = path else {
            return Ok(exchanging);
        };
        let levels = Levels::open(path, job.share).map_err(Failure::new)?;
        self.exchange(&levels)?;
        let window = Arc::clone(self);
        exchanging.spawn(async move {
            // A leader that is gone is noticed where processes meet.
            while window.exchange(&levels).is_ok() {
                tokio::time::sleep(PAUSE).await;
            }
        });
        Ok(exchanging)
    }

    fn exchange(&self, levels: &Levels) -> Result<(), Failure> {
        let own = Level {
            sent: self.sent.load(Ordering::Relaxed),
            least: self.least_here(),
        };
        let others = levels.exchange(own).map_err(Failure::new)?;
        self.sent_elsewhere.store(others.sent, Ordering::Relaxed);
        self.least_elsewhere.store(others.least, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until `count` more messages may go. False if the subscribers have had nothing for
    /// `patience`, though it was sent.
    pub(super) async fn room(&self, count: u64, patience: Duration) -> bool {
        if self.messages == u64::MAX {
            return true;
        }
        let sent = self.sent.fetch_add(count, Ordering::Relaxed);
        let mut least = self.least();
        let mut since_us = now_us();
        while sent + self.sent_elsewhere.load(Ordering::Relaxed)
            > least.saturating_add(self.messages)
        {
            tokio::time::sleep(PAUSE).await;
            let now = self.least();
            if now > least {
                (least, since_us) = (now, now_us());
            } else if now_us() > since_us + patience.as_micros() as u64 {
                return false;
            }
        }
        true
    }

    /// A subscriber has had `count` more.
    pub(super) fn deliver(&self, subscriber: usize, count: u64) {
        if let Some(delivered) = self.delivered.get(subscriber) {
            delivered.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn least(&self) -> u64 {
        let elsewhere = self.least_elsewhere.load(Ordering::Relaxed);
        self.least_here().min(elsewhere)
    }

    fn least_here(&self) -> u64 {
        let delivered = self.delivered.iter();
        let had = delivered.map(|delivered| delivered.load(Ordering::Relaxed));
        had.min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LevelFile, Share};
    use super::*;

    #[tokio::test]
    async fn the_slowest_subscriber_holds_publishers_back() {
        let settings = Settings {
            subscribers: 2,
            ..Settings::default()
        };
        let window = Window::new(&settings, 2);
        assert!(window.room(MESSAGES_MAX + 1, PAUSE).await);
        window.deliver(0, 10);
        assert!(!window.room(1, Duration::ZERO).await);
        window.deliver(1, 10);
        assert!(window.room(1, PAUSE).await);
    }

    #[tokio::test]
    async fn a_subscriber_of_another_process_holds_publishers_back() {
        let settings = Settings::default();
        let file = LevelFile::make().unwrap();
        let windows = [0, 1].map(|part| {
            let job = Job {
                levels: Some(file.path()),
                share: Share { part, parts: 2 },
                ..Job::default()
            };
            (Arc::new(Window::new(&settings, part as usize)), job)
        });
        let [(here, job), (there, other)] = windows;
        let _joined = (here.join(&job).unwrap(), there.join(&other).unwrap());
        assert!(here.room(MESSAGES_MAX + 1, PAUSE).await);
        assert!(!here.room(1, PAUSE * 20).await);
        there.deliver(0, 10);
        assert!(here.room(1, Duration::from_secs(60)).await);
    }

    #[tokio::test]
    async fn at_a_rate_nothing_is_held_back() {
        let settings = Settings {
            rate: Some(1),
            ..Settings::default()
        };
        let window = Window::new(&settings, 1);
        assert!(window.room(u64::MAX / 2, PAUSE).await);
        assert!(window.room(1, PAUSE).await);
    }
}
