//! The nodes that a client may talk to, and the connection to the one that it talks to now.
//!
//! All streams and calls of a client share one HTTP/2 connection. When an attempt on it fails, its
//! caller reports that, and the next attempt goes to another address, which
//! [`crate::core::NodeChoice`] chooses. Where that finds a better node while the current one serves, a
//! connection to it is made first, and each stream then goes over to it.

use crate::core::NodeChoice;
use crate::response_stream::ResponseStream;
use airmail_model::clock::Clock;
use airmail_model::frame::{self, Welcome};
use airmail_model::{Error, ErrorCode, Limits};
use airmail_proto::v1::airmail_client::AirmailClient;
use airmail_proto::v1::mailbox_client::MailboxClient;
use airmail_proto::v1::{self, admin_client::AdminClient};
use bytes::Bytes;
use parking_lot::Mutex;
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

/// Time that preparing a move to another node may take.
const MOVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Times of a node's own choosing in which it says nothing, after which it is lost: where there is another node to
/// go to, and where there is none.
const MISSED_MAX: u32 = 3;
const MISSED_MAX_ALONE: u32 = 30;

/// The connection to one node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    address: Arc<str>,
    channel: Channel,
}

impl Node {
    fn new(address: &str, channel: Channel) -> Node {
        Node {
            address: address.into(),
            channel,
        }
    }

    /// Tells whether it is the same connection.
    fn is(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.address, &other.address)
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
    clock: Arc<dyn Clock>,
    choice: Mutex<NodeChoice>,
    current: Mutex<Option<Node>>,
}

impl Nodes {
    pub(crate) fn new(choice: NodeChoice, clock: Arc<dyn Clock>) -> Nodes {
        Nodes {
            clock,
            choice: Mutex::new(choice),
            current: Mutex::new(None),
        }
    }

    /// Counts the addresses that there are to try, at least 1.
    pub(crate) fn addresses(&self) -> u32 {
        u32::try_from(self.choice.lock().addresses()).unwrap_or(u32::MAX)
    }

    /// Gives the current node. The connection is made when it is used.
    pub(crate) fn node(&self) -> Result<Node, Error> {
        let mut current = self.current.lock();
        if let Some(node) = &*current {
            return Ok(node.clone());
        }
        let address = self.choice.lock().choose(self.clock.mono());
        let node = Node::new(&address, endpoint(&address)?.connect_lazy());
        *current = Some(node.clone());
        Ok(node)
    }

    /// Takes note that an attempt on `node` failed: the next one goes to another address, if there is one.
    pub(crate) fn failed(&self, node: &Node, error: &Error) {
        self.choice.lock().failed(self.clock.mono(), &node.address);
        // A node that refuses is still connected.
        let stays = error.code() != ErrorCode::Disconnected && self.addresses() == 1;
        let mut current = self.current.lock();
        if current.as_ref().is_some_and(|now| now.is(node)) && !stays {
            *current = None;
        }
    }

    /// Gives the address of `node`, for people to read.
    pub(crate) fn address(&self, node: &Node) -> String {
        node.address.to_string()
    }

    /// Takes note of the answer of `node` to Hello; gives how often it says something, and how often it may have
    /// said nothing, if it says so.
    pub(crate) fn welcomed(&self, node: &Node, welcome: &Welcome) -> Option<(Duration, u32)> {
        self.choice.lock().met(&node.address, &welcome.node);
        if !welcome.nodes.nodes.is_empty() {
            self.told(node, &welcome.nodes);
        }
        welcome.alive.map(|within| (within, self.missed_max()))
    }

    /// Counts the times for which a node may say nothing.
    pub(crate) fn missed_max(&self) -> u32 {
        if self.addresses() > 1 {
            MISSED_MAX
        } else {
            MISSED_MAX_ALONE
        }
    }

    /// Takes note of what `node` tells of nodes.
    pub(crate) fn told(&self, node: &Node, nodes: &frame::Nodes) {
        let current = self.current.lock();
        if current.as_ref().is_some_and(|now| now.is(node)) {
            let mut choice = self.choice.lock();
            choice.told(self.clock.mono(), &node.address, nodes);
        }
    }

    /// Tells whether whoever talks to `node` is to go on at another.
    pub(crate) fn is_to_move_from(&self, node: &Node) -> bool {
        let current = self.current.lock();
        match &*current {
            Some(now) if now.is(node) => self.choice.lock().target(&node.address).is_some(),
            // Another stream of this client has moved, or found that the node has failed.
            Some(now) => now.address != node.address,
            None => false,
        }
    }

    /// Moves from `node`: connects to the other, while everything goes on here. Tells whether the current node is
    /// another now.
    pub(crate) async fn move_from(&self, node: &Node) -> bool {
        let target = {
            let current = self.current.lock();
            if !current.as_ref().is_some_and(|now| now.is(node)) {
                return true;
            }
            let choice = self.choice.lock();
            let Some(target) = choice.target(&node.address) else {
                return false;
            };
            target.to_owned()
        };
        let connected = match endpoint(&target) {
            Ok(endpoint) => tokio::time::timeout(MOVE_TIMEOUT, endpoint.connect()).await,
            Err(_) => return self.not_reached(&target),
        };
        let Ok(Ok(channel)) = connected else {
            return self.not_reached(&target);
        };
        let mut current = self.current.lock();
        if current.as_ref().is_some_and(|now| now.is(node)) {
            tracing::debug!(from = %node.address, to = target, "going on at another node");
            *current = Some(Node::new(&target, channel));
            self.choice.lock().moved(self.clock.mono(), &node.address);
        }
        true
    }

    fn not_reached(&self, target: &str) -> bool {
        tracing::debug!(target, "another node could not be reached");
        self.choice.lock().failed(self.clock.mono(), target);
        false
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
