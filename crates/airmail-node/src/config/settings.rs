//! The table of settings: one row for each.

mod kinds;

use super::Config;
use airmail_model::quantity::ByteSize;
use airmail_model::{Durability, ParseDurabilityError};
use kinds::{file, number, size, switch, text, unquoted};
use std::fmt::Display;
use std::str::FromStr;

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its section in the file.
    pub section: &'static str,
    /// Its key in the section.
    pub key: &'static str,
    /// Its meaning, unit and bounds.
    pub about: &'static str,
    /// Whether its value is text in the file, rather than a number, `true` or `false`, or a list.
    pub quoted: bool,
    /// Its value as text.
    pub get: fn(&Config) -> String,
    /// Takes a value from text; says what it should have been if it cannot.
    pub set: fn(&mut Config, &str) -> Result<(), String>,
}

impl Setting {
    /// `section.key`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }

    /// `AIRMAIL_<SECTION>_<KEY>`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("AIRMAIL_{}_{}", self.section, self.key).to_ascii_uppercase()
    }
}

fn parse<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn set_durability(config: &mut Config, text: &str) -> Result<(), String> {
    config.durability = match text {
        "" | "strongest" => None,
        text => {
            let named = text.parse::<Durability>();
            Some(named.map_err(|_| format!("strongest, {}", ParseDurabilityError::EXPECTED))?)
        }
    };
    Ok(())
}

fn get_durability(config: &Config) -> String {
    let named = config.durability.map(|durability| durability.to_string());
    named.unwrap_or_else(|| "strongest".to_owned())
}

fn set_format(config: &mut Config, text: &str) -> Result<(), String> {
    if !matches!(text, "text" | "json") {
        return Err("text or json".to_owned());
    }
    config.log_format = text.to_owned();
    Ok(())
}

