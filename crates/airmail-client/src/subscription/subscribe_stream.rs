//! The subscribe stream: opened when it is needed, and opened again after it was lost.

use crate::context::ClientContext;
use crate::core::Purpose;
use crate::hello::client_hello;
use crate::moving::Moving;
use crate::named_topic::NamedTopic;
use crate::nodes::Node;
use crate::response_stream::ResponseStream;
use airmail_model::frame::{Hello, Reply, Request, Welcome};
use airmail_model::{Error, ErrorCode, Mono};
use airmail_proto::error::error_from_status;
use airmail_proto::framing::framed;
use airmail_proto::subscribe::{FromNode, change_to_proto, reply_from_proto, subscribe_to_proto};
use airmail_proto::v1::{self, subscribe_request};
use bytes::Bytes;
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tonic::Status;

/// Number of requests that wait in the transport; further ones wait in [`OpenStream`].
const TRANSPORT_REQUESTS: usize = 16;

type Opening = Pin<Box<dyn Future<Output = Result<(OpenStream, Welcome), Error>> + Send>>;

/// The subscribe stream, open or not.
pub(super) enum SubscribeStream {
    /// Closed, and not to be opened before this time.
    Closed(Mono),
    Opening(Opening),
    Open(Box<OpenStream>),
}

/// An open stream, after Hello.
pub(super) struct OpenStream {
    node: Node,
    requests: mpsc::Sender<Bytes>,
    /// Protocol version that is spoken.
    protocol: u32,
    /// Its subscriptions asked for deliveries without payloads.
    headers_only: bool,
    responses: ResponseStream<v1::SubscribeResponse>,
    outbox: VecDeque<Bytes>,
    moving: Moving,
}

/// Request body of the stream: what was put into the channel.
struct ChannelBody(mpsc::Receiver<Bytes>);

impl Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.poll_recv(context);
        next.map(|message| message.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// One thing that happens to a stream.
#[derive(Debug)]
pub(super) enum SubscribeEvent {
    /// Hello was answered.
    Opened(Welcome),
    /// The node has sent a reply.
    Reply(Reply),
    /// The stream goes on at another node, and may be opened there at once.
    Moved,
    /// The stream could not be opened, or has ended.
    Lost(Error),
}

impl fmt::Debug for SubscribeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SubscribeStream::Closed(_) => "Closed",
            SubscribeStream::Opening(_) => "Opening",
            SubscribeStream::Open(_) => "Open",
        })
    }
}

impl SubscribeStream {
    /// Sends requests as soon as there is room; `named` finds the topics of their subscriptions.
    /// Requests that come while the stream is not open are dropped: the core has none then.
    pub(super) fn send<'a>(
        &mut self,
        requests: &mut Vec<Request>,
        named: impl Fn(u32) -> Option<&'a NamedTopic>,
    ) {
        let requests = requests.drain(..);
        let SubscribeStream::Open(open) = self else {
            return;
        };
        let protocol = open.protocol;
        let requests = requests.inspect(|request| {
            if let Request::Add(add) = request {
                open.headers_only = add.headers_only;
            }
        });
        let kinds = requests.filter_map(|request| kind_of(&request, protocol, &named));
        let requests = kinds.map(|kind| framed(&v1::SubscribeRequest { kind: Some(kind) }));
        open.outbox.extend(requests);
    }

    /// Waits for the next event; opens the stream when it is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(super) async fn next(
        &mut self,
        shared: &Arc<ClientContext>,
        namespace: &str,
        credit: u32,
    ) -> SubscribeEvent {
        loop {
            match self {
                SubscribeStream::Closed(until) => {
                    shared.sleep_until(*until).await;
                    let opening = open(Arc::clone(shared), namespace.to_owned(), credit);
                    *self = SubscribeStream::Opening(Box::pin(opening));
                }
                SubscribeStream::Opening(opening) => match opening.as_mut().await {
                    Ok((open, welcome)) => {
                        *self = SubscribeStream::Open(Box::new(open));
                        return SubscribeEvent::Opened(welcome);
                    }
                    Err(error) => return self.lost(error),
                },
                SubscribeStream::Open(open) => {
                    let response = if open.outbox.is_empty() && open.moving.is_not() {
                        Some(open.responses.message().await)
                    } else {
                        tokio::select! {
                            permit = open.requests.reserve(), if !open.outbox.is_empty() => {
                                if let (Ok(permit), Some(next)) = (permit, open.outbox.pop_front()) {
                                    permit.send(next);
                                }
                                continue;
                            }
                            response = open.responses.message() => Some(response),
                            () = open.moving.moved() => None,
                        }
                    };
                    let Some(response) = response else {
                        *self = SubscribeStream::Closed(Mono(0));
                        return SubscribeEvent::Moved;
                    };
                    if let Some(event) = self.responded(shared, response) {
                        return event;
                    }
                }
            }
        }
    }

    /// Gives the next event that has arrived already.
    pub(super) fn ready(&mut self, shared: &Arc<ClientContext>) -> Option<SubscribeEvent> {
        loop {
            let SubscribeStream::Open(open) = self else {
                return None;
            };
            let response = open.responses.ready().transpose()?;
            if let Some(event) = self.responded(shared, response.map(Some)) {
                return Some(event);
            }
        }
    }

    /// Translates a response; `None` if it means nothing.
    fn responded(
        &mut self,
        shared: &Arc<ClientContext>,
        response: Result<Option<v1::SubscribeResponse>, Status>,
    ) -> Option<SubscribeEvent> {
        let SubscribeStream::Open(open) = self else {
            return None;
        };
        let reply = match response {
            Ok(Some(response)) => reply_from_proto(response, open.headers_only),
            Ok(None) => Err(Error::new(ErrorCode::Disconnected)),
            Err(status) => {
                let error = error_from_status(&status);
                Err(shared.explain(error, &open.node, &status))
            }
        };
        match reply {
            Ok(FromNode::Reply(reply)) => Some(SubscribeEvent::Reply(reply)),
            Ok(FromNode::Welcome(_)) => None,
            Ok(FromNode::News(news)) => {
                let OpenStream {
                    node,
                    responses,
                    moving,
                    ..
                } = &mut **open;
                shared.heard(node, responses, moving, &news);
                None
            }
            Err(error) => {
                shared.nodes.failed(&open.node, &error);
                Some(self.lost(error))
            }
        }
    }

    fn lost(&mut self, error: Error) -> SubscribeEvent {
        *self = SubscribeStream::Closed(Mono(0));
        SubscribeEvent::Lost(error)
    }
}

