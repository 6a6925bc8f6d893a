//! Subscriptions, as users hold them.
//!
//! A subscription has a stream of its own on the client's connection, and no task: the core runs
//! when its user asks for the next item. So a subscription that is not read costs the others
//! nothing: the node detaches it when its credit is used up, and it goes on where it was when it is
//! read again. Topics that one user reads together share a stream and its credit, be they named
//! ([`many_topics`]) or selected; then the node sends their messages of one batch as one delivery.
//!
//! A selection of topics has a subscription for each log of the namespace, since each log has
//! numbers of its own. So its position names all of them.
//!
//! A lost connection is not an event: the subscription looks for a node until it finds one, and
//! goes on from its position.

mod arrived;
mod connected_core;
mod driver;
pub(crate) mod many_topics;
mod places;
pub(crate) mod set;
mod standing;
mod subject;
mod subscribe_stream;

pub use standing::Standing;

use crate::context::ClientContext;
use crate::named_topic::{AskedTopics, NamedTopic, topic_name};
use crate::received::{Item, Items};
use airmail_model::frame::Start;
use airmail_model::{Error, Position};
use driver::{Available, Choices, SubscriptionDriver};
use std::sync::Arc;
use subject::Subject;

/// A subscription to a topic, or to a selection of topics, to be opened.
#[derive(Debug)]
#[must_use = "nothing is subscribed to before it is opened"]
pub struct SubscriptionRequest {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    topics: AskedTopics,
    start: Start,
    filter: Option<String>,
    choices: Choices,
}

impl SubscriptionRequest {
    pub(crate) fn new(shared: Arc<ClientContext>, topics: AskedTopics) -> SubscriptionRequest {
        SubscriptionRequest {
            namespace: Arc::clone(&shared.namespace),
            shared,
            topics,
            start: Start::Latest,
            filter: None,
            choices: Choices::default(),
        }
    }

    /// Subscribes to topics of another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> SubscriptionRequest {
        self.namespace = namespace.into();
        self
    }

    /// Sets where it starts. Default: after what is stored now. For a selection a position has to name all logs of the
    /// namespace, as those do that a selection gives; a number is one of each log.
    pub fn from(mut self, start: Start) -> SubscriptionRequest {
        self.start = start;
        self
    }

    /// Has it give [`Item::Expired`] for each message that it does not give because that has expired. Default: nothing is
    /// said of those.
    pub fn tell_expired(mut self, tell: bool) -> SubscriptionRequest {
        self.choices.tell_expired = tell;
        self
    }

    /// Gives only messages that this filter matches, as `price > 20 and region in ('eu', 'us')`: of their attributes, in the
    /// language of `docs/filters.md`. Default: all.
    pub fn filter(mut self, filter: impl Into<String>) -> SubscriptionRequest {
        self.filter = Some(filter.into());
        self
    }

    /// Leaves payloads out: each message comes with its attributes and all else, and an empty payload, which the node
    /// does not send. Default: with payloads.
    pub fn headers_only(mut self, without: bool) -> SubscriptionRequest {
        self.choices.headers_only = without;
        self
    }

    /// Opens it, and waits until a node has it, a selection in all logs: nothing published from then on is missed.
    ///
    /// # Errors
    /// `TOPIC_INVALID`, `NAMESPACE_NOT_FOUND`, `POSITION_INVALID`, `PERMISSION_DENIED`, `FILTER_INVALID`,
    /// `FILTER_TOO_COMPLEX`, `SUBSCRIPTION_INVALID` for a pattern that is none and for a prefix that is too long, and
    /// `DISCONNECTED` if no node answers within the client's `connect_timeout`; an error that is waited for, if it lasts for
    /// all of the `call_timeout`.
    pub async fn open(self) -> Result<Subscription, Error> {
        let namespace = Arc::clone(&self.namespace);
        let subject = match self.topics {
            AskedTopics::Named(topic) => {
                topic_name(&topic)?;
                let named = NamedTopic { namespace, topic };
                Subject::topic(Arc::new(named), self.start)
            }
            AskedTopics::Selected(selector) => Subject::selection(namespace, selector?, self.start),
        };
        let choices = self.choices.with_filter(self.filter.as_deref())?;
        let mut driver = SubscriptionDriver::new(self.shared, self.namespace, subject, choices);
        driver.open().await?;
        Ok(Subscription(driver))
    }
}

/// Messages of one topic, or of all topics of a selection, for ever: across lost connections, to any of the nodes.
///
/// Those of one topic come in order. Of a selection, those of one log come, live, in the log's order; across logs there is no
/// order, and an error in any log ends all.
#[derive(Debug)]
pub struct Subscription(SubscriptionDriver);

impl Subscription {
    /// Waits for the next message or gap; `None` once an error has ended the subscription. A message knows its topic; a gap
    /// of a selection is one of a log.
    ///
    /// # Errors
    /// The error that ended it: `NAMESPACE_NOT_FOUND` when its namespace is deleted,
    /// `PERMISSION_DENIED`, and the like. A lost connection does not end it.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub async fn next(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if let Some(message) = self.0.message() {
                return Ok(Some(Item::Message(message)));
            }
            match self.0.wait().await? {
                Available::Messages => {}
                Available::Gap(_, gap) => return Ok(Some(Item::Gap(gap))),
                Available::Expired(_, gone) => return Ok(Some(Item::Expired(gone))),
                Available::Ended => return Ok(None),
            }
        }
    }

    /// Waits like [`Subscription::next`], but gives all messages of one batch together, whatever their topics:
    /// [`airmail_model::batch::Record::topic_name`] says it of each.
    ///
    /// # Errors
    /// Those of [`Subscription::next`].
    ///
    /// # Cancel safety
    /// That of [`Subscription::next`].
    pub async fn next_batch(&mut self) -> Result<Option<Items>, Error> {
        loop {
            if let Some(messages) = self.0.batch() {
                return Ok(Some(Items::Messages(messages)));
            }
            match self.0.wait().await? {
                Available::Messages => {}
                Available::Gap(_, gap) => return Ok(Some(Items::Gap(gap))),
                Available::Expired(_, gone) => return Ok(Some(Items::Expired(gone))),
                Available::Ended => return Ok(None),
            }
        }
    }

    /// Tells whether [`Subscription::next`] would give an item without waiting. A caller that
    /// buffers its output flushes it where this is false, before it waits.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.0.ready()
    }

    /// Gives the position from which it goes on after the last item that it gave: that of a selection is one in all logs.
    /// `None` before a node has answered, if it did not start at a position; for a selection also as long as it waits in a
    /// log for a number that the log has not got to.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        if self.0.subject().is_selection() {
            self.0.whole_position()
        } else {
            self.0.position(0)
        }
    }

    /// Gives its state at a node: for a selection [`Standing::Connecting`] until the node has said of each log how it stands
    /// there, and [`Standing::Detached`] as long as it is behind in any.
    #[must_use]
    pub fn standing(&self) -> Standing {
        Standing::of_all(self.0.standings())
    }
}
