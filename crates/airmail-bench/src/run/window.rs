//! How far publishers may run ahead of subscribers where no rate is set.
//!
//! Without a bound, a publisher that is faster than the subscribers fills every buffer on the way, and
//! what is measured is who has the largest, or who drops. The same bound holds for every system.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::now_us;
use crate::settings::Settings;

/// Messages that may be under way to a subscriber.
const MESSAGES_MAX: u64 = 1 << 16;
/// Bytes of payload that may be under way to a subscriber, and to all together.
const BYTES_MAX: (u64, u64) = (16 << 20, 128 << 20);
/// How long a publisher waits for room before it looks again.
const PAUSE: Duration = Duration::from_millis(1);

/// What was sent, and what each subscriber of this process has had.
#[derive(Debug)]
pub(super) struct Window {
    messages: u64,
    sent: AtomicU64,
    delivered: Vec<AtomicU64>,
}

impl Window {
    pub(super) fn new(settings: &Settings, subscribers: usize) -> Window {
        let (one, all) = BYTES_MAX;
        let bytes = one.min(all / u64::from(settings.subscribers.max(1)));
        // Several processes: only the part of this one's publishers is known.
        let open = !settings.subscribes() || settings.rate.is_some() || settings.processes > 1;
        Window {
            messages: if open {
                u64::MAX
            } else {
                MESSAGES_MAX.min(bytes / settings.size as u64).max(1)
            },
            sent: AtomicU64::new(0),
            delivered: (0..subscribers).map(|_| AtomicU64::new(0)).collect(),
        }
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
        while sent > least + self.messages {
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
        let delivered = self.delivered.iter();
        let had = delivered.map(|delivered| delivered.load(Ordering::Relaxed));
        had.min().unwrap_or(u64::MAX / 2)
    }
}

#[cfg(test)]
mod tests {
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
