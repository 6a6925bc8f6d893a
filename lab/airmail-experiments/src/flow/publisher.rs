//! A publisher with a gate of its own, through the SDK.
//!
//! It sends and takes acks in one task, side by side: an ack is seen when it comes, also while a
//! message waits for room in the SDK. Acks are awaited in the order of sending, in which a log gives
//! them.
//!
//! It waits for subscribers who are far behind ([`BACKLOG_MAX`]). Otherwise a node that stores faster than its
//! subscribers read has two throughputs, one while they keep up and one twice as high once they no longer take
//! processor time from publishes, and a bound is judged by which of the two it happened to meet.

use super::distribution::Draw;
use super::throttle::{Seen, Throttle};
use super::{Counter, Halt, Load, Window, now};
use airmail_bench::progress::Progress;
use airmail_bench::stamp::Stamp;
use airmail_bench::system::Failure;
use airmail_bench::system::airmail::outcome;
use airmail_client::{AckFuture, Client};
use airmail_flow::Ticket;
use airmail_model::{Limits, Mono, TopicName};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Chunks whose acks are awaited; more wait for room. As many of the largest as the gate ever lets.
const CHUNKS_MAX: usize = 4096;

/// Messages that subscribers may be behind what was acknowledged, in the mean over them: half of what the bench
/// allows each. With twice as many in memory, subscribers lose the live path in most runs.
const BACKLOG_MAX: u64 = 1 << 15;
/// Time between looks while they are farther behind.
const BACKLOG_LOOK: Duration = Duration::from_millis(1);

/// Outcomes of a publisher's messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Flight {
    /// One for every N acknowledged messages.
    pub windows: Vec<Window>,
    /// Counters at the end of each window, and at the end of all.
    pub counters: Vec<Counter>,
    /// The bound that held at last, in messages.
    pub bound: u64,
    /// Messages handed over.
    pub sent: u64,
    /// Messages acknowledged.
    pub acknowledged: u64,
    /// The first error.
    pub first_error: Option<String>,
}

/// One publisher at work.
pub(super) struct Publisher {
    pub(super) load: Arc<Load>,
    pub(super) number: u32,
    pub(super) client: Client,
    pub(super) start: Mono,
    pub(super) end: Mono,
    pub(super) halt: Halt,
    pub(super) progress: Arc<Progress>,
    /// Subscribers for whom it waits when they are far behind. There are none if other processes publish too:
    /// what they have had acknowledged is not known here.
    pub(super) awaited: u64,
}

/// A chunk that was sent.
type Sent = (Ticket, Vec<AckFuture>);

/// State that sending and taking acks share.
struct Shared {
    throttle: Mutex<Throttle>,
    /// There may be room again.
    room: Notify,
}

impl Publisher {
    /// Sends all, or until it is time or told to stop; ends when every ack is there.
    pub(super) async fn publish(self) -> Flight {
        let shared = Shared {
            throttle: Mutex::new(Throttle::new(self.load.throttling.gate(), self.start)),
            room: Notify::new(),
        };
        let (sent, acks) = mpsc::channel(CHUNKS_MAX);
        let (sending, taking) =
            tokio::join!(self.send(&shared, sent), self.take_acks(&shared, acks));
        let (count, error) = sending;
        let mut flight = taking;
        flight.sent = count;
        if let Some(error) = error {
            flight.first_error.get_or_insert(error.to_string());
        }
        if let Err(error) = self.client.close().await {
            flight.first_error.get_or_insert(error.to_string());
        }
        let seen = shared.throttle.into_inner().into_seen();
        Seen {
            windows: flight.windows,
            counters: flight.counters,
            bound: flight.bound,
        } = seen;
        flight
    }

    /// Number of messages handed over, and the failure that ended it.
    async fn send(&self, shared: &Shared, sent: mpsc::Sender<Sent>) -> (u64, Option<Failure>) {
        let mut count = 0;
        let failure = self.send_all(shared, sent, &mut count).await.err();
        (count, failure)
    }

