//! Publish: a stream of batches up, acks down; and PublishOne, a single message.
//!
//! A batch that is refused, here or by the shard, is answered by its ack, and the stream goes on; only what
//! breaks the session's own rules ends it.

use super::connection_calls::StreamCall;
use super::request_body::RequestBody;
use super::response_body::{Answers, Frames};
use super::{Call, Services, principal_of};
use crate::frontdoor::session::{self, SessionEvents, SessionRequests};
use crate::frontdoor::{AfterRequests, PublishRefusal, RequestSource};
use crate::send_queue::Event;
use crate::shard_handle::stopping;
use airmail_broker::Principal;
use airmail_model::frame::{Ack, Credit, Hello, Refused, Reply, RequestId};
use airmail_model::{Error, ErrorCode, Mono};
use airmail_proto::hello::{alive_to_proto, check_client_hello, nodes_to_proto, welcome_to_proto};
use airmail_proto::message::{message_from_proto, position_of};
use airmail_proto::namespace::synced_to_proto;
use airmail_proto::publish::{AckList, maps_to_proto};
use airmail_proto::v1;
use airmail_proto::v1::publish_batch::Body;
use airmail_proto::v1::publish_request::Kind;
use airmail_proto::v1::publish_response::Kind as Answer;
use std::iter;
use std::ops::ControlFlow;
use std::task::{Context, Poll};
use tonic::{Request, Status};

/// Acks that go into one message.
const ACKS_MAX: usize = 1024;

/// The call Publish: a stream of batches and a stream of their acks.
pub(super) enum Publish {}

impl StreamCall for Publish {
    const NAME: &'static str = "Publish";
    const AFTER_REQUESTS: AfterRequests = AfterRequests::End;
    type Request = v1::PublishRequest;
    type Source = Batches;
    type Answers = Acks;

    fn halves(
        call: Call,
        requests: RequestBody<v1::PublishRequest>,
        events: SessionEvents,
    ) -> (Batches, Acks) {
        let batches = Batches {
            requests,
            request_id: call.request_id.clone(),
        };
        (batches, Acks { events, call })
    }
}

/// The requests of a stream.
pub(super) struct Batches {
    requests: RequestBody<v1::PublishRequest>,
    request_id: String,
}

