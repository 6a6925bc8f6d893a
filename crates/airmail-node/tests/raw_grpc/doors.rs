//! The node's two ports and those who use them badly: who says nothing, trickles, answers nothing,
//! reads nothing, or comes when all places are taken.

use crate::node::{Node, hello};
use crate::services::get;
use airmail_model::ErrorCode;
use airmail_node::config::Config;
use airmail_proto::error::{error_from_status, request_id_of};
use airmail_proto::v1;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tonic::transport::{Channel, Endpoint};

/// The beginning of every connection of HTTP/2, and a frame of settings without any.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// A frame that asks for an answer.
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0airmail?";

/// Nothing here takes so long, however busy the machine is.
const LONG: Duration = Duration::from_secs(300);

fn settings(pairs: &[(&str, &str)]) -> Config {
    let mut config = Config {
        log_url: "memory:".into(),
        ..Config::default()
    };
    for (name, value) in pairs {
        config.set(name, value).unwrap();
    }
    config
}

/// The beginning of a connection, and the head of a call whose message never comes.
fn begun(path: &str) -> Vec<u8> {
    // POST and http, from HPACK's own table; the others as they are.
    let mut head = vec![0x83, 0x86];
    let mut put = |name: &[u8], value: &str| {
        head.extend_from_slice(name);
        head.push(u8::try_from(value.len()).unwrap());
        head.extend_from_slice(value.as_bytes());
    };
    put(&[0x04], path);
    put(&[0x01], "node");
    put(&[0x0f, 0x10], "application/grpc");
    put(b"\0\x02te", "trailers");
    let length = u32::try_from(head.len()).unwrap().to_be_bytes();
    // HEADERS, with all of them, of stream 1.
    let frame = [&length[1..], &[1, 4, 0, 0, 0, 1], &head].concat();
    [BEGIN, &frame].concat()
}

const OF_A_SHARD: &str = "/airmail.v1.Airmail/Publish";
const OF_MAILBOXES: &str = "/airmail.v1.Mailbox/Ping";

async fn connect(node: &Node, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(node.address).await.unwrap();
    stream.write_all(first).await.unwrap();
    stream
}

/// Reads until the node has closed the connection, whether in order or not.
async fn closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let mut said = Vec::new();
    let ended = tokio::time::timeout(LONG, stream.read_to_end(&mut said));
    drop(ended.await.expect("it is not closed"));
}

async fn metric(node: &Node, name: &str) -> u64 {
    let page = get(node.running.http_address.unwrap(), "/metrics").await;
    let found = page.lines().find_map(|line| line.strip_prefix(name));
    let value = found.unwrap_or_else(|| panic!("no {name}: {page}"));
    value.trim().parse().unwrap()
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(LONG, waited).await;
    waited.unwrap_or_else(|_| panic!("waited for this: {what}"));
}

async fn channel(node: &Node) -> Result<Channel, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("http://{}", node.address));
    endpoint.unwrap().connect().await
}

async fn ping(channel: Channel) -> Result<(), tonic::Status> {
    let mut client = v1::mailbox_client::MailboxClient::new(channel);
    client.ping(v1::PingRequest::default()).await.map(drop)
}

