//! Gives a unary request that is too large for the node's codec an error of the table.
//!
//! The codec refuses such a request before any handler sees it, with a status of its own; this
//! layer puts ours in its place. On streams the handler does it.

use super::link::Link;
use airmail_proto::error::{is_oversize, oversize_error, status_from_error};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct Oversize<S> {
    inner: S,
    link: Link,
    frame_bytes: u32,
}

impl<S> Oversize<S> {
    pub(crate) fn new(inner: S, link: Link, frame_bytes: u32) -> Oversize<S> {
        Oversize {
            inner,
            link,
            frame_bytes,
        }
    }
}

impl<S, Body, Reply> Service<Request<Body>> for Oversize<S>
where
    S: Service<Request<Body>, Response = Response<Reply>>,
    S::Future: Send + 'static,
    Reply: Default,
{
    type Response = Response<Reply>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Reply>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (link, frame_bytes) = (self.link.clone(), self.frame_bytes);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            let refused = Status::from_header_map(response.headers()).filter(is_oversize);
            Ok(match refused {
                None => response,
                Some(status) => {
                    let error = oversize_error(status.message(), frame_bytes);
                    let request_id = link.request_id();
                    tracing::info!(request_id, value = error.found(), "request too large");
                    status_from_error(&error, &request_id).into_http()
                }
            })
        })
    }
}
