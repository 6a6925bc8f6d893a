//! The publish stream: opened when there is something to publish, and again when it is lost.

use super::desk::Desk;
use super::outgoing::Outgoing;
use crate::context::ClientContext;
use crate::hello::client_hello;
use crate::nodes::Node;
use crate::stream::Answers;
use airmail_model::{Error, ErrorCode, Mono};
use airmail_proto::framing::framed;
use airmail_proto::hello::{Welcome, welcome_from_proto};
use airmail_proto::v1;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tonic::Status;

/// An open stream's incoming side, after Hello.
#[derive(Debug)]
pub(super) struct Link {
    node: Node,
    responses: Answers<v1::PublishResponse>,
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
    shared: Arc<ClientContext>,
    desk: Arc<Desk>,
    state: State,
}

impl Wire {
    pub(super) fn new(shared: Arc<ClientContext>, desk: Arc<Desk>) -> Wire {
        Wire {
            shared,
            desk,
            state: State::Closed(Mono(0)),
        }
    }

    /// After a loss: no new attempt before this time.
    pub(super) fn hold_off(&mut self, until: Mono) {
        self.state = State::Closed(until);
    }

    /// Waits for the next thing to happen; opens the stream if it is `wanted`.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(super) async fn next(&mut self, wanted: bool) -> Happening {
        loop {
            match &mut self.state {
                State::Closed(_) if !wanted => std::future::pending().await,
                State::Closed(until) => {
                    self.shared.sleep_until(*until).await;
                    let opening = open(Arc::clone(&self.shared), Arc::clone(&self.desk));
                    self.state = State::Opening(Box::pin(opening));
                }
                State::Opening(opening) => match opening.as_mut().await {
                    Ok((link, welcome)) => {
                        self.state = State::Open(Box::new(link));
                        return Happening::Opened(welcome);
                    }
                    Err(error) => return self.lost(error),
                },
                State::Open(link) => match link.responses.message().await {
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
                },
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
        Happening::Lost(error)
    }
}

/// Opens a stream and says Hello, with the namespaces that are known or waited for.
async fn open(shared: Arc<ClientContext>, desk: Arc<Desk>) -> Result<(Link, Welcome), Error> {
    let node = shared.nodes.node()?;
    let hello = client_hello(&shared, desk.names(), 0);
    let first = v1::PublishRequest {
        kind: Some(v1::publish_request::Kind::Hello(hello)),
    };
    let number = desk.begin_stream();
    let outgoing = Outgoing::new(desk, number, framed(&first));
    let failed = |status: Status| {
        shared.nodes.failed(&node);
        let error = airmail_proto::error::error_from_status(&status);
        shared.explain(error, &node, &status)
    };
    let answer = async {
        let mut responses = node.publish(outgoing).await?;
        Ok((responses.message().await?, responses))
    };
    let (first, responses) = shared.first_answer(answer).await.map_err(failed)?;
    match first.and_then(|response| response.kind) {
        Some(v1::publish_response::Kind::Hello(hello)) => {
            let welcome = welcome_from_proto(&hello)?;
            Ok((Link { node, responses }, welcome))
        }
        _ => Err(Error::new(ErrorCode::Disconnected)
            .field("hello")
            .value("not answered")),
    }
}
