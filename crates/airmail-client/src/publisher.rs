//! Publishing, as users see it.
//!
//! A [`Publisher`] hands messages to the client's one publishing task through a bounded queue; the
//! task holds as many as its memory bound allows, and when there is no room, [`Publisher::send`]
//! waits. Each message's fate comes back by its [`Receipt`].

pub(crate) mod actor;
mod groups;
mod wire;

pub(crate) use wire::hello;

use actor::{Command, Handle, Work};
use airmail_model::batch::AttributeValue;
use airmail_model::{
    AppendTime, Durability, Error, ErrorCode, Limits, LogId, Message, Sequence, TopicName,
};
use bytes::Bytes;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;

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
    handle: Handle,
    namespace: Arc<str>,
}

impl Publisher {
    pub(crate) fn new(handle: Handle, namespace: Arc<str>) -> Publisher {
        Publisher { handle, namespace }
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
        let (done, receipt) = oneshot::channel();
        self.command(Work::One(message, done)).await?;
        Ok(Receipt(receipt))
    }

    /// Hands several messages over, kept in their order, with one receipt for all: the way of the
    /// highest rates.
    ///
    /// # Errors
    /// As [`Publisher::send`].
    ///
    /// # Cancel safety
    /// If the future is dropped before it is done, none is taken.
    pub async fn send_all(&self, messages: Vec<Message>) -> Result<SummaryReceipt, Error> {
        let (done, receipt) = oneshot::channel();
        self.command(Work::Many(messages.into(), done)).await?;
        Ok(SummaryReceipt(receipt))
    }

    /// Waits until everything that was handed over before, by any clone, is stored or has failed.
    ///
    /// # Errors
    /// `SHUTTING_DOWN` once the client is closed.
    pub async fn flush(&self) -> Result<(), Error> {
        let (done, flushed) = oneshot::channel();
        self.handle.send(Command::Flush(done)).await?;
        flushed.await.map_err(|_| actor::closed())
    }

    async fn command(&self, work: Work) -> Result<(), Error> {
        let namespace = Arc::clone(&self.namespace);
        self.handle.send(Command::Publish(namespace, work)).await
    }
}

/// The fate of one message, as a future.
#[derive(Debug)]
#[must_use = "a message's failure is told by its receipt"]
pub struct Receipt(oneshot::Receiver<Result<Published, Error>>);

impl Future for Receipt {
    type Output = Result<Published, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let told = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(told.unwrap_or_else(|_| Err(abandoned())))
    }
}

/// The fate of several messages, as a future. It never fails: the summary says what did.
#[derive(Debug)]
#[must_use = "messages' failures are told by their receipt"]
pub struct SummaryReceipt(oneshot::Receiver<Summary>);

impl Future for SummaryReceipt {
    type Output = Result<Summary, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let told = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(told.map_err(|_| abandoned()))
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

/// A topic's name; its length is checked against the node's limits when it is encoded.
pub(crate) fn topic_name(name: &str) -> Result<TopicName, Error> {
    let unlimited = Limits {
        topic_bytes: u32::MAX,
        ..Limits::DEFAULT
    };
    TopicName::new(name, &unlimited)
}
