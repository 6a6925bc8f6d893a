//! Meeting points of a run, at which its processes wait for one another.

use crate::clock::now_us;
use crate::system::Failure;
use serde::{Deserialize, Serialize};
use std::future::Future;

/// Time from the moment that all are ready to the first message, in microseconds: enough to tell
/// everybody.
const NOTICE_US: u64 = 20_000;

/// Share of a process: every `parts`th publisher and subscriber, from `part`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Index of this process's part, from 0.
    pub part: u32,
    /// Number of parts, at least 1.
    pub parts: u32,
}

impl Share {
    /// Everything.
    pub const ALL: Share = Share { part: 0, parts: 1 };

    /// Nothing.
    pub const NONE: Share = Share {
        part: u32::MAX,
        parts: 1,
    };

    /// The numbers below `count` that are this share's.
    pub fn of(self, count: u32) -> impl ExactSizeIterator<Item = u32> {
        (self.part.min(count)..count).step_by(self.parts as usize)
    }
}

/// Points at which a process waits for the others.
pub trait Meeting: Send {
    /// Waits until everything that the run needs is there; this process may have made it.
    ///
    /// # Errors
    /// The others are gone.
    fn prepared(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// All subscriptions stand and all publishers are connected. Gives when to begin, by
    /// [`crate::clock`].
    ///
    /// # Errors
    /// The others are gone.
    fn ready(&mut self) -> impl Future<Output = Result<u64, Failure>> + Send;

    /// Waits until all is published; gives the number of acks of all processes, this one's included.
    ///
    /// # Errors
    /// The others are gone.
    fn published(&mut self, acknowledged: u64)
    -> impl Future<Output = Result<u64, Failure>> + Send;
}

/// There are no others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Meeting for Alone {
    async fn prepared(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn ready(&mut self) -> Result<u64, Failure> {
        Ok(start_us())
    }

    async fn published(&mut self, acknowledged: u64) -> Result<u64, Failure> {
        Ok(acknowledged)
    }
}

/// When to begin, if all are ready now.
#[must_use]
pub fn start_us() -> u64 {
    now_us() + NOTICE_US
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_everything_once() {
        for parts in 1..5 {
            let shares = (0..parts).flat_map(|part| Share { part, parts }.of(7));
            let mut all: Vec<u32> = shares.collect();
            all.sort_unstable();
            assert_eq!(all, (0..7).collect::<Vec<_>>());
        }
        assert_eq!(Share::NONE.of(7).count(), 0);
    }
}
