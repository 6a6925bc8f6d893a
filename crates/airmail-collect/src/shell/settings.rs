//! Settings of the collector.

use crate::collector::Bounds;
use crate::placement::Order;
use std::time::Duration;

/// Where records are taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A Kafka cluster.
    Kafka {
        /// HOST:PORT, with commas between.
        brokers: String,
    },
    /// Nodes of Airmail.
    Airmail {
        /// `airmail://HOST:PORT[,HOST:PORT…]`.
        url: String,
        /// The topics' namespace.
        namespace: String,
    },
}

/// A topic that is collected, and where its records go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The topic that is taken from.
    pub from: String,
    /// The topic of the main cluster.
    pub to: String,
}

/// Where to begin with a source that the group has never collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Begins with the oldest record.
    Earliest,
    /// Begins after the newest record.
    Latest,
}

/// All of it. Instances that are to share the work have the same, but for properties.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where records are taken from.
    pub origin: Origin,
    /// The main cluster's HOST:PORT, with commas between.
    pub target: String,
    /// Routes to collect: at least one, each `from` once.
    pub routes: Vec<Route>,
    /// Name of the origin in stamps; absent: its cluster id, or `airmail.NAMESPACE`.
    pub name: Option<String>,
    /// The consumer group that instances share.
    pub group: String,
    /// Where a source begins that the group never collected.
    pub begin: Begin,
    /// The order to keep.
    pub order: Order,
    /// The policy, and all that belongs to it.
    pub partitioning: airmail_partition::Settings,
    /// Bounds on the records under way.
    pub bounds: Bounds,
    /// Interval at which acknowledged records are committed.
    pub commit_every: Duration,
    /// Time that an instance that gives a source up waits for its records under way.
    pub hand_over: Duration,
    /// Time after which a silent instance counts as dead.
    pub session: Duration,
    /// Time that a batch waits to fill.
    pub linger: Duration,
    /// Bytes of a batch.
    pub batch_bytes: u32,
    /// Further properties of librdkafka for the origin's client, such as for TLS.
    pub source_properties: Vec<(String, String)>,
    /// And for the main cluster's.
    pub target_properties: Vec<(String, String)>,
}
