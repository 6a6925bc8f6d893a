//! A second front door, which is not gRPC: a line of words for each request and each event.
//!
//! ```text
//! hello                                        welcome NODE
//! publish NUMBER NAMESPACE TOPIC PAYLOAD       stored NUMBER SEQUENCE | refused NUMBER CODE FIELD
//! subscribe NUMBER NAMESPACE TOPIC SEQUENCE    live NUMBER | behind NUMBER | failed NUMBER CODE FIELD
//!                                              message SEQUENCE TOPIC PAYLOAD
//!                                              gap FIRST LAST REASON
//!                                              bye CODE FIELD
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test panics where something is wrong"
)]

mod door;

use airmail_broker::{Action, Authorizer, Grant, Principal};
use airmail_client::{Client, Error, ErrorCode};
use airmail_model::Retention;
use airmail_model::clock::SystemClock;
use airmail_node::config::Config;
use airmail_node::{Access, NodeOptions, Running, start};
use airmail_testkit::scale;
use airmail_testkit::waiting::{PATIENCE, Waiting, alive, waiting};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Lets nobody but `writer` publish.
struct WritersAlone;

impl Authorizer for WritersAlone {
    fn authorize(&self, principal: &Principal, action: Action) -> Result<Grant, Error> {
        if matches!(action, Action::Publish(_)) && principal.name != "writer" {
            let denied = Error::new(ErrorCode::PermissionDenied);
            return Err(denied.field("principal").value(&principal.name));
        }
        Ok(Grant::default())
    }
}

struct Node {
    running: Running,
    connections: JoinSet<io::Result<()>>,
    _alive: Waiting,
}

impl Node {
    async fn in_memory() -> Node {
        let running = start(NodeOptions {
            config: Config {
                log_url: "memory:".into(),
                shards: scale::shards(),
                ..Config::default()
            },
            access: Access {
                authorizer: Arc::new(WritersAlone),
                ..Access::default()
            },
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            http: None,
            cluster: None,
            clock: Arc::new(SystemClock::new()),
            seed: 7,
            shutdown: CancellationToken::new(),
        });
        Node {
            running: running.await.unwrap(),
            connections: JoinSet::new(),
            _alive: alive("a node"),
        }
    }

    /// A connection whose client is `name`.
    fn connect(&mut self, name: &str) -> Connection {
        let (theirs, ours) = UnixStream::pair().unwrap();
        let door = self.running.front_door().clone();
        let principal = Principal {
            name: name.into(),
            ..Principal::default()
        };
        self.connections.spawn(door::serve(theirs, door, principal));
        let (reading, writing) = ours.into_split();
        Connection {
            lines: BufReader::new(reading).lines(),
            writing,
        }
    }

    /// A connection that has said Hello.
    async fn greet(&mut self, name: &str) -> Connection {
        let mut connection = self.connect(name);
        connection.say("hello").await;
        assert_eq!(connection.hear().await, "welcome airmail");
        connection
    }
}

struct Connection {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writing: OwnedWriteHalf,
}

impl Connection {
    async fn say(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.writing.write_all(line.as_bytes()).await.unwrap();
    }

    /// The next line; `end` when there is none.
    async fn hear(&mut self) -> String {
        let _waiting = waiting("a line");
        let line = timeout(PATIENCE, self.lines.next_line()).await.unwrap();
        line.unwrap().unwrap_or_else(|| "end".to_owned())
    }

    /// The next line that begins with one of these words.
    async fn hear_one_of(&mut self, words: &[&str]) -> String {
        loop {
            let line = self.hear().await;
            let first = line.split(' ').next().unwrap_or_default();
            if words.contains(&first) {
                return line;
            }
            assert!(!["bye", "end"].contains(&first), "{line}");
        }
    }
}

