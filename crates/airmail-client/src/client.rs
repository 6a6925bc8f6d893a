//! The client, as users hold it: the one place where publishing, subscribing, history,
//! administration and mailboxes begin.
//!
//! A client has one connection, which all of these share, and one task, which publishes. Its
//! settings are made by [`crate::ClientBuilder`].

use crate::admin::Admin;
use crate::api::Answer;
use crate::context::ClientContext;
use crate::history::HistoryRequest;
use crate::mailbox::Mailbox;
use crate::named_topic::AskedTopics;
use crate::nodes::Node;
use crate::publisher::accumulator::Accumulator;
use crate::publisher::publish_task::{self, Shutdown};
use crate::publisher::{Publish, Publisher};
use crate::subscription::SubscriptionRequest;
use crate::subscription::many_topics::ManyRequest;
use crate::subscription::set::SetRequest;
use crate::topics::Topics;
use airmail_model::{Error, ErrorCode};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::task::JoinSet;

/// A client of one or more nodes: publishes, subscribes, reads history. Cheap to clone; all clones
/// share one connection and one order of publishing.
///
/// Close it with [`Client::close`]: dropping the last clone abandons messages that are not
/// acknowledged yet.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) shared: Arc<ClientContext>,
    accumulator: Arc<Accumulator>,
    /// The publishing task, until the client is closed.
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl Client {
    pub(crate) fn new(shared: ClientContext) -> Client {
        let shared = Arc::new(shared);
        Client {
            accumulator: Arc::new(Accumulator::new(Arc::clone(&shared))),
            shared,
            tasks: Arc::new(Mutex::new(JoinSet::new())),
        }
    }

    /// Makes one call, to find a node that answers.
    pub(crate) async fn reach(&self) -> Result<(), Error> {
        let request = airmail_proto::v1::ListNamespacesRequest {};
        let shared = &self.shared;
        let ask = |node: Node| -> Answer<'_, _> {
            Box::pin(shared.first_answer(node.list_namespaces(request)))
        };
        let answer = shared.call_within(shared.call_timeout, true, &ask);
        answer.await.map(drop)
    }

    /// Starts the publishing task.
    pub(crate) fn start(&self, shutdown: Option<Shutdown>) {
        let shared = Arc::clone(&self.shared);
        let accumulator = Arc::clone(&self.accumulator);
        let mut tasks = self.tasks.lock();
        tasks.spawn(publish_task::run(shared, accumulator, shutdown));
    }

    /// Publishes one message, and waits until it is stored. Many tasks that do this at once share
    /// batches.
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
    /// let published = client.publish("orders", "a book").attribute("pages", 320).await?;
    /// println!("number {} on disk: {}", published.sequence, published.held);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "nothing is published before it is awaited"]
    pub fn publish(&self, topic: &str, payload: impl Into<Bytes>) -> Publish {
        self.publisher().publish(topic, payload)
    }

    /// Makes a publisher to the client's namespace, which does not wait for each message.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        let namespace = Arc::clone(&self.shared.namespace);
        Publisher::new(Arc::clone(&self.accumulator), namespace)
    }

    /// Prepares a subscription: choose where it starts, and open it.
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
    /// use airmail_client::{Item, Start};
    ///
    /// let mut orders = client.subscribe("orders").from(Start::Earliest).open().await?;
    /// while let Some(item) = orders.next().await? {
    ///     match item {
    ///         Item::Message(message) => println!("{} {:?}", message.sequence, message.payload),
    ///         Item::Gap(gap) => eprintln!("{} to {} are gone", gap.first, gap.last),
    ///         Item::Expired(_) => {} // Only told where it was asked for.
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "nothing is subscribed to before it is opened"]
    pub fn subscribe(&self, topic: &str) -> SubscriptionRequest {
        self.request(AskedTopics::named(topic))
    }

    /// Prepares a subscription to many topics that one user reads together: much cheaper than one
    /// for each, but they share one credit, so a user who is slow with one topic is slow with all.
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
    /// use airmail_client::{ManyItem, Start};
    ///
    /// let rooms = (0..1000).map(|room| format!("rooms/{room}"));
    /// let many = client.subscribe_many(rooms).from(Start::Latest);
    /// let mut many = many.topic("audit", Start::Earliest).open().await?;
    /// while let Some(item) = many.next().await? {
    ///     match item {
    ///         ManyItem::Message(message) => println!("{}: {:?}", message.topic(), message.payload),
    ///         ManyItem::Gap(topic, gap) => eprintln!("{topic}: {} to {}", gap.first, gap.last),
    ///         ManyItem::Expired(..) => {} // Only told where it was asked for.
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "nothing is subscribed to before it is opened"]
    pub fn subscribe_many<T: Into<Arc<str>>>(
        &self,
        topics: impl IntoIterator<Item = T>,
    ) -> ManyRequest {
        let topics = topics.into_iter().map(T::into).collect();
        ManyRequest::new(Arc::clone(&self.shared), topics)
    }

    /// Prepares a subscription to every topic whose name begins with `prefix`, also those that do not exist yet.
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
    /// use airmail_client::{Item, Start};
    ///
    /// let orders = client.subscribe_prefix("orders/").from(Start::Earliest);
    /// let mut orders = orders.open().await?;
    /// while let Some(item) = orders.next().await? {
    ///     match item {
    ///         Item::Message(message) => println!("{}: {:?}", message.topic(), message.payload),
    ///         Item::Gap(gap) => eprintln!("{} to {} of {} are gone", gap.first, gap.last, gap.log),
    ///         Item::Expired(_) => {} // Only told where it was asked for.
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "nothing is subscribed to before it is opened"]
    pub fn subscribe_prefix(&self, prefix: &str) -> SubscriptionRequest {
        self.request(AskedTopics::prefix(prefix))
    }

    /// Prepares a subscription to every topic whose name fits a pattern, also those that do not exist yet. `*` stands for any
    /// text without `/`, `**` for any text, and `\` before a character for that character.
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
    /// let sensors = client.subscribe_pattern("sensors/*/temperature");
    /// let mut hot = sensors.filter("celsius > 90").open().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "nothing is subscribed to before it is opened"]
    pub fn subscribe_pattern(&self, text: &str) -> SubscriptionRequest {
        self.request(AskedTopics::pattern(text))
    }

    /// Prepares a subscription to every topic of a namespace, also those that do not exist yet.
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
    /// let all = client.subscribe_everything().namespace("audit");
    /// let mut all = all.headers_only(true).open().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "nothing is subscribed to before it is opened"]
    pub fn subscribe_everything(&self) -> SubscriptionRequest {
        self.request(AskedTopics::everything())
    }

    /// Prepares a set of subscriptions with filters on one stream: hundreds or thousands, each to topics of its own, which come,
    /// go and are changed while messages flow. [`crate::SubscriptionSet`] has an example.
    pub fn subscription_set(&self) -> SetRequest {
        SetRequest::new(Arc::clone(&self.shared))
    }

    fn request(&self, topics: AskedTopics) -> SubscriptionRequest {
        SubscriptionRequest::new(Arc::clone(&self.shared), topics)
    }

    /// Prepares to read a topic's stored messages.
    #[must_use = "nothing is read before it is opened"]
    pub fn history(&self, topic: &str) -> HistoryRequest {
        self.history_of(AskedTopics::named(topic))
    }

    /// Prepares to read the stored messages of every topic whose name begins with `prefix`, the oldest first.
    ///
    /// ```no_run
    /// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
    /// use airmail_client::Item;
    ///
    /// let mut orders = client.history_prefix("orders/").limit(100).open()?;
    /// while let Some(item) = orders.next().await? {
    ///     if let Item::Message(message) = item {
    ///         println!("{} {}", message.appended, message.topic());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "nothing is read before it is opened"]
    pub fn history_prefix(&self, prefix: &str) -> HistoryRequest {
        self.history_of(AskedTopics::prefix(prefix))
    }

    /// Prepares to read the stored messages of every topic whose name fits a pattern, as in
    /// [`Client::subscribe_pattern`], the oldest first.
    #[must_use = "nothing is read before it is opened"]
    pub fn history_pattern(&self, text: &str) -> HistoryRequest {
        self.history_of(AskedTopics::pattern(text))
    }

    /// Prepares to read all stored messages of a namespace, the oldest first.
    #[must_use = "nothing is read before it is opened"]
    pub fn history_everything(&self) -> HistoryRequest {
        self.history_of(AskedTopics::everything())
    }

    fn history_of(&self, topics: AskedTopics) -> HistoryRequest {
        HistoryRequest::new(Arc::clone(&self.shared), topics)
    }

    /// Lists the topics that hold messages.
    #[must_use]
    pub fn topics(&self) -> Topics {
        Topics::new(Arc::clone(&self.shared))
    }

    /// Gives access to administration: creates, lists, changes and deletes namespaces.
    #[must_use]
    pub fn admin(&self) -> Admin {
        Admin::new(Arc::clone(&self.shared))
    }

    /// Gives access to the node's mailboxes: messages for one reader each, rather than for all
    /// subscribers of a topic.
    #[must_use]
    pub fn mailbox(&self) -> Mailbox {
        Mailbox::new(Arc::clone(&self.shared))
    }

    /// Closes the client: accepts no more messages, waits until all accepted ones are acknowledged
    /// (or have failed: each within the delivery timeout), and ends the client's task.
    /// Subscriptions live on.
    ///
    /// # Errors
    /// `INTERNAL` if a task of the client has failed.
    pub async fn close(self) -> Result<(), Error> {
        self.accumulator.close();
        let mut tasks = {
            let mut held = self.tasks.lock();
            std::mem::take(&mut *held)
        };
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| Error::new(ErrorCode::Internal).field("client").value(error))?;
        }
        Ok(())
    }
}
