//! Gives what tonic refuses by itself an error of the table.
//!
//! A unary request that is too large, malformed or compressed is refused by the codec, and one that no
//! service has by the generated code, before any handler sees it, each with a status of its own; this
//! layer puts ours in its place. On streams the handler does it.

use crate::shard_handle::ShardHandle;
use airmail_model::{Error, ErrorCode};
use airmail_proto::error::{status_from_error, unread_error};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::{Code, Status};

/// Where the requests of mailboxes are.
const MAILBOX: &str = "/airmail.v1.Mailbox/";

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct TonicErrors<S> {
    inner: S,
    handle: ShardHandle,
}

impl<S> TonicErrors<S> {
    pub(crate) fn new(inner: S, handle: ShardHandle) -> TonicErrors<S> {
        TonicErrors { inner, handle }
    }
}

impl<S, Body, Reply> Service<Request<Body>> for TonicErrors<S>
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
        let handle = self.handle.clone();
        let uri = request.uri().clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            let status = Status::from_header_map(response.headers());
            let refused = status.and_then(|status| {
                let frame_bytes = handle.limits().frame_bytes;
                let error = refusal(&status, uri.path(), frame_bytes)?;
                Some((error, status))
            });
            Ok(match refused {
                None => response,
                Some((error, theirs)) => {
                    let request_id = handle.request_id();
                    tracing::info!(request_id, %error, "request refused");
                    let mut ours = status_from_error(&error, &request_id);
                    // Such as what is spoken, after what is not.
                    *ours.metadata_mut() = theirs.metadata().clone();
                    ours.into_http()
                }
            })
        })
    }
}

/// The table's error for a status that tonic has made.
fn refusal(status: &Status, path: &str, frame_bytes: u32) -> Option<Error> {
    let unread = unread_error(status, frame_bytes);
    if unread.is_some() || status.code() != Code::Unimplemented || !status.details().is_empty() {
        return unread;
    }
    Some(match path.strip_prefix(MAILBOX) {
        Some(request) => Error::new(ErrorCode::UnknownRequestType)
            .field("request")
            .value(request),
        None => Error::unimplemented("request").value(path),
    })
}
