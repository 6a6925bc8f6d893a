//! The subscribe stream: opened, and opened again.

use crate::context::ClientContext;
use crate::hello::client_hello;
use crate::named_topic::NamedTopic;
use crate::nodes::Node;
use crate::stream::Answers;
use airmail_model::frame::{Reply, Request};
use airmail_model::{Error, ErrorCode, Mono};
use airmail_proto::error::error_from_status;
use airmail_proto::framing::framed;
use airmail_proto::hello::Welcome;
use airmail_proto::subscribe::{FromNode, reply_from_proto, subscribe_to_proto};
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

/// Requests that wait in the transport; what is behind them waits here.
const REQUESTS: usize = 16;

type Opening = Pin<Box<dyn Future<Output = Result<(Open, Welcome), Error>> + Send>>;

/// How the stream stands.
pub(super) enum Link {
    /// Not before this time.
    Closed(Mono),
    Opening(Opening),
    Open(Box<Open>),
}

/// An open stream, after Hello.
pub(super) struct Open {
    node: Node,
    requests: mpsc::Sender<Bytes>,
    responses: Answers<v1::SubscribeResponse>,
    outbox: VecDeque<Bytes>,
}

/// The outgoing side: what was put into the channel.
struct Said(mpsc::Receiver<Bytes>);

impl Body for Said {
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

/// What happened.
#[derive(Debug)]
pub(super) enum Happening {
    /// Hello is done.
    Opened(Welcome),
    /// The node says something.
    Reply(Reply),
    /// It could not be opened, or has ended.
    Lost(Error),
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Link::Closed(_) => "Closed",
            Link::Opening(_) => "Opening",
            Link::Open(_) => "Open",
        })
    }
}

impl Link {
    /// Sends when there is room; `named` knows the subscriptions' topics. The core asks for nothing while the stream is not open.
    pub(super) fn send<'a>(
        &mut self,
        requests: &mut Vec<Request>,
        named: impl Fn(u32) -> Option<&'a NamedTopic>,
    ) {
        let requests = requests.drain(..);
        let Link::Open(open) = self else { return };
        let kinds = requests.filter_map(|request| kind_of(&request, &named));
        let requests = kinds.map(|kind| framed(&v1::SubscribeRequest { kind: Some(kind) }));
        open.outbox.extend(requests);
    }

    /// Waits for the next thing to happen; opens the stream when it is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(super) async fn next(
        &mut self,
        shared: &Arc<ClientContext>,
        namespace: &str,
        credit: u32,
    ) -> Happening {
        loop {
            match self {
                Link::Closed(until) => {
                    shared.sleep_until(*until).await;
                    let opening = open(Arc::clone(shared), namespace.to_owned(), credit);
                    *self = Link::Opening(Box::pin(opening));
                }
                Link::Opening(opening) => match opening.as_mut().await {
                    Ok((open, welcome)) => {
                        *self = Link::Open(Box::new(open));
                        return Happening::Opened(welcome);
                    }
                    Err(error) => return self.lost(error),
                },
                Link::Open(open) => {
                    let response = if open.outbox.is_empty() {
                        open.responses.message().await
                    } else {
                        tokio::select! {
                            permit = open.requests.reserve() => {
                                if let (Ok(permit), Some(next)) = (permit, open.outbox.pop_front()) {
                                    permit.send(next);
                                }
                                continue;
                            }
                            response = open.responses.message() => response,
                        }
                    };
                    if let Some(happening) = self.responded(shared, response) {
                        return happening;
                    }
                }
            }
        }
    }

    /// What has happened and is here already.
    pub(super) fn ready(&mut self, shared: &ClientContext) -> Option<Happening> {
        loop {
            let Link::Open(open) = self else { return None };
            let response = open.responses.ready().transpose()?;
            if let Some(happening) = self.responded(shared, response.map(Some)) {
                return Some(happening);
            }
        }
    }

    /// What a response means; `None` if nothing.
    fn responded(
        &mut self,
        shared: &ClientContext,
        response: Result<Option<v1::SubscribeResponse>, Status>,
    ) -> Option<Happening> {
        let Link::Open(open) = self else { return None };
        let reply = match response {
            Ok(Some(response)) => reply_from_proto(response),
            Ok(None) => Err(Error::new(ErrorCode::Disconnected)),
            Err(status) => {
                let error = error_from_status(&status);
                Err(shared.explain(error, &open.node, &status))
            }
        };
        match reply {
            Ok(FromNode::Reply(reply)) => Some(Happening::Reply(reply)),
            Ok(FromNode::Welcome(_)) => None,
            Err(error) => {
                shared.nodes.failed(&open.node);
                Some(self.lost(error))
            }
        }
    }

    fn lost(&mut self, error: Error) -> Happening {
        *self = Link::Closed(Mono(0));
        Happening::Lost(error)
    }
}

fn kind_of<'a>(
    request: &Request,
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
        Request::Credit { bytes } => Some(subscribe_request::Kind::Credit(v1::Credit {
            bytes: *bytes,
        })),
        Request::Publish { .. } => None,
    }
}

/// Opens a stream and says Hello.
async fn open(
    shared: Arc<ClientContext>,
    namespace: String,
    credit: u32,
) -> Result<(Open, Welcome), Error> {
    let node = shared.nodes.node()?;
    let (requests, stream) = mpsc::channel(REQUESTS);
    let hello = client_hello(&shared, vec![namespace], credit);
    let failed = |status: Status| {
        shared.nodes.failed(&node);
        shared.explain(error_from_status(&status), &node, &status)
    };
    // The channel is new and has room.
    let _ = requests.try_send(framed(&v1::SubscribeRequest {
        kind: Some(subscribe_request::Kind::Hello(hello)),
    }));
    let answer = async {
        let mut responses = node.subscribe(Said(stream)).await?;
        Ok((responses.message().await?, responses))
    };
    let (first, responses) = shared.first_answer(answer).await.map_err(failed)?;
    let first = first.ok_or_else(|| Error::new(ErrorCode::Disconnected))?;
    match reply_from_proto(first)? {
        FromNode::Welcome(welcome) => {
            let open = Open {
                node,
                requests,
                responses,
                outbox: VecDeque::new(),
            };
            Ok((open, welcome))
        }
        FromNode::Reply(_) => Err(Error::new(ErrorCode::Disconnected)
            .field("hello")
            .value("not answered")),
    }
}
