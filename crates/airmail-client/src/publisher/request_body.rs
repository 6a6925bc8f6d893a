//! The request body of the publish stream: drains the accumulator when HTTP/2 has room.

use super::accumulator::{Accumulator, Drained};
use bytes::Bytes;
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Request body of one stream.
#[derive(Debug)]
pub(super) struct RequestBody {
    accumulator: Arc<Accumulator>,
    /// Number that the accumulator gave the stream.
    stream: u64,
    pieces: VecDeque<Bytes>,
}

impl RequestBody {
    /// Makes the body of stream number `stream`, which sends `first` before anything else.
    pub(super) fn new(accumulator: Arc<Accumulator>, stream: u64, first: Bytes) -> RequestBody {
        RequestBody {
            accumulator,
            stream,
            pieces: VecDeque::from([first]),
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let body = self.get_mut();
        loop {
            if let Some(piece) = body.pieces.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            match body
                .accumulator
                .drain(body.stream, context, &mut body.pieces)
            {
                Drained::Bytes => {}
                Drained::Nothing => return Poll::Pending,
                Drained::StreamEnded => return Poll::Ready(None),
            }
        }
    }
}
