//! The load: batches offered on several streams, each on a connection of its own.
//!
//! An open load does not wait for anything: each batch is due when the timetable says so, and if the
//! node does not read, its time goes on. A closed load, by which capacity is found, sends a batch when
//! another one is answered. Nothing is tried again, and batches have no producer's identity, so that a
//! refused one leaves no hole.

use super::encoder::Encoder;
use super::source::{Source, Timetable};
use super::stream::{Heard, PublishStream, Story, request};
use airmail_bench::alarm::Alarm;
use airmail_bench::clock::now_us;
use airmail_bench::run::Share;
use airmail_model::frame::RequestId;
use airmail_proto::publish::batch_to_proto;
use airmail_proto::v1;
use airmail_proto::v1::publish_request::Kind;
use airmail_proto::v1::publish_response::Kind as Answer;
use futures::future::try_join_all;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tonic::Streaming;

/// Batches in one request at most.
const BATCHES_MAX: usize = 64;
/// Interval at which it is looked whether to go on.
const LOOK_US: u64 = 200_000;

/// A load that is offered to a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Load {
    /// The node, as `airmail://HOST:PORT`.
    pub(super) url: String,
    /// Distinguishes this load's messages from others'.
    pub(super) run: u32,
    /// Streams of all processes together, each with a connection and a topic of its own.
    pub(super) streams: u32,
    /// The streams of this process.
    pub(super) share: Share,
    /// Messages in a batch.
    pub(super) batch: u32,
    /// Payload of a message, in bytes.
    pub(super) size: usize,
    /// When batches are sent.
    pub(super) plan: Plan,
    /// Duration, in microseconds.
    pub(super) duration_us: u64,
    /// Longest wait for answers after that.
    pub(super) patience: Duration,
}

/// When batches are sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Plan {
    /// Sends batches at random, at a mean rate, like clients that do not know one another.
    Open {
        /// Mean rate of all streams together.
        batches_per_s: f64,
        /// Seed of the random times.
        seed: u64,
    },
    /// When others are answered.
    Closed {
        /// Unanswered batches of each stream.
        batches: u32,
    },
}

/// Result of a load.
#[derive(Debug)]
pub(super) struct Offered {
    /// When it began, in microseconds of the bench's clock.
    pub(super) start_us: u64,
    /// When nothing was offered any more.
    pub(super) end_us: u64,
    /// When nothing was listened to any more.
    pub(super) heard_until_us: u64,
    /// Story of each stream.
    pub(super) streams: Vec<Story>,
}

impl Load {
    /// The numbers of this process's streams, in order.
    pub(super) fn own_streams(&self) -> impl Iterator<Item = u32> {
        self.share.of(self.streams)
    }

    /// The topic of a stream. A node that was there before may have those of other runs.
    pub(super) fn topic(&self, stream: u32) -> String {
        format!("bench/overload/{:08x}/{stream}", self.run)
    }

    /// Opens this process's streams.
    pub(super) async fn open(&self) -> anyhow::Result<Vec<PublishStream>> {
        let opening = self.own_streams().map(|_| PublishStream::open(&self.url));
        try_join_all(opening).await
    }

    /// Offers it on these streams, from then on.
    pub(super) async fn offer(
        &self,
        open: Vec<PublishStream>,
        start_us: u64,
    ) -> anyhow::Result<Offered> {
        let end_us = start_us + self.duration_us;
        let running = open.into_iter().zip(self.own_streams());
        let running = running.map(|(stream, number)| {
            let encoder = Encoder::new(self, number, &stream.map);
            self.run_stream(number, stream, encoder, start_us..end_us)
        });
        let running: Vec<_> = running.collect();
        Alarm::new()?.wait_until(start_us).await?;
        let streams = try_join_all(running).await?;
        Ok(Offered {
            start_us,
            end_us,
            heard_until_us: now_us(),
            streams,
        })
    }

