//! Subscriptions to a selection of a namespace's topics: those whose names begin so, or fit a pattern, or all; also those that
//! do not exist yet.
//!
//! A selection has one stream with a subscription for each log of the namespace, since each log has numbers of its own. So its
//! position names all of them, and messages of different logs come in no order. Like the topics of [`super::many_topics`]
//! they share one credit.

use super::driver::{Available, Choices, SubscriptionDriver};
use super::standing::Standing;
use super::subject::Subject;
use crate::context::ClientContext;
use crate::received::{Item, Items};
use airmail_model::frame::Start;
use airmail_model::selector::Selector;
use airmail_model::{Error, Position};
use std::sync::Arc;

/// A subscription to a selection of topics, to be opened.
#[derive(Debug)]
#[must_use = "nothing is subscribed to before it is opened"]
pub struct SelectionRequest {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    /// The topics; or the error that a text gives which selects none.
    selector: Result<Selector, Error>,
    start: Start,
    filter: Option<String>,
    choices: Choices,
}

impl SelectionRequest {
    pub(crate) fn new(
        shared: Arc<ClientContext>,
        selector: Result<Selector, Error>,
    ) -> SelectionRequest {
        SelectionRequest {
            namespace: Arc::clone(&shared.namespace),
            shared,
            selector,
            start: Start::Latest,
            filter: None,
            choices: Choices::default(),
        }
    }

    /// Subscribes to topics of another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> SelectionRequest {
        self.namespace = namespace.into();
        self
    }

    /// Sets where it starts. Default: after what is stored now. A position has to name all logs of the namespace, as those do
    /// that a selection gives; a number is one of each log.
    pub fn from(mut self, start: Start) -> SelectionRequest {
        self.start = start;
        self
    }

    /// Has it give [`Item::Expired`] for each message that it does not give because that has expired. Default: nothing is
    /// said of those.
    pub fn tell_expired(mut self, tell: bool) -> SelectionRequest {
        self.choices.tell_expired = tell;
        self
    }

    /// Gives only messages that this filter matches, as `price > 20 and region in ('eu', 'us')`: of their attributes, in the
    /// language of `docs/filters.md`. Default: all.
    pub fn filter(mut self, filter: impl Into<String>) -> SelectionRequest {
        self.filter = Some(filter.into());
        self
    }

    /// Leaves payloads out: each message comes with its attributes and all else, and an empty payload, which the node
    /// does not send. Default: with payloads.
    pub fn headers_only(mut self, without: bool) -> SelectionRequest {
        self.choices.headers_only = without;
        self
    }

    /// Opens it, and waits until a node has it in all logs: nothing published from then on is missed.
    ///
    /// # Errors
    /// `SUBSCRIPTION_INVALID` for a pattern that is none and for a prefix that is too long; else those of
    /// [`super::SubscriptionRequest::open`].
    pub async fn open(self) -> Result<SelectedSubscription, Error> {
        let namespace = Arc::clone(&self.namespace);
        let subject = Subject::selection(namespace, self.selector?, self.start);
        let choices = self.choices.with_filter(self.filter.as_deref())?;
        let mut driver = SubscriptionDriver::new(self.shared, self.namespace, subject, choices);
        driver.open().await?;
        Ok(SelectedSubscription(driver))
    }
}

/// Messages of all topics of a selection, for ever: across lost connections, to any of the nodes. Those of one topic come in
/// order, and those of one log, live, in the log's; across logs there is no order.
///
/// An error in any log ends all.
#[derive(Debug)]
pub struct SelectedSubscription(SubscriptionDriver);

impl SelectedSubscription {
    /// Waits for the next message or gap of any of the topics; `None` once an error has ended the subscription. A message
    /// knows its topic; a gap is one of a log.
    ///
    /// # Errors
    /// Those of [`super::Subscription::next`].
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

    /// Waits like [`SelectedSubscription::next`], but gives all messages of one batch together, whatever their topics:
    /// [`airmail_model::batch::Record::topic_name`] says it of each.
    ///
    /// # Errors
    /// Those of [`SelectedSubscription::next`].
    ///
    /// # Cancel safety
    /// That of [`SelectedSubscription::next`].
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

    /// Tells whether [`SelectedSubscription::next`] would give an item without waiting. A caller that
    /// buffers its output flushes it where this is false, before it waits.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.0.ready()
    }

    /// Gives the position, in all logs, from which it goes on after the last item that it gave. `None` as long as it waits in
    /// a log for a number that the log has not got to.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.0.whole_position()
    }

    /// Gives its state at a node: [`Standing::Connecting`] until the node has said of each log how it stands there, and
    /// [`Standing::Detached`] as long as it is behind in any.
    #[must_use]
    pub fn standing(&self) -> Standing {
        Standing::of_all(self.0.standings())
    }
}
