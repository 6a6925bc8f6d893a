//! The publish stream: opened when there is something to publish, and again when it is lost.

use crate::client::Shared;
use crate::nodes::Node;
use airmail_model::{Error, ErrorCode, Mono};
use airmail_proto::hello::{PROTOCOL_MAX, PROTOCOL_MIN, Welcome, welcome_from_proto};
use airmail_proto::v1;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Frames that wait in the transport; what is behind them waits here.
const FRAMES: usize = 4;

/// An open stream, after Hello.
#[derive(Debug)]
pub(super) struct Link {
    node: Node,
    requests: mpsc::Sender<v1::PublishRequest>,
    responses: Streaming<v1::PublishResponse>,
}

type Opening = Pin<Box<dyn Future<Output = Result<(Link, Welcome), Error>> + Send>>;

/// How the stream stands.
enum State {
    /// Not before this time.
    Closed(Mono),
    Opening(Opening),
    Open(Box<Link>),
}

/// What happened.
#[derive(Debug)]
pub(super) enum Happening {
    /// Hello is done.
    Opened(Welcome),
    /// The node says something.
    Response(v1::publish_response::Kind),
    /// It could not be opened, or has ended.
    Lost(Error),
}

/// The publish stream in all its states.
pub(super) struct Wire {
    shared: Arc<Shared>,
    state: State,
    outbox: VecDeque<v1::PublishRequest>,
}

impl Wire {
    pub(super) fn new(shared: Arc<Shared>) -> Wire {
        Wire {
            shared,
            state: State::Closed(Mono(0)),
            outbox: VecDeque::new(),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Sends when there is room. What is here when the stream is lost is lost with it.
    pub(super) fn send(&mut self, kind: v1::publish_request::Kind) {
        self.outbox
            .push_back(v1::PublishRequest { kind: Some(kind) });
    }

    /// After a loss: no new attempt before this time.
    pub(super) fn hold_off(&mut self, until: Mono) {
        self.state = State::Closed(until);
        self.outbox.clear();
    }

    /// Waits for the next thing to happen; opens the stream with these namespaces if `wanted`.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(super) async fn next(&mut self, wanted: bool, namespaces: &[String]) -> Happening {
        loop {
            match &mut self.state {
                State::Closed(_) if !wanted => std::future::pending().await,
                State::Closed(until) => {
                    self.shared.sleep_until(*until).await;
                    let shared = Arc::clone(&self.shared);
                    let opening = open(shared, namespaces.to_vec());
                    self.state = State::Opening(Box::pin(opening));
                }
                State::Opening(opening) => match opening.as_mut().await {
                    Ok((link, welcome)) => {
                        self.state = State::Open(Box::new(link));
                        return Happening::Opened(welcome);
                    }
                    Err(error) => return self.lost(error),
                },
                State::Open(link) => {
                    let waiting = !self.outbox.is_empty();
                    let response = tokio::select! {
                        permit = link.requests.reserve(), if waiting => {
                            if let (Ok(permit), Some(next)) = (permit, self.outbox.pop_front()) {
                                permit.send(next);
                            }
                            continue;
                        }
                        response = link.responses.message() => response,
                    };
                    match response {
                        Ok(Some(response)) => {
                            if let Some(kind) = response.kind {
                                return Happening::Response(kind);
                            }
                        }
                        ended => {
                            let node = link.node.clone();
                            let error = self.end(&node, ended.err());
                            return self.lost(error);
                        }
                    }
                }
            }
        }
    }

    fn end(&self, node: &Node, status: Option<Status>) -> Error {
        self.shared.nodes.failed(node);
        match status {
            Some(status) => {
                let error = airmail_proto::error::error_from_status(&status);
                self.shared.explain(error, node, &status)
            }
            None => Error::new(ErrorCode::Disconnected),
        }
    }

    fn lost(&mut self, error: Error) -> Happening {
        self.state = State::Closed(Mono::NEVER);
        self.outbox.clear();
        Happening::Lost(error)
    }
}

/// What a client says first on any stream.
pub(crate) fn hello(shared: &Shared, namespaces: Vec<String>, credit: u32) -> v1::ClientHello {
    v1::ClientHello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        features: Vec::new(),
        token: String::new(),
        namespaces,
        credit_bytes: credit,
        client: shared.nodes.client.clone(),
    }
}

/// Opens a stream and says Hello.
async fn open(shared: Arc<Shared>, namespaces: Vec<String>) -> Result<(Link, Welcome), Error> {
    let node = shared.nodes.node()?;
    let (requests, stream) = mpsc::channel(FRAMES);
    let first = v1::PublishRequest {
        kind: Some(v1::publish_request::Kind::Hello(hello(
            &shared, namespaces, 0,
        ))),
    };
    let failed = |status: Status| {
        shared.nodes.failed(&node);
        let error = airmail_proto::error::error_from_status(&status);
        shared.explain(error, &node, &status)
    };
    // The channel is new and has room.
    let _ = requests.try_send(first);
    let answer = async {
        let answer = node.airmail().publish(ReceiverStream::new(stream)).await?;
        let mut responses = answer.into_inner();
        Ok((responses.message().await?, responses))
    };
    let (first, responses) = shared.first_answer(answer).await.map_err(failed)?;
    match first.and_then(|response| response.kind) {
        Some(v1::publish_response::Kind::Hello(hello)) => {
            let welcome = welcome_from_proto(&hello)?;
            let link = Link {
                node,
                requests,
                responses,
            };
            Ok((link, welcome))
        }
        _ => Err(Error::new(ErrorCode::Disconnected)
            .field("hello")
            .value("not answered")),
    }
}
