//! A node's settings: flags, then `AIRMAIL_<SECTION>_<KEY>`, then one TOML file, then defaults.
//!
//! Every setting is one row of [`settings::SETTINGS`]: its section and key, what it means, how it is
//! read and written. File, environment, `--print-config` and its check all go through that table,
//! so that none can know a setting which another does not. Unknown keys are refused by name.

pub mod cluster;
pub mod flow;
pub mod hosts;
pub mod mailbox;
pub mod peers;
pub mod settings;
pub mod sharing;
mod storages;
pub mod tree;

use crate::environment::Environment;
use airmail_model::limits::CREDIT_BYTES_MAX;
use airmail_model::quantity::{ByteSize, Span};
use airmail_model::{Durability, Error, ErrorCode, Limits, StorageName};
use cluster::{ClusterConfig, Roles};
use flow::FlowConfig;
use hosts::Hosts;
use mailbox::MailboxConfig;
use settings::{SETTINGS, Setting};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::filter::Targets;
use tree::TreeConfig;

/// Bounds of the times that connections are given to begin, and to show life.
const SPAN_MIN: Duration = Duration::from_millis(10);
const SPAN_MAX: Duration = Duration::from_secs(86_400);
/// Smallest jump of the wall clock that can be watched for: smaller ones are how clocks are kept right.
const CLOCK_JUMP_MIN: Duration = Duration::from_secs(1);

/// Everything that can be set about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the node keeps its data.
    pub data: PathBuf,
    /// Shards: threads with connections and logs of their own, 1 to 64.
    pub shards: u16,
    /// Parts of a node that run here.
    pub roles: Roles,
    /// Addresses by which it reaches others of its cluster, and is reached.
    pub cluster: ClusterConfig,
    /// The node's name, told in Hello and in logs.
    pub name: String,
    /// Where clients connect: `HOST:PORT`.
    pub listen: String,
    /// Where clients are told to connect, where that differs. Empty, for now.
    pub advertised: String,
    /// Whether listeners may be beyond loopback, where anyone who reaches them may do everything.
    pub allow_anyone: bool,
    /// Whether clients are believed to have the roles that they name. Only where the listener is on loopback.
    pub trust_roles: bool,
    /// Connections at once.
    pub connections: u32,
    /// Time that a connection may take to make its first request.
    pub begin: Span,
    /// Time that a connection may be silent before it is asked whether it is there; as long again it
    /// may take to answer.
    pub keep_alive: Span,
    /// Time that a stop waits for requests under way.
    pub stop_timeout: Span,
    /// Where health and metrics are served: `HOST:PORT`.
    pub http: String,
    /// Further hosts by which browsers and others may ask for health and metrics.
    pub http_hosts: Hosts,
    /// Connections at once to where health and metrics are served.
    pub http_connections: u32,
    /// The storage: `disk:PATH`, `memory:`, `tree://HOST:PORT`, or for experiments `memory:?service_us=…`. Empty: `disk:`
    /// in the data directory.
    pub log_url: String,
    /// URLs of further storages, for namespaces that are created in them or moved there: `disk:PATH`, `memory:` or `kafka://…`. None,
    /// by default.
    pub storages: BTreeMap<StorageName, String>,
    /// Level of the log: `error`, `warn`, `info`, `debug`, `trace`, or a filter of tracing.
    pub log_level: String,
    /// Format of the log: `text` or `json`.
    pub log_format: String,
    /// Durability of the default namespace. `None`: the strongest that the storage has.
    pub durability: Option<Durability>,
    /// Limits of what clients may send, and the node will.
    pub limits: Limits,
    /// A segment's size on disk.
    pub segment: ByteSize,
    /// Recent batches kept in memory, for readers near the end; and as much again of what late ones have had read.
    pub cache: ByteSize,
    /// Appends that wait for the disk; what goes beyond is refused.
    pub pending: ByteSize,
    /// Smallest jump of the wall clock for which retention by time waits.
    pub clock_jump: Span,
    /// Time after which a quiet subscription is told how far its log has come.
    pub mark_interval: Span,
    /// Readers of storage for late subscribers.
    pub readers: u32,
    /// Bounds of a tree of nodes.
    pub tree: TreeConfig,
    /// Memory in which a node without role tower keeps what it was given, in bytes. 0: none.
    pub link_cache: ByteSize,
    /// Bounds of messages in flight.
    pub flow: FlowConfig,
    /// Where mailboxes are kept, and with how much they are worked on.
    pub mailbox: MailboxConfig,
    /// A shard that is to have no turns for a while.
    #[cfg(feature = "test-switches")]
    pub held_shard: Option<crate::held_shard::HeldShard>,
    /// A file during whose presence nothing is read from Kafka.
    #[cfg(feature = "test-switches")]
    pub held_reading: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            data: PathBuf::from("./airmail-data"),
            shards: 1,
            roles: Roles::ALL,
            cluster: ClusterConfig::default(),
            name: cluster::ALONE.into(),
            listen: "127.0.0.1:7400".into(),
            advertised: String::new(),
            allow_anyone: false,
            trust_roles: false,
            connections: 10_000,
            begin: Span(Duration::from_secs(10)),
            keep_alive: Span(Duration::from_secs(20)),
            stop_timeout: Span(Duration::from_secs(10)),
            http: "127.0.0.1:7401".into(),
            http_hosts: Hosts::default(),
            http_connections: 32,
            log_url: String::new(),
            storages: BTreeMap::new(),
            log_level: "info".into(),
            log_format: "text".into(),
            durability: None,
            limits: Limits::DEFAULT,
            segment: ByteSize(64 << 20),
            cache: ByteSize(16 << 20),
            pending: ByteSize(64 << 20),
            clock_jump: Span(Duration::from_secs(3600)),
            mark_interval: Span(Duration::from_secs(1)),
            readers: 8,
            tree: TreeConfig::default(),
            link_cache: ByteSize(0),
            flow: FlowConfig::default(),
            mailbox: MailboxConfig::default(),
            #[cfg(feature = "test-switches")]
            held_shard: None,
            #[cfg(feature = "test-switches")]
            held_reading: None,
        }
    }
}

