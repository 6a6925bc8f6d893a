//! `airmail serve`: runs a node until it is told to stop.
//!
//! Standard output has the addresses and two commands to try; the log goes to standard error.
//! SIGINT and SIGTERM stop the node in order: exit code 0. A second signal ends it at once.

use super::lasting::{Signals, entropy, print, start_logging};
use super::lines::say;
use super::listening::{listen, listen_or};
use crate::cli::UsageError;
use airmail_model::clock::{Clock, SystemClock};
use airmail_model::{Error, ErrorCode, StorageName, Synced};
use airmail_node::config::Config;
use airmail_node::descriptors;
use airmail_node::environment::Environment;
use airmail_node::mailboxes::MailboxUrl;
use airmail_node::storage::StorageUrl;
use airmail_node::{Access, NodeOptions, Running};
use futures::FutureExt as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Arguments of `airmail serve`.
#[derive(clap::Args, Debug, Default)]
pub struct ServeArgs {
    /// Where the node keeps its data [default: ./airmail-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where clients connect (gRPC) [default: 127.0.0.1:7400]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Where health and metrics are served [default: 127.0.0.1:7401]
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// Let --listen and --http be beyond loopback: anyone who reaches them may do everything, and is
    /// not asked who they are
    #[arg(long)]
    pub allow_anyone: bool,
    /// The storage: disk:PATH, memory:, kafka://HOST:PORT, or a parent's in a tree, tree://HOST:PORT
    /// [default: disk, in the data directory]. Once more with a name, as in fast=memory: or
    /// archive=disk:PATH: a further storage, for namespaces that are created in it
    #[arg(long, value_name = "[NAME=]URL")]
    pub log: Vec<String>,
    /// Where mailboxes are kept: postgres://… or sqlite:PATH [default: SQLite, in the data directory]
    #[arg(long, value_name = "URL")]
    pub mailbox: Option<String>,
    /// Durability of the default namespace when it is first made: fsync, os or memory. Reserved: copies,
    /// as in fsync:3 [default: the strongest that the storage has]
    #[arg(long, value_name = "DURABILITY")]
    pub durability: Option<String>,
    /// Parts of a node that run here: all, or of pilot, copilot and tower those with commas between them; without
    /// tower, with the logs of the node at --join, or of the one of --peers that has them [default: all]
    #[arg(long, value_name = "ROLES")]
    pub roles: Option<String>,
    /// The node's name, its own for each node of a cluster [default: airmail]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where other nodes reach this one, by TCP and UDP [default: nowhere, and with --join a free port]
    #[arg(long, value_name = "HOST:PORT")]
    pub cluster: Option<String>,
    /// The node whose logs are used, without role tower: its --cluster
    #[arg(long, value_name = "HOST:PORT")]
    pub join: Option<String>,
    /// All nodes of the cluster, each its --cluster, in place of --join: they ask each other, and speak no gossip. The
    /// node's own may be among them, so that all are given the same
    #[arg(long, value_name = "HOST:PORT[,…]")]
    pub peers: Option<String>,
    /// The node's zone: clients prefer nodes of their own machine, then those of their zone
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// A file of at least 32 bytes, the same on all nodes of a cluster. Without it they are on one machine
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Threads with connections and logs of their own, 1 to 64. A data directory may get more at a start,
    /// and never fewer [default: 1]
    #[arg(long, value_name = "N")]
    pub shards: Option<u16>,
    /// A TOML file of settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Log level: error, warn, info, debug, trace, or a filter
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Log format: text or json
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// Offset of the wall clock, such as +1d or -2h. For tests
    #[cfg(feature = "test-switches")]
    #[arg(long, value_name = "±TIME", hide = true, allow_hyphen_values = true)]
    pub clock_offset: Option<airmail_node::wrong_clock::Offset>,
    /// A file that says so, and is read again while the node runs. For tests
    #[cfg(feature = "test-switches")]
    #[arg(long, value_name = "FILE", hide = true)]
    pub clock_offset_file: Option<PathBuf>,
    /// A shard that has no turns for a while, some time after its start, as 1:20s@5s. For tests
    #[cfg(feature = "test-switches")]
    #[arg(long, value_name = "SHARD:TIME@TIME", hide = true)]
    pub hold_shard: Option<airmail_node::held_shard::HeldShard>,
    /// A file: while it is there, nothing is read from Kafka. For tests
    #[cfg(feature = "test-switches")]
    #[arg(long, value_name = "FILE", hide = true)]
    pub hold_reading: Option<PathBuf>,
    /// Print the effective settings, every limit among them, and end
    #[arg(long)]
    pub print_config: bool,
}

