//! One publisher of a load: batches and single messages to all topics, with many acks outstanding.

use super::{Tally, Topic, message};
use crate::proof::stamp::{STAMP_BYTES, Stamp};
use airmail_client::{Client, Publisher, SummaryFuture};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// Calls of `send_all` that wait for their acks.
const AHEAD: usize = 48;

/// One publisher.
pub(super) struct Publishing {
    pub(super) id: u32,
    pub(super) client: Client,
    pub(super) topics: Vec<Topic>,
    pub(super) tally: Arc<Tally>,
    pub(super) random: SmallRng,
    pub(super) rate: u64,
    /// Those of single messages.
    pub(super) acks: JoinSet<()>,
}

impl Publishing {
    pub(super) async fn run(mut self) {
        let mut waiting = VecDeque::new();
        let publisher = self.client.publisher();
        while !self.tally.stop.load(Ordering::Relaxed) {
            let at = self.random.random_range(0..self.topics.len());
            let topic = self.topics[at].clone();
            let publisher = publisher.clone().namespace(topic.namespace);
            let count = self.random.random_range(1..=64_u64);
            if self.random.random_ratio(1, 8) {
                self.send_one(&publisher, &topic).await;
            } else {
                waiting.push_back(self.send(&publisher, &topic, count).await);
            }
            if waiting.len() > AHEAD {
                self.settle(waiting.pop_front()).await;
            }
            let pause = 32_000_000 / self.rate.max(1);
            tokio::time::sleep(Duration::from_micros(
                self.random.random_range(0..=2 * pause),
            ))
            .await;
        }
        while !waiting.is_empty() {
            self.settle(waiting.pop_front()).await;
        }
        while self.acks.join_next().await.is_some() {}
        if let Err(error) = self.client.close().await {
            self.tally
                .complain(format!("publisher {}: close: {error}", self.id));
        }
    }

    fn next(&mut self, topic: &Topic) -> Stamp {
        let mut sent = self.tally.sent.lock();
        let number = sent.entry((self.id, topic.index)).or_insert(0);
        *number += 1;
        let bytes = match self.random.random_range(0..200) {
            0 => self.random.random_range(4_096..=65_536),
            1..=20 => self.random.random_range(1_024..=4_096),
            _ => self.random.random_range(STAMP_BYTES as u32 + 12..=400),
        };
        Stamp {
            publisher: self.id,
            topic: topic.index,
            number: *number - 1,
            bytes,
        }
    }

    async fn send(&mut self, publisher: &Publisher, topic: &Topic, count: u64) -> Sent {
        let stamps: Vec<Stamp> = (0..count).map(|_| self.next(topic)).collect();
        let messages = stamps.iter().map(|stamp| message(topic, *stamp));
        let ack = publisher.send_all(messages.collect()).await.unwrap();
        let first = stamps[0];
        Sent { first, count, ack }
    }

    /// Its ack comes when it comes; the publisher goes on.
    async fn send_one(&mut self, publisher: &Publisher, topic: &Topic) {
        let stamp = self.next(topic);
        let ack = publisher.send(message(topic, stamp)).await.unwrap();
        let tally = Arc::clone(&self.tally);
        self.acks.spawn(async move {
            match ack.await {
                Ok(published) => {
                    tally.stored(stamp.publisher, 1);
                    // Else it may be that of a copy which no reader is given.
                    if published.exact {
                        let place = (published.log, published.sequence.0);
                        tally.numbered.lock().insert(stamp, place);
                    }
                }
                Err(error) => tally.failed(stamp, 1, Some(&error)),
            }
        });
    }

    async fn settle(&self, oldest: Option<Sent>) {
        let Some(Sent { first, count, ack }) = oldest else {
            return;
        };
        match ack.await {
            Ok(summary) => {
                let stored = summary.stored;
                self.tally.stored(self.id, stored);
                if stored != count {
                    self.tally.failed(first, count, summary.error.as_ref());
                }
            }
            Err(error) => self.tally.failed(first, count, Some(&error)),
        }
    }
}

/// Messages that were handed over together.
struct Sent {
    first: Stamp,
    count: u64,
    ack: SummaryFuture,
}
