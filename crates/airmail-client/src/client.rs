//! The client: one connection, one task that publishes, and as many subscriptions as are opened.

use crate::admin::Admin;
use crate::builder::{ClientBuilder, Shutdown};
use crate::core::{Attempts, Backoff, Patience, ProducerConfig, SubscriberConfig};
use crate::history::HistoryRequest;
use crate::mailbox::Mailbox;
use crate::nodes::{Node, Nodes};
use crate::publisher::desk::Desk;
use crate::publisher::{Publish, Publisher, task};
use crate::subscription::SubscriptionRequest;
use crate::subscription::many::ManyRequest;
use crate::topics::Topics;
use airmail_model::random;
use airmail_model::{Error, ErrorCode, Mono};
use bytes::Bytes;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tonic::Status;

/// What all parts of a client share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) nodes: Nodes,
    pub(crate) namespace: Arc<str>,
    pub(crate) producer: ProducerConfig,
    pub(crate) subscriber: SubscriberConfig,
    pub(crate) connect_timeout: Duration,
    pub(crate) call_timeout: Duration,
    /// Each part's randomness is the next of this series.
    pub(crate) seeds: AtomicU64,
}

impl Shared {
    pub(crate) fn mono(&self) -> Mono {
        self.nodes.clock.mono()
    }

    pub(crate) fn seed(&self) -> u64 {
        random::mixed(self.seeds.fetch_add(random::STEP, Ordering::Relaxed))
    }

    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.producer.backoff, self.seed())
    }

    /// Attempts at something that may take `all` in all.
    pub(crate) fn attempts(&self, all: Duration) -> Attempts {
        let node = self.connect_timeout;
        Attempts::new(Patience { node, all }, self.backoff())
    }

    /// Sleeps until the clock says `until`.
    pub(crate) async fn sleep_until(&self, until: Mono) {
        tokio::time::sleep(until.since(self.mono())).await;
    }

    /// Waits for a node's first answer: one that takes connections and says nothing must not use up
    /// the time of the other addresses.
    pub(crate) async fn first_answer<T>(
        &self,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let patience = self.connect_timeout / self.nodes.addresses();
        within(patience, answer).await
    }

    /// Waits for the next thing that a node says: one that says nothing for a call's whole time is
    /// taken for one that is not there.
    pub(crate) async fn answer_in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        within(self.call_timeout, answer).await
    }

    /// Makes a unary call within the client's `call_timeout`; as [`Shared::call_within`].
    pub(crate) async fn call<T, F>(
        &self,
        repeatable: bool,
        call: impl Fn(Node) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Status>>,
    {
        self.call_within(self.call_timeout, repeatable, call).await
    }

    /// Makes a unary call, on one node after the other: waits for what the table of errors says is
    /// waited for, for `timeout` in all, and while no node can be reached for `connect_timeout`.
    ///
    /// `repeatable`: it may be made again although a node may have acted. Another is made again only if
    /// nothing was done, and gives `OUTCOME_UNKNOWN` where that is not known.
    pub(crate) async fn call_within<T, F>(
        &self,
        timeout: Duration,
        repeatable: bool,
        call: impl Fn(Node) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let begun = self.mono();
        let until = begun.plus(timeout);
        let mut attempts = self.attempts(timeout).from(begun);
        // What a node said last, for who is cut off at the next attempt.
        let mut said = None;
        loop {
            let node = self.nodes.node()?;
            let now = self.mono();
            attempts.begin(now);
            let rest = until.since(now);
            let status = match within(rest, call(node.clone())).await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            let error = airmail_proto::error::error_from_status(&status);
            if !error.code().waited_for() {
                return Err(error);
            }
            let error = self.explain(error, &node, &status);
            self.nodes.failed(&node);
            if !repeatable && !is_nothing_done(&status, &error) {
                let unknown = Error::new(ErrorCode::OutcomeUnknown);
                return Err(unknown.field(error.field_name()).value(error.found()));
            }
            let now = self.mono();
            if now >= until
                && let Some(said) = said
            {
                return Err(Error::waited(said, now.since(begun)));
            }
            if airmail_proto::error::is_told_by_a_node(&status) {
                said = Some(error.clone());
            }
            let retry = attempts.failed(now, error)?;
            self.sleep_until(retry).await;
        }
    }

    /// Says which node could not be reached.
    pub(crate) fn explain(&self, error: Error, node: &Node, status: &Status) -> Error {
        if error.code() != ErrorCode::Disconnected {
            return error;
        }
        let address = self.nodes.address(node);
        let cause = cause_of(status);
        Error::new(ErrorCode::Disconnected)
            .field("url")
            .value(format!("{address}: {cause}"))
    }
}