#[tokio::test]
async fn who_makes_no_request_in_time_loses_the_place() {
    let config = settings(&[("listen.connections", "4"), ("listen.begin", "300ms")]);
    let node = Node::with(config).await;
    node.publish_one("t", "1").await.unwrap();
    let mut silent = connect(&node, b"").await;
    let mut greets = connect(&node, BEGIN).await;
    let (mut reading, mut writing) = connect(&node, b"").await.into_split();
    // A byte now and then, of what would be a good beginning.
    let trickle = tokio::spawn(async move {
        for byte in begun(OF_A_SHARD) {
            if writing.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    });
    closed(&mut silent).await;
    closed(&mut greets).await;
    closed(&mut reading).await;
    trickle.await.unwrap();
    until("they are counted", async || {
        metric(&node, "airmail_connections_silent_total").await == 3
    })
    .await;
    // There is room again, and who had begun goes on as before.
    ping(channel(&node).await.unwrap()).await.unwrap();
    node.publish_one("t", "2").await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn who_answers_no_ping_is_closed_wherever_it_is_served() {
    let node = Node::with(settings(&[("listen.keep_alive", "200ms")])).await;
    for path in [OF_A_SHARD, OF_MAILBOXES] {
        let mut stream = connect(&node, &begun(path)).await;
        closed(&mut stream).await;
    }
    until("their places are free", async || {
        metric(&node, "airmail_connections").await == 1
    })
    .await;
    node.stop().await;
}

#[tokio::test]
async fn who_answers_pings_stays_for_as_long_as_it_likes() {
    let config = settings(&[("listen.keep_alive", "2s"), ("listen.begin", "2s")]);
    let node = Node::with(config).await;
    let mailbox = channel(&node).await.unwrap();
    ping(mailbox.clone()).await.unwrap();
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    publisher.bytes(1, b"").await;
    ping(mailbox).await.unwrap();
    assert_eq!(metric(&node, "airmail_connections_opened_total").await, 2);
    node.stop().await;
}

#[tokio::test]
async fn who_reads_nothing_is_closed_wherever_it_is_served() {
    let node = Node::with(settings(&[("listen.keep_alive", "500ms")])).await;
    for path in [OF_A_SHARD, OF_MAILBOXES] {
        // With little room, which is used up before it is asked whether it is there.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut stream = socket.connect(node.address).await.unwrap();
        stream.write_all(&begun(path)).await.unwrap();
        // Each is to be answered; nobody reads the answers.
        let pings = PING.repeat(10_000);
        let flood = async { while stream.write_all(&pings).await.is_ok() {} };
        let ended = tokio::time::timeout(LONG, flood).await;
        ended.expect("it is not closed");
    }
    until("their places are free", async || {
        metric(&node, "airmail_connections").await == 1
    })
    .await;
    node.stop().await;
}

#[tokio::test]
async fn who_finds_no_place_is_told_so_in_words() {
    let node = Node::with(settings(&[("listen.connections", "1")])).await;
    node.publish_one("t", "1").await.unwrap();
    let refused = ping(channel(&node).await.unwrap()).await.unwrap_err();
    let error = error_from_status(&refused);
    assert_eq!(error.code(), ErrorCode::Overloaded, "{refused:?}");
    assert_eq!(error.field_name(), "listen.connections");
    assert_eq!((error.found(), error.expected()), ("1", "1"));
    assert!(error.delay().is_some());
    assert!(!request_id_of(&refused).is_empty());
    // A stream as well.
    let client = v1::airmail_client::AirmailClient::new(channel(&node).await.unwrap());
    let kind = Some(v1::publish_request::Kind::Hello(hello()));
    let requests = tokio_stream::iter([v1::PublishRequest { kind }]);
    let refused = { client }.publish(requests).await.unwrap_err();
    let error = error_from_status(&refused);
    assert_eq!(error.code(), ErrorCode::Overloaded, "{refused:?}");
    let turned_away = "airmail_connections_turned_away_total{door=\"grpc\"}";
    assert_eq!(metric(&node, turned_away).await, 2);
    node.publish_one("t", "2").await.unwrap();
    node.stop().await;
}

/// However many come at once: a few are told, and none costs a place.
#[tokio::test]
async fn a_crowd_that_finds_no_place_is_gone_soon_and_harms_nobody() {
    let node = Node::with(settings(&[("listen.connections", "1")])).await;
    node.publish_one("t", "1").await.unwrap();
    let mut crowd = Vec::new();
    for _ in 0..200 {
        crowd.push(TcpStream::connect(node.address).await.unwrap());
    }
    for stream in &mut crowd {
        closed(stream).await;
    }
    let turned_away = "airmail_connections_turned_away_total{door=\"grpc\"}";
    assert_eq!(metric(&node, turned_away).await, 200);
    assert_eq!(metric(&node, "airmail_connections_max").await, 1);
    node.publish_one("t", "2").await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn http_has_places_of_its_own_and_tells_who_finds_none() {
    let config = settings(&[
        ("listen.connections", "1"),
        ("http.connections", "2"),
        ("listen.begin", "60s"),
    ]);
    let node = Node::with(config).await;
    let address = node.running.http_address.unwrap();
    // The other port has none left.
    assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    let (mut held, mut said) = (Vec::new(), String::new());
    until("no place is left", async || {
        held.push(TcpStream::connect(address).await.unwrap());
        said = get(address, "/healthz").await;
        said.starts_with("HTTP/1.1 503")
    })
    .await;
    assert!(said.contains("http.connections: 2"), "{said}");
    assert!(said.contains("retry-after: 1"), "{said}");
    node.publish_one("t", "1").await.unwrap();
    drop(held);
    until("there is room again", async || {
        get(address, "/healthz").await.starts_with("HTTP/1.1 200")
    })
    .await;
    let turned_away = "airmail_connections_turned_away_total{door=\"http\"}";
    assert!(metric(&node, turned_away).await >= 1);
    node.stop().await;
}

#[tokio::test]
async fn an_http_connection_that_asks_nothing_in_time_is_closed() {
    let node = Node::with(settings(&[("listen.begin", "200ms")])).await;
    let address = node.running.http_address.unwrap();
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        .await
        .unwrap();
    let mut kept = TcpStream::connect(address).await.unwrap();
    kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    for stream in [&mut silent, &mut half, &mut kept] {
        closed(stream).await;
    }
    until("their places are free", async || {
        // This one's own.
        metric(&node, "airmail_http_connections").await == 1
    })
    .await;
    node.stop().await;
}
