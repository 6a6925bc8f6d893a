//! Publish: a stream of batches up, acks down; and PublishOne, a single message.
//!
//! Bytes become a checked batch here. A batch that is refused, here or by the shard, is answered by
//! its ack, and the stream goes on; only what breaks the stream's own rules ends it.

use super::window::Window;
use super::{Call, Services, hello_expected, principal, reading_error, welcome};
use crate::beside::beside;
use crate::grpc::replies::{Answers, Frames};
use crate::grpc::requests::Requests;
use crate::link::{Link, stopping};
use crate::metrics::Metrics;
use crate::outbox::{Outbox, Outgoing, Over, Taker};
use airmail_broker::catalog::Entry;
use airmail_model::frame::{Ack, Refused, Reply, Request, RequestId};
use airmail_model::{Batch, Checked, Error, ErrorCode, LogId, Mono, NamespaceId};
use airmail_proto::hello::NamedMap;
use airmail_proto::message::{messages_to_batches, position_of};
use airmail_proto::namespace::durability_to_proto;
use airmail_proto::publish::{AckList, maps_to_proto};
use airmail_proto::v1;
use airmail_proto::v1::publish_batch::Body;
use airmail_proto::v1::publish_request::Kind;
use airmail_proto::v1::publish_response::Kind as Answer;
use futures::future::Either;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::Status;

/// Acks that go into one message.
const ACKS_MAX: usize = 1024;

/// Begins a publish stream.
pub(super) async fn stream(
    services: &Services,
    call: &Call,
    requests: Requests<v1::PublishRequest>,
) -> Result<Acks, Error> {
    let link = services.link.clone();
    let outbox = link.open(principal(), 0).await?;
    let limit = link.limits().unacked_bytes as usize;
    let window = Arc::new(Window::new(limit));
    let reader = Reader {
        link: link.clone(),
        outbox: Arc::clone(&outbox),
        window: Arc::clone(&window),
        metrics: Arc::clone(&services.metrics),
        request_id: call.request_id.clone(),
    };
    services.tasks.spawn(reader.read(requests));
    Ok(Acks {
        link,
        outbox: Taker::new(outbox),
        window,
        metrics: Arc::clone(&services.metrics),
        call: call.clone(),
        next: None,
    })
}

/// Reads a stream's requests.
struct Reader {
    link: Link,
    outbox: Arc<Outbox>,
    window: Arc<Window>,
    metrics: Arc<Metrics>,
    request_id: String,
}

impl Reader {
    async fn read(self, mut requests: Requests<v1::PublishRequest>) {
        let over = self.outbox.over(self.link.stop());
        let end = match beside(over, self.take_all(&mut requests)).await {
            Either::Left(Over::Gone) => return,
            Either::Left(Over::Stopping) => Err(stopping()),
            Either::Right(end) => end,
        };
        // What was taken in is still answered, in a stop as well.
        tokio::select! {
            () = self.outbox.gone() => {}
            () = self.window.empty() => {}
        }
        self.outbox.end(end);
    }

    async fn take_all(&self, requests: &mut Requests<v1::PublishRequest>) -> Result<(), Error> {
        let mut greeted = false;
        loop {
            self.window.room().await;
            self.outbox.room().await;
            let request = match requests.message().await {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(()),
                Err(status) => {
                    return reading_error(&self.link, &status).map_or(Ok(()), Err);
                }
            };
            match (request.kind, greeted) {
                (Some(Kind::Hello(hello)), false) => {
                    let answer = welcome(&self.link, &self.request_id, &hello)?;
                    self.outbox.push(Outgoing::Hello(Box::new(answer)));
                    greeted = true;
                }
                (Some(Kind::Hello(_)), true) => return Err(hello_expected("a second hello")),
                (_, false) => return Err(hello_expected("a request before hello")),
                (Some(Kind::Batches(batches)), true) => {
                    let now = self.link.mono();
                    for batch in batches.batches {
                        self.publish(batch, now).await?;
                    }
                }
                (Some(Kind::Resolve(resolve)), true) => self.resolve(&resolve.namespaces),
                (None, true) => return Err(Error::new(ErrorCode::InvalidArgument).field("kind")),
            }
        }
    }

    async fn publish(&self, batch: v1::PublishBatch, now: Mono) -> Result<(), Error> {
        let client = RequestId(batch.request);
        let batches = match check(&self.link, batch) {
            Ok(batches) => batches,
            Err(error) => {
                self.metrics.refused_at_edge(&error);
                let refused = Box::new(Refused { error, map: None });
                self.outbox.push(Outgoing::Refused(client, refused));
                return Ok(());
            }
        };
        let sizes = batches.iter().map(|batch| batch.bytes().len());
        let first = self.window.begin(client, sizes, now);
        for (batch, number) in batches.into_iter().zip(first.0..) {
            let request = RequestId(number);
            let request = Request::Publish { request, batch };
            self.link.request(self.outbox.session(), request).await?;
        }
        Ok(())
    }

    fn resolve(&self, namespaces: &[String]) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for name in namespaces {
            match self.link.namespace(name) {
                Ok(entry) => found.push(NamedMap {
                    name: entry.namespace.name.clone(),
                    map: entry.map.clone(),
                }),
                Err(error) => missing.push(error),
            }
        }
        let maps = maps_to_proto(&found, &missing);
        self.outbox.push(Outgoing::Maps(Box::new(maps)));
    }
}

