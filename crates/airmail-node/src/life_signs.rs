//! Signs of life: what a shard says on streams on which it would otherwise say nothing, and its news of nodes.
//!
//! A client takes a node for lost that says nothing for a while, and goes on at another. So the sign has to come
//! from the shard's own turn, which is what serves the client: a thread beside it would say that all is well while
//! nothing goes on. A slow storage is no reason for silence.
//!
//! A sign costs a wake of the connection's task and a write. The more streams there are, the less often each is
//! given one, and each says when the next comes.
//!
//! Invariant: a stream is told of a longer time before the first such time begins.

use super::send_queue::SendQueue;
use airmail_broker::SessionId;
use airmail_model::Mono;
use airmail_model::frame::Nodes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Time between two signs of life where there are few streams, and where there are many.
pub(crate) const ALIVE_MIN: Duration = Duration::from_millis(300);
const ALIVE_MAX: Duration = Duration::from_secs(1);
/// Steps of the time, so that it does not change with each stream that comes or goes.
const ALIVE_STEP: Duration = Duration::from_millis(100);
/// Time for each stream: what signs cost is a share of a core, however many streams there are, up to
/// [`ALIVE_MAX`].
const ALIVE_OF_ONE: Duration = Duration::from_micros(100);

/// Signs of life of a shard.
#[derive(Debug)]
pub(crate) struct LifeSigns {
    serving: watch::Receiver<Arc<Nodes>>,
    /// Time of the next signs; `None` while there are no streams.
    next: Option<Mono>,
    /// Time between two signs, as streams were told last.
    within: Duration,
}

impl LifeSigns {
    /// Signs of life, with news of the nodes that serve.
    pub(crate) fn new(serving: watch::Receiver<Arc<Nodes>>) -> LifeSigns {
        LifeSigns {
            serving,
            next: None,
            within: ALIVE_MIN,
        }
    }

    /// Gives the signs that are due, and news; tells when to come back.
    pub(crate) fn give(
        &mut self,
        now: Mono,
        queues: &BTreeMap<SessionId, Arc<SendQueue>>,
    ) -> Option<Mono> {
        // An error says that nobody will change it any more.
        if self.serving.has_changed().unwrap_or(false) {
            let nodes = Arc::clone(&self.serving.borrow_and_update());
            queues.values().for_each(|queue| queue.tell_nodes(&nodes));
        }
        if queues.is_empty() {
            self.next = None;
            return None;
        }
        let next = *self.next.get_or_insert_with(|| now.plus(self.within));
        if now < next {
            return Some(next);
        }
        self.within = within(queues.len());
        queues
            .values()
            .for_each(|queue| queue.say_alive(self.within));
        self.next = Some(now.plus(self.within));
        self.next
    }

    /// Time between two signs, for whoever begins a stream.
    pub(crate) fn within(&self) -> Duration {
        self.within
    }
}

/// Time between two signs of life with this number of streams.
fn within(streams: usize) -> Duration {
    let streams = u32::try_from(streams).unwrap_or(u32::MAX);
    let of_all = ALIVE_OF_ONE.saturating_mul(streams);
    let steps = of_all.as_millis().div_ceil(ALIVE_STEP.as_millis());
    let stepped = ALIVE_STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX));
    stepped.clamp(ALIVE_MIN, ALIVE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_rarer_with_more_streams_and_never_rarer_than_once_a_second() {
        let told = [1, 3_000, 3_010, 5_000, 10_000, usize::MAX].map(within);
        assert_eq!(
            told.map(|time| time.as_millis()),
            [300, 300, 400, 500, 1_000, 1_000]
        );
    }
}
