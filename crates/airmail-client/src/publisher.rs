//! Publishing, as users see it.
//!
//! A [`Publisher`] hands messages over at the client's one [`desk`], which encodes them at once;
//! when there is no room, whoever sends waits in line. Each message's fate comes back by its
//! [`Receipt`].

pub(crate) mod desk;
mod fates;
mod frames;
mod outgoing;
pub(crate) mod task;
mod wire;

use crate::core::Offer;
use crate::named_topic::topic_name;
use airmail_model::batch::AttributeValue;
use airmail_model::{
    AppendTime, Durability, Error, ErrorCode, LogId, Message, Sequence, TopicName,
};
use bytes::Bytes;
use desk::{Desk, Handing, Kept, Work};
use fates::{Page, Tally};
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::task::coop::consume_budget;

/// Where a message was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// In which log.
    pub log: LogId,
    /// Under which number.
    pub sequence: Sequence,
    /// When.
    pub appended: AppendTime,
    /// What held when it was acknowledged.
    pub held: Durability,
    /// Copies that held it.
    pub copies: u8,
    /// It had been stored before, by an attempt whose answer was lost.
    pub duplicate: bool,
    /// No attempt can have been stored beside it.
    pub exact: bool,
}

/// What became of several messages that were handed over together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many were stored.
    pub stored: u64,
    /// How many were not, or may not have been.
    pub failed: u64,
    /// Why, for the first of these.
    pub error: Option<Error>,
}

/// Publishes without waiting for each message. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Publisher {
    desk: Arc<Desk>,
    namespace: Arc<str>,
}

impl Publisher {
    pub(crate) fn new(desk: Arc<Desk>, namespace: Arc<str>) -> Publisher {
        Publisher { desk, namespace }
    }

    /// The same to another namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Publisher {
        self.namespace = namespace.into();
        self
    }

    /// Publishes one message, and waits until it is stored; as [`crate::Client::publish`].
    #[must_use = "nothing is published before it is awaited"]
    pub fn publish(&self, topic: &str, payload: impl Into<Bytes>) -> Publish {
        Publish {
            publisher: self.clone(),
            topic: topic.to_owned(),
            payload: payload.into(),
            attributes: Vec::new(),
        }
    }

    /// Hands a message over; waits for room only.
    ///
    /// # Errors
    /// `SHUTTING_DOWN` once the client is closed. What is wrong with the message, or became of it,
    /// the receipt tells.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is done, the message is not taken.
    pub async fn send(&self, message: Message) -> Result<Receipt, Error> {
        consume_budget().await;
        let offer = Offer::Message(&message);
        if let Some(answer) = self.desk.offer(&self.namespace, offer) {
            return answer;
        }
        self.wait_to_send(message).await
    }

    /// As [`Publisher::send`], for a payload without attributes: nothing is allocated for it, and
    /// the caller's buffer can be used again at once.
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
    /// use airmail_model::{Limits, TopicName};
    ///
    /// let publisher = client.publisher();
    /// let topic = TopicName::new("ticks", &Limits::DEFAULT)?;
    /// for tick in 0..1_000_000_u64 {
    ///     // Whether it was stored is asked once for all, by the flush.
    ///     drop(publisher.send_ref(&topic, &tick.to_le_bytes()).await?);
    /// }
    /// publisher.flush().await
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Publisher::send`].
    ///
    /// # Cancel safety
    /// As [`Publisher::send`].
    pub async fn send_ref(&self, topic: &TopicName, payload: &[u8]) -> Result<Receipt, Error> {
        consume_budget().await;
        let offer = Offer::Payload(topic, payload);
        if let Some(answer) = self.desk.offer(&self.namespace, offer) {
            return answer;
        }
        let payload = Bytes::copy_from_slice(payload);
        self.wait_to_send(Message::new(topic.clone(), payload))
            .await
    }

    async fn wait_to_send(&self, message: Message) -> Result<Receipt, Error> {
        let handing = Handing::new(&self.desk, &self.namespace, Work::One(message));
        match handing.await? {
            Kept::One(receipt) => Ok(receipt),
            Kept::Together(_) => Err(abandoned()),
        }
    }

    /// Hands several messages over, kept in their order, with one receipt for all.
    ///
    /// # Errors
    /// As [`Publisher::send`].
    ///
    /// # Cancel safety
    /// If the future is dropped before it is done, none is taken.
    pub async fn send_all(&self, messages: Vec<Message>) -> Result<SummaryReceipt, Error> {
        consume_budget().await;
        let handing = Handing::new(&self.desk, &self.namespace, Work::Together(messages));
        match handing.await? {
            Kept::Together(receipt) => Ok(receipt),
            Kept::One(_) => Err(abandoned()),
        }
    }

    /// Waits until everything that was handed over before, by any clone, is stored or has failed.
    ///
    /// # Errors
    /// `SHUTTING_DOWN` once the client is closed.
    pub async fn flush(&self) -> Result<(), Error> {
        let flushed = self.desk.flush()?;
        flushed.await.map_err(|_| desk::closed())
    }
}

/// The fate of one message, as a future. It keeps what is known of some neighbours in memory, 256
/// at most; dropping it costs nothing.
#[derive(Debug)]
#[must_use = "a message's failure is told by its receipt"]
pub struct Receipt {
    page: Arc<Page>,
    number: u64,
}

impl Future for Receipt {
    type Output = Result<Published, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.page.poll(self.number, context)
    }
}

/// The fate of several messages, as a future. It fails only if the client is dropped before all is
/// known; else the summary says what failed.
#[derive(Debug)]
#[must_use = "messages' failures are told by their receipt"]
pub struct SummaryReceipt(Arc<Tally>);

impl Future for SummaryReceipt {
    type Output = Result<Summary, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}

/// The client is gone, and with it the knowledge of what became of the message.
fn abandoned() -> Error {
    Error::new(ErrorCode::OutcomeUnknown)
        .field("client")
        .value("dropped without close")
}

/// One message to be published: give it attributes, and await it.
#[derive(Debug)]
#[must_use = "nothing is published before it is awaited"]
pub struct Publish {
    publisher: Publisher,
    topic: String,
    payload: Bytes,
    attributes: Vec<(String, AttributeValue)>,
}

impl Publish {
    /// To another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> Publish {
        self.publisher = self.publisher.namespace(namespace);
        self
    }

    /// Adds an attribute; each name once.
    pub fn attribute(mut self, name: &str, value: impl Into<AttributeValue>) -> Publish {
        self.attributes.push((name.to_owned(), value.into()));
        self
    }
}

impl IntoFuture for Publish {
    type Output = Result<Published, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut message = Message::new(topic_name(&self.topic)?, self.payload);
            message.attributes = self.attributes;
            self.publisher.send(message).await?.await
        })
    }
}
