//! The messages of a request's body.
//!
//! A batch that lies in one frame is given as a part of that frame, without a copy; one that lies
//! in several is gathered. Nothing is held for a stream that waits between messages.

use super::reading_error;
use crate::frontdoor::FrontDoor;
use airmail_model::Error;
use airmail_proto::framing::Deframer;
use prost::Message;
use std::marker::PhantomData;
use std::pin::Pin;
use tonic::body::Body;
use tonic::codegen::Body as _;
use tonic::codegen::http::HeaderMap;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

const ENCODING: &str = "grpc-encoding";
const ACCEPT_ENCODING: &str = "grpc-accept-encoding";

/// See the module's documentation.
pub(crate) struct RequestBody<M> {
    body: Body,
    /// Data that have come and were not taken yet.
    frames: Deframer,
    message: PhantomData<fn() -> M>,
}

impl<M: Message + Default> RequestBody<M> {
    /// Reads the messages of `body`, each of at most `message_bytes_max`.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if the headers tell of compression.
    pub(crate) fn new(
        headers: &HeaderMap,
        body: Body,
        message_bytes_max: usize,
    ) -> Result<RequestBody<M>, Status> {
        check_encoding(headers)?;
        Ok(RequestBody {
            body,
            frames: Deframer::new(message_bytes_max),
            message: PhantomData,
        })
    }

    /// The next request of a session's client; `None` when the client is done, or gone.
    ///
    /// # Errors
    /// What the client sent that is no request.
    pub(super) async fn next(&mut self, door: &FrontDoor) -> Result<Option<M>, Error> {
        match self.message().await {
            Ok(request) => Ok(request),
            Err(status) => reading_error(door, &status).map_or(Ok(None), Err),
        }
    }

    /// The next message; `None` when the client is done, or gone.
    ///
    /// # Errors
    /// `INTERNAL` for what is no gRPC or no message of the API, `OUT_OF_RANGE` for a message that
    /// is too large, or why the body ended.
    pub(crate) async fn message(&mut self) -> Result<Option<M>, Status> {
        loop {
            if let Some(message) = self.frames.message()? {
                return Ok(Some(message));
            }
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.frames.push(data),
                    // Trailers: nothing comes after them.
                    Err(_) => return self.end(),
                },
                Some(Err(status)) if status.code() == Code::Cancelled => return Ok(None),
                Some(Err(status)) => return Err(status),
                None => return self.end(),
            }
        }
    }

    fn end(&self) -> Result<Option<M>, Status> {
        if self.frames.is_empty() {
            Ok(None)
        } else {
            Err(Status::internal("Unexpected EOF decoding stream."))
        }
    }
}

/// Compression is not spoken.
fn check_encoding(headers: &HeaderMap) -> Result<(), Status> {
    match headers.get(ENCODING) {
        Some(encoding) if encoding != "identity" => {
            let encoding = String::from_utf8_lossy(encoding.as_bytes());
            let mut status = Status::unimplemented(format!(
                "Content is compressed with `{encoding}` which isn't supported"
            ));
            let accepted = MetadataValue::from_static("identity");
            status.metadata_mut().insert(ACCEPT_ENCODING, accepted);
            Err(status)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
