//! Subscribe: subscriptions and credit up; deliveries, gaps, marks and states down.
//!
//! A stream whose client grants no credit in Hello gets it back by itself: what the connection has taken
//! counts as consumed, so that HTTP/2's own flow control is the client's; until the client sends its first
//! Credit. A client that closes only its sending side goes on receiving.

use super::Call;
use super::connection_calls::StreamCall;
use super::plain_messages::Format;
use super::publish::hello_from_proto;
use super::request_body::RequestBody;
use super::response_body::{Answers, Frames, SHARED_BYTES_MIN};
use crate::frontdoor::session::{SessionEvents, SessionRequests};
use crate::frontdoor::{AfterRequests, RequestSource, SubscribeRefusal};
use crate::send_queue::Event;
use airmail_model::frame::{
    Credit, Delivered, Delivery, Generation, Hello, Reply, State, SubscriptionId,
};
use airmail_model::{Error, ErrorCode, MapEpoch, Mono};
use airmail_proto::hello::{alive_to_proto, nodes_to_proto, welcome_to_proto};
use airmail_proto::subscribe::{
    DeliveryHead, change_from_proto, reply_to_proto, status_to_proto, subscribe_from_proto,
};
use airmail_proto::v1;
use airmail_proto::v1::subscribe_request::Kind;
use airmail_proto::v1::subscribe_response::Kind as Answer;
use bytes::BufMut as _;
use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tonic::Status;

/// The call Subscribe: a stream of subscriptions and a stream of deliveries.
pub(super) enum Subscribe {}

impl StreamCall for Subscribe {
    const NAME: &'static str = "Subscribe";
    const AFTER_REQUESTS: AfterRequests = AfterRequests::Receive;
    type Request = v1::SubscribeRequest;
    type Source = Subscriptions;
    type Answers = Deliveries;

    fn halves(
        call: Call,
        requests: RequestBody<v1::SubscribeRequest>,
        events: SessionEvents,
    ) -> (Subscriptions, Deliveries) {
        let format = Arc::new(Mutex::new(Format::default()));
        let subscriptions = Subscriptions {
            requests,
            format: Arc::clone(&format),
            request_id: call.request_id.clone(),
            protocol: 0,
        };
        let deliveries = Deliveries {
            events,
            format,
            call,
        };
        (subscriptions, deliveries)
    }
}

/// The requests of a stream.
pub(super) struct Subscriptions {
    requests: RequestBody<v1::SubscribeRequest>,
    format: Arc<Mutex<Format>>,
    request_id: String,
    /// The protocol version that is spoken; 0 before Hello.
    protocol: u32,
}

impl RequestSource for Subscriptions {
    async fn do_next(&mut self, session: &SessionRequests) -> Result<ControlFlow<()>, Error> {
        let Some(request) = self.requests.next(session.door()).await? else {
            return Ok(ControlFlow::Break(()));
        };
        // Apart, so that a stream that says nothing does not hold room for what it might say.
        if let Some(kind) = request.kind {
            Box::pin(self.ask(session, kind)).await?;
            return Ok(ControlFlow::Continue(()));
        }
        session.is_greeted()?;
        Err(Error::new(ErrorCode::InvalidArgument).field("kind"))
    }
}

impl Subscriptions {
    async fn ask(&mut self, session: &SessionRequests, kind: Kind) -> Result<(), Error> {
        match kind {
            Kind::Hello(hello) => {
                session.is_new()?;
                let credit = match hello.credit_bytes {
                    0 => Credit::Automatic,
                    bytes => Credit::Bytes(bytes),
                };
                let hello = hello_from_proto(&self.request_id, hello, credit)?;
                session.hello(&hello).await?;
                self.protocol = hello.protocol;
            }
            Kind::Add(add) => self.add(session, &add).await?,
            Kind::Remove(remove) => session.remove(SubscriptionId(remove.subscription)).await?,
            Kind::Credit(credit) => session.credit(credit.bytes).await?,
            Kind::AskClock(ask) => session.ask_clock(Mono(ask.asked_ns)).await?,
            Kind::Change(change) => self.change(session, &change).await?,
            Kind::Ack(_) => {
                session.is_greeted()?;
                return Err(Error::unimplemented("ack"));
            }
        }
        Ok(())
    }

