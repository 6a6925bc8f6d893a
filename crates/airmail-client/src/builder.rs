//! A client's settings, and connecting with them.

use crate::address::{Address, DEFAULT_URL, parse_url};
use crate::client::Client;
use crate::context::ClientContext;
use crate::core::{BackoffConfig, NodeChoice, Place, ProducerConfig, SubscriberConfig};
use crate::mailbox::Mailbox;
use crate::nodes::Nodes;
use crate::publisher::publish_task::Shutdown;
use airmail_model::Error;
use airmail_model::bug::{self, Met};
use airmail_model::clock::{Clock, SystemClock};
use airmail_model::limits::CREDIT_BYTES_MAX;
use airmail_model::random;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// Settings of a [`Client`], each with a default.
///
/// ```no_run
/// # async fn example() -> Result<(), airmail_model::Error> {
/// use airmail_client::Client;
/// use std::time::Duration;
///
/// let client = Client::builder()
///     .url("airmail://a.example,b.example")
///     .namespace("orders")
///     .delivery_timeout(Duration::from_secs(300))
///     .connect()
///     .await?;
/// # client.close().await
/// # }
/// ```
pub struct ClientBuilder {
    url: String,
    namespace: String,
    name: String,
    roles: Vec<String>,
    place: Place,
    producer: ProducerConfig,
    subscriber: SubscriberConfig,
    connect_timeout: Duration,
    call_timeout: Duration,
    seed: Option<u64>,
    clock: Option<Arc<dyn Clock>>,
    shutdown: Option<Shutdown>,
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("url", &self.url)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Default for ClientBuilder {
    fn default() -> ClientBuilder {
        ClientBuilder {
            url: DEFAULT_URL.to_owned(),
            namespace: "default".to_owned(),
            name: concat!("airmail-client-rust/", env!("CARGO_PKG_VERSION")).to_owned(),
            roles: Vec::new(),
            place: Place {
                host: rustix::system::uname()
                    .nodename()
                    .to_string_lossy()
                    .into_owned(),
                zone: String::new(),
            },
            producer: ProducerConfig::default(),
            subscriber: SubscriberConfig {
                credit_bytes: 16 << 20,
                ..SubscriberConfig::default()
            },
            connect_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(60),
            seed: None,
            clock: None,
            shutdown: None,
        }
    }
}

impl ClientBuilder {
    /// Sets the URL of the nodes: `airmail://HOST:PORT[,HOST:PORT…]`. Default
    /// `airmail://127.0.0.1:7400`.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> ClientBuilder {
        self.url = url.into();
        self
    }

