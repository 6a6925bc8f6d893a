//! Subscriptions, as users hold them.
//!
//! A subscription has a stream of its own on the client's connection, and no task: the core runs
//! when its user asks for the next item. So one that is not read costs the others nothing; the node
//! sees its credit used up and detaches it, and it goes on where it was when it is read again.
//! Topics that one user reads together share a stream ([`many`]), and so its credit: then the node
//! sends what they have in one batch as one delivery.
//!
//! A lost connection is not an event: the subscription looks for a node until it finds one, and
//! goes on from its position.

mod feed;
mod link;
pub(crate) mod many;

use crate::context::ClientContext;
use crate::named_topic::{NamedTopic, topic_name};
use crate::received::{Item, Items};
use airmail_model::frame::Start;
use airmail_model::{Error, Position};
use feed::{Asked, Feed, Step};
use std::sync::Arc;

/// A subscription to be opened.
#[derive(Debug)]
#[must_use = "nothing is subscribed to before it is opened"]
pub struct SubscriptionRequest {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    topic: Arc<str>,
    start: Start,
}

impl SubscriptionRequest {
    pub(crate) fn new(shared: Arc<ClientContext>, topic: &str) -> SubscriptionRequest {
        SubscriptionRequest {
            namespace: Arc::clone(&shared.namespace),
            shared,
            topic: topic.into(),
            start: Start::Latest,
        }
    }

    /// In another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> SubscriptionRequest {
        self.namespace = namespace.into();
        self
    }

    /// Where it begins. Default: after what is stored now.
    pub fn from(mut self, start: Start) -> SubscriptionRequest {
        self.start = start;
        self
    }

    /// Opens it. When this is done the node has it: nothing published from now on is missed.
    ///
    /// # Errors
    /// `TOPIC_INVALID`, `NAMESPACE_NOT_FOUND`, `POSITION_INVALID`, `PERMISSION_DENIED`, and
    /// `DISCONNECTED` if no node answers within the client's `connect_timeout`; what is waited for, if
    /// a node says it for all of the `call_timeout`.
    pub async fn open(self) -> Result<Subscription, Error> {
        topic_name(&self.topic)?;
        let named = Arc::new(NamedTopic {
            namespace: Arc::clone(&self.namespace),
            topic: self.topic,
        });
        let start = self.start;
        let mut feed = Feed::new(self.shared, self.namespace, vec![Asked { named, start }]);
        feed.open().await?;
        Ok(Subscription(feed))
    }
}

/// How a subscription stands with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It looks for a node, or waits for its answer.
    Connecting,
    /// At the tail: what is published comes at once.
    Live,
    /// Behind: it is sent what is stored, at its own pace.
    Detached,
}

/// Messages of one topic, in order, for ever: across lost connections, to any of the nodes.
#[derive(Debug)]
pub struct Subscription(Feed);

impl Subscription {
    /// The next message or gap; `None` once an error has ended the subscription.
    ///
    /// # Errors
    /// What ended it: `NAMESPACE_NOT_FOUND` when its namespace is deleted, `PERMISSION_DENIED`, and
    /// the like. A lost connection is none.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub async fn next(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if let Some(message) = self.0.message() {
                return Ok(Some(Item::Message(message)));
            }
            match self.0.go_on().await? {
                Step::Messages => {}
                Step::Gap(_, gap) => return Ok(Some(Item::Gap(gap))),
                Step::Ended => return Ok(None),
            }
        }
    }

    /// As [`Subscription::next`], but all messages of one batch together.
    ///
    /// # Errors
    /// As [`Subscription::next`].
    ///
    /// # Cancel safety
    /// As [`Subscription::next`].
    pub async fn next_batch(&mut self) -> Result<Option<Items>, Error> {
        loop {
            if let Some(messages) = self.0.batch() {
                return Ok(Some(Items::Messages(messages)));
            }
            match self.0.go_on().await? {
                Step::Messages => {}
                Step::Gap(_, gap) => return Ok(Some(Items::Gap(gap))),
                Step::Ended => return Ok(None),
            }
        }
    }

    /// Whether [`Subscription::next`] would give an item without waiting: who collects what it writes writes
    /// it out before it waits, and waits only where this is `false`.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.0.ready()
    }

    /// Where it goes on after the last item that it gave. `None` before a node has answered, if it
    /// did not begin at a position.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.0.position(0)
    }

    /// How it stands with a node.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let standing = self.0.standings().first();
        standing.copied().unwrap_or(Standing::Connecting)
    }
}
