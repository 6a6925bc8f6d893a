//! The fixture that most claims begin with: two queues and three accounts.

use crate::Mailboxes;
use crate::id::{AccountId, MessageId, QueueId};
use crate::message::{Message, Outgoing, Receive, Recipients, Settle, Take};
use crate::store::QueueSettings;
use airmail_model::{Error, ErrorCode};
use std::time::Duration;

/// Time within which a message must come that is waited for; nothing else is asserted about it.
pub(super) const LONG: Duration = Duration::from_secs(60);
/// A lease that does not end while a test runs.
pub(super) const LASTING: Take = Take::Lease { lease_ms: 600_000 };
/// A lease that ends soon.
pub(super) const SHORT: Take = Take::Lease { lease_ms: 30 };

/// Mailboxes with two queues and three accounts.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// The mailboxes.
    pub mailboxes: Mailboxes,
    /// The queue that most claims use.
    pub queue: QueueId,
    /// Another queue.
    pub other: QueueId,
    /// An account that sends.
    pub alice: AccountId,
    /// An account that receives.
    pub bob: AccountId,
    /// A third account.
    pub carol: AccountId,
}

impl Fixture {
    /// Creates queues and accounts on an empty store.
    pub async fn new(mailboxes: Mailboxes) -> Fixture {
        let settings = QueueSettings::default();
        Fixture {
            queue: mailboxes.create_queue("queue", settings).await.unwrap(),
            other: mailboxes.create_queue("other", settings).await.unwrap(),
            alice: mailboxes.create_account("alice").await.unwrap(),
            bob: mailboxes.create_account("bob").await.unwrap(),
            carol: mailboxes.create_account("carol").await.unwrap(),
            mailboxes,
        }
    }

    /// Makes a message from Alice to Bob in the queue.
    #[must_use]
    pub fn message(&self, content: &str) -> Outgoing {
        let to_bob = Recipients::Direct(self.bob);
        Outgoing::new(self.queue, self.alice, to_bob, content.to_owned())
    }

    /// Sends a message from Alice to Bob in the queue.
    pub async fn send(&self, content: &str) -> MessageId {
        self.mailboxes.send(self.message(content)).await.unwrap()
    }

    /// Sends a message from Alice to Bob in the queue, with an ordering key.
    pub async fn send_with_key(&self, content: &str, key: &str) -> MessageId {
        let message = Outgoing {
            key: Some(key.to_owned()),
            ..self.message(content)
        };
        self.mailboxes.send(message).await.unwrap()
    }

    /// Makes Bob's request for one message of the queue, which is removed.
    #[must_use]
    pub fn for_bob(&self) -> Receive {
        Receive::new(self.queue, self.bob)
    }

    /// Receives without waiting.
    pub async fn receive(&self, request: Receive) -> Result<Vec<Message>, Error> {
        self.mailboxes.receive(request, Duration::ZERO).await
    }

    /// Waits for one message.
    pub async fn wait(&self, request: Receive) -> Message {
        let mut found = self.mailboxes.receive(request, LONG).await.unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// Receives without waiting, and returns the contents; none if the queue is empty.
    pub async fn texts(&self, request: Receive) -> Vec<String> {
        match self.receive(request).await {
            Ok(found) => found.iter().map(text).collect(),
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::QueueIsEmpty, "{error}");
                Vec::new()
            }
        }
    }

    /// Settles one message.
    pub async fn settle(&self, message: &Message, what: Settle) -> Result<(), Error> {
        let receipts = vec![message.receipt().unwrap()];
        self.mailboxes
            .settle(receipts, what)
            .await
            .unwrap()
            .remove(0)
    }
}

/// Returns a message's content as a text.
#[must_use]
pub(super) fn text(message: &Message) -> String {
    String::from_utf8_lossy(&message.content).into_owned()
}

/// Returns the code of an error.
pub(super) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorCode {
    result.unwrap_err().code()
}
