//! One who is late and wants little: a filter that matches one message in so many, of a log that is stored already, beside a
//! subscription without a filter that reads all of it.

use crate::clock::now_us;
use crate::spread::Spread;
use crate::system::Failure;
use airmail_client::{Client, Items, Message, Start, Subscription};
use airmail_model::{Limits, TopicName};
use bytes::Bytes;
use serde::Serialize;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// Topic of the log.
const TOPIC: &str = "bench/filters/backlog";
/// Longest time until a connection stands.
const PATIENCE: Duration = Duration::from_secs(60);
/// Credit of who has the filter, in bytes.
const CREDIT_BYTES: u32 = 64 << 10;
/// Bar: the rate at which the log is read with the filter, over that without.
const RATIO_MIN: f64 = 0.3;

/// A log that is read with a filter.
#[derive(Clone, Debug)]
pub struct FilteredBacklog {
    /// The node, as `airmail://HOST:PORT`.
    pub target: String,
    /// Namespace, which is made, with one log.
    pub namespace: String,
    /// Bytes of payload in all.
    pub bytes: u64,
    /// Payload of each message, in bytes.
    pub size: usize,
    /// Messages of which the filter matches one.
    pub one_in: NonZeroU32,
    /// Rounds, in each of which both read all.
    pub rounds: u32,
}

/// Rates at which it was read.
#[derive(Clone, Debug, Serialize)]
pub struct FilteredBacklogRun {
    /// Messages that are stored.
    pub messages: u64,
    /// Messages of which the filter matches one.
    pub one_in: u32,
    /// Stored messages a second that are passed with the filter, over the rounds.
    pub filtered_per_s: Spread,
    /// Messages a second without one, in turn.
    pub plain_per_s: Spread,
}

impl FilteredBacklogRun {
    /// Rate with the filter over that without.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.filtered_per_s.median / self.plain_per_s.median.max(f64::MIN_POSITIVE)
    }

    /// The bar that it misses, as a sentence.
    #[must_use]
    pub fn missed(&self) -> Vec<String> {
        let is_missed = self.ratio() < RATIO_MIN;
        let bar = format!("{RATIO_MIN} of the rate without a filter");
        is_missed.then_some(bar).into_iter().collect()
    }
}

impl FilteredBacklog {
    /// Stores the log, and has it read.
    ///
    /// # Errors
    /// The node cannot be reached, or somebody gets another message than the next one that is for it.
    pub async fn measure(&self) -> Result<FilteredBacklogRun, Failure> {
        let client = self.client(None).await?;
        let admin = client.admin();
        admin.create(&self.namespace, Some(1), None, None).await?;
        let one_in = u64::from(self.one_in.get());
        // The last one matches, so that whoever has it is at the end.
        let count = (self.bytes / self.size.max(1) as u64)
            .max(1)
            .div_ceil(one_in)
            * one_in;
        let topic = TopicName::new(TOPIC, &Limits::DEFAULT)?;
        let payload = Bytes::from(vec![b'.'; self.size]);
        let publisher = client.publisher();
        for number in 1..=count {
            let message = Message::new(topic.clone(), payload.clone());
            let left = number % one_in;
            let message = message.attribute("n", left.cast_signed().into());
            drop(publisher.send(message).await?);
        }
        publisher.flush().await?;
        let little = self.client(Some(CREDIT_BYTES)).await?;
        let (mut filtered, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds.max(1) {
            let all = client.subscribe(TOPIC).from(Start::Earliest);
            plain.push(read(all.open().await?, (count, 1), count).await?);
            let some = little.subscribe(TOPIC).from(Start::Earliest);
            let some = some.filter("n = 0").open().await?;
            filtered.push(read(some, (count / one_in, one_in), count).await?);
        }
        little.close().await?;
        client.close().await?;
        Ok(FilteredBacklogRun {
            messages: count,
            one_in: self.one_in.get(),
            filtered_per_s: Spread::of(filtered).unwrap_or_default(),
            plain_per_s: Spread::of(plain).unwrap_or_default(),
        })
    }

    async fn client(&self, credit: Option<u32>) -> Result<Client, Failure> {
        let builder = Client::builder().url(&*self.target);
        let mut builder = builder
            .namespace(&*self.namespace)
            .connect_timeout(PATIENCE);
        if let Some(credit) = credit {
            builder = builder.credit_bytes(credit);
        }
        Ok(builder.connect().await?)
    }
}

/// Reads so many messages, each so many numbers behind the one before; stored messages a second.
async fn read(
    mut subscription: Subscription,
    (count, step): (u64, u64),
    stored: u64,
) -> Result<f64, Failure> {
    let begun_us = now_us();
    let (mut got, mut last) = (0, None);
    while got < count {
        let Some(Items::Messages(batch)) = subscription.next_batch().await? else {
            return Err(Failure::new("a message expected"));
        };
        for (sequence, _) in batch.iter() {
            let is_next = last.is_none_or(|last: u64| last + step == sequence.0);
            if !is_next {
                return Err(Failure::new(format!("{sequence} behind {last:?}")));
            }
            last = Some(sequence.0);
            got += 1;
        }
    }
    Ok(stored as f64 * 1e6 / (now_us() - begun_us).max(1) as f64)
}

impl fmt::Display for FilteredBacklogRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} stored messages, of which a filter matches one in {}, read by who has {} KiB of credit\n\
             messages passed a second, as median (least-most) of the rounds: {} with it, {} without: {:.2}",
            self.messages,
            self.one_in,
            CREDIT_BYTES >> 10,
            self.filtered_per_s,
            self.plain_per_s,
            self.ratio(),
        )
    }
}