impl ServeArgs {
    /// The node's settings: these flags over the environment, the file, and the defaults.
    ///
    /// # Errors
    /// A setting that is unknown, cannot be read, or does not fit the others.
    pub fn settings(&self, environment: &Environment) -> Result<Config, Error> {
        let mut config = Config::read(self.config.as_deref(), environment)?;
        let data = self.data.as_ref().map(|path| path.display().to_string());
        let shards = self.shards.map(|shards| shards.to_string());
        let secret = self.secret_file.as_ref();
        let secret = secret.map(|path| path.display().to_string());
        let anyone = self.allow_anyone.then(|| "true".to_owned());
        let flags = [
            ("--data", "node.data", &data),
            ("--shards", "node.shards", &shards),
            ("--roles", "node.roles", &self.roles),
            ("--name", "node.name", &self.name),
            ("--cluster", "cluster.listen", &self.cluster),
            ("--join", "cluster.join", &self.join),
            ("--peers", "cluster.peers", &self.peers),
            ("--zone", "cluster.zone", &self.zone),
            ("--secret-file", "cluster.secret_file", &secret),
            ("--listen", "listen.address", &self.listen),
            ("--http", "http.address", &self.http),
            ("--allow-anyone", "listen.allow_anyone", &anyone),
            ("--mailbox", "mailbox.url", &self.mailbox),
            ("--log-level", "log.level", &self.log_level),
            ("--log-format", "log.format", &self.log_format),
            ("--durability", "namespace.durability", &self.durability),
        ];
        for (flag, name, value) in flags {
            if let Some(value) = value {
                config.set(name, value).map_err(|error| {
                    Error::new(error.code())
                        .field(flag)
                        .value(error.found())
                        .limit(error.expected())
                })?;
            }
        }
        self.set_storages(&mut config)?;
        #[cfg(feature = "test-switches")]
        {
            config.held_shard = self.hold_shard;
            config.held_reading.clone_from(&self.hold_reading);
        }
        config.validate()?;
        Ok(config)
    }

    /// Takes each `--log` over what is set otherwise; each storage at most once.
    fn set_storages(&self, config: &mut Config) -> Result<(), Error> {
        let wrong = |value: &str, limit: &str| {
            let error = Error::new(ErrorCode::InvalidArgument).field("--log");
            error.value(value).limit(limit)
        };
        let mut set = Vec::new();
        for text in &self.log {
            let named = config.set_storage(text);
            let named = named.map_err(|error| wrong(error.found(), error.expected()))?;
            if set.contains(&named) {
                return Err(wrong(
                    text,
                    "each storage once: one without a name, others by NAME=URL",
                ));
            }
            set.push(named);
        }
        Ok(())
    }

    /// The system's clock, with the offset that was asked for.
    #[cfg(feature = "test-switches")]
    fn clock(&self) -> Arc<dyn Clock> {
        use airmail_node::wrong_clock::WrongClock;
        match (self.clock_offset, &self.clock_offset_file) {
            (None, None) => Arc::new(SystemClock::new()),
            (offset, file) => Arc::new(WrongClock::new(offset.unwrap_or_default(), file.clone())),
        }
    }

    /// The system's clock.
    #[cfg(not(feature = "test-switches"))]
    #[expect(
        clippy::unused_self,
        reason = "with the feature test-switches it is asked"
    )]
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock::new())
    }
}

/// Runs it.
///
/// # Errors
/// Wrong settings ([`UsageError`]); an address in use; a data directory that cannot be opened.
pub fn run(args: &ServeArgs, environment: &Environment) -> anyhow::Result<ExitCode> {
    run_and_tell(args, environment, announce)
}

