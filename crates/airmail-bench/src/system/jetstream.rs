//! NATS JetStream, through `async-nats`: a stream on files, asynchronous publishes whose acks are
//! awaited in a window, and an ordered consumer for each subscription.
//!
//! Whether an ack means synced to disk is a setting of the server (`sync_interval`), not of a client.

use super::nats::{connect, enter, subject, subject_of};
use super::{Failure, Outcome, System};
use crate::chunk::Chunk;
use crate::run::Account;
use async_nats::Client;
use async_nats::Subject;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::context::{Context, PublishAckFuture};
use async_nats::jetstream::{self, stream};
use futures::{FutureExt, StreamExt};
use std::future::Future;
use std::pin::Pin;

/// Acks that a publisher waits for, as `nats bench` does for its asynchronous publishes.
const WINDOW: u32 = 500;

/// A server with JetStream.
#[derive(Clone, Debug)]
pub struct JetStream {
    url: String,
}

impl JetStream {
    /// The server at `nats://HOST:PORT`.
    #[must_use]
    pub fn new(url: &str) -> JetStream {
        JetStream {
            url: url.to_owned(),
        }
    }
}

/// The stream that holds all topics of a run: their common beginning, in letters that may name it.
fn stream_name(topic: &str) -> String {
    let mut words = topic.split('/');
    let name: Vec<&str> = words.by_ref().take(2).collect();
    name.join("_")
}

impl System for JetStream {
    type Client = Context;
    type Publisher = JetStreamPublisher;
    type Subscription = JetStreamSubscription;

    fn in_flight(&self) -> Option<u32> {
        Some(WINDOW)
    }

    async fn prepare(&self, prefix: &str) -> Result<(), Failure> {
        let config = stream::Config {
            name: stream_name(prefix),
            subjects: vec![format!("{}.>", subject(prefix))],
            storage: stream::StorageType::File,
            ..stream::Config::default()
        };
        let context = self.connect().await?;
        context
            .get_or_create_stream(config)
            .await
            .map_err(Failure::new)?;
        Ok(())
    }

    async fn clear(&self, prefix: &str) -> Result<(), Failure> {
        let context = self.connect().await?;
        context
            .delete_stream(stream_name(prefix))
            .await
            .map_err(Failure::new)?;
        Ok(())
    }

    async fn connect(&self) -> Result<Context, Failure> {
        Ok(jetstream::new(connect(&self.url).await?))
    }

    fn publisher(
        &self,
        client: &Context,
        topics: &[String],
    ) -> Result<JetStreamPublisher, Failure> {
        Ok(JetStreamPublisher {
            context: client.clone(),
            subjects: topics.iter().map(|topic| subject(topic).into()).collect(),
        })
    }

    async fn subscribe(
        &self,
        client: &Context,
        topics: &[String],
        from_earliest: bool,
    ) -> Result<JetStreamSubscription, Failure> {
        let name = topics.first().map(|topic| stream_name(topic));
        let stream = client
            .get_stream(name.unwrap_or_default())
            .await
            .map_err(Failure::new)?;
        let config = pull::OrderedConfig {
            filter_subject: subject_of(topics)?,
            deliver_policy: if from_earliest {
                DeliverPolicy::All
            } else {
                DeliverPolicy::New
            },
            ..pull::OrderedConfig::default()
        };
        let consumer = stream.create_consumer(config).await.map_err(Failure::new)?;
        let messages = consumer.messages().await.map_err(Failure::new)?;
        Ok(JetStreamSubscription {
            messages: Box::new(messages),
            several: topics.len() > 1,
        })
    }

    async fn close(&self, client: Context) -> Result<(), Failure> {
        let client: Client = client.client();
        client.drain().await.map_err(Failure::new)
    }
}

/// Publishes to some topics.
#[derive(Debug)]
pub struct JetStreamPublisher {
    context: Context,
    subjects: Vec<Subject>,
}

impl super::Publisher for JetStreamPublisher {
    type Acks = Pin<Box<dyn Future<Output = Outcome> + Send>>;

    async fn send(&mut self, chunk: &Chunk) -> Result<Self::Acks, Failure> {
        let messages = chunk.shared();
        let mut acks = Vec::with_capacity(messages.len());
        for (topic, payload) in messages {
            let subject = self.subjects[topic].clone();
            acks.push(
                self.context
                    .publish(subject, payload)
                    .await
                    .map_err(Failure::new)?,
            );
        }
        Ok(Box::pin(outcome(acks)))
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

async fn outcome(acks: Vec<PublishAckFuture>) -> Outcome {
    let mut outcome = Outcome::default();
    for ack in acks {
        outcome.enter(ack.await.map(drop).map_err(Failure::new));
    }
    outcome
}

/// Receives one topic, or by a wildcard several.
pub struct JetStreamSubscription {
    messages: Box<pull::Ordered>,
    several: bool,
}

impl std::fmt::Debug for JetStreamSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JetStreamSubscription")
            .finish_non_exhaustive()
    }
}

impl super::Subscription for JetStreamSubscription {
    async fn next(&mut self, account: &mut Account) -> Result<bool, Failure> {
        let several = self.several;
        let Some(first) = self.messages.next().await else {
            return Ok(false);
        };
        account.begin();
        let first = first.map_err(Failure::new)?;
        enter(account, several, &first.subject, &first.payload);
        while let Some(Some(message)) = self.messages.next().now_or_never() {
            let message = message.map_err(Failure::new)?;
            enter(account, several, &message.subject, &message.payload);
        }
        account.end();
        Ok(true)
    }
}
