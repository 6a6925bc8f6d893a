//! `airmail collect`: the halfway collector, between producers and the main Kafka cluster.
//!
//! Standard error has the log; standard output, where it is a terminal, a line for each second.
//! SIGINT and SIGTERM end it in order: its records under way are waited for, and its sources go to
//! others at once. A second signal ends it immediately, which loses nothing either.

#[cfg(feature = "kafka")]
mod page;
#[cfg(feature = "kafka")]
mod running;
#[cfg(feature = "kafka")]
mod settings;

use airmail_model::quantity::ByteSize;
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `airmail collect`.
#[derive(clap::Args, Debug)]
pub struct CollectArgs {
    /// Where records are taken from: kafka://HOST:PORT[,HOST:PORT…], or airmail://HOST:PORT for topics of
    /// Airmail
    #[arg(long, value_name = "URL")]
    pub source: String,
    /// The main cluster: kafka://HOST:PORT[,HOST:PORT…]
    #[arg(long, value_name = "URL")]
    pub target: String,
    /// A topic to collect, and the main cluster's where it goes, if that has another name; may be given
    /// more than once
    #[arg(long = "topic", value_name = "TOPIC[=TARGET]", required = true)]
    pub topics: Vec<String>,
    /// The namespace, of topics of Airmail
    #[arg(long, value_name = "NS", default_value = "default")]
    pub namespace: String,
    /// Policy that chooses partitions for records without a key: default, improved, node, sqf or
    /// adaptive
    #[arg(long, value_name = "POLICY", default_value = "adaptive")]
    pub policy: String,
    /// Do not look at keys, as the paper does: then a key's records are not in order
    #[arg(long)]
    pub ignore_keys: bool,
    /// spread: as the policy says, and each record is stamped, so that its source's order can be restored.
    /// pinned: all of a source to one partition, in order
    #[arg(long, value_name = "ORDER", default_value = "spread")]
    pub order: String,
    /// Instances of one group share the work, and take over from each other
    #[arg(long, value_name = "NAME", default_value = "airmail-collect")]
    pub group: String,
    /// Name of the source in stamps [default: its cluster id, or airmail.NAMESPACE]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where to begin with a source that the group has never collected: earliest or latest
    #[arg(long, value_name = "PLACE", default_value = "earliest")]
    pub from: String,
    /// Serve metrics as Prometheus text at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<String>,
    /// Let --metrics be beyond loopback: anyone who reaches it may read them
    #[arg(long, requires = "metrics")]
    pub allow_anyone: bool,
    /// Records that may be taken and not yet acknowledged; each source has an equal part
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub outstanding: usize,
    /// The same in bytes
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub outstanding_bytes: ByteSize,
    /// Time that a batch waits to fill
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = humantime::parse_duration)]
    pub linger: Duration,
    /// Interval at which acknowledged records are committed
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration)]
    pub commit_every: Duration,
    /// Time that an instance that gives a source up waits for its records under way
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    pub hand_over: Duration,
    /// Time after which a silent instance counts as dead
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    pub session: Duration,
    /// A property of librdkafka for the source's client, as security.protocol=ssl
    #[arg(long, value_name = "NAME=VALUE")]
    pub source_property: Vec<String>,
    /// And for the target's
    #[arg(long, value_name = "NAME=VALUE")]
    pub target_property: Vec<String>,
    /// Log level: error, warn, info, debug, trace, or a filter
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
}

/// Runs until it is told to stop.
///
/// # Errors
/// Wrong usage; or what cannot be mended by beginning anew, as a record that the main cluster refuses.
#[cfg(feature = "kafka")]
pub fn run(args: &CollectArgs) -> anyhow::Result<ExitCode> {
    running::run(args)
}

/// This build cannot.
///
/// # Errors
/// Always.
#[cfg(not(feature = "kafka"))]
pub fn run(_: &CollectArgs) -> anyhow::Result<ExitCode> {
    let missing = "airmail collect: built without the feature `kafka`";
    Err(crate::cli::UsageError(missing.to_owned()).into())
}