/// Checks what is to be published: a batch as it is, plain messages by making batches of them.
fn check(link: &Link, batch: v1::PublishBatch) -> Result<Vec<Checked<Batch>>, Error> {
    match batch.body {
        Some(Body::Batch(bytes)) => Ok(vec![Batch::check(bytes, link.limits())?]),
        Some(Body::Messages(messages)) => {
            let entry = link.namespace(&batch.namespace)?;
            encode(link, &entry, messages.messages)
        }
        None => Err(Error::new(ErrorCode::InvalidArgument)
            .field("body")
            .value("absent")
            .limit("batch or messages")),
    }
}

fn encode(
    link: &Link,
    entry: &Entry,
    messages: Vec<v1::Message>,
) -> Result<Vec<Checked<Batch>>, Error> {
    messages_to_batches(&entry.map, messages, link.now().wall.0, link.limits())
}

/// The stream of acks: each is translated when the connection takes it.
pub(super) struct Acks {
    link: Link,
    outbox: Taker,
    window: Arc<Window>,
    metrics: Arc<Metrics>,
    call: Call,
    /// Taken, but not yet sent: it does not go into a message of acks.
    next: Option<Answer>,
}

/// A message of the stream.
enum Message {
    Acks(AckList),
    Other(Answer),
}

impl Acks {
    /// Adds the ack of a batch, if it was the last of its request.
    fn ack(&self, acks: &mut AckList, now: Mono, batch: RequestId, result: Result<Ack, Refused>) {
        let Some(settled) = self.window.settle(batch, result) else {
            return;
        };
        let took = now.since(settled.since);
        self.metrics.publish_latency.observe(took.as_secs_f64());
        if let Some((client, result)) = settled.answer {
            acks.push(client, &result, |id| self.name_of(id));
        }
    }

    fn name_of(&self, id: NamespaceId) -> String {
        let entry = self.link.catalog().get(id).cloned();
        entry.map_or(String::new(), |entry| entry.namespace.name.clone())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, Error>>> {
        if let Some(answer) = self.next.take() {
            return Poll::Ready(Some(Ok(Message::Other(answer))));
        }
        let mut acks = AckList::default();
        let mut now = None;
        while acks.is_empty() || (acks.len() < ACKS_MAX && self.outbox.has_more()) {
            let item = match self.outbox.poll_take(cx) {
                Poll::Ready(Some(Ok(item))) => item,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            let other = match item {
                Outgoing::Reply(Reply::Acked { request, result }) => {
                    let now = *now.get_or_insert_with(|| self.link.mono());
                    self.ack(&mut acks, now, request, result);
                    continue;
                }
                Outgoing::Refused(request, refused) => {
                    acks.push(request, &Err(*refused), |id| self.name_of(id));
                    continue;
                }
                Outgoing::Hello(hello) => Answer::Hello(*hello),
                Outgoing::Maps(maps) => Answer::Maps(*maps),
                Outgoing::Reply(_) | Outgoing::Status(_) => continue,
            };
            if acks.is_empty() {
                return Poll::Ready(Some(Ok(Message::Other(other))));
            }
            self.next = Some(other);
            break;
        }
        Poll::Ready(Some(Ok(Message::Acks(acks))))
    }
}

impl Answers for Acks {
    fn poll_put(&mut self, cx: &mut Context<'_>, out: &mut Frames) -> Poll<ControlFlow<Status>> {
        self.poll(cx).map(|message| match message {
            Some(Ok(Message::Acks(acks))) => {
                out.begin(acks.message_len(), |out| acks.encode(out));
                ControlFlow::Continue(())
            }
            Some(Ok(Message::Other(kind))) => {
                out.message(&v1::PublishResponse { kind: Some(kind) });
                ControlFlow::Continue(())
            }
            Some(Err(error)) => ControlFlow::Break(self.call.status(&error)),
            None => ControlFlow::Break(Status::ok("")),
        })
    }
}

/// Stores one message, on a session of its own.
pub(super) async fn one(
    services: &Services,
    request: v1::PublishOneRequest,
) -> Result<v1::PublishOneResponse, Error> {
    let link = &services.link;
    link.check_up()?;
    let entry = link.namespace(&request.namespace)?;
    let message = request.message.ok_or_else(|| {
        Error::new(ErrorCode::InvalidArgument)
            .field("message")
            .value("absent")
    })?;
    let batch = encode(link, &entry, vec![message])
        .inspect_err(|error| services.metrics.refused_at_edge(error))?;
    let mut session = Taker::new(link.open(principal(), 0).await?);
    let begun = link.mono();
    let mut log = LogId::SYSTEM;
    for batch in batch {
        log = batch.log();
        let request = RequestId(0);
        let publish = Request::Publish { request, batch };
        link.request(session.session(), publish).await?;
    }
    let ack = loop {
        if let Outgoing::Reply(Reply::Acked { result, .. }) = session.take().await? {
            break result.map_err(|refused| refused.error)?;
        }
    };
    let took = link.mono().since(begun);
    services.metrics.publish_latency.observe(took.as_secs_f64());
    let next = ack.extent.next();
    let position = link
        .incarnation(log)
        .await?
        .map(|life| position_of(log, life, entry.map.epoch, next).to_string());
    Ok(v1::PublishOneResponse {
        sequence: ack.extent.first.0,
        appended_at_us: ack.appended.0,
        held: durability_to_proto(ack.held).into(),
        copies: ack.copies.into(),
        position: position.unwrap_or_default(),
    })
}
