//! A stream's incoming side, below tonic's codec: a delivery is read where HTTP/2 has put it.

use airmail_proto::framing::Deframer;
use prost::Message;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use tonic::body::Body;
use tonic::codegen::{Body as _, http};
use tonic::{Code, Status};

/// What a node says on a stream.
pub(crate) struct Answers<M> {
    body: Body,
    frames: Deframer,
    message: PhantomData<fn() -> M>,
}

impl<M> fmt::Debug for Answers<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}

impl<M: Message + Default> Answers<M> {
    /// Reads the messages of a response, each of at most `message_bytes_max`.
    ///
    /// # Errors
    /// The status, if the response begins with one.
    pub(crate) fn new(
        response: http::Response<Body>,
        message_bytes_max: usize,
    ) -> Result<Answers<M>, Status> {
        let (head, body) = response.into_parts();
        match Status::from_header_map(&head.headers) {
            Some(status) if status.code() != Code::Ok => return Err(status),
            None if head.status != http::StatusCode::OK => return Err(no_grpc(head.status)),
            _ => {}
        }
        Ok(Answers {
            body,
            frames: Deframer::new(message_bytes_max),
            message: PhantomData,
        })
    }

    /// The next message, if all of it is here.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn ready(&mut self) -> Result<Option<M>, Status> {
        self.frames.message()
    }

    /// The next message; `None` when the node has ended the stream without a reason.
    ///
    /// # Errors
    /// Why it ended, or what was wrong with what it said.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub(crate) async fn message(&mut self) -> Result<Option<M>, Status> {
        loop {
            if let Some(message) = self.ready()? {
                return Ok(Some(message));
            }
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let Some(frame) = frame.transpose()? else {
                return Ok(None);
            };
            match frame.into_data() {
                Ok(data) => self.frames.push(data),
                Err(frame) => return ended(frame.trailers_ref()),
            }
        }
    }
}

/// How the trailers say that a stream has ended.
fn ended<M>(trailers: Option<&http::HeaderMap>) -> Result<Option<M>, Status> {
    match trailers.and_then(Status::from_header_map) {
        Some(status) if status.code() != Code::Ok => Err(status),
        _ => Ok(None),
    }
}

/// The status for an answer that is none of gRPC's, as gRPC says that it is to be read.
fn no_grpc(answer: http::StatusCode) -> Status {
    let code = match answer.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    };
    Status::new(code, format!("the answer is HTTP {answer}, not gRPC"))
}
