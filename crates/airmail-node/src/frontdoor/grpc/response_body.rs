//! A stream's answers as the body of a response.
//!
//! Small answers that are there together go out together. A batch of some size goes out as the
//! memory that it lies in: only the few bytes before it are a subscriber's own. Both go out in one frame of
//! HTTP/2, if the client takes frames of that size, because a frame costs work at both ends, however small it is. Nothing is held for a stream that
//! has nothing to say.

use airmail_proto::framing::PREFIX_BYTES;
use bytes::buf::Chain;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use prost::Message;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{HeaderMap, HeaderValue, Response};

/// Smaller parts are copied together: the connection writes each shared part by a call of its own,
/// which costs more than such a copy.
pub(super) const SHARED_BYTES_MIN: usize = 16 << 10;
/// Copied bytes that go out together.
const TOGETHER_BYTES: usize = 64 << 10;

/// Bytes for one frame of HTTP/2, or several where the client takes none so large: what was copied together, and the memory that is shared behind it.
pub(super) type FrameBytes = Chain<Bytes, Bytes>;
/// The body of a response to any call.
pub(super) type AnswerBody = UnsyncBoxBody<FrameBytes, Status>;

/// Where a stream's answers come from.
pub(crate) trait Answers: Send + Unpin + 'static {
    /// Puts what there is next into `out`, or breaks with how the stream ends.
    fn poll_put(&mut self, cx: &mut Context<'_>, out: &mut Frames) -> Poll<ControlFlow<Status>>;
}

/// Messages on their way to the connection.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    ready: VecDeque<FrameBytes>,
    together: BytesMut,
}

impl Frames {
    /// Adds a message.
    pub(crate) fn message(&mut self, message: &impl Message) {
        let length = message.encoded_len();
        self.begin(length, length, |out| message.encode_raw(out));
    }

    /// Adds the beginning of a message of `length` bytes, of which about `copied` will be copied; the rest of
    /// it must be shared next.
    pub(crate) fn begin(&mut self, length: usize, copied: usize, head: impl FnOnce(&mut BytesMut)) {
        let told = u32::try_from(length).unwrap_or(u32::MAX);
        self.together.reserve(PREFIX_BYTES + copied);
        let [a, b, c, d] = told.to_be_bytes();
        self.together.put_slice(&[0, a, b, c, d]);
        head(&mut self.together);
    }

    /// Adds bytes of the message begun last.
    pub(crate) fn share(&mut self, part: &Bytes) {
        if part.len() < SHARED_BYTES_MIN {
            self.together.extend_from_slice(part);
        } else {
            self.finish_frame(part.clone());
        }
    }

    /// Ends the frame of what was copied together, if there is any.
    fn flush(&mut self) {
        if !self.together.is_empty() {
            self.finish_frame(Bytes::new());
        }
    }

    fn finish_frame(&mut self, shared: Bytes) {
        let copied = std::mem::take(&mut self.together).freeze();
        self.ready.push_back(copied.chain(shared));
    }
}

/// See the module's documentation.
struct ResponseBody<A> {
    answers: A,
    out: Frames,
    /// Status with which the stream ends, when all that is in `out` is sent.
    end: Option<Status>,
    ended: bool,
}

/// The response that carries these answers.
pub(super) fn response(answers: impl Answers) -> Response<AnswerBody> {
    let body = ResponseBody {
        answers,
        out: Frames::default(),
        end: None,
        ended: false,
    };
    let mut response = Response::new(body.boxed_unsync());
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(CONTENT_TYPE, grpc);
    response
}

/// The body of a response that tonic has made.
pub(super) fn from_tonic(body: Body) -> AnswerBody {
    body.map_frame(|frame| frame.map_data(|data| data.chain(Bytes::new())))
        .boxed_unsync()
}

impl<A: Answers> HttpBody for ResponseBody<A> {
    type Data = FrameBytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<FrameBytes>, Status>>> {
        let this = &mut *self;
        loop {
            if let Some(bytes) = this.out.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            if let Some(status) = this.end.take() {
                this.ended = true;
                return Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))));
            }
            match this.answers.poll_put(cx, &mut this.out) {
                Poll::Ready(ControlFlow::Continue(())) => {
                    if this.out.together.len() >= TOGETHER_BYTES || !this.out.ready.is_empty() {
                        this.out.flush();
                    }
                }
                Poll::Ready(ControlFlow::Break(status)) => {
                    this.out.flush();
                    this.end = Some(status);
                }
                Poll::Pending if this.out.together.is_empty() => return Poll::Pending,
                Poll::Pending => this.out.flush(),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended && self.out.ready.is_empty()
    }
}

fn trailers(status: &Status) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Err(status) = status.add_header(&mut headers) {
        headers.clear();
        // That one has no details, which alone can be no header.
        let _ = status.add_header(&mut headers);
    }
    headers
}

#[cfg(test)]
mod tests;