    async fn send_all(
        &self,
        shared: &Shared,
        sent: mpsc::Sender<Sent>,
        count: &mut u64,
    ) -> Result<(), Failure> {
        let load = &self.load;
        let publisher = self.client.publisher();
        let names = load.topic_names();
        let names = names
            .iter()
            .map(|name| TopicName::new(name, &Limits::DEFAULT));
        let topics: Vec<TopicName> = names.collect::<Result<_, _>>().map_err(Failure::new)?;
        let mut draw = Draw::new(load.distribution, load.topics, self.number.into());
        // Of each topic: a subscriber's ledger knows by it what is missing.
        let mut numbers = vec![0; topics.len()];
        let mut payload = self.blank();
        while *count < load.messages && !(self.halt)() {
            let now = now();
            if now >= self.end {
                break;
            }
            if self.is_far_ahead() {
                tokio::time::sleep(BACKLOG_LOOK).await;
                continue;
            }
            let admitted = shared.throttle.lock().admit(now, load.messages - *count);
            let Some(ticket) = admitted else {
                shared.room.notified().await;
                continue;
            };
            let sent_us = now.0 / 1000;
            let mut receipts = Vec::with_capacity(ticket.messages() as usize);
            for _ in 0..ticket.messages() {
                let topic = draw.topic();
                Stamp::put(&mut payload, numbers[topic], sent_us);
                let receipt = publisher.send_ref(&topics[topic], &payload).await?;
                numbers[topic] += 1;
                *count += 1;
                receipts.push(receipt);
            }
            let gone = sent.send((ticket, receipts)).await;
            gone.map_err(|_| Failure::new("nobody takes acks any more"))?;
        }
        Ok(())
    }

    /// Whether subscribers are farther behind than they may be.
    fn is_far_ahead(&self) -> bool {
        let delivered = self.progress.delivered().checked_div(self.awaited);
        delivered
            .is_some_and(|each| self.progress.acknowledged() > each.saturating_add(BACKLOG_MAX))
    }

    async fn take_acks(&self, shared: &Shared, mut sent: mpsc::Receiver<Sent>) -> Flight {
        let mut flight = Flight::default();
        let mut moment = Moment::default();
        while let Some((ticket, receipts)) = sent.recv().await {
            let mut acks = pin!(outcome(receipts));
            let at_once = tokio::select! {
                biased;
                outcome = &mut acks => Some(outcome),
                () = ready(()) => None,
            };
            let waited = at_once.is_none();
            let outcome = match at_once {
                Some(outcome) => outcome,
                None => acks.await,
            };
            let now = moment.of(waited, ticket.admitted(), now);
            flight.acknowledged += outcome.acknowledged;
            self.progress.acknowledge(outcome.acknowledged);
            if let Some(error) = outcome.error {
                shared.throttle.lock().abandoned(now, ticket);
                flight.first_error.get_or_insert(error.to_string());
            } else {
                shared.throttle.lock().acknowledged(now, ticket);
            }
            shared.room.notify_one();
        }
        flight
    }

    /// A payload without number and time.
    fn blank(&self) -> Vec<u8> {
        let stamp = Stamp {
            run: self.load.id,
            publisher: self.number,
            number: 0,
            sent_us: 0,
        };
        let mut payload = stamp.bytes().to_vec();
        payload.resize(self.load.size.max(Stamp::BYTES), b'.');
        payload
    }
}

/// When acks came. A commit acknowledges many chunks at one moment; were each given a time of its own,
/// a window that ends among them would have a rate that there never was.
#[derive(Debug, Default)]
struct Moment(Mono);

impl Moment {
    /// Time of a chunk's ack: that of the one before, if the ack was there already when that had
    /// been seen.
    fn of(&mut self, waited: bool, admitted: Mono, clock: impl FnOnce() -> Mono) -> Mono {
        if waited || admitted >= self.0 {
            self.0 = clock();
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_that_come_together_have_one_time() {
        let mut moment = Moment::default();
        assert_eq!(moment.of(true, Mono(5), || Mono(10)), Mono(10));
        assert_eq!(moment.of(false, Mono(6), || Mono(11)), Mono(10));
        assert_eq!(moment.of(true, Mono(7), || Mono(12)), Mono(12));
    }

    #[test]
    fn no_ack_has_a_time_before_its_chunk_was_sent() {
        let mut moment = Moment::default();
        assert_eq!(moment.of(false, Mono(5), || Mono(10)), Mono(10));
        assert_eq!(moment.of(false, Mono(11), || Mono(13)), Mono(13));
    }
}
