//! Subscriptions to many topics on one stream, for one user.
//!
//! A node sends a batch whole where all its topics are wanted on one stream, so a thousand topics
//! cost hardly more than one; as a thousand [`super::Subscription`]s each message would be a
//! delivery of its own. The price is that the topics share one credit: a user who is slow with one
//! topic is slow with all.

use super::driver::{Available, Choices, SubscriptionDriver};
use super::standing::Standing;
use super::subject::{Subject, TopicStart};
use crate::context::ClientContext;
use crate::named_topic::{NamedTopic, topic_name};
use crate::received::{Expired, Gap, MessageBatch, Received};
use airmail_model::frame::Start;
use airmail_model::{Error, ErrorCode, Position};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A subscription to many topics, to be opened.
#[derive(Debug)]
#[must_use = "nothing is subscribed to before it is opened"]
pub struct ManyRequest {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    topics: Vec<(Arc<str>, Option<Start>)>,
    start: Start,
    filter: Option<String>,
    choices: Choices,
}

impl ManyRequest {
    pub(crate) fn new(shared: Arc<ClientContext>, topics: Vec<Arc<str>>) -> ManyRequest {
        ManyRequest {
            namespace: Arc::clone(&shared.namespace),
            shared,
            topics: topics.into_iter().map(|topic| (topic, None)).collect(),
            start: Start::Latest,
            filter: None,
            choices: Choices::default(),
        }
    }

    /// Subscribes to topics of another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> ManyRequest {
        self.namespace = namespace.into();
        self
    }

    /// Sets where topics start that have no start of their own. Default: after what is stored now.
    pub fn from(mut self, start: Start) -> ManyRequest {
        self.start = start;
        self
    }

    /// Adds a topic with a start of its own.
    pub fn topic(mut self, topic: &str, start: Start) -> ManyRequest {
        self.topics.push((topic.into(), Some(start)));
        self
    }

    /// Has it give [`ManyItem::Expired`] for each message that it does not give because that has expired. Default: nothing
    /// is said of those.
    pub fn tell_expired(mut self, tell: bool) -> ManyRequest {
        self.choices.tell_expired = tell;
        self
    }

    /// Gives only messages that this filter matches, as `price > 20 and region in ('eu', 'us')`: of their attributes, in the
    /// language of `docs/filters.md`. Default: all.
    pub fn filter(mut self, filter: impl Into<String>) -> ManyRequest {
        self.filter = Some(filter.into());
        self
    }

    /// Leaves payloads out: each message comes with its attributes and all else, and an empty payload, which the node
    /// does not send. Default: with payloads.
    pub fn headers_only(mut self, without: bool) -> ManyRequest {
        self.choices.headers_only = without;
        self
    }

    /// Opens all of them, and waits until a node has them: nothing published from then on is
    /// missed.
    ///
    /// # Errors
    /// Those of [`super::SubscriptionRequest::open`], for any of them; `INVALID_ARGUMENT` if there
    /// is no topic, or the same one twice.
    pub async fn open(self) -> Result<ManySubscription, Error> {
        let mut known = BTreeSet::new();
        for (topic, _) in &self.topics {
            topic_name(topic)?;
            if !known.insert(topic) {
                return Err(invalid(&format!("{topic} twice")));
            }
        }
        if known.is_empty() {
            return Err(invalid("none"));
        }
        let topics = self.topics.into_iter().map(|(topic, start)| TopicStart {
            named: Arc::new(NamedTopic {
                namespace: Arc::clone(&self.namespace),
                topic,
            }),
            start: start.unwrap_or_else(|| self.start.clone()),
        });
        let namespace = Arc::clone(&self.namespace);
        let subject = Subject::Topics(topics.collect());
        let choices = self.choices.with_filter(self.filter.as_deref())?;
        let mut driver = SubscriptionDriver::new(self.shared, namespace, subject, choices);
        driver.open().await?;
        Ok(ManySubscription(driver))
    }
}

