//! A node's metrics, as Prometheus text. Each is in `docs/metrics.md`; a test compares.
//!
//! Each shard counts by itself; its counters are asked for at each scrape, and their sums are told. Only what
//! the shell alone sees is counted here.

pub(crate) mod cluster;
mod doors;
pub(crate) mod flow;
mod mailbox;

use airmail_broker::Flow;
use airmail_broker::stats::Stats;
use airmail_log::{ClockState, Trouble};
use airmail_mailbox::store::StoreLoad;
use airmail_model::bug;
use airmail_model::{Error, ErrorCode};
use cluster::ClusterMetrics;
use doors::DoorMetrics;
use mailbox::MailboxMetrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::fmt;

/// A shard's counters at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) stats: Stats,
    pub(crate) ready: bool,
    pub(crate) namespaces: u64,
    pub(crate) trouble: Option<Trouble>,
    /// Places of the storage that have been found damaged.
    pub(crate) damage: u64,
    /// Bytes that the storage has read for readers.
    pub(crate) read_bytes: u64,
    pub(crate) flow: Flow,
    pub(crate) clock: ClockState,
}

type Reading = (&'static str, &'static str, fn(&Stats) -> u64);

/// Counters of the shard; `_total` is added to their names.
const COUNTERS: &[Reading] = &[
    (
        "airmail_published_batches",
        "Batches acknowledged, retries included",
        |s| s.published_batches,
    ),
    (
        "airmail_published_messages",
        "Messages acknowledged, retries included",
        |s| s.published_messages,
    ),
    (
        "airmail_published_bytes",
        "Bytes of acknowledged batches",
        |s| s.published_bytes,
    ),
    (
        "airmail_published_high_messages",
        "Messages of lane high acknowledged, retries included",
        |s| s.high.published_messages,
    ),
    (
        "airmail_published_high_bytes",
        "Bytes of acknowledged batches of lane high",
        |s| s.high.published_bytes,
    ),
    (
        "airmail_publish_duplicates",
        "Acknowledged batches that had been stored before",
        |s| s.duplicates,
    ),
    (
        "airmail_publish_parked",
        "Publishes that waited for admission",
        |s| s.parked,
    ),
    ("airmail_deliveries", "Deliveries sent", |s| s.deliveries),
    ("airmail_delivered_messages", "Messages delivered", |s| {
        s.delivered_messages
    }),
    ("airmail_delivered_bytes", "Bytes of deliveries", |s| {
        s.delivered_bytes
    }),
    (
        "airmail_delivered_high_messages",
        "Messages of lane high delivered",
        |s| s.high.delivered_messages,
    ),
    (
        "airmail_delivered_high_bytes",
        "Bytes of deliveries of lane high",
        |s| s.high.delivered_bytes,
    ),
    (
        "airmail_delivery_slices",
        "Deliveries made for one subscriber alone",
        |s| s.slices,
    ),
    ("airmail_marks", "Progress marks sent", |s| s.marks),
    (
        "airmail_log_new_lives",
        "Logs that began a new life because a position lay beyond their end",
        |s| s.renewed,
    ),
    (
        "airmail_gaps_retention",
        "Gaps told because of retention",
        |s| s.gaps_retention,
    ),
    ("airmail_gaps_loss", "Gaps told because of loss", |s| {
        s.gaps_loss
    }),
    (
        "airmail_expired",
        "Messages that a subscription was not given because they had expired",
        |s| s.expired,
    ),
    (
        "airmail_filtered",
        "Messages that a subscription was not given because its filter does not match them",
        |s| s.filtered,
    ),
    (
        "airmail_matching_overruns",
        "Times that there was no room for what was to be held against the filters of a log, so that it was left to the storage, and read from there later",
        |s| s.matching_overruns,
    ),
    (
        "airmail_forbidden",
        "Messages that a subscription was not given because they are for other roles",
        |s| s.forbidden,
    ),
    (
        "airmail_detached",
        "Times that a live subscription was detached",
        |s| s.detached,
    ),
    (
        "airmail_rejoined",
        "Times that a detached subscription went live",
        |s| s.rejoined,
    ),
    (
        "airmail_caravans_started",
        "Readers started for late subscribers",
        |s| s.catch_up_readers_started,
    ),
    (
        "airmail_caravan_sweeps",
        "Times that a reader began to sweep a log for many late subscribers",
        |s| s.catch_up_sweeps,
    ),
    (
        "airmail_caravan_bytes",
        "Bytes read for late subscribers",
        |s| s.catch_up_bytes,
    ),
];

