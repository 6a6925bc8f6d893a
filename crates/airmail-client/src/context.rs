//! The settings, the nodes, the clock and the randomness that all parts of one client share.
//!
//! It knows none of these parts: publishing, subscriptions, history, administration and mailboxes
//! each hold it, and none of them needs another to be read or changed. [`crate::calls`] makes unary
//! calls with it.

use crate::core::{Attempts, Backoff, Patience, ProducerConfig, SubscriberConfig};
use crate::nodes::Nodes;
use airmail_model::Mono;
use airmail_model::clock::Clock;
use airmail_model::random;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Settings, nodes, clock and seeds that the parts of one client share.
#[derive(Debug)]
pub(crate) struct ClientContext {
    pub(crate) nodes: Nodes,
    pub(crate) clock: Arc<dyn Clock>,
    /// Name of the client, which Hello tells the node.
    pub(crate) client_name: String,
    /// Namespace of every call that names none.
    pub(crate) namespace: Arc<str>,
    /// Names of the roles that it says it has.
    pub(crate) roles: Vec<String>,
    pub(crate) producer: ProducerConfig,
    pub(crate) subscriber: SubscriberConfig,
    pub(crate) connect_timeout: Duration,
    pub(crate) call_timeout: Duration,
    /// State of the series from which each part draws its seed.
    pub(crate) seeds: AtomicU64,
}

impl ClientContext {
    /// Makes a context without a node, which reads this clock.
    #[cfg(test)]
    pub(crate) fn without_nodes(clock: Arc<dyn Clock>) -> ClientContext {
        use crate::core::{NodeChoice, Place};
        let choice = |purpose| NodeChoice::new(Vec::new(), purpose, Place::default(), 1);
        ClientContext {
            nodes: Nodes::new(choice, Arc::clone(&clock)),
            clock,
            client_name: "test".to_owned(),
            namespace: "default".into(),
            roles: Vec::new(),
            producer: ProducerConfig::default(),
            subscriber: SubscriberConfig::default(),
            connect_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(10),
            seeds: 7.into(),
        }
    }

    /// Reads the monotonic clock.
    pub(crate) fn mono(&self) -> Mono {
        self.clock.mono()
    }

    /// Draws the seed of one more part.
    pub(crate) fn seed(&self) -> u64 {
        random::mixed(self.seeds.fetch_add(random::STEP, Ordering::Relaxed))
    }

    /// Makes a backoff with a seed of its own.
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.producer.backoff, self.seed())
    }

    /// Prepares attempts at one call, which may take `all` together, and `connect_timeout` while no
    /// node answers.
    pub(crate) fn attempts(&self, all: Duration) -> Attempts {
        let node = self.connect_timeout;
        Attempts::new(Patience { node, all }, self.backoff())
    }

    /// Sleeps until the clock says `until`.
    pub(crate) async fn sleep_until(&self, until: Mono) {
        tokio::time::sleep(until.since(self.mono())).await;
    }
}
