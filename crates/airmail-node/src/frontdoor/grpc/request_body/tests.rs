use super::*;
use airmail_proto::v1::{PublishOneRequest, SubscribeRequest};
use bytes::Bytes;
use http_body::Frame;
use std::collections::VecDeque;
use std::task::{Context, Poll};

/// A body of these frames.
struct Given(VecDeque<Bytes>);

impl http_body::Body for Given {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.0.pop_front().map(|data| Ok(Frame::data(data))))
    }
}

fn framed(payload: &[u8]) -> Vec<u8> {
    let request = PublishOneRequest {
        message: Some(airmail_proto::v1::Message {
            payload: payload.to_vec().into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let message = request.encode_to_vec();
    let mut bytes = vec![0];
    bytes.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(&message);
    bytes
}

fn requests<M: Message + Default>(frames: impl IntoIterator<Item = Vec<u8>>) -> RequestBody<M> {
    let frames = frames.into_iter().map(Bytes::from).collect();
    RequestBody::new(&HeaderMap::new(), Body::new(Given(frames)), 1000).unwrap()
}

async fn payloads(mut requests: RequestBody<PublishOneRequest>) -> Result<Vec<Bytes>, Status> {
    let mut payloads = Vec::new();
    while let Some(request) = requests.message().await? {
        payloads.push(request.message.unwrap_or_default().payload);
    }
    Ok(payloads)
}

#[tokio::test]
async fn messages_are_the_same_however_they_are_cut_into_frames() {
    let all = [framed(b"one"), framed(b""), framed(b"three")].concat();
    for first in 0..all.len() {
        for second in first..all.len() {
            let cut = [&all[..first], &all[first..second], &all[second..]];
            let found = payloads(requests(cut.map(<[u8]>::to_vec))).await;
            assert_eq!(found.unwrap(), ["one", "", "three"], "{first} {second}");
        }
    }
}

#[tokio::test]
async fn a_message_of_one_frame_is_not_copied() {
    let frame = Bytes::from([framed(b"one"), framed(b"two")].concat());
    let whole = frame.as_ptr_range();
    let body = Body::new(Given([frame.clone()].into()));
    let requests = RequestBody::new(&HeaderMap::new(), body, 1000).unwrap();
    let found = payloads(requests).await.unwrap();
    assert_eq!(found.len(), 2);
    for payload in found {
        assert!(whole.contains(&payload.as_ptr()));
    }
}

#[tokio::test]
async fn an_empty_message_is_a_message() {
    let mut requests = requests::<SubscribeRequest>([vec![0; 5]]);
    assert!(requests.message().await.unwrap().is_some());
    assert!(requests.message().await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_it_is_here() {
    let prefix = vec![0, 0, 0, 3, 233];
    let status = payloads(requests([prefix])).await.unwrap_err();
    assert!(airmail_proto::error::is_oversize(&status), "{status}");
    let error = airmail_proto::error::oversize_error(status.message(), 1000);
    assert_eq!(error.found(), "1001 bytes");
}

#[tokio::test]
async fn what_is_no_grpc_is_told() {
    let cut = framed(b"one")[..6].to_vec();
    for frames in [vec![cut], vec![vec![1, 0, 0, 0, 0]], vec![vec![0, 0]]] {
        let status = payloads(requests(frames)).await.unwrap_err();
        assert_eq!(status.code(), Code::Internal);
    }
}

#[test]
fn compression_is_refused_with_what_is_spoken() {
    let mut headers = HeaderMap::new();
    headers.insert(ENCODING, "gzip".parse().unwrap());
    let requests = RequestBody::<SubscribeRequest>::new(&headers, Body::empty(), 1000);
    let status = requests.err().unwrap();
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(status.metadata().get(ACCEPT_ENCODING).unwrap(), "identity");
}
