//! Gives what tonic refuses by itself an error of the table.
//!
//! A unary request that is too large is refused by the codec, and one that no service has by the
//! generated code, before any handler sees it, each with a status of its own; this layer puts ours
//! in its place. On streams the handler does it.

use super::link::Link;
use airmail_model::{Error, ErrorCode};
use airmail_proto::error::{is_oversize, oversize_error, status_from_error};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response, Uri};
use tonic::{Code, Status};

/// Where the requests of mailboxes are.
const MAILBOX: &str = "/airmail.v1.Mailbox/";

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct Refusals<S> {
    inner: S,
    link: Link,
}

impl<S> Refusals<S> {
    pub(crate) fn new(inner: S, link: Link) -> Refusals<S> {
        Refusals { inner, link }
    }
}

impl<S, Body, Reply> Service<Request<Body>> for Refusals<S>
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
        let link = self.link.clone();
        let of_mailbox = request.uri().path().starts_with(MAILBOX);
        let uri = of_mailbox.then(|| request.uri().clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            let status = Status::from_header_map(response.headers());
            let refused = status.and_then(|status| {
                let frame_bytes = link.limits().frame_bytes;
                let path = uri.as_ref().map(Uri::path);
                let request = path.and_then(|path| path.strip_prefix(MAILBOX));
                refusal(&status, request, frame_bytes)
            });
            Ok(match refused {
                None => response,
                Some(error) => {
                    let request_id = link.request_id();
                    tracing::info!(request_id, %error, "request refused");
                    status_from_error(&error, &request_id).into_http()
                }
            })
        })
    }
}

/// The table's error for a status that tonic has made.
fn refusal(status: &Status, mailbox_request: Option<&str>, frame_bytes: u32) -> Option<Error> {
    if is_oversize(status) {
        return Some(oversize_error(status.message(), frame_bytes));
    }
    // A handler's own refusals have details.
    let unknown = status.code() == Code::Unimplemented && status.details().is_empty();
    let request = mailbox_request.filter(|_| unknown)?;
    let error = Error::new(ErrorCode::UnknownRequestType).field("request");
    Some(error.value(request))
}
