//! A node as tests are run with: one that is whole, or a gateway and the tower that has its logs, which are two nodes
//! with a link between them.

use airmail_node::config::Config;
use airmail_node::config::cluster::{ClusterConfig, Roles};
use airmail_node::config::mailbox::MailboxConfig;
use airmail_node::mailboxes::MailboxUrl;
use airmail_node::{Access, NodeOptions, Running, StartError};
use airmail_testkit::scale;
use std::net::TcpListener;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The node that clients use, and the one that has its logs if that is another.
pub(crate) async fn start(options: NodeOptions) -> Result<(Running, Option<Running>), StartError> {
    if !scale::is_apart() {
        return Ok((airmail_node::start(options).await?, None));
    }
    let free = || TcpListener::bind("127.0.0.1:0").unwrap();
    let config = options.config.clone();
    // The gateway has the mailboxes of both.
    let mut mailbox = config.mailbox.clone();
    mailbox.url = MailboxUrl::parse(&mailbox.url, &config.first_storage()?)?.to_string();
    let tower = NodeOptions {
        config: Config {
            mailbox: MailboxConfig {
                url: "sqlite::memory:".into(),
                ..mailbox.clone()
            },
            cluster: ClusterConfig {
                listen: "127.0.0.1:0".into(),
                ..ClusterConfig::default()
            },
            ..config.clone()
        },
        access: Access::default(),
        listener: free(),
        http: None,
        cluster: Some(free()),
        clock: Arc::clone(&options.clock),
        seed: options.seed,
        shutdown: CancellationToken::new(),
    };
    let tower = airmail_node::start(tower).await?;
    let join = tower.cluster_address.unwrap().to_string();
    let mut gateway = Config {
        mailbox,
        roles: Roles::GATEWAY,
        name: "gateway".into(),
        cluster: ClusterConfig {
            join,
            ..ClusterConfig::default()
        },
        log_url: String::new(),
        durability: None,
        ..config
    };
    gateway.storages.clear();
    let gateway = NodeOptions {
        config: gateway,
        ..options
    };
    Ok((airmail_node::start(gateway).await?, Some(tower)))
}