/// Gauges of the shard.
const GAUGES: &[Reading] = &[
    ("airmail_sessions", "Streams open", |s| s.sessions),
    (
        "airmail_live_subscriptions",
        "Subscriptions at the tail",
        |s| s.live_subscriptions,
    ),
    (
        "airmail_detached_subscriptions",
        "Subscriptions behind",
        |s| s.detached_subscriptions,
    ),
    ("airmail_caravans", "Readers for late subscribers", |s| {
        s.catch_up_readers
    }),
    (
        "airmail_rooms",
        "Logs with subscribers at their tail",
        |s| s.tails,
    ),
    (
        "airmail_appends_in_flight",
        "Publishes that the storage has not answered",
        |s| s.appends_in_flight,
    ),
    (
        "airmail_appends_in_flight_bytes",
        "Bytes of publishes not yet answered",
        |s| s.appends_in_flight_bytes,
    ),
    (
        "airmail_appends_in_flight_high_bytes",
        "Bytes of publishes of lane high not yet answered",
        |s| s.high.appends_in_flight_bytes,
    ),
];

/// Metrics that the shell counts by itself. Cheap to share: each metric is a handle.
pub(crate) struct Metrics {
    /// From a batch's arrival to its ack on the wire, in seconds.
    pub(crate) publish_latency: Histogram,
    /// The same, of batches of lane high alone.
    pub(crate) publish_high_latency: Histogram,
    /// Connections open.
    pub(crate) connections: Gauge,
    /// Connections since the node began.
    pub(crate) connections_opened: Counter,
    /// Connections that ended in an error: garbage, or another protocol.
    pub(crate) connections_failed: Counter,
    /// Connections let in and turned away at the ports.
    pub(crate) doors: DoorMetrics,
    /// Members of the cluster, and links to them.
    pub(crate) cluster: ClusterMetrics,
    /// Requests of mailboxes.
    pub(crate) mailbox: MailboxMetrics,
    edge_refusals: Family<Vec<(String, String)>, Counter>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            // 50 µs to 26 s, each twice the last.
            publish_latency: Histogram::new(exponential_buckets(0.000_05, 2.0, 20)),
            publish_high_latency: Histogram::new(exponential_buckets(0.000_05, 2.0, 20)),
            connections: Gauge::default(),
            connections_opened: Counter::default(),
            connections_failed: Counter::default(),
            doors: DoorMetrics::default(),
            cluster: ClusterMetrics::default(),
            mailbox: MailboxMetrics::default(),
            edge_refusals: Family::default(),
        }
    }
}

impl Metrics {
    /// Counts a publish that was refused before it came to the shard.
    pub(crate) fn refused_at_edge(&self, error: &Error) {
        let label = ("code".to_owned(), error.code().name().to_owned());
        self.edge_refusals.get_or_create(&vec![label]).inc();
    }

    /// All metrics as Prometheus text.
    ///
    /// # Errors
    /// Only if text cannot be written.
    pub(crate) fn text(
        &self,
        shards: Vec<Snapshot>,
        turns: Vec<u64>,
    ) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register(
            "airmail_publish_latency_seconds",
            "From a batch's arrival to its ack on the wire",
            self.publish_latency.clone(),
        );
        registry.register(
            "airmail_publish_high_latency_seconds",
            "From the arrival of a batch of lane high to its ack on the wire",
            self.publish_high_latency.clone(),
        );
        registry.register(
            "airmail_connections",
            "Connections open",
            self.connections.clone(),
        );
        registry.register(
            "airmail_connections_opened",
            "Connections since the node began",
            self.connections_opened.clone(),
        );
        registry.register(
            "airmail_connections_failed",
            "Connections that ended in a protocol error",
            self.connections_failed.clone(),
        );
        registry.register(
            "airmail_publish_refused",
            "Publishes refused before they came to the shard, by error",
            self.edge_refusals.clone(),
        );
        self.doors.register(&mut registry);
        self.cluster.register(&mut registry);
        self.mailbox.register(&mut registry);
        let load = self.mailbox.load();
        let sampled = Sampled {
            sum: Snapshot::sum(&shards),
            shards,
            turns,
            load,
        };
        registry.register_collector(Box::new(sampled));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

/// Counters of the shards and the mailboxes, at the moment of a scrape.
#[derive(Debug)]
struct Sampled {
    shards: Vec<Snapshot>,
    sum: Snapshot,
    /// Turns that each shard has had, whether it answers or not.
    turns: Vec<u64>,
    load: StoreLoad,
}

impl Collector for Sampled {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.sum.encode(&mut encoder)?;
        flow::encode(&self.shards, &mut encoder)?;
        self.encode_shards(&mut encoder)?;
        mailbox::encode(&self.load, &mut encoder)
    }
}

