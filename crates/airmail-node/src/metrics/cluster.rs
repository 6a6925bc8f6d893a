//! Metrics of the cluster: its members as this node sees them, and this node's links to others.

use crate::cluster::link_states::LinkStates;
use crate::cluster::tree::Tree;
use airmail_link::CacheState;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::{Arc, OnceLock};

type Labels = Vec<(&'static str, String)>;

/// Standings of members as labels, in the order of [`ClusterMetrics::members`].
const STANDINGS: [&str; 3] = ["live", "suspect", "down"];

/// Metrics of the cluster. Cheap to share: each metric is a handle.
#[derive(Debug, Default)]
pub(crate) struct ClusterMetrics {
    /// Datagrams that were no news of this cluster's.
    pub(crate) dropped: Counter,
    /// The links that this node keeps.
    pub(crate) links: LinkStates,
    /// Its place in a tree, if it has to do with one.
    pub(crate) tree: OnceLock<Tree>,
    /// Caches of what other nodes gave, one of each shard.
    caches: Mutex<Vec<Arc<CacheState>>>,
    members: Family<Labels, Gauge>,
    link_bytes: Family<Labels, Counter>,
    link_count: Family<Labels, Gauge>,
    link_waiting: Family<Labels, Gauge>,
    link_silences: Family<Labels, Counter>,
}

/// Meters of the links to one other node, whoever keeps them.
#[derive(Clone, Debug)]
pub(crate) struct LinkMeters {
    /// Links that are there now.
    pub(crate) links: Gauge,
    /// Bytes that they have carried.
    pub(crate) sent: Counter,
    pub(crate) received: Counter,
    /// Bytes of batches that wait to be sent.
    pub(crate) waiting: Gauge,
    /// Times that nothing came on one of them for 500 to 900 ms, not even a sign of life.
    pub(crate) silences: Counter,
}

impl ClusterMetrics {
    /// Takes note of how many other members there are that are live, suspect and down.
    pub(crate) fn members(&self, counts: [usize; 3]) {
        for (standing, count) in STANDINGS.iter().zip(counts) {
            let labels = vec![("state", (*standing).to_owned())];
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.members.get_or_create(&labels).set(count);
        }
    }

    /// Meters of the links to a node.
    pub(crate) fn link_meters(&self, node: &str) -> LinkMeters {
        let bytes = |direction: &str| {
            let labels = vec![
                ("node", node.to_owned()),
                ("direction", direction.to_owned()),
            ];
            self.link_bytes.get_or_create(&labels).clone()
        };
        let labels = vec![("node", node.to_owned())];
        LinkMeters {
            links: self.link_count.get_or_create(&labels).clone(),
            sent: bytes("sent"),
            received: bytes("received"),
            waiting: self.link_waiting.get_or_create(&labels).clone(),
            silences: self.link_silences.get_or_create(&labels).clone(),
        }
    }

    /// Takes note of a shard's cache of what other nodes give.
    pub(crate) fn add_cache(&self, cache: Arc<CacheState>) {
        self.caches.lock().push(cache);
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "airmail_cluster_members",
            "Other nodes of the cluster, by how this one sees them",
            self.members.clone(),
        );
        registry.register(
            "airmail_cluster_datagrams_dropped",
            "Datagrams that came without the cluster's secret, damaged or for a second time",
            self.dropped.clone(),
        );
        registry.register(
            "airmail_links",
            "Links to another node that are there, one for each pair of shards",
            self.link_count.clone(),
        );
        let (_, missing) = self.links.counts();
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(missing).unwrap_or(i64::MAX));
        registry.register(
            "airmail_links_missing",
            "Links that this node keeps to others and has not at present",
            gauge,
        );
        registry.register(
            "airmail_link_bytes",
            "Bytes on links to another node, by direction",
            self.link_bytes.clone(),
        );
        registry.register(
            "airmail_link_waiting_bytes",
            "Bytes of batches that wait to be sent on links to another node",
            self.link_waiting.clone(),
        );
        if let Some(tree) = self.tree.get() {
            register_tree(tree, registry);
        }
        let caches = self.caches.lock();
        if !caches.is_empty() {
            register_caches(&caches, registry);
        }
        registry.register(
            "airmail_link_silences",
            "Times that a link to another node brought nothing for 500 to 900 ms, not even a sign of life",
            self.link_silences.clone(),
        );
    }
}

/// The place of this node in a tree, and what it has from its parent.
fn register_tree(tree: &Tree, registry: &mut Registry) {
    let place = tree.card();
    let mut gauge = |name: &str, help: &str, value: i64| {
        let gauge = Gauge::<i64>::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    gauge(
        "airmail_tree_depth",
        "Nodes above this one in its tree; -1: it has no way to the root",
        if place.is_child && place.depth == 0 {
            -1
        } else {
            place.depth.into()
        },
    );
    gauge(
        "airmail_tree_children",
        "Nodes that have their logs from this one",
        place.children.into(),
    );
    gauge(
        "airmail_tree_delay_us",
        "Half of the time that a question to the parent and its answer take",
        place.delay_us.into(),
    );
    gauge(
        "airmail_tree_behind_ms",
        "Time for which something that is followed in the parent has not been at its end",
        place.behind_ms.into(),
    );
}

/// Caches of all shards together.
fn register_caches(caches: &[Arc<CacheState>], registry: &mut Registry) {
    let bytes: u64 = caches.iter().map(|cache| cache.bytes()).sum();
    let gauge = Gauge::<i64>::default();
    gauge.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    registry.register(
        "airmail_cache_bytes",
        "Memory that what other nodes gave takes",
        gauge,
    );
    let fetched = Counter::<u64>::default();
    fetched.inc_by(caches.iter().map(|cache| cache.fetched_bytes()).sum());
    registry.register(
        "airmail_cache_fetched_bytes",
        "Bytes of batches that other nodes gave to the cache",
        fetched,
    );
}
