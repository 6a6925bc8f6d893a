//! Subscribe: subscriptions and credit up; deliveries, gaps, marks and states down.
//!
//! A stream whose client grants no credit in Hello gets it back by itself: what the connection has
//! taken counts as consumed, so that HTTP/2's own flow control is the client's; until the client
//! sends its first Credit. A client that closes only its sending side goes on receiving.

use super::{Call, Services, epoch_of, hello_expected, principal, reading_error, welcome};
use crate::beside::beside;
use crate::grpc::replies::{Answers, Frames};
use crate::grpc::requests::Requests;
use crate::link::{Link, stopping};
use crate::outbox::{Outbox, Outgoing, Over, Taker};
use crate::service::plain::Format;
use airmail_model::frame::{
    Delivered, Delivery, Generation, Reply, Request, State, SubscriptionId,
};
use airmail_model::{Error, ErrorCode, MapEpoch};
use airmail_proto::subscribe::{
    DeliveryHead, reply_to_proto, status_to_proto, subscribe_from_proto,
};
use airmail_proto::v1;
use airmail_proto::v1::subscribe_request::Kind;
use airmail_proto::v1::subscribe_response::Kind as Answer;
use bytes::BufMut as _;
use futures::future::Either;
use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tonic::Status;

/// What both sides of a stream know.
#[derive(Debug, Default)]
struct Shared {
    /// Credit comes back by itself.
    automatic: AtomicBool,
    format: Mutex<Format>,
}

/// Begins a subscribe stream: reads Hello first, for the session's credit is in it.
pub(super) async fn stream(
    services: &Services,
    call: &Call,
    requests: Requests<v1::SubscribeRequest>,
) -> Result<Deliveries, Error> {
    let link = services.link.clone();
    let shared = Arc::new(Shared::default());
    let outbox = link.open(principal(), 0).await?;
    let reader = Reader {
        link: link.clone(),
        outbox: Arc::clone(&outbox),
        shared: Arc::clone(&shared),
        request_id: call.request_id.clone(),
    };
    services.tasks.spawn(reader.read(requests));
    Ok(Deliveries {
        link,
        outbox: Taker::new(outbox),
        shared,
        call: call.clone(),
    })
}

/// Reads a stream's requests.
struct Reader {
    link: Link,
    outbox: Arc<Outbox>,
    shared: Arc<Shared>,
    request_id: String,
}

impl Reader {
    async fn read(self, mut requests: Requests<v1::SubscribeRequest>) {
        let over = self.outbox.over(self.link.stop());
        let end = match beside(over, self.take_all(&mut requests)).await {
            Either::Left(Over::Gone) => return,
            Either::Left(Over::Stopping) => Err(stopping()),
            Either::Right(end) => end,
        };
        match end {
            Err(error) => self.outbox.end(Err(error)),
            // The client has nothing more to ask, and goes on receiving until it hangs up.
            Ok(()) => match self.outbox.over(self.link.stop()).await {
                Over::Gone => {}
                Over::Stopping => self.outbox.end(Err(stopping())),
            },
        }
    }