/// Every setting, in the order of `--print-config`.
pub const SETTINGS: &[Setting] = &[
    file!("node", "data", data, "Where the node keeps its data."),
    number!(
        "node",
        "shards",
        shards,
        "Threads with connections and logs of their own, 1 to 64; never fewer than the data directory has."
    ),
    text!(
        "node",
        "roles",
        roles,
        "Which parts of a node run here: all, or of pilot, copilot and tower those, with commas between them."
    ),
    text!(
        "node",
        "name",
        name,
        "The node's name, told to clients and in logs; its own for each node of a cluster."
    ),
    text!(
        "node",
        "stop_timeout",
        stop_timeout,
        "How long a stop waits for what is under way."
    ),
    text!(
        "cluster",
        "listen",
        cluster.listen,
        "Where other nodes reach this one: HOST:PORT. Empty: one with logs is reached by none."
    ),
    text!(
        "cluster",
        "advertised",
        cluster.advertised,
        "Where other nodes are told to reach it, if that is not where it listens: HOST:PORT."
    ),
    text!(
        "cluster",
        "join",
        cluster.join,
        "The node whose logs are used, HOST:PORT[,HOST:PORT]: without role tower. With it, on Kafka: others."
    ),
    unquoted!(
        "cluster",
        "towers_per_log",
        cluster.towers_per_log,
        "Towers that know each log, where several nodes have it, 1 to 3: one serves it, others stand by.",
        text => text.parse(), "1 to 3"
    ),
    Setting {
        section: "cluster",
        key: "peers",
        about: "Where all nodes of a cluster without gossip are, as [\"10.0.0.1:7402\", \"10.0.0.2:7402\"].",
        // A list, which brings its own marks.
        quoted: false,
        get: |config| config.cluster.peers.to_string(),
        set: |config, text| {
            config.cluster.peers = text.parse()?;
            Ok(())
        },
    },
    text!(
        "cluster",
        "zone",
        cluster.zone,
        "Its zone: clients prefer nodes of their machine, then of their zone."
    ),
    text!(
        "cluster",
        "host",
        cluster.host,
        "Name of the machine that it runs on. Empty: as the system names it."
    ),
    file!(
        "cluster",
        "secret_file",
        cluster.secret_file,
        "A file of at least 32 bytes, the same on all nodes. Empty: they are on this machine alone."
    ),
    number!(
        "tree",
        "depth_max",
        tree.depth_max,
        "Most nodes on a way from the root of a tree, both ends included, 2 to 32."
    ),
    number!(
        "tree",
        "children_max",
        tree.children_max,
        "Most children of a node, 1 to 128: one too many is sent on to the child that has the fewest."
    ),
    text!(
        "cache",
        "bytes",
        link_cache,
        "Memory in which a node without role tower keeps what was read for its clients; 0: none."
    ),
    text!(
        "listen",
        "address",
        listen,
        "Where clients connect (gRPC): HOST:PORT."
    ),
    text!(
        "listen",
        "advertised",
        advertised,
        "Where clients are told to connect, if that is not where it listens: HOST:PORT."
    ),
    switch!(
        "listen",
        "allow_anyone",
        allow_anyone,
        "Whether addresses (gRPC, HTTP) may be beyond loopback: whoever reaches them may do everything."
    ),
    number!(
        "listen",
        "connections",
        connections,
        "Connections at once; further ones are told so and closed."
    ),
    text!(
        "listen",
        "begin",
        begin,
        "How long a connection may take to make its first request (gRPC), or the next one (HTTP)."
    ),
    text!(
        "listen",
        "keep_alive",
        keep_alive,
        "How long a connection may be silent before it is asked for an answer, which may take as long."
    ),
    switch!(
        "security",
        "trust_roles",
        trust_roles,
        "Whether clients are believed to have the roles that they name. Refused where clients come from beyond loopback."
    ),
    text!(
        "http",
        "address",
        http,
        "Where health and metrics are served: HOST:PORT."
    ),
    Setting {
        section: "http",
        key: "hosts",
        about: "Hosts, beside loopback's, that requests may name (Host, Origin), as [\"node.example.org\"].",
        // A list, which brings its own marks.
        quoted: false,
        get: |config| config.http_hosts.to_string(),
        set: |config, text| {
            config.http_hosts = text.parse()?;
            Ok(())
        },
    },
    number!(
        "http",
        "connections",
        http_connections,
        "Connections at once to health and metrics; further ones are told so and closed."
    ),
    text!(
        "log",
        "url",
        log_url,
        "The storage: disk:PATH, memory:, kafka://HOST:PORT or a parent's, tree://HOST:PORT (empty: disk, in node.data)."
    ),
    text!(
        "log",
        "level",
        log_level,
        "What is logged: error, warn, info, debug, trace, or a filter, as info,airmail=debug."
    ),
    Setting {
        section: "log",
        key: "format",
        about: "How it is logged: text or json.",
        quoted: true,
        get: |config| config.log_format.clone(),
        set: set_format,
    },
    Setting {
        section: "namespace",
        key: "durability",
        about: "Of the default namespace when first made: strongest, fsync, os or memory.",
        quoted: true,
        get: get_durability,
        set: set_durability,
    },
    size!(
        "limits",
        "message_bytes",
        limits.message_bytes,
        "One message: attributes and payload."
    ),
    size!(
        "limits",
        "topic_bytes",
        limits.topic_bytes,
        "A topic's name."
    ),
    number!(
        "limits",
        "attributes",
        limits.attributes,
        "Attributes of one message."
    ),
    size!(
        "limits",
        "batch_bytes",
        limits.batch_bytes,
        "A batch of more than one message."
    ),
    number!(
        "limits",
        "batch_records",
        limits.batch_records,
        "Messages in a batch, at most 4096."
    ),
    size!(
        "limits",
        "frame_bytes",
        limits.frame_bytes,
        "One request, one delivery."
    ),
    size!(
        "limits",
        "credit_bytes",
        limits.credit_bytes,
        "Deliveries under way to a client that grants nothing."
    ),
    size!(
        "limits",
        "unacked_bytes",
        limits.unacked_bytes,
        "Publishes of one stream that wait for their ack; of lane high an eighth more."
    ),
    number!(
        "limits",
        "subscriptions",
        limits.subscriptions,
        "Subscriptions on one stream."
    ),
    text!(
        "storage",
        "segment_bytes",
        segment,
        "A segment's size on disk."
    ),
    text!(
        "storage",
        "cache_bytes",
        cache,
        "Recent batches kept in memory for readers near the end; as much again for what late ones have had read."
    ),
    text!(
        "storage",
        "pending_bytes",
        pending,
        "Appends that wait for the disk; more is refused."
    ),
    text!(
        "retention",
        "clock_jump",
        clock_jump,
        "How far the wall clock has to jump for retention by time to wait (at least 1s)."
    ),
    text!(
        "delivery",
        "mark_interval",
        mark_interval,
        "How often a quiet subscription is told of progress."
    ),
    number!(
        "delivery",
        "readers",
        readers,
        "Readers of storage for late subscribers."
    ),
    text!(
        "flow",
        "publish_limiter",
        flow.publish_limiter,
        "What bounds published messages in flight: off, fixed, last-three-points, adaptive, gradient, \
         ladder, latency-target."
    ),
    number!(
        "flow",
        "publish_in_flight",
        flow.publish_in_flight,
        "Its first bound, in messages; fixed keeps it."
    ),
    number!(
        "flow",
        "publish_window",
        flow.publish_window,
        "Acknowledged messages that it measures before it decides, at least 1; ladder goes by time."
    ),
    number!(
        "flow",
        "publish_delta",
        flow.publish_delta,
        "Messages: the smallest change of last-three-points and adaptive."
    ),
    text!(
        "flow",
        "publish_floor",
        flow.publish_floor,
        "Latency for which gradient gives up no throughput, and that ladder lets throughput cost."
    ),
    text!(
        "flow",
        "publish_target",
        flow.publish_target,
        "Latency that latency-target keeps (at least 1ms)."
    ),
    number!(
        "flow",
        "publish_waiting",
        flow.publish_waiting,
        "Messages that may wait to be in flight; more is refused."
    ),
    text!(
        "flow",
        "publish_wait",
        flow.publish_wait,
        "How long one may wait; then it is refused."
    ),
    text!(
        "flow",
        "delivery_limiter",
        flow.delivery_limiter,
        "What bounds deliveries in flight: off, fixed, last-three-points, adaptive, gradient, ladder, \
         latency-target."
    ),
    text!(
        "flow",
        "delivery_in_flight",
        flow.delivery_in_flight,
        "Its first and least bound: what connections have not taken; fixed keeps it."
    ),
    Setting {
        section: "mailbox",
        key: "url",
        about: "Where mailboxes are kept: postgres://… or sqlite:PATH (empty: SQLite, beside the log).",
        quoted: true,
        get: |config| config.mailbox.url_without_password(),
        set: |config, text| {
            config.mailbox.url = text.to_owned();
            Ok(())
        },
    },
    number!(
        "mailbox",
        "connections",
        mailbox.connections,
        "Connections to PostgreSQL for requests; one more is for what is done beside them."
    ),
    number!(
        "mailbox",
        "threads",
        mailbox.threads,
        "Threads that serve requests of mailboxes (0: one for each processor)."
    ),
    number!(
        "mailbox",
        "waiting",
        mailbox.waiting,
        "Requests that may wait for a connection; more are refused."
    ),
    text!(
        "mailbox",
        "patience",
        mailbox.patience,
        "How long a request waits for a database that is away or locked."
    ),
    text!(
        "mailbox",
        "slot_bytes",
        mailbox.slot,
        "How large one of the three parts of the storage in PostgreSQL grows before the next is begun."
    ),
];
