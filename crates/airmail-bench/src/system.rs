//! The system under test, as the workloads see it: Airmail, or a rival by its own client.
//!
//! A system's client is asked to do what it is good at: to take many messages at once, to say later
//! how many of them it has stored, and to give all arrived messages in one go. So nothing here is
//! called for each message but the account, and a client that gives single messages is drained
//! until it has no more.

pub mod airmail;
#[cfg(feature = "rivals")]
pub mod jetstream;
#[cfg(feature = "rivals")]
pub mod kafka;
#[cfg(feature = "rivals")]
pub mod nats;
pub mod null;
#[cfg(feature = "rivals")]
pub mod redis;

use crate::chunk::Chunk;
use crate::run::Account;
use std::fmt::Display;
use std::future::Future;

/// Failure of a run, of a publisher or of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    /// Takes over the words of the failed operation.
    #[must_use]
    pub fn new(cause: impl Display) -> Failure {
        Failure(cause.to_string())
    }
}

impl From<airmail_client::Error> for Failure {
    fn from(error: airmail_client::Error) -> Failure {
        Failure::new(error)
    }
}

/// Outcome of some messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Stored, or whatever an ack of the system means.
    pub acknowledged: u64,
    /// Refused, or not known.
    pub failed: u64,
    /// Error of the first of these.
    pub error: Option<Failure>,
}

impl Outcome {
    /// All of them are acknowledged.
    #[must_use]
    pub fn all(acknowledged: u64) -> Outcome {
        Outcome {
            acknowledged,
            ..Outcome::default()
        }
    }

    /// Enters one message.
    pub fn enter(&mut self, stored: Result<(), Failure>) {
        match stored {
            Ok(()) => self.acknowledged += 1,
            Err(error) => {
                self.failed += 1;
                self.error.get_or_insert(error);
            }
        }
    }
}

/// A system that messages can be sent through.
pub trait System: Clone + Send + Sync + 'static {
    /// A connection.
    type Client: Send + Sync + 'static;
    /// Sends on it.
    type Publisher: Publisher;
    /// Receives topics on it.
    type Subscription: Subscription;

    /// Number of a publisher's messages that should wait for their acks, where the client itself
    /// sets no bound that makes it fast.
    fn in_flight(&self) -> Option<u32> {
        None
    }

    /// Makes what must be there before the first message of the topics that begin with `prefix`.
    fn prepare(&self, prefix: &str) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Removes what [`System::prepare`] made.
    fn clear(&self, prefix: &str) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Connects.
    fn connect(&self) -> impl Future<Output = Result<Self::Client, Failure>> + Send;

    /// A publisher to these topics.
    fn publisher(
        &self,
        client: &Self::Client,
        topics: &[String],
    ) -> Result<Self::Publisher, Failure>;

    /// Subscribes to topics, of which there is at least one, as a user of this system does who wants
    /// them all: what is published when this has ended is not missed. From what is stored, or from
    /// now.
    fn subscribe(
        &self,
        client: &Self::Client,
        topics: &[String],
        from_earliest: bool,
    ) -> impl Future<Output = Result<Self::Subscription, Failure>> + Send;

    /// Ends a connection when nothing is to come any more.
    fn close(&self, client: Self::Client) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Sends messages.
pub trait Publisher: Send + 'static {
    /// Resolves to the outcome of a chunk.
    type Acks: Future<Output = Outcome> + Send + 'static;

    /// Hands a chunk over, in order; waits for room only.
    fn send(&mut self, chunk: &Chunk) -> impl Future<Output = Result<Self::Acks, Failure>> + Send;

    /// Sends what may still wait on this side.
    fn flush(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Receives messages of some topics.
pub trait Subscription: Send + 'static {
    /// Waits for messages, and gives the account all that have arrived; false at the end. Dropped
    /// before it is done, it may have lost what it was about to give.
    fn next(&mut self, account: &mut Account)
    -> impl Future<Output = Result<bool, Failure>> + Send;
}
