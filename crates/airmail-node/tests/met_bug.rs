//! A node that has met a bug of its own, as a release does: alone in a process, for a bug is the process's.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_client::Client;
use airmail_model::bug;
use airmail_model::clock::SystemClock;
use airmail_node::config::Config;
use airmail_node::{NodeOptions, start};
use airmail_testkit::waiting;
use parking_lot::Mutex;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// Lines that this process has logged.
static LOGGED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An answer of HTTP, with its head.
async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn serving(address: SocketAddr) -> i32 {
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut health = HealthClient::new(endpoint.connect().await.unwrap());
    let service = String::new();
    let answer = health.check(HealthCheckRequest { service }).await.unwrap();
    answer.into_inner().status
}

/// Asks until health says this.
async fn says(address: SocketAddr, status: ServingStatus) {
    for _ in 0..60_000 {
        if serving(address).await == status as i32 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("health does not say {status:?}");
}

#[tokio::test]
async fn a_node_that_has_met_a_bug_serves_on_counts_it_logs_it_once_and_is_not_ready() {
    let _alive = waiting::alive("a node that meets a bug");
    bug::set_panics(false);
    tracing_subscriber::fmt()
        .with_writer(|| Log)
        .with_ansi(false)
        .init();
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let options = NodeOptions {
        access: airmail_node::Access::default(),
        config: Config {
            log_url: "memory:".into(),
            ..Config::default()
        },
        listener: listen(),
        http: Some(listen()),
        cluster: None,
        clock: Arc::new(SystemClock::new()),
        seed: 7,
        shutdown: CancellationToken::new(),
    };
    let node = start(options).await.unwrap();
    let http = node.http_address.unwrap();
    says(node.address, ServingStatus::Serving).await;
    assert!(get(http, "/readyz").await.starts_with("HTTP/1.1 200"));
    let metrics = get(http, "/metrics").await;
    assert!(metrics.contains("airmail_bugs_total 0") && metrics.contains("airmail_ready 1"));

    for segment in [7, 8] {
        bug!("segment {segment} of a commit is gone");
    }

    says(node.address, ServingStatus::NotServing).await;
    let readiness = get(http, "/readyz").await;
    assert!(readiness.starts_with("HTTP/1.1 503"), "{readiness}");
    assert!(
        readiness.contains("segment 7 of a commit is gone"),
        "{readiness}"
    );
    let metrics = get(http, "/metrics").await;
    assert!(metrics.contains("airmail_bugs_total 2") && metrics.contains("airmail_ready 0"));
    assert!(get(http, "/healthz").await.starts_with("HTTP/1.1 200"));
    let client = Client::connect(&format!("airmail://{}", node.address))
        .await
        .unwrap();
    client.publish("t", "x").await.unwrap();
    client.close().await.unwrap();
    node.stop().await;
    let logged = String::from_utf8(LOGGED.lock().clone()).unwrap();
    assert_eq!(logged.matches("of a commit is gone").count(), 1, "{logged}");
    assert!(logged.contains("ERROR"), "{logged}");
}
