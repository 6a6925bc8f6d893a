//! The nodes that a client may talk to, and the connection to the one that it talks to now.
//!
//! All streams and calls of a client share one HTTP/2 connection. When an attempt on it fails, its
//! caller reports that, and the next attempt goes to the next address.

use crate::address::Address;
use crate::response_stream::ResponseStream;
use airmail_model::{Error, ErrorCode, Limits};
use airmail_proto::v1::airmail_client::AirmailClient;
use airmail_proto::v1::mailbox_client::MailboxClient;
use airmail_proto::v1::{self, admin_client::AdminClient};
use bytes::Bytes;
use parking_lot::Mutex;
use std::convert::Infallible;
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
    /// Number of its address.
    address: usize,
    channel: Channel,
}

impl Node {
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
        AdminClient::new(self.channel.clone())
    }

    /// Gives the service of mailboxes.
    pub(crate) fn mailbox(&self) -> MailboxClient<Channel> {
        MailboxClient::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }
}

/// The nodes of a client.
#[derive(Debug)]
pub(crate) struct Nodes {
    addresses: Vec<Address>,
    current: Mutex<Option<Node>>,
}

impl Nodes {
    pub(crate) fn new(addresses: Vec<Address>) -> Nodes {
        Nodes {
            addresses,
            current: Mutex::new(None),
        }
    }

    /// Counts the addresses that there are to try, at least 1.
    pub(crate) fn addresses(&self) -> u32 {
        u32::try_from(self.addresses.len()).unwrap_or(1).max(1)
    }

    /// Gives the current node. The connection is made when it is used.
    pub(crate) fn node(&self) -> Result<Node, Error> {
        let mut current = self.current.lock();
        if let Some(node) = &*current {
            return Ok(node.clone());
        }
        let node = self.connect(0)?;
        *current = Some(node.clone());
        Ok(node)
    }

    /// Takes note that an attempt on `node` failed: the next one goes to the next address.
    pub(crate) fn failed(&self, node: &Node) {
        let mut current = self.current.lock();
        let same = current
            .as_ref()
            .is_some_and(|now| now.address == node.address);
        if same && self.addresses.len() > 1 {
            *current = self.connect((node.address + 1) % self.addresses.len()).ok();
        }
    }

    /// Gives the address of `node`, for people to read.
    pub(crate) fn address(&self, node: &Node) -> String {
        let address = self.addresses.get(node.address);
        address.map(Address::to_string).unwrap_or_default()
    }

    fn connect(&self, address: usize) -> Result<Node, Error> {
        let name = self.addresses.get(address);
        let name = name.map(Address::to_string).unwrap_or_default();
        let endpoint = Endpoint::from_shared(format!("http://{name}")).map_err(|error| {
            Error::new(ErrorCode::InvalidArgument)
                .field("url")
                .value(format!("{name}: {error}"))
        })?;
        let channel = endpoint
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(2 * WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .connect_lazy();
        Ok(Node { address, channel })
    }
}
