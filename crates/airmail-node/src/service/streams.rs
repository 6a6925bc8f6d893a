//! Finds the two calls that stream batches; every other goes on to tonic's routes. What the first
//! call is for says where the connection is served from then on.

use super::{Call, Services, publish, reading_error, subscribe};
use crate::grpc::replies::response;
use crate::grpc::requests::Requests;
use crate::roaming::Whereabouts;
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
pub(crate) struct Streams<S> {
    services: Services,
    others: S,
    whereabouts: Arc<Whereabouts>,
}

impl<S> Streams<S> {
    pub(crate) fn new(services: Services, others: S, whereabouts: Arc<Whereabouts>) -> Streams<S> {
        Streams {
            services,
            others,
            whereabouts,
        }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<S, B> Service<Request<B>> for Streams<S>
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

    fn call(&mut self, request: Request<B>) -> Answer {
        self.whereabouts.beginning().begin();
        let path = request.uri().path();
        if path.starts_with(MAILBOX) {
            self.whereabouts.ask_for_mailboxes();
            return self.others.call(request);
        }
        let services = self.services.clone();
        match path {
            PUBLISH => {
                self.whereabouts.stay();
                Box::pin(async move {
                    let answer = begin_publish(&services, request).await;
                    Ok(answer.unwrap_or_else(Status::into_http))
                })
            }
            SUBSCRIBE => {
                self.whereabouts.stay();
                Box::pin(async move {
                    let answer = begin_subscribe(&services, request).await;
                    Ok(answer.unwrap_or_else(Status::into_http))
                })
            }
            _ => self.others.call(request),
        }
    }
}

async fn begin_publish<B>(
    services: &Services,
    request: Request<B>,
) -> Result<Response<Body>, Status>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    let call = services.call("Publish");
    let requests = requests(services, &call, request)?;
    let acks = publish::stream(services, &call, requests).await;
    acks.map(response).map_err(|error| call.status(&error))
}

async fn begin_subscribe<B>(
    services: &Services,
    request: Request<B>,
) -> Result<Response<Body>, Status>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    let call = services.call("Subscribe");
    let requests = requests(services, &call, request)?;
    let deliveries = subscribe::stream(services, &call, requests).await;
    deliveries
        .map(response)
        .map_err(|error| call.status(&error))
}

fn requests<M, B>(
    services: &Services,
    call: &Call,
    request: Request<B>,
) -> Result<Requests<M>, Status>
where
    M: prost::Message + Default,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    let (head, body) = request.into_parts();
    let limit = services.link.limits().frame_bytes as usize;
    let requests = Requests::new(&head.headers, Body::new(body), limit);
    requests.map_err(|refused| match reading_error(&services.link, &refused) {
        // With what is spoken, which the status tells beside its error.
        Some(error) => {
            let mut status = call.status(&error);
            *status.metadata_mut() = refused.metadata().clone();
            status
        }
        None => refused,
    })
}
