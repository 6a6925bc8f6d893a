//! What the collector is told.

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

/// Where to begin with what was never collected by the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// With the oldest record.
    Earliest,
    /// After what is there now.
    Latest,
}

/// All of it. Instances that are to share the work have the same, but for properties.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where records are taken from.
    pub origin: Origin,
    /// The main cluster's HOST:PORT, with commas between.
    pub target: String,
    /// What is collected: at least one, each `from` once.
    pub routes: Vec<Route>,
    /// How stamps call the origin; absent: by its cluster id, or `airmail.NAMESPACE`.
    pub name: Option<String>,
    /// The consumer group that instances share.
    pub group: String,
    /// Where a source begins that the group never collected.
    pub begin: Begin,
    /// What order is kept.
    pub order: Order,
    /// The policy, and all that belongs to it.
    pub partitioning: airmail_partition::Settings,
    /// How much may be under way.
    pub bounds: Bounds,
    /// How often is committed what was acknowledged.
    pub commit_every: Duration,
    /// How long an instance that gives a source up waits for what it has under way.
    pub hand_over: Duration,
    /// After how long a silent instance counts as dead.
    pub session: Duration,
    /// How long a batch waits to fill.
    pub linger: Duration,
    /// Bytes of a batch.
    pub batch_bytes: u32,
    /// Further properties of librdkafka for the origin's client, such as for TLS.
    pub source_properties: Vec<(String, String)>,
    /// And for the main cluster's.
    pub target_properties: Vec<(String, String)>,
}
