//! The publish stream: opened when there is something to publish, and opened again after it was
//! lost.

use super::accumulator::Accumulator;
use super::request_body::RequestBody;
use crate::context::ClientContext;
use crate::core::Purpose;
use crate::hello::client_hello;
use crate::moving::Moving;
use crate::nodes::Node;
use crate::response_stream::ResponseStream;
use airmail_model::frame::{News, Welcome};
use airmail_model::{Error, ErrorCode, Mono};
use airmail_proto::error::error_from_status;
use airmail_proto::framing::framed;
use airmail_proto::hello::{alive_from_proto, nodes_from_proto, welcome_from_proto};
use airmail_proto::v1;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tonic::Status;

/// Responses of an open stream, after Hello, and the node that gives them.
#[derive(Debug)]
struct OpenStream {
    node: Node,
    responses: ResponseStream<v1::PublishResponse>,
    moving: Moving,
}

type Opening = Pin<Box<dyn Future<Output = Result<(OpenStream, Welcome), Error>> + Send>>;

enum StreamState {
    /// Closed, and not to be opened before this time.
    Closed(Mono),
    Opening(Opening),
    Open(Box<OpenStream>),
}

/// One thing that happens to a stream.
#[derive(Debug)]
pub(super) enum PublishEvent {
    /// Hello was answered.
    Opened(Welcome),
    /// The node has answered something.
    Response(v1::publish_response::Kind),
    /// The stream goes on at another node, and may be opened there at once.
    Moved,
    /// The stream could not be opened, or has ended.
    Lost(Error),
}

/// The publish stream, open or not.
pub(super) struct PublishStream {
    shared: Arc<ClientContext>,
    accumulator: Arc<Accumulator>,
    state: StreamState,
}

impl PublishStream {
    /// Makes a stream that is closed, and may be opened at once.
    pub(super) fn new(shared: Arc<ClientContext>, accumulator: Arc<Accumulator>) -> PublishStream {
        PublishStream {
            shared,
            accumulator,
            state: StreamState::Closed(Mono(0)),
        }
    }

    /// Keeps a lost stream closed until this time.
    pub(super) fn hold_off(&mut self, until: Mono) {
        self.state = StreamState::Closed(until);
    }

    /// Waits for the next event; opens the stream if it is `wanted`.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(super) async fn next(&mut self, wanted: bool) -> PublishEvent {
        loop {
            match &mut self.state {
                StreamState::Closed(_) if !wanted => std::future::pending().await,
                StreamState::Closed(until) => {
                    self.shared.sleep_until(*until).await;
                    let opening = open(Arc::clone(&self.shared), Arc::clone(&self.accumulator));
                    self.state = StreamState::Opening(Box::pin(opening));
                }
                StreamState::Opening(opening) => match opening.as_mut().await {
                    Ok((open, welcome)) => {
                        self.state = StreamState::Open(Box::new(open));
                        return PublishEvent::Opened(welcome);
                    }
                    Err(error) => return self.lost(error),
                },
                StreamState::Open(open) => {
                    let OpenStream {
                        node,
                        responses,
                        moving,
                    } = &mut **open;
                    let response = tokio::select! {
                        biased;
                        response = responses.message() => response,
                        () = moving.moved() => {
                            self.state = StreamState::Closed(Mono(0));
                            return PublishEvent::Moved;
                        }
                    };
                    match response {
                        Ok(Some(v1::PublishResponse { kind: Some(kind) })) => {
                            if let Some(news) = news_of(&kind) {
                                self.shared.heard(node, responses, moving, &news);
                                continue;
                            }
                            if is_elsewhere(&kind) {
                                self.shared.refused(node, moving);
                            }
                            return PublishEvent::Response(kind);
                        }
                        Ok(Some(v1::PublishResponse { kind: None })) => {}
                        ended => {
                            let node = node.clone();
                            let error = self.error_of(&node, ended.err());
                            return self.lost(error);
                        }
                    }
                }
            }
        }
    }

    /// Turns the end of a stream into an error that names the node.
    fn error_of(&self, node: &Node, status: Option<Status>) -> Error {
        let error = match status {
            Some(status) => {
                let error = error_from_status(&status);
                self.shared.explain(error, node, &status)
            }
            None => Error::new(ErrorCode::Disconnected),
        };
        self.shared.nodes.failed(node, &error);
        error
    }

    fn lost(&mut self, error: Error) -> PublishEvent {
        self.state = StreamState::Closed(Mono::NEVER);
        PublishEvent::Lost(error)
    }
}

/// Opens a stream and says Hello, with the namespaces that are in use or waited for.
async fn open(
    shared: Arc<ClientContext>,
    accumulator: Arc<Accumulator>,
) -> Result<(OpenStream, Welcome), Error> {
    let node = shared.nodes.node(Purpose::Publish)?;
    let hello = client_hello(&shared, accumulator.namespaces(), 0, &[]);
    let first = v1::PublishRequest {
        kind: Some(v1::publish_request::Kind::Hello(hello)),
    };
    let number = accumulator.begin_stream();
    let body = RequestBody::new(accumulator, number, framed(&first));
    let failed = |status: Status| {
        let error = shared.explain(error_from_status(&status), &node, &status);
        shared.nodes.failed(&node, &error);
        error
    };
    let answer = async {
        let mut responses = node.publish(body).await?;
        Ok((responses.message().await?, responses))
    };
    let (first, mut responses) = shared.first_answer(answer).await.map_err(failed)?;
    match first.and_then(|response| response.kind) {
        Some(v1::publish_response::Kind::Hello(hello)) => {
            let welcome = welcome_from_proto(&hello)?;
            let moving = shared.welcomed((&node, Purpose::Publish), &mut responses, &welcome);
            let open = OpenStream {
                node,
                responses,
                moving,
            };
            Ok((open, welcome))
        }
        _ => Err(Error::new(ErrorCode::Disconnected)
            .field("hello")
            .value("not answered")),
    }
}

fn news_of(kind: &v1::publish_response::Kind) -> Option<News> {
    match kind {
        v1::publish_response::Kind::Alive(alive) => Some(alive_from_proto(alive)),
        v1::publish_response::Kind::Nodes(nodes) => Some(News::Nodes(nodes_from_proto(nodes))),
        _ => None,
    }
}

/// Tells whether a response refuses a batch because another node takes it.
fn is_elsewhere(kind: &v1::publish_response::Kind) -> bool {
    let v1::publish_response::Kind::Acks(acks) = kind else {
        return false;
    };
    // All of a stream's batches are refused for this reason, or none.
    let error = acks.acks.first().and_then(|ack| ack.error.as_ref());
    error.is_some_and(|error| error.code == u32::from(ErrorCode::Elsewhere as u16))
}
