//! One Subscribe stream, without the SDK, which would have a stream for each subscription and read
//! its deliveries.

use airmail_bench::raw_stream::{connect, hello};
use airmail_proto::v1::{self, subscribe_request, subscribe_response};
use anyhow::{Context as _, bail};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// Subscriptions asked for that wait to be sent.
const REQUESTS: usize = 1024;

/// The stream.
pub(super) struct Stream {
    requests: mpsc::Sender<v1::SubscribeRequest>,
    responses: Streaming<v1::SubscribeResponse>,
}

impl Stream {
    /// Opens it on a connection of its own, with credit for all its deliveries.
    pub(super) async fn open(url: &str, credit_bytes: u32) -> anyhow::Result<Stream> {
        let mut client = connect(url).await?;
        let (requests, stream) = mpsc::channel(REQUESTS);
        let hello = hello(credit_bytes);
        requests
            .send(request(subscribe_request::Kind::Hello(hello)))
            .await?;
        let answer = client.subscribe(ReceiverStream::new(stream)).await?;
        let mut responses = answer.into_inner();
        responses.message().await?.context("no Hello")?;
        Ok(Stream {
            requests,
            responses,
        })
    }

    /// Subscribes to the topic `prefix/NUMBER` for each number, and waits until the node has all of them.
    pub(super) async fn subscribe(
        &mut self,
        prefix: &str,
        numbers: std::ops::Range<u32>,
    ) -> anyhow::Result<()> {
        let due = numbers.end - numbers.start;
        let requests = self.requests.clone();
        let sending = async move {
            for number in numbers {
                let add = v1::Add {
                    subscription: number,
                    topic: format!("{prefix}/{number}"),
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
