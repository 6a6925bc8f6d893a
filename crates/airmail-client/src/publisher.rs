//! Publishing, as users see it.
//!
//! A [`Publisher`] hands messages over to the client's one [`accumulator`], which encodes them at
//! once; a sender that finds no room there waits for its turn. Each message's result comes back by
//! its [`AckFuture`].

pub(crate) mod accumulator;
mod ack_future;
mod client_ended;
mod completion_page;
mod completions;
mod group_completion;
mod publish_frames;
mod publish_stream;
pub(crate) mod publish_task;
mod published;
mod request_body;

pub use ack_future::{AckFuture, SummaryFuture};
pub use published::{Published, Summary};

use crate::core::MessageRef;
use crate::named_topic::topic_name;
use accumulator::{Accumulator, Submission, WaitToSubmit};
use airmail_model::batch::AttributeValue;
use airmail_model::{Error, ErrorCode, Lane, Message, RoleId, TopicName};
use bytes::Bytes;
use client_ended::ClientEnded;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::coop::consume_budget;

/// Publishes without waiting for each message. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Publisher {
    accumulator: Arc<Accumulator>,
    namespace: Arc<str>,
}

impl Publisher {
    pub(crate) fn new(accumulator: Arc<Accumulator>, namespace: Arc<str>) -> Publisher {
        Publisher {
            accumulator,
            namespace,
        }
    }

    /// Publishes to another namespace instead.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Publisher {
        self.namespace = namespace.into();
        self
    }

    /// Publishes one message, and waits until it is stored; see [`crate::Client::publish`].
    #[must_use = "nothing is published before it is awaited"]
    pub fn publish(&self, topic: &str, payload: impl Into<Bytes>) -> Publish {
        Publish {
            publisher: self.clone(),
            topic: topic.to_owned(),
            payload: payload.into(),
            lane: Lane::Normal,
            attributes: Vec::new(),
            ttl: None,
            audience: Vec::new(),
        }
    }

    /// Hands a message over; waits only until there is room for it. One of lane high waits for nobody of lane
    /// normal, and has an eighth more of the room:
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
    /// use airmail_client::{Lane, Message};
    /// use airmail_model::{Limits, TopicName};
    ///
    /// let topic = TopicName::new("alarms", &Limits::DEFAULT)?;
    /// let alarm = Message::new(topic, "pressure").lane(Lane::High);
    /// client.publisher().send(alarm).await?.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `SHUTTING_DOWN` once the client is closed. All other errors, those of the message itself
    /// among them, come by the ack future.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is done, the message is not taken.
    pub async fn send(&self, message: Message) -> Result<AckFuture, Error> {
        consume_budget().await;
        let offered = MessageRef::Message(&message);
        if let Some(appended) = self.accumulator.try_append(&self.namespace, offered) {
            return Ok(appended?);
        }
        Ok(self.wait_to_submit(message).await?)
    }

    /// Hands a payload without attributes over, in lane normal, like [`Publisher::send`] but from the caller's
    /// buffer: nothing is allocated for it, and the buffer can be used again at once.
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
    /// use airmail_model::{Limits, TopicName};
    ///
    /// let publisher = client.publisher();
    /// let topic = TopicName::new("ticks", &Limits::DEFAULT)?;
    /// for tick in 0..1_000_000_u64 {
    ///     // Nobody waits for this message alone: the flush waits for all.
    ///     drop(publisher.send_ref(&topic, &tick.to_le_bytes()).await?);
    /// }
    /// publisher.flush().await
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Publisher::send`].
    ///
    /// # Cancel safety
    /// That of [`Publisher::send`].
    pub async fn send_ref(&self, topic: &TopicName, payload: &[u8]) -> Result<AckFuture, Error> {
        consume_budget().await;
        let offered = MessageRef::Payload(topic, payload);
        if let Some(appended) = self.accumulator.try_append(&self.namespace, offered) {
            return Ok(appended?);
        }
        let payload = Bytes::copy_from_slice(payload);
        let message = Message::new(topic.clone(), payload);
        Ok(self.wait_to_submit(message).await?)
    }

    fn wait_to_submit<S: Submission>(&self, submission: S) -> WaitToSubmit<'_, S> {
        WaitToSubmit::new(&self.accumulator, &self.namespace, submission)
    }

    /// Hands several messages over, in their order within each lane, with one ack future for all. Where there are messages of
    /// both lanes, it waits for its turn in lane normal, and then for that in lane high: its own messages of lane high wait with
    /// those of lane normal, others of lane high do not.
    ///
    /// # Errors
    /// Those of [`Publisher::send`].
    ///
    /// # Cancel safety
    /// If the future is dropped before it is done, none of the messages is taken.
    pub async fn send_all(&self, messages: Vec<Message>) -> Result<SummaryFuture, Error> {
        consume_budget().await;
        Ok(self.wait_to_submit(messages).await?)
    }

    /// Waits until everything that was handed over before, by any clone, is stored or has failed.
    ///
    /// # Errors
    /// `SHUTTING_DOWN` once the client is closed.
    pub async fn flush(&self) -> Result<(), Error> {
        let flushed = self.accumulator.flush()?;
        flushed.await.map_err(|_| ClientEnded::Closed.into())
    }
}

/// One message to be published: give it attributes, and await it.
#[derive(Debug)]
#[must_use = "nothing is published before it is awaited"]
pub struct Publish {
    publisher: Publisher,
    topic: String,
    payload: Bytes,
    lane: Lane,
    attributes: Vec<(String, AttributeValue)>,
    ttl: Option<Duration>,
    audience: Vec<RoleId>,
}

impl Publish {
    /// Publishes to another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> Publish {
        self.publisher = self.publisher.namespace(namespace);
        self
    }

    /// Adds an attribute; each name may occur once.
    pub fn attribute(mut self, name: &str, value: impl Into<AttributeValue>) -> Publish {
        self.attributes.push((name.to_owned(), value.into()));
        self
    }

    /// Publishes it in a lane. One of lane high overtakes those of lane normal wherever messages wait; order holds
    /// within a topic and lane. Default: normal.
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_client::Error> {
    /// use airmail_client::Lane;
    ///
    /// client.publish("alarms", "pressure").lane(Lane::High).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lane(mut self, lane: Lane) -> Publish {
        self.lane = lane;
        self
    }

    /// Sets its time to live, 1 to 4,294,967,295 ms: so long after its append time it is given to nobody any more. Default:
    /// for ever.
    pub fn ttl(mut self, ttl: Duration) -> Publish {
        self.ttl = Some(ttl);
        self
    }

    /// Has it given only to who has one of these roles ([`Admin::role`](crate::Admin::role) finds their numbers), at most
    /// 255. Default: to everybody.
    pub fn for_roles(mut self, roles: impl IntoIterator<Item = RoleId>) -> Publish {
        self.audience.extend(roles);
        self
    }
}

impl IntoFuture for Publish {
    type Output = Result<Published, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut message = Message::new(topic_name(&self.topic)?, self.payload);
            message.lane = self.lane;
            message.attributes = self.attributes;
            message.ttl_ms = self.ttl.map(ttl_ms).transpose()?;
            message.audience = self.audience;
            self.publisher.send(message).await?.await
        })
    }
}

/// A time to live in milliseconds, as messages have it.
fn ttl_ms(ttl: Duration) -> Result<u32, Error> {
    let ms = ttl.as_millis();
    u32::try_from(ms).map_err(|_| {
        Error::new(ErrorCode::InvalidArgument)
            .field("ttl")
            .value(format_args!("{ms} ms"))
            .limit(format_args!("at most {} ms", u32::MAX))
    })
}
