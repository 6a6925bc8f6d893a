//! Airmail, through its SDK with the settings that a user gets.

use super::{Failure, Outcome, System};
use crate::chunk::Chunk;
use crate::run::{Account, Job};
use airmail_client::{AckFuture, Lane, Message, Publisher, Start, Subscription};
use airmail_client::{Client, Items, ManyItems, ManySubscription};
use airmail_model::{Durability, Limits, TopicName};
use bytes::Bytes;
use std::future::Future;

/// A node, or several.
#[derive(Clone, Debug)]
pub struct Airmail {
    url: String,
    namespace: String,
    /// The namespace is the run's own.
    made: bool,
    durability: Option<String>,
    /// Name of the machine that clients say they are on.
    host: Option<String>,
    /// Each batch, and so each request of a publisher, has one message.
    unbatched: bool,
    /// Lane of what is published.
    lane: Lane,
}

impl Airmail {
    /// The nodes at `airmail://HOST:PORT[,HOST:PORT…]`.
    #[must_use]
    pub fn new(url: &str, job: &Job) -> Airmail {
        Airmail {
            url: url.to_owned(),
            namespace: job.settings.namespace.clone(),
            made: job.own_namespace,
            durability: job.settings.durability.clone(),
            host: job.host.clone(),
            unbatched: job.settings.unbatched,
            lane: if job.settings.high {
                Lane::High
            } else {
                Lane::Normal
            },
        }
    }
}

impl System for Airmail {
    type Client = Client;
    type Publisher = AirmailPublisher;
    type Subscription = AirmailSubscription;

    async fn prepare(&self, _prefix: &str) -> Result<(), Failure> {
        if self.made {
            let asked = self.durability.as_deref();
            let durability = asked.map(durability).transpose()?;
            let client = self.connect().await?;
            let admin = client.admin();
            admin
                .create(&self.namespace, None, None, durability)
                .await?;
            client.close().await?;
        }
        Ok(())
    }

    async fn clear(&self, _prefix: &str) -> Result<(), Failure> {
        if self.made {
            let client = self.connect().await?;
            client.admin().delete(&self.namespace, None).await?;
            client.close().await?;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let mut builder = Client::builder()
            .url(&*self.url)
            .namespace(&*self.namespace);
        if let Some(host) = &self.host {
            builder = builder.host(&**host);
        }
        if self.unbatched {
            builder = builder.batch_messages(1);
        }
        Ok(builder.connect().await?)
    }

    fn publisher(&self, client: &Client, topics: &[String]) -> Result<AirmailPublisher, Failure> {
        let names = topics
            .iter()
            .map(|topic| TopicName::new(topic, &Limits::DEFAULT));
        Ok(AirmailPublisher {
            publisher: client.publisher(),
            topics: names.collect::<Result<_, _>>()?,
            lane: self.lane,
        })
    }

    async fn subscribe(
        &self,
        client: &Client,
        topics: &[String],
        from_earliest: bool,
    ) -> Result<AirmailSubscription, Failure> {
        let start = if from_earliest {
            Start::Earliest
        } else {
            Start::Latest
        };
        Ok(match topics {
            [topic] => {
                let opened = client.subscribe(topic).from(start).open();
                AirmailSubscription::One(opened.await?)
            }
            topics => {
                let many = client.subscribe_many(topics.iter().map(String::as_str));
                AirmailSubscription::Many(many.from(start).open().await?)
            }
        })
    }

    async fn close(&self, client: Client) -> Result<(), Failure> {
        Ok(client.close().await?)
    }
}

fn durability(name: &str) -> Result<Durability, Failure> {
    let named = name.parse::<Durability>();
    named.map_err(|error| Failure::new(format!("durability {name}: {error}")))
}

/// Publishes to some topics.
#[derive(Debug)]
pub struct AirmailPublisher {
    publisher: Publisher,
    topics: Vec<TopicName>,
    lane: Lane,
}

impl super::Publisher for AirmailPublisher {
    type Acks = std::pin::Pin<Box<dyn Future<Output = Outcome> + Send>>;

    async fn send(&mut self, chunk: &Chunk) -> Result<Self::Acks, Failure> {
        let messages = chunk.messages();
        let mut acks = Vec::with_capacity(messages.len());
        for (topic, payload) in messages {
            let topic = &self.topics[topic];
            acks.push(match self.lane {
                Lane::Normal => self.publisher.send_ref(topic, payload).await?,
                lane => {
                    let payload = Bytes::copy_from_slice(payload);
                    let message = Message::new(topic.clone(), payload).lane(lane);
                    self.publisher.send(message).await?
                }
            });
        }
        Ok(Box::pin(outcome(acks)))
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.publisher.flush().await?)
    }
}

/// Asks the last one first: when that is stored, the others need not be waited for one by one.
pub async fn outcome(mut acks: Vec<AckFuture>) -> Outcome {
    let mut outcome = Outcome::default();
    while let Some(ack) = acks.pop() {
        outcome.enter(ack.await.map(drop).map_err(Failure::from));
    }
    outcome
}

/// Receives one topic, or many.
#[derive(Debug)]
pub enum AirmailSubscription {
    /// The run has one.
    One(Subscription),
    /// The run has several, which share a stream.
    Many(ManySubscription),
}

impl super::Subscription for AirmailSubscription {
    async fn next(&mut self, account: &mut Account) -> Result<bool, Failure> {
        match self {
            AirmailSubscription::One(one) => next(one, account).await,
            AirmailSubscription::Many(many) => next_of_many(many, account).await,
        }
    }
}

async fn next(one: &mut Subscription, account: &mut Account) -> Result<bool, Failure> {
    let Some(first) = one.next_batch().await? else {
        return Ok(false);
    };
    account.begin();
    enter(account, &first);
    while one.ready() {
        match one.next_batch().await? {
            Some(items) => enter(account, &items),
            None => break,
        }
    }
    account.end();
    Ok(true)
}

fn enter(account: &mut Account, items: &Items) {
    match items {
        Items::Messages(messages) => {
            for (_, record) in messages.iter() {
                account.take(record.payload);
            }
        }
        Items::Gap(_) => account.take_gap(),
        // Nobody asks to be told of what has expired.
        Items::Expired(_) => {}
    }
}

async fn next_of_many(many: &mut ManySubscription, account: &mut Account) -> Result<bool, Failure> {
    let Some(first) = many.next_batch().await? else {
        return Ok(false);
    };
    account.begin();
    enter_of_many(account, &first);
    while many.ready() {
        match many.next_batch().await? {
            Some(items) => enter_of_many(account, &items),
            None => break,
        }
    }
    account.end();
    Ok(true)
}

fn enter_of_many(account: &mut Account, items: &ManyItems) {
    match items {
        ManyItems::Messages(messages) => {
            for (topic, _, record) in messages.iter_topics() {
                account.take_of(topic, record.payload);
            }
        }
        ManyItems::Gap(..) => account.take_gap(),
        ManyItems::Expired(..) => {}
    }
}