impl RequestSource for Batches {
    async fn do_next(&mut self, session: &SessionRequests) -> Result<ControlFlow<()>, Error> {
        let Some(request) = self.requests.next(session.door()).await? else {
            return Ok(ControlFlow::Break(()));
        };
        match request.kind {
            Some(Kind::Hello(hello)) => {
                session.is_new()?;
                let hello = hello_from_proto(&self.request_id, hello, Credit::Nothing)?;
                session.hello(&hello).await?;
            }
            Some(Kind::Batches(batches)) => {
                session.is_greeted()?;
                let received = session.door().mono();
                for batch in batches.batches {
                    publish(session, batch, received).await?;
                }
            }
            Some(Kind::Resolve(resolve)) => session.resolve(&resolve.namespaces)?,
            None => {
                session.is_greeted()?;
                return Err(Error::new(ErrorCode::InvalidArgument).field("kind"));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A client's Hello, once the protocol's version is agreed on.
pub(super) fn hello_from_proto(
    request_id: &str,
    hello: v1::ClientHello,
    credit: Credit,
) -> Result<Hello, Error> {
    tracing::debug!(request_id, client = hello.client, "hello");
    let protocol = check_client_hello(&hello)?;
    Ok(Hello {
        protocol,
        namespaces: hello.namespaces,
        credit,
        roles: hello.roles,
    })
}

/// Publishes what a client sent: a batch as it is, plain messages as the batches that they make.
async fn publish(
    session: &SessionRequests,
    batch: v1::PublishBatch,
    received: Mono,
) -> Result<(), Error> {
    let request = RequestId(batch.request);
    match batch.body {
        Some(Body::Batch(bytes)) => {
            let batch = (bytes, batch.begins_epoch);
            session.publish(request, batch, received).await?;
        }
        Some(Body::Messages(plain)) => {
            let limits = session.door().limits();
            let messages = plain.messages.into_iter();
            let messages = messages.map(|message| message_from_proto(message, limits));
            let namespace = &batch.namespace;
            let published = session.publish_messages(request, namespace, messages, received);
            published.await?;
        }
        None => session.refuse(request, PublishRefusal::BodyAbsent),
    }
    Ok(())
}

/// The stream of acks: each is translated when the connection takes it.
pub(super) struct Acks {
    events: SessionEvents,
    call: Call,
}

impl Acks {
    fn push(&self, acks: &mut AckList, request: RequestId, result: &Result<Ack, Refused>) {
        acks.push(request, result, |id| self.events.door().name_of(id));
    }

    /// Puts what is no ack into `out`, or breaks with how the stream ends.
    fn put_other(
        &self,
        event: Option<Result<Event, Error>>,
        out: &mut Frames,
    ) -> ControlFlow<Status> {
        let kind = match event {
            None => return ControlFlow::Break(Status::ok("")),
            Some(Err(error)) => return ControlFlow::Break(self.call.status(&error)),
            Some(Ok(Event::Welcome(welcome))) => Answer::Hello(welcome_to_proto(&welcome)),
            Some(Ok(Event::Maps(maps))) => Answer::Maps(maps_to_proto(&maps.found, &maps.missing)),
            Some(Ok(Event::Alive(within))) => Answer::Alive(alive_to_proto(within)),
            Some(Ok(Event::Nodes(nodes))) => Answer::Nodes(nodes_to_proto(&nodes)),
            // A session that only publishes is told nothing else.
            Some(Ok(Event::Reply(_) | Event::PublishRefused(..) | Event::NotAdded(_))) => {
                return ControlFlow::Continue(());
            }
        };
        out.message(&v1::PublishResponse { kind: Some(kind) });
        ControlFlow::Continue(())
    }
}

fn put_acks(acks: &AckList, out: &mut Frames) {
    if !acks.is_empty() {
        let length = acks.message_len();
        out.begin(length, length, |out| acks.encode(out));
    }
}

impl Answers for Acks {
    fn poll_put(&mut self, cx: &mut Context<'_>, out: &mut Frames) -> Poll<ControlFlow<Status>> {
        let mut acks = AckList::default();
        while acks.is_empty() || (acks.len() < ACKS_MAX && self.events.has_more()) {
            match self.events.poll_next(cx) {
                Poll::Ready(Some(Ok(Event::Reply(Reply::Acked { request, result })))) => {
                    self.push(&mut acks, request, &result);
                }
                Poll::Ready(Some(Ok(Event::PublishRefused(request, refusal)))) => {
                    let error = Error::from(*refusal);
                    self.push(&mut acks, request, &Err(Refused { error, map: None }));
                }
                Poll::Ready(other) => {
                    put_acks(&acks, out);
                    return Poll::Ready(self.put_other(other, out));
                }
                Poll::Pending if acks.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        put_acks(&acks, out);
        Poll::Ready(ControlFlow::Continue(()))
    }
}

/// Stores one message, on a session of its own.
pub(super) async fn one(
    services: &Services,
    request: Request<v1::PublishOneRequest>,
) -> Result<v1::PublishOneResponse, Error> {
    let principal = principal_of(&request)?;
    let request = request.into_inner();
    let door = &services.door;
    door.check_up()?;
    door.takes_publishes()?;
    let epoch = services.handle().namespace(&request.namespace)?.map.epoch;
    let message = request.message.ok_or_else(|| {
        Error::new(ErrorCode::InvalidArgument)
            .field("message")
            .value("absent")
    })?;
    let message = message_from_proto(message, door.limits());
    let batches = door
        .encode(&request.namespace, iter::once(message))
        .map_err(Error::from)
        .inspect_err(|error| services.metrics().refused_at_edge(error))?;
    let log = batches.first().map(|batch| batch.log());
    let principal = Principal::clone(&principal);
    let (requests, mut events) = session::open_for_one_call(door, principal, 0).await?;
    requests
        .publish_together(RequestId(0), batches, door.mono())
        .await?;
    let ack = loop {
        if let Event::Reply(Reply::Acked { result, .. }) =
            events.next().await.unwrap_or_else(|| Err(stopping()))?
        {
            break result.map_err(|refused| refused.error)?;
        }
    };
    let next = ack.extent.next();
    let position = match log {
        Some(log) => {
            let life = services.handle().incarnation(log).await?;
            life.map(|life| position_of(log, life, epoch, next).to_string())
        }
        None => None,
    };
    Ok(v1::PublishOneResponse {
        sequence: ack.extent.first.0,
        appended_at_us: ack.appended.0,
        held: synced_to_proto(ack.held.synced).into(),
        copies: ack.held.copies.into(),
        position: position.unwrap_or_default(),
    })
}
