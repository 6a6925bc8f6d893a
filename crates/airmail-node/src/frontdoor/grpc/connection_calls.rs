//! The calls of one connection, each with the identity of its client. The two that stream batches are
//! answered here; every other goes on to tonic's routes. What the first call is for says where the
//! connection is served from then on.

use super::publish::Publish;
use super::request_body::RequestBody;
use super::response_body::{AnswerBody, Answers, from_tonic, response};
use super::subscribe::Subscribe;
use super::{Call, Services, reading_error};
use crate::frontdoor::session::{self, SessionEvents};
use crate::frontdoor::{AfterRequests, RequestSource};
use crate::runtime::connection_migration::Home;
use airmail_broker::Principal;
use airmail_model::Error;
use bytes::Bytes;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{Body as HttpBody, Service, StdError};

const PUBLISH: &str = "/airmail.v1.Airmail/Publish";
const SUBSCRIBE: &str = "/airmail.v1.Airmail/Subscribe";
const MAILBOX: &str = "/airmail.v1.Mailbox/";

/// A call whose requests and answers are streams, on a session of its own.
pub(super) trait StreamCall: 'static {
    /// Its name, as errors tell it.
    const NAME: &'static str;
    /// The way on when its client asks for nothing more.
    const AFTER_REQUESTS: AfterRequests;
    /// A message of its client.
    type Request: prost::Message + Default;
    /// The half that does what the client asks.
    type Source: RequestSource + 'static;
    /// The half that translates what the session has to tell.
    type Answers: Answers;

    /// Makes both halves.
    fn halves(
        call: Call,
        requests: RequestBody<Self::Request>,
        events: SessionEvents,
    ) -> (Self::Source, Self::Answers);
}

/// See the module's documentation.
#[derive(Clone)]
pub(super) struct ConnectionCalls<S> {
    services: Services,
    others: S,
    /// The client at the other end.
    principal: Arc<Principal>,
    home: Arc<Home>,
}

impl<S> ConnectionCalls<S> {
    pub(super) fn new(
        services: Services,
        others: S,
        principal: Arc<Principal>,
        home: Arc<Home>,
    ) -> ConnectionCalls<S> {
        ConnectionCalls {
            services,
            others,
            principal,
            home,
        }
    }

    /// Answers one of the calls that stream batches.
    fn stream<C: StreamCall, B>(&self, request: Request<B>) -> Answer<AnswerBody>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<StdError>,
    {
        self.home.stay();
        let services = self.services.clone();
        let principal = Principal::clone(&self.principal);
        Box::pin(async move {
            let answer = begin::<C, B>(&services, principal, request).await;
            Ok(answer.unwrap_or_else(|status| status.into_http().map(from_tonic)))
        })
    }
}

type Answer<B> = Pin<Box<dyn Future<Output = Result<Response<B>, Infallible>> + Send>>;

impl<S, B> Service<Request<B>> for ConnectionCalls<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible, Future = Answer<Body>>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Answer<AnswerBody>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.others.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Answer<AnswerBody> {
        self.home.first_request().note();
        let path = request.uri().path();
        if path.starts_with(MAILBOX) {
            self.home.ask_for_mailboxes();
        } else if path == PUBLISH {
            return self.stream::<Publish, B>(request);
        } else if path == SUBSCRIBE {
            return self.stream::<Subscribe, B>(request);
        }
        let principal = Arc::clone(&self.principal);
        request.extensions_mut().insert(principal);
        let answer = self.others.call(request);
        Box::pin(async move { Ok(answer.await?.map(from_tonic)) })
    }
}

/// Begins a stream: opens its session, and has its requests read.
async fn begin<C: StreamCall, B>(
    services: &Services,
    principal: Principal,
    request: Request<B>,
) -> Result<Response<AnswerBody>, Status>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    let call = services.call(C::NAME);
    let requests = requests(services, &call, request)?;
    let opened = session::open(&services.door, principal).await;
    let (session, events) = opened.map_err(|error| call.status(&Error::from(error)))?;
    let (source, answers) = C::halves(call, requests, events);
    let reading = session.read(source, C::AFTER_REQUESTS);
    services.door.tasks().spawn(reading);
    Ok(response(answers))
}

fn requests<M, B>(
    services: &Services,
    call: &Call,
    request: Request<B>,
) -> Result<RequestBody<M>, Status>
where
    M: prost::Message + Default,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    let (head, body) = request.into_parts();
    let limit = services.door.limits().frame_bytes as usize;
    let requests = RequestBody::new(&head.headers, Body::new(body), limit);
    requests.map_err(|refused| match reading_error(&services.door, &refused) {
        // With what is spoken, which the status tells beside its error.
        Some(error) => {
            let mut status = call.status(&error);
            *status.metadata_mut() = refused.metadata().clone();
            status
        }
        None => refused,
    })
}