    /// Sets the namespace of every call that names none. Default `default`.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> ClientBuilder {
        self.namespace = namespace.into();
        self
    }

    /// Sets the client's name for the nodes' logs. Default: the SDK's name and version.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> ClientBuilder {
        self.name = name.into();
        self
    }

    /// Names the roles that the client has: its subscriptions and histories are given what is addressed to one of them.
    /// A node that does not trust what clients say of themselves (`security.trust_roles`) refuses them as
    /// `PERMISSION_DENIED`, a role that there is not as `ROLE_NOT_FOUND`. Default: none.
    #[must_use]
    pub fn roles<R: Into<String>>(mut self, roles: impl IntoIterator<Item = R>) -> ClientBuilder {
        self.roles = roles.into_iter().map(R::into).collect();
        self
    }

    /// Sets the zone that the client is in, as the nodes' settings name it (`cluster.zone`). A node of
    /// the client's own machine is preferred, then one of its zone. Default: none.
    #[must_use]
    pub fn zone(mut self, zone: impl Into<String>) -> ClientBuilder {
        self.place.zone = zone.into();
        self
    }

    /// Sets the name of the machine that the client is on, as its nodes know it (`cluster.host`).
    /// Default: the system's.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> ClientBuilder {
        self.place.host = host.into();
        self
    }

    /// Sets how long a message may take to be acknowledged, lost connections included, before it
    /// fails. Default 30 s.
    #[must_use]
    pub fn delivery_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.producer.delivery_timeout = timeout;
        self
    }

    /// Sets how long a call looks for a node that answers at all: [`ClientBuilder::connect`],
    /// opening a subscription, history, topics, and the calls of administration and mailboxes.
    /// Default 10 s. Publishing looks for a node for its [`ClientBuilder::delivery_timeout`], and a
    /// subscription that was opened looks for ever.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long each of these calls may take in all, attempts and waits together. A node that
    /// answers "later" (while it starts, for instance; see `waited_for` in the table of errors) is
    /// asked again for so long, and one that is silent is given up. Default 60 s. Receiving from a
    /// mailbox may take that long in addition to the time that it waits for messages.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.call_timeout = timeout;
        self
    }

    /// Sets the number of bytes of messages that may be unacknowledged; further senders wait. Those of lane high may
    /// have an eighth more. Default 64 MiB.
    #[must_use]
    pub fn publish_memory_bytes(mut self, bytes: usize) -> ClientBuilder {
        self.producer.memory_bytes = bytes;
        self
    }

    /// Limits the number of batches of one log that may be in flight. Default: the node's limit alone,
    /// 256 or, with a node of before that limit, 64. Together they have at most
    /// [`ClientBuilder::bytes_in_flight`].
    #[must_use]
    pub fn batches_in_flight(mut self, batches: usize) -> ClientBuilder {
        self.producer.in_flight = batches;
        self
    }

    /// Limits the number of messages in one batch; with 1, each message has a batch of its own.
    /// Default: the node's limit alone. Several batches may still go in one request.
    #[must_use]
    pub fn batch_messages(mut self, messages: u16) -> ClientBuilder {
        self.producer.batch_messages = messages;
        self
    }

    /// Sets the number of bytes of batches of one log that may be in flight; one batch may always
    /// be sent. Default 4 MiB.
    #[must_use]
    pub fn bytes_in_flight(mut self, bytes: usize) -> ClientBuilder {
        self.producer.in_flight_bytes = bytes;
        self
    }

    /// Sets the number of bytes of deliveries that each subscription has room for. Default 16 MiB,
    /// four times what a publisher may have in flight, so that a burst at full speed does not
    /// detach it; at most 64 MiB, since a node counts no more.
    #[must_use]
    pub fn credit_bytes(mut self, bytes: u32) -> ClientBuilder {
        self.subscriber.credit_bytes = bytes.min(CREDIT_BYTES_MAX);
        self
    }

    /// Sets the delays between attempts. Default: drawn evenly up to a ceiling, which is 50 ms at
    /// first and doubles each time, up to 5 s.
    #[must_use]
    pub fn backoff(mut self, backoff: BackoffConfig) -> ClientBuilder {
        self.producer.backoff = backoff;
        self.subscriber.backoff = backoff;
        self
    }

    /// Sets the seed of all of the client's randomness: jitter, and the producer's id. Default:
    /// drawn from the system. Two clients that publish must not have the same seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> ClientBuilder {
        self.seed = Some(seed);
        self
    }

    /// Sets the clock. Default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> ClientBuilder {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets a future upon whose end the client accepts no more messages and delivers those that it
    /// has, like [`Client::close`].
    #[must_use]
    pub fn shutdown(
        mut self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> ClientBuilder {
        self.shutdown = Some(Box::pin(shutdown));
        self
    }

    /// Connects to the first node that answers.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the URL is malformed; `DISCONNECTED` if no node answers in time; an
    /// error that is waited for, if it lasts for all of the `call_timeout`.
    pub async fn connect(self) -> Result<Client, Error> {
        let addresses = parse_url(&self.url)?;
        // Unless the program has set it before.
        bug::on_first_at_each_place(log_bug);
        let clock = self
            .clock
            .unwrap_or_else(|| Arc::new(SystemClock::default()));
        let seed = self.seed.unwrap_or_else(system_seed);
        let mut producer = self.producer;
        let mut subscriber = self.subscriber;
        producer.seed = seed;
        subscriber.seed = seed;
        let addresses: Vec<String> = addresses.iter().map(Address::to_string).collect();
        let choice = |purpose| {
            let seed = random::nth(seed, 1);
            NodeChoice::new(addresses.clone(), purpose, self.place.clone(), seed)
        };
        let client = Client::new(ClientContext {
            nodes: Nodes::new(choice, Arc::clone(&clock)),
            clock,
            client_name: self.name,
            namespace: self.namespace.into(),
            roles: self.roles,
            producer,
            subscriber,
            connect_timeout: self.connect_timeout,
            call_timeout: self.call_timeout,
            seeds: seed.into(),
        });
        client.reach().await?;
        client.start(self.shutdown);
        Ok(client)
    }
}

impl Client {
    /// Connects with the default settings.
    ///
    /// # Errors
    /// Those of [`ClientBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Client, Error> {
        Client::builder().url(url).connect().await
    }

    /// Begins with the default settings, to be changed before connecting.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }
}

impl Mailbox {
    /// Connects with the default settings. With others: [`Client::builder`], then
    /// [`Client::mailbox`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a malformed URL; `DISCONNECTED` if no node answers in time.
    pub async fn connect(url: &str) -> Result<Mailbox, Error> {
        Ok(Client::connect(url).await?.mailbox())
    }
}

/// Logs a bug of this library: at most once for each place in its source.
fn log_bug(met: &Met) {
    tracing::error!(
        facts = met.facts,
        file = met.file,
        line = met.line,
        "a bug in Airmail's client: it goes on; please report it"
    );
}

/// Draws a seed that differs from that of any other process.
#[expect(
    clippy::disallowed_types,
    reason = "the shell's one source of randomness"
)]
fn system_seed() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}