fn kind_of<'a>(
    request: &Request,
    protocol: u32,
    named: impl Fn(u32) -> Option<&'a NamedTopic>,
) -> Option<subscribe_request::Kind> {
    match request {
        Request::Add(add) => {
            let NamedTopic { namespace, topic } = named(add.subscription.0)?;
            let add = subscribe_to_proto(add, namespace, topic, true);
            Some(subscribe_request::Kind::Add(add))
        }
        Request::Remove { subscription } => {
            let subscription = subscription.0;
            Some(subscribe_request::Kind::Remove(v1::Remove { subscription }))
        }
        Request::Change(change) => Some(subscribe_request::Kind::Change(change_to_proto(change))),
        Request::Credit { bytes } => Some(subscribe_request::Kind::Credit(v1::Credit {
            bytes: *bytes,
        })),
        // An older node says nothing of clocks by which that would count.
        Request::Clock { .. } if protocol < Hello::PROTOCOL_CLOCK => None,
        Request::Clock { asked } => Some(subscribe_request::Kind::AskClock(v1::AskClock {
            asked_ns: asked.0,
        })),
        Request::Publish { .. } | Request::Roles(_) => None,
    }
}

/// Opens a stream and says Hello.
async fn open(
    shared: Arc<ClientContext>,
    namespace: String,
    credit: u32,
) -> Result<(OpenStream, Welcome), Error> {
    let node = shared.nodes.node(Purpose::Subscribe)?;
    let (requests, stream) = mpsc::channel(TRANSPORT_REQUESTS);
    let hello = client_hello(&shared, vec![namespace], credit, &shared.roles);
    let failed = |status: Status| {
        let error = shared.explain(error_from_status(&status), &node, &status);
        shared.nodes.failed(&node, &error);
        error
    };
    // The channel is new and has room.
    let _ = requests.try_send(framed(&v1::SubscribeRequest {
        kind: Some(subscribe_request::Kind::Hello(hello)),
    }));
    let answer = async {
        let mut responses = node.subscribe(ChannelBody(stream)).await?;
        Ok((responses.message().await?, responses))
    };
    let (first, mut responses) = shared.first_answer(answer).await.map_err(failed)?;
    let first = first.ok_or_else(|| Error::new(ErrorCode::Disconnected))?;
    match reply_from_proto(first, false)? {
        FromNode::Welcome(welcome) => {
            let moving = shared.welcomed((&node, Purpose::Subscribe), &mut responses, &welcome);
            let open = OpenStream {
                node,
                requests,
                protocol: welcome.protocol,
                headers_only: false,
                responses,
                outbox: VecDeque::new(),
                moving,
            };
            Ok((open, welcome))
        }
        FromNode::Reply(_) | FromNode::News(_) => Err(Error::new(ErrorCode::Disconnected)
            .field("hello")
            .value("not answered")),
    }
}
