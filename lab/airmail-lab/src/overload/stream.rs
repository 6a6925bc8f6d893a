//! One Publish stream, without the SDK, which would wait and retry; and the node's answers on it.

use airmail_bench::raw_stream::{connect, hello};
use airmail_model::LogMap;
use airmail_proto::hello::welcome_from_proto;
use airmail_proto::v1::publish_request::Kind;
use airmail_proto::v1::publish_response::Kind as Answer;
use airmail_proto::v1::{self};
use anyhow::{Context as _, bail};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// Requests that wait for the transport. What finds no room waits where its time counts.
const REQUESTS: usize = 1;

/// The stream, after Hello.
#[derive(Debug)]
pub(super) struct PublishStream {
    /// Requests to send, as far as the node reads.
    pub(super) requests: mpsc::Sender<v1::PublishRequest>,
    /// Answers of the node.
    pub(super) answers: Streaming<v1::PublishResponse>,
    /// Where the default namespace's topics go.
    pub(super) map: LogMap,
}

impl PublishStream {
    /// Opens it on a connection of its own.
    pub(super) async fn open(url: &str) -> anyhow::Result<PublishStream> {
        let mut client = connect(url).await?;
        let (requests, stream) = mpsc::channel(REQUESTS);
        requests.send(request(Kind::Hello(hello(0)))).await?;
        let opened = client.publish(ReceiverStream::new(stream)).await?;
        let mut answers = opened.into_inner();
        let first = answers.message().await?.context("no Hello")?;
        let Some(Answer::Hello(hello)) = first.kind else {
            bail!("the node's first word is not Hello");
        };
        let named = welcome_from_proto(&hello)?.namespaces.into_iter().next();
        Ok(PublishStream {
            requests,
            answers,
            map: named.context("no map of the default namespace")?.map,
        })
    }
}

/// A request of this kind.
pub(super) fn request(kind: Kind) -> v1::PublishRequest {
    v1::PublishRequest { kind: Some(kind) }
}

/// Fate of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Stored, its first message under this number.
    Stored {
        /// The number.
        first: u64,
    },
    /// Refused: not stored.
    Refused {
        /// The error's number.
        code: u32,
        /// It says when to try again.
        has_delay: bool,
    },
}

/// The answer to a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// Number of the batch in the stream, from 0.
    pub(super) batch: u64,
    /// When it came, in microseconds of the bench's clock.
    pub(super) at_us: u64,
    /// Fate of the batch.
    pub(super) fate: Fate,
}

impl Heard {
    /// Reads an ack that came at this time.
    pub(super) fn new(ack: &v1::Ack, at_us: u64) -> Heard {
        let fate = match &ack.error {
            None => Fate::Stored { first: ack.first },
            Some(error) => Fate::Refused {
                code: error.code,
                has_delay: error.retry_after_ms.is_some(),
            },
        };
        Heard {
            batch: ack.request,
            at_us,
            fate,
        }
    }
}

/// A stream's whole story.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// When each batch that was sent was due, in microseconds of the bench's clock.
    pub(super) dues_us: Vec<u64>,
    /// Batches that were due, and never sent: the node did not read.
    pub(super) unsent: u64,
    /// Answers in the order in which they came.
    pub(super) heard: Vec<Heard>,
    /// Error that ended the stream before its time.
    pub(super) error: Option<String>,
}