#[tokio::test]
async fn what_one_publishes_line_by_line_another_receives() {
    let mut node = Node::in_memory().await;
    let mut writer = node.greet("writer").await;
    let mut reader = node.greet("reader").await;
    writer.say("publish 7 default t the first").await;
    assert_eq!(writer.hear().await, "stored 7 1");
    reader.say("subscribe 3 default t 1").await;
    let first = reader.hear_one_of(&["message"]).await;
    assert_eq!(first, "message 1 t the first");
    reader.hear_one_of(&["live"]).await;
    writer.say("publish 8 default other x").await;
    writer.say("publish 9 default t the third").await;
    assert_eq!(writer.hear().await, "stored 8 2");
    assert_eq!(writer.hear().await, "stored 9 3");
    let third = reader.hear_one_of(&["message"]).await;
    assert_eq!(third, "message 3 t the third");
    node.running.stop().await;
    assert_eq!(writer.hear().await, "bye SHUTTING_DOWN node");
    assert_eq!(reader.hear().await, "bye SHUTTING_DOWN node");
}

#[tokio::test]
async fn a_reader_is_told_what_retention_has_taken() {
    let mut node = Node::in_memory().await;
    let url = format!("airmail://{}", node.running.address);
    let client = Client::connect(&url).await.unwrap();
    let retention = Some(Retention {
        time_ms: None,
        bytes: Some(2_000),
    });
    let admin = client.admin();
    admin.create("little", None, retention, None).await.unwrap();
    client.close().await.unwrap();
    let mut writer = node.greet("writer").await;
    let large = "x".repeat(1_500);
    let mut number = 0;
    let gap = loop {
        number += 1;
        writer
            .say(&format!("publish {number} little t {large}"))
            .await;
        writer.hear_one_of(&["stored"]).await;
        let mut reader = node.greet("reader").await;
        reader.say("subscribe 0 little t 1").await;
        let told = reader.hear_one_of(&["gap", "message"]).await;
        if told.starts_with("gap") {
            break told;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(gap.starts_with("gap 1 "), "{gap}");
    assert!(gap.ends_with(" Retention"), "{gap}");
    node.running.stop().await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_and_the_session_goes_on() {
    let mut node = Node::in_memory().await;
    let mut writer = node.greet("writer").await;
    for (said, heard) in [
        (
            "publish 1 nowhere t x",
            "refused 1 NAMESPACE_NOT_FOUND namespace",
        ),
        ("publish 2 default  x", "refused 2 TOPIC_INVALID topic"),
        (
            "subscribe 3 nowhere t 1",
            "failed 3 NAMESPACE_NOT_FOUND namespace",
        ),
        ("subscribe 4 default  1", "failed 4 TOPIC_INVALID topic"),
        ("publish 5 default t x", "stored 5 1"),
    ] {
        writer.say(said).await;
        assert_eq!(writer.hear().await, heard, "{said}");
    }
    node.running.stop().await;
}

#[tokio::test]
async fn who_somebody_is_comes_from_the_connection() {
    let mut node = Node::in_memory().await;
    let mut reader = node.greet("reader").await;
    reader.say("publish 1 default t x").await;
    assert_eq!(reader.hear().await, "refused 1 PERMISSION_DENIED principal");
    let mut writer = node.greet("writer").await;
    writer.say("publish 1 default t x").await;
    assert_eq!(writer.hear().await, "stored 1 1");
    node.running.stop().await;
}

#[tokio::test]
async fn a_broken_rule_ends_the_session_with_its_error() {
    let mut node = Node::in_memory().await;
    let mut hasty = node.connect("writer");
    hasty.say("publish 1 default t x").await;
    assert_eq!(hasty.hear().await, "bye HELLO_EXPECTED kind");
    assert_eq!(hasty.hear().await, "end");
    let mut polite = node.greet("writer").await;
    polite.say("hello").await;
    assert_eq!(polite.hear().await, "bye HELLO_EXPECTED kind");
    let mut unclear = node.greet("writer").await;
    unclear.say("gossip").await;
    assert_eq!(unclear.hear().await, "bye INVALID_ARGUMENT line");
    node.running.stop().await;
}
