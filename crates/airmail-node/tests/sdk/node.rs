//! A node that can be stopped and started again where it was, and a wire that can be cut.

use crate::apart::start;
use airmail_client::{Client, Item, Message, Subscription};
use airmail_model::clock::SystemClock;
use airmail_model::{Limits, TopicName};
use airmail_node::config::Config;
use airmail_node::{Access, NodeOptions, Running};
use airmail_testkit::scale;
pub(crate) use airmail_testkit::waiting::PATIENCE;
use airmail_testkit::waiting::{Waiting, alive, waiting};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) struct Node {
    running: Running,
    above: Vec<Running>,
    pub(crate) address: SocketAddr,
    _alive: Waiting,
}

impl Node {
    /// A node whose data is gone with it.
    pub(crate) async fn in_memory() -> Node {
        Node::seeded(7).await
    }

    /// Another, whose logs have the same names and another life.
    pub(crate) async fn reborn_in_memory() -> Node {
        Node::seeded(8).await
    }

    async fn seeded(seed: u64) -> Node {
        let config = Config {
            log_url: "memory:".into(),
            ..Config::default()
        };
        Node::with(config, Access::default(), "127.0.0.1:0", seed).await
    }

    /// One in memory that asks `access`.
    pub(crate) async fn guarded(access: Access) -> Node {
        let config = Config {
            log_url: "memory:".into(),
            ..Config::default()
        };
        Node::with(config, access, "127.0.0.1:0", 7).await
    }

    /// One in memory, with a setting of its own.
    pub(crate) async fn that_has(setting: &str, value: &str) -> Node {
        let mut config = Config {
            log_url: "memory:".into(),
            ..Config::default()
        };
        config.set(setting, value).unwrap();
        Node::with(config, Access::default(), "127.0.0.1:0", 7).await
    }

    /// A node on a disk.
    pub(crate) async fn on(data: &Path, address: &str) -> Node {
        let config = Config {
            data: data.to_owned(),
            ..Config::default()
        };
        Node::with(config, Access::default(), address, 7).await
    }

    async fn with(mut config: Config, access: Access, address: &str, seed: u64) -> Node {
        config.shards = scale::shards();
        let started = start(NodeOptions {
            config,
            access,
            listener: TcpListener::bind(address).unwrap(),
            http: None,
            cluster: None,
            clock: Arc::new(SystemClock::new()),
            seed,
            shutdown: CancellationToken::new(),
        });
        let (running, above) = started.await.unwrap();
        Node {
            address: running.address,
            running,
            above,
            _alive: alive("a node"),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("airmail://{}", self.address)
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.url()).await.unwrap()
    }

    pub(crate) async fn stop(self) {
        let _waiting = waiting("the end of a node");
        self.running.stop().await;
        for node in self.above {
            node.stop().await;
        }
    }
}

/// Where nobody listens, whatever ports other tests are given.
pub(crate) const NOBODY: &str = "127.0.0.1:1";

/// A wire to a node, whose connections can be cut at any time.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    cuts: watch::Sender<u64>,
    _tasks: JoinSet<()>,
}

impl Wire {
    pub(crate) async fn to(node: SocketAddr) -> Wire {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cuts, seen) = watch::channel(0);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut wires = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let mut cut = seen.clone();
                cut.mark_unchanged();
                wires.spawn(async move {
                    let Ok(mut far) = TcpStream::connect(node).await else {
                        return;
                    };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Wire {
            address,
            cuts,
            _tasks: tasks,
        }
    }

    pub(crate) fn cutter(&self) -> Cutter {
        Cutter(self.cuts.clone())
    }
}

/// Cuts all connections over a wire.
pub(crate) struct Cutter(watch::Sender<u64>);

impl Cutter {
    pub(crate) fn cut(&self) {
        self.0.send_modify(|cuts| *cuts += 1);
    }
}

pub(crate) fn message(topic: &str, payload: impl ToString) -> Message {
    let topic = TopicName::new(topic, &Limits::DEFAULT).unwrap();
    Message::new(topic, payload.to_string())
}

pub(crate) fn text(payload: &[u8]) -> String {
    String::from_utf8(payload.to_vec()).unwrap()
}

/// The next `count` payloads of a subscription, and no gap among them.
pub(crate) async fn take(subscription: &mut Subscription, count: usize) -> Vec<String> {
    let mut payloads = Vec::with_capacity(count);
    while payloads.len() < count {
        let waiting = waiting(format!(
            "{count} messages, of which {} came",
            payloads.len()
        ));
        let next = timeout(PATIENCE, subscription.next()).await;
        drop(waiting);
        let next = next.unwrap_or_else(|_| panic!("waited for {count}, after {payloads:?}"));
        match next.unwrap() {
            Some(Item::Message(message)) => payloads.push(text(&message.payload)),
            other => panic!("{other:?} after {} messages", payloads.len()),
        }
    }
    payloads
}

/// Every stored payload of a topic.
pub(crate) async fn stored(client: &Client, topic: &str) -> Vec<String> {
    let _waiting = waiting(format!("the history of {topic}"));
    let mut history = client.history(topic).open().unwrap();
    let mut payloads = Vec::new();
    while let Some(item) = history.next().await.unwrap() {
        match item {
            Item::Message(message) => payloads.push(text(&message.payload)),
            other => panic!("{other:?}"),
        }
    }
    payloads
}

pub(crate) fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}
