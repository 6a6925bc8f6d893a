//! The connection to one node, and how it is set up.

use crate::response_stream::ResponseStream;
use airmail_model::{Error, ErrorCode, Limits};
use airmail_proto::v1::airmail_client::AirmailClient;
use airmail_proto::v1::mailbox_client::MailboxClient;
use airmail_proto::v1::{self, admin_client::AdminClient};
use bytes::Bytes;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::http;
use tonic::transport::{Channel, Endpoint};

/// Paths of the calls that open the two streams.
const PUBLISH_PATH: &str = "/airmail.v1.Airmail/Publish";
const SUBSCRIBE_PATH: &str = "/airmail.v1.Airmail/Subscribe";

/// Size of HTTP/2's flow control window: large, because credit does the fine work.
const WINDOW_BYTES: u32 = 4 << 20;
/// Largest window that HTTP/2 knows.
const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;
/// Size of the flow control windows of all streams of a connection together that are read in turn, and the least of one.
const TURNS_BYTES: u32 = 16 << 20;
const TURN_BYTES_MIN: u32 = 64 << 10;
/// Size of a frame that a node may send: mostly a whole delivery, which then lies in memory as one
/// piece.
const FRAME_BYTES: u32 = 1 << 20;
/// Time between two pings of a quiet connection.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Time that the answer to a ping may take.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of bytes that a message of the API has beside its batches, at most.
const FRAME_SLACK_BYTES: usize = 64 << 10;
/// Size of the largest message that is accepted from a node.
const MESSAGE_BYTES_MAX: usize = Limits::DEFAULT.frame_bytes as usize + FRAME_SLACK_BYTES;

/// The connection to one node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    address: Arc<str>,
    channel: Channel,
}

impl Node {
    /// Prepares a connection to the node at an address. It is made when it is used.
    pub(super) fn to(address: &str) -> Result<Node, Error> {
        Ok(Node {
            address: address.into(),
            channel: endpoint(address)?.connect_lazy(),
        })
    }

    /// Connects to the node at an address, if it can be reached.
    pub(super) async fn reach(address: &str) -> Option<Node> {
        Some(Node {
            address: address.into(),
            channel: endpoint(address).ok()?.connect().await.ok()?,
        })
    }

    /// Gives the address of the node.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Tells whether it is the same connection, or one apart to the same node.
    pub(crate) fn is(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.address, &other.address)
    }

    /// Prepares another connection to this node, for as many streams that are read in turn: of them and of all others, none
    /// waits for the flow control of one that is not being read.
    pub(crate) fn apart(&self, streams: usize) -> Result<Node, Error> {
        let streams = u32::try_from(streams).unwrap_or(u32::MAX).max(1);
        let window = (TURNS_BYTES / streams).clamp(TURN_BYTES_MIN, WINDOW_BYTES);
        let endpoint = endpoint(&self.address)?
            .initial_stream_window_size(window)
            .initial_connection_window_size(window.saturating_mul(streams).min(WINDOW_BYTES_MAX));
        Ok(Node {
            address: Arc::clone(&self.address),
            channel: endpoint.connect_lazy(),
        })
    }

    /// Gives the service of all calls but the two streams.
    pub(crate) fn airmail(&self) -> AirmailClient<Channel> {
        AirmailClient::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// Opens the publish stream; `body` gives whole gRPC messages, encoded.
    pub(crate) async fn publish(
        &self,
        body: impl tonic::codegen::Body<Data = Bytes, Error = Infallible> + Send + 'static,
    ) -> Result<ResponseStream<v1::PublishResponse>, Status> {
        self.stream(PUBLISH_PATH, Body::new(body)).await
    }

    /// Opens a subscribe stream; `body` gives whole gRPC messages, encoded.
    pub(crate) async fn subscribe(
        &self,
        body: impl tonic::codegen::Body<Data = Bytes, Error = Infallible> + Send + 'static,
    ) -> Result<ResponseStream<v1::SubscribeResponse>, Status> {
        self.stream(SUBSCRIBE_PATH, Body::new(body)).await
    }

    async fn stream<M: prost::Message + Default>(
        &self,
        path: &str,
        body: Body,
    ) -> Result<ResponseStream<M>, Status> {
        let mut channel = self.channel.clone();
        let failed = |error| Status::from_error(Box::new(error));
        std::future::poll_fn(|context| GrpcService::poll_ready(&mut channel, context))
            .await
            .map_err(failed)?;
        let request = http::Request::post(path)
            .version(http::Version::HTTP_2)
            .header(http::header::TE, "trailers")
            .header(http::header::CONTENT_TYPE, "application/grpc")
            .body(body);
        let request = request.map_err(|error| Status::internal(error.to_string()))?;
        let response = GrpcService::call(&mut channel, request).await;
        ResponseStream::new(response.map_err(failed)?, MESSAGE_BYTES_MAX)
    }

    /// Gives the service of namespaces.
    pub(crate) fn admin(&self) -> AdminClient<Channel> {
        AdminClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// Gives the service of mailboxes.
    pub(crate) fn mailbox(&self) -> MailboxClient<Channel> {
        MailboxClient::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }
}

/// The way to a node's address.
fn endpoint(address: &str) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| {
        Error::new(ErrorCode::InvalidArgument)
            .field("url")
            .value(format!("{address}: {error}"))
    })?;
    Ok(endpoint
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(2 * WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true))
}
