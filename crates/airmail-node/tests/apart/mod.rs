//! A node as tests are run with: one that is whole, or one that has its logs from another by links: a gateway and the
//! tower that has its logs, or a leaf of a tree and those above it; and its logs as they are, or on Kafka.

use airmail_node::config::Config;
use airmail_node::config::cluster::{ClusterConfig, Roles};
use airmail_node::config::mailbox::MailboxConfig;
use airmail_node::mailboxes::MailboxUrl;
use airmail_node::{Access, NodeOptions, Running, StartError};
use airmail_testkit::node::on_kafka;
use airmail_testkit::scale;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;

/// The node that clients use, and those that it has its logs from, the nearest first.
pub(crate) async fn start(options: NodeOptions) -> Result<(Running, Vec<Running>), StartError> {
    let options = with_logs_on_kafka(options);
    let depth = scale::tree_depth();
    if !scale::is_apart() && depth == 0 {
        return Ok((airmail_node::start(options).await?, Vec::new()));
    }
    let config = options.config.clone();
    // The node of the clients has the mailboxes of all.
    let mut mailbox = config.mailbox.clone();
    mailbox.url = MailboxUrl::parse(&mailbox.url, &config.first_storage()?)?.to_string();
    let tower = Config {
        mailbox: without_mailboxes(&mailbox),
        cluster: listening(),
        ..config.clone()
    };
    let mut above = vec![airmail_node::start(hidden(&options, tower, 0)).await?];
    for place in 1..depth {
        let between = Config {
            name: format!("between-{place}"),
            mailbox: without_mailboxes(&mailbox),
            cluster: listening(),
            ..without_logs(&config, &above)
        };
        let between = airmail_node::start(hidden(&options, between, place as u64)).await?;
        above.insert(0, between);
    }
    let (seed, cluster) = (options.seed + depth as u64, (depth > 0).then(free));
    let last = if depth > 0 {
        Config {
            name: "leaf".into(),
            cluster: listening(),
            mailbox,
            ..without_logs(&config, &above)
        }
    } else {
        Config {
            roles: Roles::GATEWAY,
            name: "gateway".into(),
            cluster: ClusterConfig {
                join: address(&above),
                ..ClusterConfig::default()
            },
            log_url: String::new(),
            mailbox,
            ..without_logs(&config, &above)
        }
    };
    let last = NodeOptions {
        config: last,
        seed,
        cluster,
        ..options
    };
    Ok((airmail_node::start(last).await?, above))
}

/// Options of a node whose logs are on Kafka, where tests are run so: those of one directory are the same, and those in
/// memory are others each time.
fn with_logs_on_kafka(mut options: NodeOptions) -> NodeOptions {
    static IN_MEMORY: AtomicU64 = AtomicU64::new(0);
    let config = &mut options.config;
    let url = match &*config.log_url {
        "" => on_kafka::url_of(&config.data),
        "memory:" => {
            let number = IN_MEMORY.fetch_add(1, Ordering::Relaxed);
            on_kafka::url_of(&(std::process::id(), number))
        }
        _ => None,
    };
    if let Some(url) = url {
        config.log_url = url;
    }
    options
}

fn free() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// Where the nearest of these nodes is reached by others.
fn address(above: &[Running]) -> String {
    above[0].cluster_address.unwrap().to_string()
}

fn listening() -> ClusterConfig {
    ClusterConfig {
        listen: "127.0.0.1:0".into(),
        ..ClusterConfig::default()
    }
}

fn without_mailboxes(mailbox: &MailboxConfig) -> MailboxConfig {
    MailboxConfig {
        url: "sqlite::memory:".into(),
        ..mailbox.clone()
    }
}

/// Settings of a node that has its logs from the nearest of these.
fn without_logs(config: &Config, above: &[Running]) -> Config {
    let mut config = Config {
        log_url: format!("tree://{}", address(above)),
        durability: None,
        ..config.clone()
    };
    config.storages.clear();
    config
}

/// A node that no client uses.
fn hidden(options: &NodeOptions, config: Config, place: u64) -> NodeOptions {
    NodeOptions {
        config,
        access: Access::default(),
        listener: free(),
        http: None,
        cluster: Some(free()),
        clock: Arc::clone(&options.clock),
        seed: options.seed + place,
        shutdown: CancellationToken::new(),
    }
}