impl Sampled {
    /// Tells of each shard by itself.
    fn encode_shards(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let label = |shard: usize| [("shard", shard.to_string())];
        let kind = ConstGauge::new(0_i64).metric_type();
        let (name, help) = ("airmail_shard_sessions", "Streams open on a shard");
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for (shard, snapshot) in self.shards.iter().enumerate() {
            let sessions = i64::try_from(snapshot.stats.sessions).unwrap_or(i64::MAX);
            ConstGauge::new(sessions).encode(family.encode_family(&label(shard))?)?;
        }
        let kind = ConstCounter::new(0_u64).metric_type();
        let (name, help) = ("airmail_shard_turns", "Turns of a shard's event loop");
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for (shard, turns) in self.turns.iter().enumerate() {
            ConstCounter::new(*turns).encode(family.encode_family(&label(shard))?)?;
        }
        Ok(())
    }
}

impl Snapshot {
    /// All shards together.
    pub(crate) fn sum(shards: &[Snapshot]) -> Snapshot {
        let mut sum = Snapshot {
            ready: shards.iter().all(|shard| shard.ready),
            // Each has all of them, sooner or later.
            namespaces: shards
                .iter()
                .map(|shard| shard.namespaces)
                .max()
                .unwrap_or(0),
            // One that fails is worse than one that is full.
            trouble: {
                let mut troubles = shards.iter().filter_map(|shard| shard.trouble.as_ref());
                let fails = troubles.clone().find(|trouble| !trouble.full);
                fails.or_else(|| troubles.next()).cloned()
            },
            clock: Snapshot::clock_of(shards.iter().map(|shard| &shard.clock)).unwrap_or_default(),
            ..Snapshot::default()
        };
        for shard in shards {
            sum.stats.add(&shard.stats);
            sum.damage += shard.damage;
            sum.read_bytes += shard.read_bytes;
        }
        sum
    }

    /// The clock as the shards see it: one that does not believe it tells, or else the first. Each jump is
    /// noticed by all.
    pub(crate) fn clock_of<'a>(
        clocks: impl Iterator<Item = &'a ClockState> + Clone,
    ) -> Option<ClockState> {
        let told = clocks.clone().find(|clock| clock.held.is_some());
        let mut told = *told.or_else(|| clocks.clone().next())?;
        told.jumps = clocks.map(|clock| clock.jumps).max().unwrap_or(0);
        Some(told)
    }

    /// The gauges that are not the shard's: name, help, value.
    fn own(&self) -> [(&'static str, &'static str, u64); 6] {
        let full = self.trouble.as_ref().is_some_and(|trouble| trouble.full);
        let failing = self.trouble.as_ref().is_some_and(|trouble| !trouble.full);
        [
            (
                "airmail_ready",
                "1 if the node takes requests and has met no bug",
                (self.ready && bug::first().is_none()).into(),
            ),
            ("airmail_namespaces", "Namespaces", self.namespaces),
            (
                "airmail_storage_full",
                "1 if nothing is stored for want of room",
                full.into(),
            ),
            (
                "airmail_storage_failing",
                "1 if nothing is stored because the storage fails",
                failing.into(),
            ),
            (
                "airmail_clock_held",
                "1 if the wall clock has jumped and retention by time does not go by it",
                self.clock.held.is_some().into(),
            ),
            (
                "airmail_process_resident_bytes",
                "Memory of the process",
                resident_bytes(),
            ),
        ]
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let jumps = (
            "airmail_clock_jumps",
            "Jumps of the wall clock noticed",
            self.clock.jumps,
        );
        let counters = COUNTERS.iter();
        let counters = counters.map(|(name, help, read)| (*name, *help, read(&self.stats)));
        let bugs = (
            "airmail_bugs",
            "Bugs of the program that were met and survived",
            bug::count(),
        );
        let damage = (
            "airmail_storage_damage",
            "Damaged places found in the storage",
            self.damage,
        );
        let read = (
            "airmail_storage_read_bytes",
            "Bytes read from the disk for subscribers that are behind",
            self.read_bytes,
        );
        for (name, help, value) in counters.chain([jumps, damage, read, bugs]) {
            let value = ConstCounter::new(value);
            let metric = encoder.encode_descriptor(name, help, None, value.metric_type())?;
            value.encode(metric)?;
        }
        let gauges = GAUGES
            .iter()
            .map(|(name, help, read)| (*name, *help, read(&self.stats)));
        for (name, help, value) in gauges.chain(self.own()) {
            let value = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let metric = encoder.encode_descriptor(name, help, None, value.metric_type())?;
            value.encode(metric)?;
        }
        let refused = ConstCounter::new(0_u64);
        let mut family = encoder.encode_descriptor(
            "airmail_refused",
            "Requests refused by the shard, by error",
            None,
            refused.metric_type(),
        )?;
        for code in ErrorCode::ALL {
            let count = ConstCounter::new(self.stats.refused(*code));
            let labels = [("code", code.name())];
            count.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// Bytes that the process holds in memory, as the system counts them; 0 where it does not say.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| {
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()
    });
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests;
