//! The calls of one connection, each with the identity of its client. The two that stream batches are
//! answered here; every other goes on to tonic's routes. What the first call is for says where the
//! connection is served from then on.

use super::request_body::RequestBody;
use super::response_body::response;
use super::{Call, Services, publish, reading_error, subscribe};
use crate::runtime::connection_migration::Home;
use airmail_broker::Principal;
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

    fn for_a_stream(&self) -> (Services, Principal) {
        (self.services.clone(), Principal::clone(&self.principal))
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<S, B> Service<Request<B>> for ConnectionCalls<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible, Future = Answer>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.others.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Answer {
        self.home.first_request().note();
        let path = request.uri().path();
        if path.starts_with(MAILBOX) {
            self.home.ask_for_mailboxes();
        } else if path == PUBLISH {
            self.home.stay();
            let (services, principal) = self.for_a_stream();
            return Box::pin(async move {
                let answer = begin_publish(&services, principal, request).await;
                Ok(answer.unwrap_or_else(Status::into_http))
            });
        } else if path == SUBSCRIBE {
            self.home.stay();
            let (services, principal) = self.for_a_stream();
            return Box::pin(async move {
                let answer = begin_subscribe(&services, principal, request).await;
                Ok(answer.unwrap_or_else(Status::into_http))
            });
        }
        let principal = Arc::clone(&self.principal);
        request.extensions_mut().insert(principal);
        self.others.call(request)
    }
}

async fn begin_publish<B>(
    services: &Services,
    principal: Principal,
    request: Request<B>,
) -> Result<Response<Body>, Status>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    let call = services.call("Publish");
    let requests = requests(services, &call, request)?;
    let acks = publish::stream(services, &call, principal, requests).await;
    acks.map(response).map_err(|error| call.status(&error))
}

async fn begin_subscribe<B>(
    services: &Services,
    principal: Principal,
    request: Request<B>,
) -> Result<Response<Body>, Status>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    let call = services.call("Subscribe");
    let requests = requests(services, &call, request)?;
    let deliveries = subscribe::stream(services, &call, principal, requests).await;
    deliveries
        .map(response)
        .map_err(|error| call.status(&error))
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
