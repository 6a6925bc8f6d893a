use super::*;
use airmail_proto::v1::SubscribeRequest;
use std::task::Waker;

/// Answers one after the other, then `Pending` once, then the end.
struct Given {
    parts: VecDeque<Bytes>,
    waited: bool,
    end: Status,
}

impl Answers for Given {
    fn poll_put(&mut self, _: &mut Context<'_>, out: &mut Frames) -> Poll<ControlFlow<Status>> {
        if let Some(part) = self.parts.pop_front() {
            out.begin(part.len(), 0, |_| {});
            out.share(&part);
            return Poll::Ready(ControlFlow::Continue(()));
        }
        if std::mem::replace(&mut self.waited, true) {
            Poll::Ready(ControlFlow::Break(self.end.clone()))
        } else {
            Poll::Pending
        }
    }
}

fn given(parts: &[Bytes], end: Status) -> ResponseBody<Given> {
    ResponseBody {
        answers: Given {
            parts: parts.iter().cloned().collect(),
            waited: false,
            end,
        },
        out: Frames::default(),
        end: None,
        ended: false,
    }
}

/// The next frame; `None` while there is nothing to be sent.
fn next(body: &mut ResponseBody<Given>) -> Option<Frame<FrameBytes>> {
    let mut cx = Context::from_waker(Waker::noop());
    match Pin::new(body).poll_frame(&mut cx) {
        Poll::Ready(frame) => Some(frame.unwrap().unwrap()),
        Poll::Pending => None,
    }
}

fn frame(body: &mut ResponseBody<Given>) -> FrameBytes {
    next(body).unwrap().into_data().unwrap()
}

/// The next frame's bytes, of which all were copied.
fn data(body: &mut ResponseBody<Given>) -> Bytes {
    let frame = frame(body);
    assert!(frame.last_ref().is_empty(), "{frame:?}");
    frame.first_ref().clone()
}

#[test]
fn small_answers_go_out_together() {
    let parts = [Bytes::from_static(b"one"), Bytes::from_static(b"two")];
    let mut body = given(&parts, Status::ok(""));
    assert_eq!(data(&mut body), &b"\0\0\0\0\x03one\0\0\0\0\x03two"[..]);
    let trailers = next(&mut body).unwrap().into_trailers().unwrap();
    assert_eq!(trailers.get("grpc-status").unwrap(), "0");
    assert!(body.is_end_stream());
}

#[test]
fn a_large_part_is_shared_in_the_frame_of_what_stands_before_it() {
    let large = Bytes::from(vec![7; SHARED_BYTES_MIN]);
    let small = Bytes::from_static(b"s");
    let parts = [small.clone(), large.clone(), small, large.clone()];
    let mut body = given(&parts, Status::ok(""));
    for _ in 0..2 {
        let frame = frame(&mut body);
        assert_eq!(frame.first_ref(), &b"\0\0\0\0\x01s\0\0\0\x40\0"[..]);
        assert_eq!(frame.last_ref().as_ptr(), large.as_ptr());
    }
}

#[test]
fn answers_together_are_bounded() {
    let part = Bytes::from(vec![7; SHARED_BYTES_MIN - 1]);
    let mut body = given(&vec![part; 100], Status::ok(""));
    let first = data(&mut body).len();
    assert!(
        (TOGETHER_BYTES..2 * TOGETHER_BYTES).contains(&first),
        "{first}"
    );
}

#[test]
fn a_stream_ends_with_its_error_after_what_was_put() {
    let part = [Bytes::from_static(b"one")];
    let mut body = given(&part, Status::unavailable("gone"));
    data(&mut body);
    let trailers = next(&mut body).unwrap().into_trailers().unwrap();
    assert_eq!(trailers.get("grpc-status").unwrap(), "14");
    assert_eq!(trailers.get("grpc-message").unwrap(), "gone");
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(
        Pin::new(&mut body).poll_frame(&mut cx),
        Poll::Ready(None)
    ));
}

#[test]
fn a_message_has_its_length_before_it() {
    let mut out = Frames::default();
    let request = SubscribeRequest { kind: None };
    out.message(&request);
    assert_eq!(&out.together[..], [0; 5]);
}
