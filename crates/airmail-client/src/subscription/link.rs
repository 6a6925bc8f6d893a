//! The subscribe stream: opened, and opened again.

use crate::client::Shared;
use crate::nodes::Node;
use crate::publisher::hello;
use crate::received::Names;
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
    /// Sends when there is room. The core asks for nothing while the stream is not open.
    pub(super) fn send(&mut self, requests: Vec<Request>, names: &Names) {
        let Link::Open(open) = self else { return };
        let kinds = requests
            .iter()
            .filter_map(|request| kind_of(request, names));
        let requests = kinds.map(|kind| framed(&v1::SubscribeRequest { kind: Some(kind) }));
        open.outbox.extend(requests);
    }

    /// Waits for the next thing to happen; opens the stream when it is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(super) async fn next(
        &mut self,
        shared: &Arc<Shared>,
        names: &Names,
        credit: u32,
    ) -> Happening {
        loop {
            match self {
                Link::Closed(until) => {
                    shared.sleep_until(*until).await;
                    let namespace = names.named.namespace.to_string();
                    let opening = open(Arc::clone(shared), namespace, credit);
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
                    let waiting = !open.outbox.is_empty();
                    let response = tokio::select! {
                        permit = open.requests.reserve(), if waiting => {
                            if let (Ok(permit), Some(next)) = (permit, open.outbox.pop_front()) {
                                permit.send(next);
                            }
                            continue;
                        }
                        response = open.responses.message() => response,
                    };
                    let reply = match response {
                        Ok(Some(response)) => reply_from_proto(response),
                        Ok(None) => Err(Error::new(ErrorCode::Disconnected)),
                        Err(status) => {
                            let error = error_from_status(&status);
                            Err(shared.explain(error, &open.node, &status))
                        }
                    };
                    match reply {
                        Ok(FromNode::Reply(reply)) => return Happening::Reply(reply),
                        Ok(FromNode::Welcome(_)) => {}
                        Err(error) => {
                            shared.nodes.failed(&open.node);
                            return self.lost(error);
                        }
                    }
                }
            }
        }
    }

    fn lost(&mut self, error: Error) -> Happening {
        *self = Link::Closed(Mono(0));
        Happening::Lost(error)
    }
}

fn kind_of(request: &Request, names: &Names) -> Option<subscribe_request::Kind> {
    match request {
        Request::Add(add) => Some(subscribe_request::Kind::Add(subscribe_to_proto(
            add,
            &names.named.namespace,
            &names.named.topic,
            true,
        ))),
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
    shared: Arc<Shared>,
    namespace: String,
    credit: u32,
) -> Result<(Open, Welcome), Error> {
    let node = shared.nodes.node()?;
    let (requests, stream) = mpsc::channel(REQUESTS);
    let hello = hello(&shared, vec![namespace], credit);
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
