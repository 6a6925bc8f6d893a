//! One subscriber of a load: it knows the next message of each publisher.

use super::{Tally, Topic, Waits};
use crate::proof::stamp::Stamp;
use airmail_client::{Client, Error, GapReason, Item, Position, Start};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A subscriber that runs.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) stop: Arc<Notify>,
    pub(super) seen: Arc<Mutex<Seen>>,
    pub(super) task: JoinHandle<Option<Position>>,
    pub(super) topic: Topic,
}

/// A subscriber's view of its topic.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Number that must come next, by publisher. `None`: it began at the end, and takes any.
    pub(super) next: BTreeMap<u32, u64>,
    pub(super) from_the_end: bool,
    /// Some may be missing whose outcome is not known.
    pub(super) may_skip: bool,
    /// Numbers that did not come, by publisher.
    pub(super) skipped: Vec<(u32, Range<u64>)>,
    /// Index of the log, and number, of the last message.
    pub(super) last: (u16, u64),
    pub(super) waits: Waits,
}

/// Where a subscriber that was stopped may go on.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    pub(super) topic: Topic,
    pub(super) position: Position,
    pub(super) seen: Seen,
}

impl Seen {
    /// Takes a message; gives its fault, if it has one.
    fn take(
        &mut self,
        topic: &Topic,
        (log, sequence): (u16, u64),
        payload: &[u8],
    ) -> Result<Stamp, String> {
        let name = format!("{}/{}", topic.namespace, topic.name);
        let place = format!("{name} number {sequence} of log {log}");
        let Some(stamp) = Stamp::read(payload) else {
            return Err(format!(
                "{place}: a payload that was never published: {payload:?}"
            ));
        };
        if stamp.topic != topic.index {
            return Err(format!("{place}: a message of another topic: {stamp:?}"));
        }
        // The logs after a move have indexes above those before.
        if (log, sequence) <= self.last {
            let (log, number) = self.last;
            return Err(format!(
                "{place}: after number {number} of log {log}: {stamp:?}"
            ));
        }
        self.last = (log, sequence);
        let first = if self.from_the_end { stamp.number } else { 0 };
        let next = self.next.entry(stamp.publisher).or_insert(first);
        if stamp.number < *next || stamp.number > *next && !self.may_skip {
            let what = if stamp.number < *next {
                "twice or reordered"
            } else {
                "after a loss"
            };
            return Err(format!(
                "{place}: {what}: {stamp:?}, when {next} was the next"
            ));
        }
        if stamp.number > *next {
            self.skipped.push((stamp.publisher, *next..stamp.number));
        }
        *next = stamp.number + 1;
        Ok(stamp)
    }
}

/// One subscriber.
pub(super) struct Following {
    pub(super) client: Client,
    pub(super) topic: Topic,
    pub(super) start: Start,
    pub(super) stop: Arc<Notify>,
    pub(super) seen: Arc<Mutex<Seen>>,
    pub(super) tally: Arc<Tally>,
}

impl Following {
    /// Runs until it is stopped; gives its position then.
    pub(super) async fn run(self) -> Option<Position> {
        let request = self.client.subscribe(&self.topic.name);
        let request = request
            .namespace(self.topic.namespace)
            .from(self.start.clone());
        let opened = tokio::select! {
            opened = request.open() => opened,
            () = self.stop.notified() => return None,
        };
        let mut subscription = match opened {
            Ok(subscription) => subscription,
            Err(error) => {
                self.tally
                    .complain(format!("{:?} cannot be subscribed to: {error}", self.topic));
                return None;
            }
        };
        loop {
            let item = tokio::select! {
                item = subscription.next() => item,
                () = self.stop.notified() => return subscription.position(),
            };
            if let Err(wrong) = self.take(item) {
                self.tally.complain(wrong);
                return None;
            }
        }
    }

    fn take(&self, item: Result<Option<Item>, Error>) -> Result<(), String> {
        match item {
            Ok(Some(Item::Message(message))) => {
                let mut seen = self.seen.lock();
                let log = message.position().logs[0].log.index.0;
                let place = (log, message.sequence.0);
                seen.take(&self.topic, place, &message.payload)?;
                seen.waits.come();
                self.tally.received.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            // Under `os`, an unclean stop leaves numbers that nobody used or ever will: whether
            // messages are missing, their own numbers tell.
            Ok(Some(Item::Gap(gap))) if self.topic.reserves && gap.reason == GapReason::Loss => {
                self.seen.lock().last.1 = gap.last.0;
                Ok(())
            }
            other => Err(format!("{:?}: was told {other:?}", self.topic)),
        }
    }
}

#[test]
fn what_comes_twice_out_of_order_or_after_a_loss_is_found() {
    let topic = Topic {
        namespace: "default",
        name: "topic".into(),
        index: 0,
        reserves: false,
    };
    let payload = |number, topic| {
        let stamp = Stamp {
            publisher: 1,
            topic,
            number,
            bytes: 64,
        };
        stamp.payload()
    };
    let mut seen = Seen::default();
    assert!(seen.take(&topic, (1, 10), &payload(0, 0)).is_ok());
    assert!(seen.take(&topic, (1, 12), &payload(1, 0)).is_ok());
    for (place, number, other, why) in [
        ((1, 13), 1, 0, "twice or reordered"),
        ((1, 14), 3, 0, "after a loss"),
        ((1, 12), 2, 0, "after number"),
        ((0, 13), 2, 0, "after number"),
        ((1, 15), 2, 7, "another topic"),
    ] {
        let wrong = seen.clone().take(&topic, place, &payload(number, other));
        assert!(wrong.is_err_and(|wrong| wrong.contains(why)), "{why}");
    }
    let mut hit = payload(2, 0).to_vec();
    hit[40] ^= 1;
    assert!(
        seen.take(&topic, (2, 1), &hit)
            .is_err_and(|wrong| wrong.contains("never published"))
    );
}
