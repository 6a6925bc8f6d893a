//! Nodes and clients that come and go leave nothing behind: alone in a process, so that threads and open files
//! can be counted.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_client::{Client, Start};
use airmail_model::clock::SystemClock;
use airmail_node::config::Config;
use airmail_node::{NodeOptions, start};
use airmail_testkit::waiting;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Threads and open files of this process.
fn held() -> (usize, usize) {
    let count = |directory: &str| fs::read_dir(directory).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

/// A node's whole life, with clients in it.
async fn live(data: &Path) {
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let options = NodeOptions {
        access: airmail_node::Access::default(),
        config: Config {
            data: data.to_owned(),
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
    let url = format!("airmail://{}", node.address);
    for _ in 0..3 {
        let client = Client::connect(&url).await.unwrap();
        let subscribe = client.subscribe("t").from(Start::Earliest);
        let mut subscription = subscribe.open().await.unwrap();
        client.publish("t", "x").await.unwrap();
        subscription.next().await.unwrap().unwrap();
        client.close().await.unwrap();
    }
    node.stop().await;
}

#[tokio::test]
async fn nodes_and_clients_that_come_and_go_leave_no_threads_and_no_open_files() {
    let _alive = waiting::alive("nodes that come and go");
    let data = tempfile::tempdir().unwrap();
    // What is made once in a process is made by the first.
    live(data.path()).await;
    let least = held();
    for _ in 0..5 {
        live(data.path()).await;
    }
    // The runtime keeps idle threads for a while, and closes sockets when it comes to it.
    for _ in 0..3_000 {
        let (threads, files) = held();
        if threads <= least.0 && files <= least.1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?} threads and files, {least:?} at first", held());
}
