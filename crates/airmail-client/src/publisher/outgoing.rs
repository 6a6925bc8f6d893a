//! The request body of the publish stream: takes what is due from the desk when HTTP/2 has room.

use super::desk::{Desk, Pieces};
use bytes::Bytes;
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// One stream's outgoing side.
#[derive(Debug)]
pub(super) struct Outgoing {
    desk: Arc<Desk>,
    number: u64,
    pieces: VecDeque<Bytes>,
}

impl Outgoing {
    /// Stream `number`, as the desk gave it; `first` is sent before anything else.
    pub(super) fn new(desk: Arc<Desk>, number: u64, first: Bytes) -> Outgoing {
        Outgoing {
            desk,
            number,
            pieces: VecDeque::from([first]),
        }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let outgoing = self.get_mut();
        loop {
            if let Some(piece) = outgoing.pieces.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let number = outgoing.number;
            match outgoing.desk.pieces(number, context, &mut outgoing.pieces) {
                Pieces::More => {}
                Pieces::None => return Poll::Pending,
                Pieces::Ended => return Poll::Ready(None),
            }
        }
    }
}