    async fn take_all(&self, requests: &mut Requests<v1::SubscribeRequest>) -> Result<(), Error> {
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
            // Apart, so that a stream that says nothing does not hold room for what it might say.
            if let Some(kind) = request.kind {
                Box::pin(self.take(kind, &mut greeted)).await?;
            } else if greeted {
                return Err(Error::new(ErrorCode::InvalidArgument).field("kind"));
            } else {
                return Err(hello_expected("a request before hello"));
            }
        }
    }

    async fn take(&self, kind: Kind, greeted: &mut bool) -> Result<(), Error> {
        match kind {
            Kind::Hello(_) if *greeted => Err(hello_expected("a second hello")),
            Kind::Hello(hello) => {
                *greeted = true;
                self.greet(&hello).await
            }
            _ if !*greeted => Err(hello_expected("a request before hello")),
            Kind::Add(add) => self.add(&add).await,
            Kind::Remove(remove) => {
                let subscription = SubscriptionId(remove.subscription);
                self.ask(Request::Remove { subscription }).await
            }
            Kind::Credit(credit) => {
                self.shared.automatic.store(false, Ordering::Relaxed);
                let bytes = credit.bytes;
                self.ask(Request::Credit { bytes }).await
            }
            Kind::Ack(_) => Err(Error::unimplemented("ack")),
        }
    }

    async fn greet(&self, hello: &v1::ClientHello) -> Result<(), Error> {
        let answer = welcome(&self.link, &self.request_id, hello)?;
        let automatic = hello.credit_bytes == 0;
        self.shared.automatic.store(automatic, Ordering::Relaxed);
        let bytes = match hello.credit_bytes {
            0 => self.link.limits().credit_bytes,
            granted => granted,
        };
        self.outbox.push(Outgoing::Hello(Box::new(answer)));
        self.ask(Request::Credit { bytes }).await
    }

    async fn add(&self, add: &v1::Add) -> Result<(), Error> {
        let id_of = |name: &str| {
            let entry = self.link.namespace(name);
            entry.ok().map(|entry| entry.namespace.id)
        };
        match subscribe_from_proto(add, self.link.limits(), id_of) {
            Ok(subscribe) => {
                self.shared.format.lock().add(add.batches, &subscribe);
                self.ask(Request::Add(subscribe)).await
            }
            Err(error) => {
                let (subscription, generation) =
                    (SubscriptionId(add.subscription), Generation(add.generation));
                let failed = State::Failed(error);
                let status = status_to_proto(subscription, generation, &failed, MapEpoch(0));
                self.outbox.push(Outgoing::Status(Box::new(status)));
                Ok(())
            }
        }
    }

    async fn ask(&self, request: Request) -> Result<(), Error> {
        self.link.request(self.outbox.session(), request).await
    }
}

/// The stream of deliveries: each is translated when the connection takes it.
pub(super) struct Deliveries {
    link: Link,
    outbox: Taker,
    shared: Arc<Shared>,
    call: Call,
}

impl Deliveries {
    fn put(&self, reply: &Reply, out: &mut Frames) {
        if let Reply::Delivery(delivery) = reply
            && self.shared.automatic.load(Ordering::Relaxed)
        {
            self.outbox.return_credit(delivery.body.cost());
        }
        let epoch_of = |id| epoch_of(&self.link, id);
        let message = match (&mut *self.shared.format.lock(), reply) {
            (Format::Plain(plain), _) => plain.translate(reply, epoch_of),
            (_, Reply::Delivery(delivery)) => {
                put_shared(delivery, out);
                None
            }
            _ => reply_to_proto(reply, epoch_of),
        };
        if let Some(message) = message {
            out.message(&message);
        }
    }
}

/// A delivery as it is stored: a head of its own, and memory that all subscribers share.
fn put_shared(delivery: &Delivery, out: &mut Frames) {
    let head = DeliveryHead::new(delivery);
    out.begin(head.message_len(), |out| out.put_slice(head.bytes()));
    match &delivery.body {
        Delivered::Whole(batch) => out.share(batch.bytes()),
        Delivered::Slice(slice) => slice.parts().for_each(|part| out.share(part)),
    }
}

impl Answers for Deliveries {
    fn poll_put(&mut self, cx: &mut Context<'_>, out: &mut Frames) -> Poll<ControlFlow<Status>> {
        let item = match self.outbox.poll_take(cx) {
            Poll::Ready(Some(Ok(item))) => item,
            Poll::Ready(Some(Err(error))) => {
                return Poll::Ready(ControlFlow::Break(self.call.status(&error)));
            }
            Poll::Ready(None) => return Poll::Ready(ControlFlow::Break(Status::ok(""))),
            Poll::Pending => return Poll::Pending,
        };
        let kind = match item {
            Outgoing::Reply(reply) => {
                self.put(&reply, out);
                None
            }
            Outgoing::Hello(hello) => Some(Answer::Hello(*hello)),
            Outgoing::Status(status) => Some(Answer::Status(*status)),
            Outgoing::Maps(_) | Outgoing::Refused(..) => None,
        };
        if kind.is_some() {
            out.message(&v1::SubscribeResponse { kind });
        }
        Poll::Ready(ControlFlow::Continue(()))
    }
}
