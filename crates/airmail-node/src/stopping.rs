//! Where the shards of a node that stops wait for one another.
//!
//! A shard's streams need logs of every other shard until they have ended. So no shard closes its storage
//! before the streams of all have ended, or have been abandoned; from then on all close theirs together.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
struct Meeting {
    awaited: AtomicUsize,
    all_are_here: CancellationToken,
}

/// A shard's part in it. One that is dropped counts as having come: its shard has ended.
pub(crate) struct Arrival {
    meeting: Arc<Meeting>,
    has_come: bool,
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival").finish_non_exhaustive()
    }
}

/// The parts of so many shards.
pub(crate) fn arrivals(shards: usize) -> Vec<Arrival> {
    let meeting = Arc::new(Meeting {
        awaited: AtomicUsize::new(shards),
        all_are_here: CancellationToken::new(),
    });
    let arrival = |_| Arrival {
        meeting: Arc::clone(&meeting),
        has_come: false,
    };
    (0..shards).map(arrival).collect()
}

impl Arrival {
    /// Says that the streams of this shard have ended, and waits for those of the others.
    pub(crate) async fn meet(mut self) {
        self.come();
        self.meeting.all_are_here.cancelled().await;
    }

    fn come(&mut self) {
        if std::mem::replace(&mut self.has_come, true) {
            return;
        }
        if self.meeting.awaited.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.meeting.all_are_here.cancel();
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.come();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn each_waits_for_all_and_one_that_is_gone_is_not_waited_for() {
        let mut all = arrivals(3);
        let (last, gone, first) = (all.pop().unwrap(), all.pop().unwrap(), all.pop().unwrap());
        let mut first = Box::pin(first.meet());
        assert!(first.as_mut().now_or_never().is_none());
        drop(gone);
        assert!(first.as_mut().now_or_never().is_none());
        assert!(last.meet().now_or_never().is_some());
        assert!(first.now_or_never().is_some());
    }

    #[test]
    fn a_single_one_waits_for_nobody() {
        let alone = arrivals(1).pop().unwrap();
        assert!(alone.meet().now_or_never().is_some());
    }
}
