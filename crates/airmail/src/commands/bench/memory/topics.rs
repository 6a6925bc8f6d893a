//! `airmail bench topics`: many topics, published to and subscribed to on one connection; and many
//! producers.

use super::NodeArgs;
use super::stream::Stream;
use airmail_bench::process::raise_open_files;
use airmail_client::Client;
use airmail_model::{Limits, TopicName};
use std::process::ExitCode;

/// Topics that are published to before the node is first looked at: what is there once, then is.
const FIRST_TOPICS: u64 = 10_000;
/// Credit of the stream with the subscriptions, which nothing is delivered to.
const CREDIT_BYTES: u32 = 1 << 20;
/// Payload of each message.
const PAYLOAD: [u8; 100] = [b'.'; 100];

/// Arguments of `airmail bench topics`.
#[derive(clap::Args, Debug)]
pub struct TopicsArgs {
    /// Topics to publish to, a message of 100 bytes each
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub topics: u64,
    /// Topics to subscribe to, on one stream
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub subscriptions: u32,
    /// Producers, each with one message to one topic
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub producers: u64,
    /// The node
    #[command(flatten)]
    pub node: NodeArgs,
}

/// Runs it.
///
/// # Errors
/// The node cannot be started or reached, or refuses something.
pub(in super::super) async fn topics(args: &TopicsArgs) -> anyhow::Result<ExitCode> {
    raise_open_files();
    let node = args.node.watch(&[])?;
    publish(&node.url, 0..FIRST_TOPICS).await?;
    let before = node.rss_bytes().await;
    publish(&node.url, FIRST_TOPICS..FIRST_TOPICS + args.topics).await?;
    let topics = node.growth(args.topics, before).await;

    let mut stream = Stream::open(&node.url, CREDIT_BYTES).await?;
    stream.subscribe("bench/quiet", 0..1).await?;
    let before = node.rss_bytes().await;
    let others = 1..args.subscriptions + 1;
    stream.subscribe("bench/quiet", others).await?;
    let subscriptions = node.growth(args.subscriptions.into(), before).await;

    let before = node.rss_bytes().await;
    for _ in 0..args.producers {
        let client = Client::connect(&node.url).await?;
        client.publish("bench/producers", &PAYLOAD[..]).await?;
        client.close().await?;
    }
    let producers = node.growth(args.producers, before).await;
    drop(stream);
    let growths = [
        ("topics", topics),
        ("subscriptions", subscriptions),
        ("producers", producers),
    ];
    super::print(args.node.json, &growths)?;
    Ok(ExitCode::SUCCESS)
}

/// Publishes a message to each of these topics; all must be stored.
async fn publish(url: &str, numbers: std::ops::Range<u64>) -> anyhow::Result<()> {
    let client = Client::connect(url).await?;
    let publisher = client.publisher();
    for number in numbers {
        let topic = TopicName::new(&format!("bench/topics/{number}"), &Limits::DEFAULT)?;
        let ack = publisher.send_ref(&topic, &PAYLOAD).await?;
        // Now and then, so that a node that stores nothing is noticed.
        if number % 10_000 == 0 {
            ack.await?;
        }
    }
    publisher.flush().await?;
    Ok(client.close().await?)
}