/// Waits for an answer for so long.
async fn within<T>(
    time: Duration,
    answer: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let silent = |_| {
        let waited = time.as_millis();
        Err(Status::cancelled(format!("no answer within {waited} ms")))
    };
    let answer = tokio::time::timeout(time, answer).await;
    answer.unwrap_or_else(silent)
}

/// Whether a call that failed has done nothing for certain: the node says so, or could not know of it,
/// as there was no connection. A connection that breaks later, whatever is said then, proves nothing.
fn is_nothing_done(status: &Status, error: &Error) -> bool {
    let told = airmail_proto::error::is_told_by_a_node(status);
    (told && error.code() != ErrorCode::Disconnected) || is_unconnected(status)
}

fn is_unconnected(status: &Status) -> bool {
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(status);
    while let Some(inner) = cause {
        if inner.is::<tonic::ConnectError>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

/// The innermost cause of a transport's error: what the system said.
fn cause_of(status: &Status) -> String {
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(status);
    let mut text = status.message().to_owned();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}

/// A client of one or more nodes: publishes, subscribes, reads history. Cheap to clone; all clones
/// share one connection and one order of publishing.
///
/// Close it with [`Client::close`]: dropping the last clone abandons what is not acknowledged yet.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    desk: Arc<Desk>,
    /// Every task of this client.
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl Client {
    pub(crate) fn new(shared: Shared) -> Client {
        let shared = Arc::new(shared);
        Client {
            desk: Arc::new(Desk::new(Arc::clone(&shared))),
            shared,
            tasks: Arc::new(Mutex::new(JoinSet::new())),
        }
    }

    /// Connects with the default settings.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Client, Error> {
        Client::builder().url(url).connect().await
    }

    /// Settings to begin with.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Looks for a node that answers.
    pub(crate) async fn reach(&self) -> Result<(), Error> {
        let request = airmail_proto::v1::ListNamespacesRequest {};
        let shared = &self.shared;
        let ask = |node: Node| {
            let answer = async move { node.admin().list_namespaces(request).await };
            shared.first_answer(answer)
        };
        shared.call(true, ask).await.map(|_| ())
    }

    /// Starts the task that publishes.
    pub(crate) fn start(&self, shutdown: Option<Shutdown>) {
        let (shared, desk) = (Arc::clone(&self.shared), Arc::clone(&self.desk));
        let mut tasks = self.tasks.lock();
        tasks.spawn(task::run(shared, desk, shutdown));
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

    /// Publishes to the client's namespace, without waiting for each message.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        let namespace = Arc::clone(&self.shared.namespace);
        Publisher::new(Arc::clone(&self.desk), namespace)
    }

    /// Begins a subscription: choose where it starts, and open it.
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
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "nothing is subscribed to before it is opened"]
    pub fn subscribe(&self, topic: &str) -> SubscriptionRequest {
        SubscriptionRequest::new(Arc::clone(&self.shared), topic)
    }

    /// Begins a subscription to many topics that one user reads together: much cheaper than one for
    /// each, but they share one credit, so one who is slow with one is slow with all.
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

    /// Looks into a topic's past.
    #[must_use = "nothing is read before it is opened"]
    pub fn history(&self, topic: &str) -> HistoryRequest {
        HistoryRequest::new(Arc::clone(&self.shared), topic)
    }

    /// Topics that hold messages.
    #[must_use]
    pub fn topics(&self) -> Topics {
        Topics::new(Arc::clone(&self.shared))
    }

    /// Creates, lists, changes and deletes namespaces.
    #[must_use]
    pub fn admin(&self) -> Admin {
        Admin::new(Arc::clone(&self.shared))
    }

    /// The node's mailboxes: messages for one reader each, rather than for all who follow a topic.
    #[must_use]
    pub fn mailbox(&self) -> Mailbox {
        Mailbox::new(Arc::clone(&self.shared))
    }

    /// Takes no more messages, waits until all taken are acknowledged (or have failed: each within
    /// the delivery timeout), and ends the client's tasks. Subscriptions live on.
    ///
    /// # Errors
    /// `INTERNAL` if a task of the client has failed.
    pub async fn close(self) -> Result<(), Error> {
        self.desk.close();
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