/// Runs a node like [`run`], but calls `ready` in place of printing the node's addresses.
///
/// # Errors
/// The same as [`run`].
pub(super) fn run_and_tell(
    args: &ServeArgs,
    environment: &Environment,
    ready: impl FnOnce(&Config, &Running),
) -> anyhow::Result<ExitCode> {
    let config = args.settings(environment);
    let config = config.map_err(|error| UsageError(error.to_string()))?;
    if args.print_config {
        say(&config.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    start_logging(&config)?;
    descriptors::raise();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(config, args.clock(), ready).boxed_local())?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    config: Config,
    clock: Arc<dyn Clock>,
    ready: impl FnOnce(&Config, &Running),
) -> anyhow::Result<()> {
    let anyone = config.allow_anyone;
    let listener = listen("--listen", &config.listen, anyone)?;
    let http = listen("--http", &config.http, anyone)?;
    let cluster = listen_for_nodes(&config)?;
    let shutdown = CancellationToken::new();
    let mut signals = Signals::new()?;
    let options = NodeOptions {
        access: Access::default(),
        config: config.clone(),
        listener,
        http: Some(http),
        cluster,
        clock,
        seed: entropy(),
        shutdown: shutdown.clone(),
    };
    let starting = airmail_node::start(options);
    let running = tokio::select! {
        running = starting => running?,
        // Nothing is under way yet that would have to be finished.
        signal = signals.next() => {
            tracing::info!(signal, "stopped while starting");
            return Ok(());
        }
    };
    ready(&config, &running);
    let ended = running.wait();
    tokio::pin!(ended);
    tokio::select! {
        () = &mut ended => anyhow::bail!("the node ended by itself; its log says why"),
        signal = signals.next() => tracing::info!(signal, "stopping"),
    }
    shutdown.cancel();
    tokio::select! {
        () = ended => Ok(()),
        signal = signals.next() => {
            tracing::warn!(signal, "ended at once: appends that were not acknowledged may be lost");
            anyhow::bail!("ended by a second signal");
        }
    }
}

/// Listens for other nodes, if they may connect.
fn listen_for_nodes(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    let cluster = &config.cluster;
    if cluster.listen.is_empty() {
        return Ok(None);
    }
    let has_secret = !cluster.secret_file.as_os_str().is_empty();
    let remedy = "let those in who have its secret, with --secret-file";
    listen_or("--cluster", &cluster.listen, has_secret, remedy).map(Some)
}

/// Where a node that listens everywhere can be tried from the machine that it is on.
fn to_try(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// A storage as `--log` takes it.
fn named((name, url): &(StorageName, StorageUrl)) -> String {
    if name.is_first() {
        url.to_string()
    } else {
        format!("{name}={url}")
    }
}

fn is_memory(url: &StorageUrl) -> bool {
    matches!(url, StorageUrl::Memory { .. })
}

/// Says where the node is and what to try.
fn announce(config: &Config, running: &Running) {
    let storages = config.storages().unwrap_or_default();
    let named: Vec<String> = storages.iter().map(named).collect();
    let storage = named.join(", ");
    if let Some(durability) = config.durability {
        let lost = match durability.synced {
            Synced::Fsync => None,
            Synced::Os => Some("a power cut"),
            Synced::Memory => Some("the end of the process"),
        };
        if let Some(lost) = lost {
            tracing::warn!(
                %durability,
                "the default namespace, if made now, acknowledges messages that {lost} can lose"
            );
        }
    }
    for (name, _) in storages.iter().filter(|(_, url)| is_memory(url)) {
        if name.is_first() {
            tracing::warn!("storage is memory: everything is lost when the process ends");
        } else {
            tracing::warn!(
                storage = %name,
                "storage is memory: what namespaces in it hold is lost when the process ends"
            );
        }
    }
    let mailboxes = running.mailboxes_url();
    let first_is_memory = storages.first().is_some_and(|(_, url)| is_memory(url));
    let in_memory = mailboxes == &MailboxUrl::Sqlite(":memory:".into());
    if in_memory && config.has_no_logs() && config.mailbox.url.is_empty() {
        tracing::info!("mailboxes are not served here: there is no mailbox.url");
    } else if in_memory && !first_is_memory {
        tracing::warn!("mailboxes are in memory: they are lost when the process ends");
    }
    let flag = match to_try(running.address).to_string().as_str() {
        "127.0.0.1:7400" => String::new(),
        address => format!(" --url airmail://{address}"),
    };
    let http = running.http_address.map(|at| format!("\n  HTTP  {at}"));
    let nodes = running.cluster_address.map(|at| format!("\n  nodes {at}"));
    print(&format!(
        "airmail {version} is ready, {storage}\n  gRPC  {grpc}{http}{nodes}\ntry\n  airmail sub hello{flag}\n  \
         airmail pub hello world{flag}\n",
        version = env!("CARGO_PKG_VERSION"),
        grpc = running.address,
        http = http.unwrap_or_default(),
        nodes = nodes.unwrap_or_default(),
    ));
    tracing::info!(
        grpc = %running.address,
        http = running.http_address.map(tracing::field::display),
        storage,
        %mailboxes,
        "node is ready"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_listens_everywhere_is_tried_where_it_can_be_reached() {
        for (listens, tried) in [
            ("0.0.0.0:7400", "127.0.0.1:7400"),
            ("[::]:7500", "[::1]:7500"),
            ("10.0.0.7:7400", "10.0.0.7:7400"),
        ] {
            assert_eq!(to_try(listens.parse().unwrap()).to_string(), tried);
        }
    }
}