impl Config {
    /// Reads settings from everywhere but flags, which the caller sets afterwards.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the key, the value and what would have been right.
    pub fn read(file: Option<&Path>, environment: &Environment) -> Result<Config, Error> {
        let mut config = Config::default();
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).map_err(|error| {
                invalid("--config")
                    .value(path.display())
                    .limit(format!("a file that can be read: {error}"))
            })?;
            config.take_toml(&text)?;
        }
        config.take_environment(environment)?;
        Ok(config)
    }

    /// Sets one setting by its `section.key`, as flags do.
    ///
    /// # Errors
    /// Those of [`Config::read`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let setting = SETTINGS.iter().find(|setting| setting.name() == name);
        let setting = setting.ok_or_else(|| invalid(name).limit("a setting that there is"))?;
        (setting.set)(self, value.trim())
            .map_err(|expected| invalid(name).value(value).limit(expected))
    }

    fn take_toml(&mut self, text: &str) -> Result<(), Error> {
        let table: toml::Table = toml::from_str(text).map_err(|error| not_toml(text, &error))?;
        for (section, keys) in table {
            let toml::Value::Table(keys) = keys else {
                return Err(unknown(&section));
            };
            for (key, value) in keys {
                if section == storages::SECTION && self.take_storage(&key, &value)? {
                    continue;
                }
                let name = format!("{section}.{key}");
                if !SETTINGS.iter().any(|setting| setting.name() == name) {
                    return Err(unknown(&name));
                }
                let value = match value {
                    toml::Value::String(text) => text,
                    other => other.to_string(),
                };
                self.set(&name, &value)?;
            }
        }
        Ok(())
    }

    fn take_environment(&mut self, environment: &Environment) -> Result<(), Error> {
        for (variable, value) in environment.with_prefix("AIRMAIL_") {
            if value.is_empty() {
                continue;
            }
            let full = format!("AIRMAIL_{variable}");
            match SETTINGS.iter().find(|one| one.variable() == full) {
                Some(setting) => self
                    .set(&setting.name(), value)
                    .map_err(|error| invalid(&full).value(error.found()).limit(error.expected()))?,
                None if in_a_section(variable) => return Err(unknown(&full)),
                None => {}
            }
        }
        Ok(())
    }

    /// The filter of the log.
    ///
    /// A part of the filter that is no level must have a level: else a misspelt level would be taken for
    /// the name of a part, and silence all others. There is no filter by spans or values of fields: a node
    /// has no spans to filter by.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what is no filter.
    pub fn log_filter(&self) -> Result<Targets, Error> {
        let parts: Vec<&str> = self.log_level.split(',').map(str::trim).collect();
        // Its parser takes no text at all for a level.
        let level = |text: &str| !text.is_empty() && text.parse::<LevelFilter>().is_ok();
        let sound = |part: &&str| level(part.split_once('=').map_or(part, |(_, level)| level));
        let filter = if parts.iter().all(sound) {
            parts.join(",").parse().ok()
        } else {
            None
        };
        filter.ok_or_else(|| {
            invalid("log.level")
                .value(&self.log_level)
                .limit("error, warn, info, debug, trace, or a filter such as info,airmail=debug")
        })
    }

    /// Whether the settings fit together.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for what is reserved, `INVALID_ARGUMENT` naming the relation that is broken.
    pub fn validate(&self) -> Result<(), Error> {
        self.check_shards()?;
        self.validate_cluster()?;
        self.validate_tree()?;
        let url = self.first_storage()?;
        let strongest = url.strongest();
        if let Some(asked) = self.durability.filter(|asked| !strongest.satisfies(*asked)) {
            return Err(Error::new(ErrorCode::DurabilityUnavailable)
                .field("namespace.durability")
                .value(asked)
                .limit(format!("{strongest}, on storage {}", url.kind())));
        }
        self.validate_storages()?;
        self.validate_limits()?;
        self.validate_spans()?;
        self.mailbox.check(&url)?;
        let fits = self.flow.check();
        fits.map_err(|(setting, error)| invalid(setting).value(error.value).limit(error.needed))
    }

    fn validate_spans(&self) -> Result<(), Error> {
        for (name, span) in [
            ("listen.begin", self.begin),
            ("listen.keep_alive", self.keep_alive),
        ] {
            if !(SPAN_MIN..=SPAN_MAX).contains(&span.0) {
                let bound = format!("{} to {}", Span(SPAN_MIN), Span(SPAN_MAX));
                return Err(invalid(name).value(span).limit(bound));
            }
        }
        Ok(())
    }

    fn validate_limits(&self) -> Result<(), Error> {
        let limits = &self.limits;
        let relations = [
            (
                "limits.message_bytes",
                limits.message_bytes,
                "limits.frame_bytes",
                limits.frame_bytes,
            ),
            (
                "limits.batch_bytes",
                limits.batch_bytes,
                "limits.frame_bytes",
                limits.frame_bytes,
            ),
            (
                "limits.topic_bytes",
                limits.topic_bytes,
                "limits.batch_bytes",
                limits.batch_bytes,
            ),
            ("limits.frame_bytes", limits.frame_bytes, "64MiB", 64 << 20),
            (
                "limits.batch_records",
                limits.batch_records.into(),
                "4096",
                4096,
            ),
            ("limits.topic_bytes", limits.topic_bytes, "32KiB", 32 << 10),
            ("limits.attributes", limits.attributes, "1024", 1024),
            (
                "limits.credit_bytes",
                limits.credit_bytes,
                "64MiB",
                CREDIT_BYTES_MAX,
            ),
        ];
        for (name, value, bound_name, bound) in relations {
            if value > bound {
                let bound = format!("at most {bound_name} ({bound})");
                return Err(invalid(name).value(value).limit(bound));
            }
        }
        self.validate_counts()?;
        self.log_filter()?;
        if self.clock_jump.0 < CLOCK_JUMP_MIN {
            let error = invalid("retention.clock_jump").value(self.clock_jump);
            return Err(error.limit(format!("at least {}", Span(CLOCK_JUMP_MIN))));
        }
        let least = u64::from(limits.frame_bytes) + (1 << 20);
        if self.segment.0 < least {
            let bound = format!("at least limits.frame_bytes and 1MiB ({})", ByteSize(least));
            return Err(invalid("storage.segment_bytes")
                .value(self.segment)
                .limit(bound));
        }
        Ok(())
    }

    /// None of these can be nothing.
    fn validate_counts(&self) -> Result<(), Error> {
        let limits = &self.limits;
        for (name, value) in [
            ("limits.message_bytes", limits.message_bytes),
            ("limits.topic_bytes", limits.topic_bytes),
            ("limits.batch_bytes", limits.batch_bytes),
            ("limits.batch_records", limits.batch_records.into()),
            ("limits.credit_bytes", limits.credit_bytes),
            ("limits.unacked_bytes", limits.unacked_bytes),
            ("limits.subscriptions", limits.subscriptions),
            ("listen.connections", self.connections),
            ("http.connections", self.http_connections),
            ("delivery.readers", self.readers),
        ] {
            if value == 0 {
                return Err(invalid(name).value(0).limit("at least 1"));
            }
        }
        Ok(())
    }

    /// The settings as a TOML file, each with its meaning and its variable.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::from(
            "# Airmail's effective settings. Flags come before AIRMAIL_<SECTION>_<KEY>, these\n\
             # before the file given with --config, and that before the defaults.\n",
        );
        let mut section = "";
        for setting in SETTINGS {
            if setting.section != section {
                section = setting.section;
                let _ = write!(text, "\n[{section}]\n");
                if section == "flow" {
                    for line in airmail_flow::PROMISE {
                        let _ = writeln!(text, "# {line}");
                    }
                }
            }
            let value = (setting.get)(self);
            let value = if setting.quoted {
                toml::Value::String(value).to_string()
            } else {
                value
            };
            let _ = writeln!(text, "# {}\n{} = {value}", setting.about, setting.key);
        }
        text.push_str(&self.storages_to_toml());
        text
    }
}

fn in_a_section(variable: &str) -> bool {
    let section = variable.split('_').next().unwrap_or_default();
    SETTINGS
        .iter()
        .any(|setting: &Setting| setting.section.eq_ignore_ascii_case(section))
}

fn invalid(name: &str) -> Error {
    Error::new(ErrorCode::InvalidArgument).field(name)
}

/// One line, whatever the reader of TOML says.
fn not_toml(text: &str, error: &toml::de::Error) -> Error {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    let reason = error.message().replace('\n', ", ");
    invalid("--config")
        .value(format!("line {line}: {reason}"))
        .limit("a TOML file")
}

fn unknown(name: &str) -> Error {
    invalid(name).limit("a setting that there is: see airmail serve --print-config")
}

#[cfg(test)]
mod tests;
