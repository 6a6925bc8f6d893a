//! The responses of a stream, read below tonic's codec: a delivery is used where HTTP/2 has put it,
//! and not copied.

use airmail_proto::error::NOT_GRPC;
use airmail_proto::framing::Deframer;
use bytes::Bytes;
use prost::Message;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};
use tonic::body::Body;
use tonic::codegen::{Body as _, http};
use tonic::{Code, Status};

/// Watch over a node that has said how often it says something.
///
/// It counts times in which nothing came while somebody waited for it, rather than reading a clock for each
/// message. A client that was itself stopped counts one such time, however long it was: what came meanwhile is read
/// first.
struct SilenceWatch {
    within: Duration,
    missed_max: u32,
    missed: u32,
    heard: bool,
    timer: Pin<Box<Sleep>>,
}

impl SilenceWatch {
    /// Ready when the node is silent.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if std::mem::take(&mut self.heard) {
                self.missed = 0;
            } else {
                self.missed += 1;
            }
            if self.missed >= self.missed_max {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(Instant::now() + self.within);
        }
    }
}

/// Messages of type `M` that a node sends on a stream.
pub(crate) struct ResponseStream<M> {
    body: Body,
    frames: Deframer,
    silence: Option<SilenceWatch>,
    message: PhantomData<fn() -> M>,
}

impl<M> fmt::Debug for ResponseStream<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseStream").finish_non_exhaustive()
    }
}

impl<M: Message + Default> ResponseStream<M> {
    /// Begins to read the messages of a response, each of at most `message_bytes_max`.
    ///
    /// # Errors
    /// The status that the response begins with, if it has one.
    pub(crate) fn new(
        response: http::Response<Body>,
        message_bytes_max: usize,
    ) -> Result<ResponseStream<M>, Status> {
        let (head, body) = response.into_parts();
        match Status::from_header_map(&head.headers) {
            Some(status) if status.code() != Code::Ok => return Err(status),
            None if head.status != http::StatusCode::OK => return Err(not_grpc(head.status)),
            _ => {}
        }
        Ok(ResponseStream {
            body,
            frames: Deframer::new(message_bytes_max),
            silence: None,
            message: PhantomData,
        })
    }

    /// Expects the node to say something within each time of this length: it is lost when it has not done so
    /// `missed_max` times.
    pub(crate) fn expect_life(&mut self, within: Duration, missed_max: u32) {
        match &mut self.silence {
            Some(watch) => (watch.within, watch.missed_max) = (within, missed_max),
            None => {
                self.silence = Some(SilenceWatch {
                    within,
                    missed_max,
                    missed: 0,
                    heard: true,
                    timer: Box::pin(sleep(within)),
                });
            }
        }
    }

    /// Takes the next message, if all of it has arrived.
    ///
    /// # Errors
    /// A malformed message.
    pub(crate) fn ready(&mut self) -> Result<Option<M>, Status> {
        self.frames.message()
    }

    /// Waits for the next message; `None` when the node has ended the stream without an error.
    ///
    /// # Errors
    /// The error with which the stream ended, or a malformed message.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub(crate) async fn message(&mut self) -> Result<Option<M>, Status> {
        loop {
            if let Some(message) = self.ready()? {
                return Ok(Some(message));
            }
            let frame = std::future::poll_fn(|cx| self.poll_frame(cx)).await?;
            let Some(frame) = frame.transpose()? else {
                return Ok(None);
            };
            match frame.into_data() {
                Ok(data) => self.frames.push(data),
                Err(frame) => return ended(frame.trailers_ref()),
            }
        }
    }

    /// The body's next frame.
    ///
    /// # Errors
    /// The node is silent.
    #[expect(clippy::type_complexity, reason = "the body's, in a result")]
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Result<http_body::Frame<Bytes>, Status>>, Status>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        let Some(watch) = &mut self.silence else {
            return frame.map(Ok);
        };
        if frame.is_ready() {
            watch.heard = true;
            return frame.map(Ok);
        }
        watch.poll(cx).map(|()| {
            let silent = watch.within * watch.missed_max;
            Err(Status::unavailable(format!(
                "the node has said nothing for {} ms",
                silent.as_millis()
            )))
        })
    }
}

/// Reads the end of a stream from its trailers.
fn ended<M>(trailers: Option<&http::HeaderMap>) -> Result<Option<M>, Status> {
    match trailers.and_then(Status::from_header_map) {
        Some(status) if status.code() != Code::Ok => Err(status),
        _ => Ok(None),
    }
}

/// Translates an HTTP status to a gRPC one, by the table of gRPC, where the response is not gRPC.
fn not_grpc(answer: http::StatusCode) -> Status {
    let code = match answer.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    };
    Status::new(code, format!("{NOT_GRPC}, the answer is HTTP {answer}"))
}
