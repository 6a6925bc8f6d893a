//! Subscribe: subscriptions and credit up; deliveries, gaps, marks and states down.
//!
//! A stream whose client grants no credit in Hello gets it back by itself: what the connection has
//! taken counts as consumed, so that HTTP/2's own flow control is the client's; until the client
//! sends its first Credit. A client that closes only its sending side goes on receiving.

use super::{Answers, Call, Services, epoch_of, hello_expected, principal, reading_error, welcome};
use crate::node::link::{Link, stopping};
use crate::node::outbox::{Outbox, Outgoing, Taker};
use crate::node::service::plain::Format;
use airmail_model::frame::{Generation, Reply, Request, State, SubscriptionId};
use airmail_model::{Error, ErrorCode, MapEpoch};
use airmail_proto::subscribe::{cost_of, reply_to_proto, status_to_proto, subscribe_from_proto};
use airmail_proto::v1;
use airmail_proto::v1::subscribe_request::Kind;
use airmail_proto::v1::subscribe_response::Kind as Answer;
use futures::Stream;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tonic::{Status, Streaming};
use tracing::Instrument as _;

/// What both sides of a stream know.
#[derive(Debug, Default)]
struct Shared {
    /// Credit comes back by itself.
    automatic: AtomicBool,
    format: Mutex<Format>,
}

impl Shared {
    fn with_format<T>(&self, look: impl FnOnce(&mut Format) -> T) -> T {
        let format = self.format.lock();
        look(&mut format.unwrap_or_else(PoisonError::into_inner))
    }
}

/// Begins a subscribe stream: reads Hello first, for the session's credit is in it.
pub(super) async fn stream(
    services: &Services,
    call: &Call,
    requests: Streaming<v1::SubscribeRequest>,
) -> Result<Answers<v1::SubscribeResponse>, Error> {
    let link = services.link.clone();
    let shared = Arc::new(Shared::default());
    let outbox = link.open(principal(), 0).await?;
    let reader = Reader {
        link: link.clone(),
        outbox: Arc::clone(&outbox),
        shared: Arc::clone(&shared),
    };
    let span = tracing::info_span!("subscribe", request_id = call.request_id);
    services.tasks.spawn(reader.read(requests).instrument(span));
    Ok(Box::pin(Deliveries {
        link,
        outbox: Taker::new(outbox),
        shared,
        call: call.clone(),
    }))
}

/// Reads a stream's requests.
struct Reader {
    link: Link,
    outbox: Arc<Outbox>,
    shared: Arc<Shared>,
}

impl Reader {
    async fn read(self, mut requests: Streaming<v1::SubscribeRequest>) {
        let end = tokio::select! {
            biased;
            () = self.outbox.gone() => return,
            () = self.link.stop().cancelled() => Err(stopping()),
            end = self.take_all(&mut requests) => end,
        };
        match end {
            Err(error) => self.outbox.end(Err(error)),
            // The client has nothing more to ask, and goes on receiving until it hangs up.
            Ok(()) => tokio::select! {
                () = self.outbox.gone() => {}
                () = self.link.stop().cancelled() => self.outbox.end(Err(stopping())),
            },
        }
    }

    async fn take_all(&self, requests: &mut Streaming<v1::SubscribeRequest>) -> Result<(), Error> {
        let mut greeted = false;
        loop {
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
                    self.greet(&hello).await?;
                    greeted = true;
                }
                (Some(Kind::Hello(_)), true) => return Err(hello_expected("a second hello")),
                (_, false) => return Err(hello_expected("a request before hello")),
                (Some(Kind::Add(add)), true) => self.add(&add).await?,
                (Some(Kind::Remove(remove)), true) => {
                    let subscription = SubscriptionId(remove.subscription);
                    self.ask(Request::Remove { subscription }).await?;
                }
                (Some(Kind::Credit(credit)), true) => {
                    self.shared.automatic.store(false, Ordering::Relaxed);
                    let bytes = credit.bytes;
                    self.ask(Request::Credit { bytes }).await?;
                }
                (Some(Kind::Ack(_)), true) => return Err(Error::unimplemented("ack")),
                (None, true) => return Err(Error::new(ErrorCode::InvalidArgument).field("kind")),
            }
        }
    }

    async fn greet(&self, hello: &v1::ClientHello) -> Result<(), Error> {
        let answer = welcome(&self.link, hello)?;
        let automatic = hello.credit_bytes == 0;
        self.shared.automatic.store(automatic, Ordering::Relaxed);
        let bytes = match hello.credit_bytes {
            0 => self.link.limits().credit_bytes,
            granted => granted,
        };
        self.outbox.push(Outgoing::Hello(answer));
        self.ask(Request::Credit { bytes }).await
    }

    async fn add(&self, add: &v1::Add) -> Result<(), Error> {
        let id_of = |name: &str| {
            let entry = self.link.namespace(name);
            entry.ok().map(|entry| entry.namespace.id)
        };
        match subscribe_from_proto(add, self.link.limits(), id_of) {
            Ok(subscribe) => {
                self.shared
                    .with_format(|format| format.add(add.batches, &subscribe));
                self.ask(Request::Add(subscribe)).await
            }
            Err(error) => {
                let (subscription, generation) =
                    (SubscriptionId(add.subscription), Generation(add.generation));
                let failed = State::Failed(error);
                let status = status_to_proto(subscription, generation, &failed, MapEpoch(0));
                self.outbox.push(Outgoing::Status(status));
                Ok(())
            }
        }
    }

    async fn ask(&self, request: Request) -> Result<(), Error> {
        self.link.request(self.outbox.session(), request).await
    }
}

/// The stream of deliveries: each is translated when the connection takes it.
struct Deliveries {
    link: Link,
    outbox: Taker,
    shared: Arc<Shared>,
    call: Call,
}

impl Deliveries {
    fn translate(&self, reply: &Reply) -> Option<v1::SubscribeResponse> {
        let epoch_of = |id| epoch_of(&self.link, id);
        if let Reply::Delivery { body, .. } = reply
            && self.shared.automatic.load(Ordering::Relaxed)
        {
            self.outbox.return_credit(cost_of(body));
        }
        self.shared.with_format(|format| match format {
            Format::Plain(plain) => plain.translate(reply, epoch_of),
            Format::Unknown | Format::Batches => reply_to_proto(reply, epoch_of),
        })
    }
}

impl Stream for Deliveries {
    type Item = Result<v1::SubscribeResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let item = match self.outbox.poll_take(cx) {
                Poll::Ready(Some(Ok(item))) => item,
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(self.call.status(&error))));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            let response = match item {
                Outgoing::Reply(reply) => self.translate(&reply),
                Outgoing::Hello(hello) => Some(v1::SubscribeResponse {
                    kind: Some(Answer::Hello(hello)),
                }),
                Outgoing::Status(status) => Some(v1::SubscribeResponse {
                    kind: Some(Answer::Status(status)),
                }),
                Outgoing::Maps(_) | Outgoing::Ack(_) => None,
            };
            if let Some(response) = response {
                return Poll::Ready(Some(Ok(response)));
            }
        }
    }
}
