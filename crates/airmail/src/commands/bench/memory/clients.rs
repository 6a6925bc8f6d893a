//! `airmail bench clients`: connections that do nothing, each with a subscription; further streams
//! on them; and streams whose client reads none of its deliveries.

use super::NodeArgs;
use super::stream::Stream;
use airmail_bench::process::raise_open_files;
use airmail_client::{Client, Subscription};
use airmail_model::{Limits, TopicName};
use std::process::ExitCode;

/// Connections that the node is to take beside those that are counted.
const FURTHER_CONNECTIONS: u32 = 100;
/// Credit of a stream that takes nothing: the SDK's default.
const CREDIT_BYTES: u32 = 16 << 20;
/// Bytes that are published for each stream that takes nothing: more than its credit.
const STALLED_BYTES: usize = 20 << 20;
/// Payload of each message.
const PAYLOAD: [u8; 1000] = [b'.'; 1000];

/// Arguments of `airmail bench clients`.
#[derive(clap::Args, Debug)]
pub struct ClientsArgs {
    /// Connections, each with one subscription
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub connections: u32,
    /// Further subscriptions on each connection, each a stream of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub streams: u32,
    /// Clients that read none of their deliveries: each a connection, a topic, 20 MiB of messages
    /// to it, and credit for 16 MiB
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub stalled: u32,
    /// The node
    #[command(flatten)]
    pub node: NodeArgs,
}

/// Runs it.
///
/// # Errors
/// The node cannot be started or reached, or there are not enough files and sockets.
pub(in super::super) async fn clients(args: &ClientsArgs) -> anyhow::Result<ExitCode> {
    raise_open_files();
    let most = args.connections + args.stalled + FURTHER_CONNECTIONS;
    let environment = [("AIRMAIL_LISTEN_CONNECTIONS", most.to_string())];
    let node = args.node.watch(&environment)?;
    let mut held: Vec<(Client, Vec<Subscription>)> = Vec::new();
    // The first one makes what is there once.
    held.push(connect(&node.url, 0).await?);
    let before = node.rss_bytes().await;
    for number in 1..=args.connections {
        held.push(connect(&node.url, number).await?);
    }
    let connections = node.growth(args.connections.into(), before).await;
    let before = node.rss_bytes().await;
    for ((client, subscriptions), number) in held.iter_mut().skip(1).zip(0u64..) {
        for stream in 0..args.streams {
            let topic = format!("bench/idle/{number}/{stream}");
            subscriptions.push(client.subscribe(&topic).open().await?);
        }
    }
    let count = u64::from(args.connections) * u64::from(args.streams);
    let streams = node.growth(count, before).await;
    // What so much publishing takes by itself is there before.
    publish(&held[0].0, "bench/unheard", 1).await?;
    let before = node.rss_bytes().await;
    let _stalled = stall(&node.url, args.stalled).await?;
    publish(&held[0].0, "bench/stalled", args.stalled).await?;
    let stalled = node.growth(args.stalled.into(), before).await;
    let growths = [
        ("connections", connections),
        ("streams", streams),
        ("stalled", stalled),
    ];
    super::print(args.node.json, &growths)?;
    Ok(ExitCode::SUCCESS)
}

async fn connect(url: &str, number: u32) -> anyhow::Result<(Client, Vec<Subscription>)> {
    let client = Client::connect(url).await?;
    let topic = format!("bench/idle/{number}");
    let subscription = client.subscribe(&topic).open().await?;
    Ok((client, vec![subscription]))
}

/// Streams, each with a topic of its own, that nobody reads when their subscriptions stand.
async fn stall(url: &str, count: u32) -> anyhow::Result<Vec<Stream>> {
    let mut stalled = Vec::new();
    for number in 0..count {
        let mut stream = Stream::open(url, CREDIT_BYTES).await?;
        stream
            .subscribe("bench/stalled", number..number + 1)
            .await?;
        stalled.push(stream);
    }
    Ok(stalled)
}

/// Publishes to the topic `prefix/NUMBER`, for each number below `count`, until none has credit
/// left.
async fn publish(client: &Client, prefix: &str, count: u32) -> anyhow::Result<()> {
    let publisher = client.publisher();
    for number in 0..count {
        let topic = TopicName::new(&format!("{prefix}/{number}"), &Limits::DEFAULT)?;
        let mut last = publisher.send_ref(&topic, &PAYLOAD).await?;
        for _ in 0..STALLED_BYTES / PAYLOAD.len() {
            last = publisher.send_ref(&topic, &PAYLOAD).await?;
        }
        last.await?;
    }
    Ok(())
}