fn invalid(found: &str) -> Error {
    Error::new(ErrorCode::InvalidArgument)
        .field("topics")
        .value(found)
        .limit("at least one topic, each once")
}

/// One thing that a subscription to many topics gives.
#[derive(Clone, Debug, PartialEq)]
pub enum ManyItem {
    /// A message, which knows its topic.
    Message(Received),
    /// Numbers of this topic that are missing for good.
    Gap(Arc<str>, Gap),
    /// A message of this topic that has expired. Only where it was asked for.
    Expired(Arc<str>, Expired),
}

/// One thing that a subscription to many topics gives when it is read by batches.
#[derive(Debug)]
pub enum ManyItems {
    /// Messages of any of the topics.
    Messages(MessageBatch),
    /// Numbers of this topic that are missing for good.
    Gap(Arc<str>, Gap),
    /// A message of this topic that has expired. Only where it was asked for.
    Expired(Arc<str>, Expired),
}

/// Messages of many topics, each topic's in order, for ever: across lost connections, to any of the
/// nodes. Messages of one log, live, come in the log's order.
///
/// An error of any topic ends all.
#[derive(Debug)]
pub struct ManySubscription(SubscriptionDriver);

impl ManySubscription {
    /// Waits for the next message or gap of any of the topics; `None` once an error has ended all.
    ///
    /// # Errors
    /// Those of [`super::Subscription::next`].
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub async fn next(&mut self) -> Result<Option<ManyItem>, Error> {
        loop {
            if let Some(message) = self.0.message() {
                return Ok(Some(ManyItem::Message(message)));
            }
            match self.0.wait().await? {
                Available::Messages => {}
                Available::Gap(topic, gap) => {
                    return Ok(Some(ManyItem::Gap(self.name(topic), gap)));
                }
                Available::Expired(topic, gone) => {
                    return Ok(Some(ManyItem::Expired(self.name(topic), gone)));
                }
                Available::Ended => return Ok(None),
            }
        }
    }

    /// Waits like [`ManySubscription::next`], but gives all messages of one batch together.
    ///
    /// # Errors
    /// Those of [`ManySubscription::next`].
    ///
    /// # Cancel safety
    /// That of [`ManySubscription::next`].
    pub async fn next_batch(&mut self) -> Result<Option<ManyItems>, Error> {
        loop {
            if let Some(messages) = self.0.batch() {
                return Ok(Some(ManyItems::Messages(messages)));
            }
            match self.0.wait().await? {
                Available::Messages => {}
                Available::Gap(topic, gap) => {
                    return Ok(Some(ManyItems::Gap(self.name(topic), gap)));
                }
                Available::Expired(topic, gone) => {
                    return Ok(Some(ManyItems::Expired(self.name(topic), gone)));
                }
                Available::Ended => return Ok(None),
            }
        }
    }

    /// Tells whether [`ManySubscription::next`] would give an item without waiting. A caller that
    /// buffers its output flushes it where this is false, before it waits.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.0.ready()
    }

    /// Lists the topics in the order in which they were given; [`MessageBatch::iter_topics`] and
    /// [`ManySubscription::position`] number them so.
    pub fn topics(&self) -> impl ExactSizeIterator<Item = &str> {
        let topics = self.0.subject().topics();
        topics.iter().map(|topic| &*topic.named.topic)
    }

    /// Gives the position from which the topic with this number goes on after its last message that
    /// was given. `None` before a node has answered, if it did not start at a position, and if
    /// there is no such topic.
    #[must_use]
    pub fn position(&self, topic: usize) -> Option<Position> {
        self.0.position(topic)
    }

    /// Gives the state at a node of the topic with this number; `None` if there is no such topic.
    #[must_use]
    pub fn standing(&self, topic: usize) -> Option<Standing> {
        self.0.standings().get(topic).copied()
    }

    fn name(&self, topic: usize) -> Arc<str> {
        let topic = self.0.subject().topics().get(topic);
        topic.map_or_else(|| "".into(), |topic| Arc::clone(&topic.named.topic))
    }
}
