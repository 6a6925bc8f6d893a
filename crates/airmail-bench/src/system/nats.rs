//! NATS core, through `async-nats`: nothing is stored, nothing is acknowledged.
//!
//! A published message counts as acknowledged when the client has taken it; the subscribers'
//! accounts show whether it arrived. Subscriptions have room for all messages that a run lets be
//! under way, so that none is a *slow consumer*.

use super::{Failure, Outcome, System};
use crate::chunk::Chunk;
use crate::run::Account;
use async_nats::{Client, ConnectOptions, Subject, Subscriber};
use futures::{FutureExt, StreamExt};
use std::future::{Ready, ready};

/// Messages that wait in a subscription, and commands that wait in a client, at most.
const CAPACITY: usize = 1 << 17;

/// A server.
#[derive(Clone, Debug)]
pub struct Nats {
    url: String,
}

/// A topic as a subject.
pub(super) fn subject(topic: &str) -> String {
    topic.replace('/', ".")
}

/// One subject that stands for all these topics, which differ in their last part only, the place in
/// the list.
pub(super) fn subject_of(topics: &[String]) -> Result<String, Failure> {
    match topics {
        [topic] => Ok(subject(topic)),
        [topic, ..] => {
            let common = topic.rsplit_once('/').map(|(common, _)| common);
            let common = common.ok_or_else(|| Failure::new("topics without a common part"))?;
            Ok(format!("{}.*", subject(common)))
        }
        [] => Err(Failure::new("no topics")),
    }
}

/// Enters a message of a subscription to one topic, or to several.
pub(super) fn enter(account: &mut Account, several: bool, subject: &Subject, payload: &[u8]) {
    if !several {
        return account.take(payload);
    }
    let place = subject.rsplit_once('.').map(|(_, last)| last.parse());
    match place {
        Some(Ok(place)) => account.take_of(place, payload),
        _ => account.take_strange(),
    }
}

/// Connects, with room for a run.
pub(super) async fn connect(url: &str) -> Result<Client, Failure> {
    let options = ConnectOptions::new().subscription_capacity(CAPACITY);
    options
        .connect(url)
        .await
        .map_err(|error| Failure::new(format!("{url}: {error}")))
}

impl Nats {
    /// The server at `nats://HOST:PORT`.
    #[must_use]
    pub fn new(url: &str) -> Nats {
        Nats {
            url: url.to_owned(),
        }
    }
}

impl System for Nats {
    type Client = Client;
    type Publisher = NatsPublisher;
    type Subscription = NatsSubscription;

    async fn prepare(&self, _prefix: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn clear(&self, _prefix: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn connect(&self) -> Result<Client, Failure> {
        connect(&self.url).await
    }

    fn publisher(&self, client: &Client, topics: &[String]) -> Result<NatsPublisher, Failure> {
        Ok(NatsPublisher {
            client: client.clone(),
            subjects: topics.iter().map(|topic| subject(topic).into()).collect(),
        })
    }

    async fn subscribe(
        &self,
        client: &Client,
        topics: &[String],
        from_earliest: bool,
    ) -> Result<NatsSubscription, Failure> {
        if from_earliest {
            return Err(Failure::new("from: NATS core stores nothing"));
        }
        let subscriber = client
            .subscribe(subject_of(topics)?)
            .await
            .map_err(Failure::new)?;
        // The server has it when it has answered what was sent after it.
        client.flush().await.map_err(Failure::new)?;
        Ok(NatsSubscription {
            subscriber,
            several: topics.len() > 1,
        })
    }

    async fn close(&self, client: Client) -> Result<(), Failure> {
        client.drain().await.map_err(Failure::new)
    }
}

/// Publishes to some topics.
#[derive(Debug)]
pub struct NatsPublisher {
    client: Client,
    subjects: Vec<Subject>,
}

impl super::Publisher for NatsPublisher {
    type Acks = Ready<Outcome>;

    async fn send(&mut self, chunk: &Chunk) -> Result<Ready<Outcome>, Failure> {
        for (topic, payload) in chunk.shared() {
            let subject = self.subjects[topic].clone();
            self.client
                .publish(subject, payload)
                .await
                .map_err(Failure::new)?;
        }
        Ok(ready(Outcome::all(chunk.count())))
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        self.client.flush().await.map_err(Failure::new)
    }
}

/// Receives one topic, or by a wildcard several.
#[derive(Debug)]
pub struct NatsSubscription {
    subscriber: Subscriber,
    several: bool,
}

impl super::Subscription for NatsSubscription {
    async fn next(&mut self, account: &mut Account) -> Result<bool, Failure> {
        let several = self.several;
        let Some(first) = self.subscriber.next().await else {
            return Ok(false);
        };
        account.begin();
        enter(account, several, &first.subject, &first.payload);
        while let Some(Some(message)) = self.subscriber.next().now_or_never() {
            enter(account, several, &message.subject, &message.payload);
        }
        account.end();
        Ok(true)
    }
}