    async fn change(
        &mut self,
        session: &SessionRequests,
        change: &v1::Change,
    ) -> Result<(), Error> {
        session.is_greeted()?;
        match change_from_proto(change) {
            Ok(change) => session.change(change).await?,
            Err(error) => {
                let subscription = SubscriptionId(change.subscription);
                let generation = Generation(change.generation);
                session.refuse_change(subscription, generation, error);
            }
        }
        Ok(())
    }

    async fn add(&mut self, session: &SessionRequests, add: &v1::Add) -> Result<(), Error> {
        session.is_greeted()?;
        let door = session.door();
        let knows_lanes = self.knows_lanes(add);
        let wanted = knows_lanes.and_then(|()| {
            subscribe_from_proto(add, door.limits(), |name| door.namespace_id(name))
        });
        match wanted {
            Ok(subscribe) => {
                self.format.lock().add(add.batches, &subscribe);
                session.add(subscribe).await?;
            }
            Err(error) => {
                let subscription = SubscriptionId(add.subscription);
                let generation = Generation(add.generation);
                let refusal = SubscribeRefusal::Unacceptable(error);
                session.refuse_subscription(subscription, generation, refusal);
            }
        }
        Ok(())
    }
}

impl Subscriptions {
    /// Whether the client takes what it is given of lane high. One that reads batches and is from before there were lanes
    /// would drop it, and tell nobody.
    fn knows_lanes(&self, add: &v1::Add) -> Result<(), Error> {
        if !add.batches || self.protocol >= Hello::PROTOCOL_LANES {
            return Ok(());
        }
        Err(Error::new(ErrorCode::ProtocolUnsupported)
            .field("protocol_max")
            .value(self.protocol)
            .limit(format!("at least {}, for batches", Hello::PROTOCOL_LANES)))
    }
}

/// The stream of deliveries: each is translated when the connection takes it.
pub(super) struct Deliveries {
    events: SessionEvents,
    format: Arc<Mutex<Format>>,
    call: Call,
}

impl Deliveries {
    fn put(&self, reply: &Reply, out: &mut Frames) {
        let epoch_of = |id| self.events.door().epoch_of(id);
        let message = match (&mut *self.format.lock(), reply) {
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
    let length = head.message_len();
    let copied = match &delivery.body {
        Delivered::Whole(batch) if batch.bytes().len() >= SHARED_BYTES_MIN => head.bytes().len(),
        _ => length.min(SHARED_BYTES_MIN),
    };
    out.begin(length, copied, |out| out.put_slice(head.bytes()));
    match &delivery.body {
        Delivered::Whole(batch) => out.share(batch.bytes()),
        Delivered::Slice(slice) => slice.parts().for_each(|part| out.share(part)),
    }
    if !head.tail().is_empty() {
        out.share(head.tail());
    }
}

impl Answers for Deliveries {
    fn poll_put(&mut self, cx: &mut Context<'_>, out: &mut Frames) -> Poll<ControlFlow<Status>> {
        let event = match ready!(self.events.poll_next(cx)) {
            Some(Ok(event)) => event,
            Some(Err(error)) => {
                return Poll::Ready(ControlFlow::Break(self.call.status(&error)));
            }
            None => return Poll::Ready(ControlFlow::Break(Status::ok(""))),
        };
        let kind = match event {
            Event::Reply(reply) => {
                self.put(&reply, out);
                return Poll::Ready(ControlFlow::Continue(()));
            }
            Event::Welcome(welcome) => Answer::Hello(welcome_to_proto(&welcome)),
            Event::Alive(within) => Answer::Alive(alive_to_proto(within)),
            Event::Nodes(nodes) => Answer::Nodes(nodes_to_proto(&nodes)),
            Event::NotAdded(not) => {
                let failed = State::Failed(not.refusal.into());
                let (subscription, generation) = (not.subscription, not.generation);
                let status = status_to_proto(subscription, generation, &failed, MapEpoch(0));
                Answer::Status(status)
            }
            // A session that only subscribes is told nothing else.
            Event::Maps(_) | Event::PublishRefused(..) => {
                return Poll::Ready(ControlFlow::Continue(()));
            }
        };
        out.message(&v1::SubscribeResponse { kind: Some(kind) });
        Poll::Ready(ControlFlow::Continue(()))
    }
}
