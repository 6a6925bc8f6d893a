//! `airmail bench topics`: many topics: published to, subscribed to on one connection; and producers.

use std::process::ExitCode;

use airmail_client::Client;
use airmail_model::{Limits, TopicName};
use airmail_proto::hello::{PROTOCOL_MAX, PROTOCOL_MIN};
use airmail_proto::v1::airmail_client::AirmailClient;
use airmail_proto::v1::{self, subscribe_request, subscribe_response};
use anyhow::{Context as _, bail};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Endpoint;

use super::NodeArgs;

/// Topics that are published to before the node is first looked at: what is there once, then is.
const FIRST_TOPICS: u64 = 10_000;
/// Subscriptions asked for that wait to be sent.
const REQUESTS: usize = 1024;
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
    super::raise_open_files();
    let node = args.node.watch()?;
    publish(&node.url, 0..FIRST_TOPICS).await?;
    let before = node.rss_bytes().await;
    publish(&node.url, FIRST_TOPICS..FIRST_TOPICS + args.topics).await?;
    let topics = node.growth(args.topics, before).await;

    let mut stream = Stream::open(&node.url).await?;
    stream.subscribe(0..1).await?;
    let before = node.rss_bytes().await;
    stream.subscribe(1..args.subscriptions + 1).await?;
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
        let receipt = publisher.send_ref(&topic, &PAYLOAD).await?;
        // Now and then, so that a node that stores nothing is noticed.
        if number % 10_000 == 0 {
            receipt.await?;
        }
    }
    publisher.flush().await?;
    Ok(client.close().await?)
}

/// One Subscribe stream, without the SDK, which has a stream for each subscription.
struct Stream {
    requests: mpsc::Sender<v1::SubscribeRequest>,
    responses: Streaming<v1::SubscribeResponse>,
}

impl Stream {
    async fn open(url: &str) -> anyhow::Result<Stream> {
        let address = url
            .strip_prefix("airmail://")
            .context("--target: not airmail://")?;
        let channel = Endpoint::from_shared(format!("http://{address}"))?
            .connect()
            .await?;
        let (requests, stream) = mpsc::channel(REQUESTS);
        let hello = v1::ClientHello {
            protocol_min: PROTOCOL_MIN,
            protocol_max: PROTOCOL_MAX,
            namespaces: vec!["default".to_owned()],
            credit_bytes: 1 << 20,
            client: "airmail bench".to_owned(),
            ..v1::ClientHello::default()
        };
        requests
            .send(request(subscribe_request::Kind::Hello(hello)))
            .await?;
        let answer = AirmailClient::new(channel)
            .subscribe(ReceiverStream::new(stream))
            .await?;
        let mut responses = answer.into_inner();
        responses.message().await?.context("no Hello")?;
        Ok(Stream {
            requests,
            responses,
        })
    }

    /// Subscribes to a topic for each number, and waits until the node has all of them.
    async fn subscribe(&mut self, numbers: std::ops::Range<u32>) -> anyhow::Result<()> {
        let due = numbers.end - numbers.start;
        let requests = self.requests.clone();
        let sending = async move {
            for number in numbers {
                let add = v1::Add {
                    subscription: number,
                    topic: format!("bench/quiet/{number}"),
                    namespace: "default".to_owned(),
                    batches: true,
                    ..v1::Add::default()
                };
                requests
                    .send(request(subscribe_request::Kind::Add(add)))
                    .await?;
            }
            anyhow::Ok(())
        };
        let answers = async {
            let mut live: u32 = 0;
            while live < due {
                let answer = self
                    .responses
                    .message()
                    .await?
                    .context("the stream has ended")?;
                let Some(subscribe_response::Kind::Status(status)) = answer.kind else {
                    continue;
                };
                match status.state {
                    Some(v1::status::State::Live(_)) => live += 1,
                    Some(v1::status::State::Failed(error)) => {
                        bail!("a subscription was refused: {error:?}")
                    }
                    _ => {}
                }
            }
            Ok(())
        };
        tokio::try_join!(sending, answers)?;
        Ok(())
    }
}

fn request(kind: subscribe_request::Kind) -> v1::SubscribeRequest {
    v1::SubscribeRequest { kind: Some(kind) }
}