    async fn run_stream(
        &self,
        number: u32,
        stream: PublishStream,
        encoder: anyhow::Result<Encoder>,
        span_us: std::ops::Range<u64>,
    ) -> anyhow::Result<Story> {
        let encoder = encoder?;
        let (source, permits) = self.source(number, span_us.start)?;
        let give_up_us = span_us.end + self.patience.as_micros() as u64;
        let sending = send(stream.requests, source, encoder, span_us.end);
        let hearing = hear(stream.answers, permits, give_up_us);
        let (sent, (heard, error)) = tokio::join!(sending, hearing);
        let (dues_us, unsent) = sent?;
        Ok(Story {
            dues_us,
            unsent,
            heard,
            error,
        })
    }

    /// Where a stream's times come from, and what answers are told to.
    fn source(
        &self,
        stream: u32,
        start_us: u64,
    ) -> anyhow::Result<(Source, Option<Arc<Semaphore>>)> {
        match self.plan {
            Plan::Open {
                batches_per_s,
                seed,
            } => {
                let per_s = batches_per_s / f64::from(self.streams);
                let seed = seed.wrapping_mul(1_000).wrapping_add(stream.into());
                let timetable = Timetable::new(seed, per_s, start_us)?;
                Ok((Source::Open(Box::new(timetable)), None))
            }
            Plan::Closed { batches } => {
                let permits = Arc::new(Semaphore::new(batches as usize));
                Ok((Source::Closed(Arc::clone(&permits)), Some(permits)))
            }
        }
    }
}

/// Sends what is due until the end; the times of what was sent, and how many were not.
async fn send(
    requests: mpsc::Sender<v1::PublishRequest>,
    mut source: Source,
    mut encoder: Encoder,
    end_us: u64,
) -> anyhow::Result<(Vec<u64>, u64)> {
    let mut dues = Vec::new();
    loop {
        let now = now_us();
        if now >= end_us {
            break;
        }
        source.wait(end_us.min(now + LOOK_US)).await?;
        let left = Duration::from_micros(end_us.saturating_sub(now_us()));
        let Ok(room) = timeout(left, requests.reserve()).await else {
            break;
        };
        // The stream has ended: whoever listens to it knows why.
        let Ok(room) = room else { break };
        let now = now_us();
        let mut batches = Vec::new();
        while batches.len() < BATCHES_MAX
            && let Some(due_us) = source.take(now, end_us)
        {
            let batch = encoder.batch(dues.len() as u64, due_us)?;
            batches.push(batch_to_proto(RequestId(dues.len() as u64), &batch));
            dues.push(due_us);
        }
        if !batches.is_empty() {
            room.send(request(Kind::Batches(v1::PublishBatches { batches })));
        }
    }
    Ok((dues, source.left(end_us)))
}

/// Listens until everything is answered, or for too long; and what ended the stream, if not the node
/// as it should.
async fn hear(
    mut answers: Streaming<v1::PublishResponse>,
    permits: Option<Arc<Semaphore>>,
    give_up_us: u64,
) -> (Vec<Heard>, Option<String>) {
    let mut heard = Vec::new();
    let mut look = std::pin::pin!(sleep(Duration::from_micros(LOOK_US)));
    loop {
        let message = tokio::select! {
            biased;
            message = answers.message() => message,
            () = look.as_mut() => {
                if now_us() >= give_up_us {
                    return (heard, None);
                }
                look.set(sleep(Duration::from_micros(LOOK_US)));
                continue;
            }
        };
        let acks = match message {
            Ok(None) => return (heard, None),
            Err(status) => return (heard, Some(status.to_string())),
            Ok(Some(v1::PublishResponse {
                kind: Some(Answer::Acks(acks)),
            })) => acks.acks,
            Ok(Some(_)) => continue,
        };
        let at_us = now_us();
        if let Some(permits) = &permits {
            permits.add_permits(acks.len());
        }
        heard.extend(acks.iter().map(|ack| Heard::new(ack, at_us)));
    }
}
