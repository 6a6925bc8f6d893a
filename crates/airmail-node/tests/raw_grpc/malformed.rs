//! Bytes that are no message of the API, given to every call that there is: told as what they are.

use crate::node::Node;
use airmail_model::{Error, ErrorCode};
use airmail_proto::FILE_DESCRIPTOR_SET;
use airmail_proto::error::{error_from_status, request_id_of};
use bytes::{Buf as _, BufMut as _, Bytes};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Status};

/// Sends and receives bytes as they are.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let bytes = buffer.remaining();
        Ok(Some(buffer.copy_to_bytes(bytes)))
    }
}

/// Every call of the API, by its path.
fn calls() -> Vec<String> {
    let files = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let mut calls = Vec::new();
    for file in &files.file {
        for service in &file.service {
            for method in &service.method {
                let (package, service) = (file.package(), service.name());
                calls.push(format!("/{package}.{service}/{}", method.name()));
            }
        }
    }
    calls
}

/// The answer of a call to this message, with a request id.
async fn refused(node: &Node, path: &str, message: &'static [u8]) -> Error {
    let mut grpc = tonic::client::Grpc::new(node.channel.clone());
    grpc.ready().await.unwrap();
    let request = Request::new(tokio_stream::iter([Bytes::from_static(message)]));
    let uri = path.parse().unwrap();
    let status = match grpc.streaming(request, uri, Raw).await {
        Err(status) => status,
        Ok(answers) => match answers.into_inner().message().await {
            Err(status) => status,
            Ok(answer) => panic!("{path} answers {answer:?}"),
        },
    };
    assert!(!request_id_of(&status).is_empty(), "{path}: {status:?}");
    error_from_status(&status)
}

#[tokio::test]
async fn what_is_no_message_is_told_by_every_call() {
    let node = Node::in_memory().await;
    let calls = calls();
    assert!(calls.len() > 20, "{calls:?}");
    for path in &calls {
        // A number that does not end.
        let error = refused(&node, path, b"\xff").await;
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{path}: {error}");
        assert_eq!(error.field_name(), "request", "{path}: {error}");
        assert!(error.found().contains("varint"), "{path}: {error}");
    }
    node.publish_one("t", "still here").await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn text_that_is_not_utf_8_is_told_by_its_field() {
    let node = Node::in_memory().await;
    let cases: [(&str, &[u8], ErrorCode, &str); 5] = [
        (
            "/airmail.v1.Airmail/PublishOne",
            b"\x12\x03\x0a\x01\xff",
            ErrorCode::TopicInvalid,
            "message.topic",
        ),
        (
            "/airmail.v1.Airmail/PublishOne",
            b"\x0a\x01\xff",
            ErrorCode::InvalidArgument,
            "namespace",
        ),
        (
            "/airmail.v1.Mailbox/FindQueue",
            b"\x0a\x01\xff",
            ErrorCode::InvalidArgument,
            "name",
        ),
        (
            "/airmail.v1.Mailbox/CreateAccount",
            b"\x0a\x01\xff",
            ErrorCode::InvalidArgument,
            "name",
        ),
        (
            "/airmail.v1.Admin/CreateNamespace",
            b"\x0a\x01\xff",
            ErrorCode::InvalidArgument,
            "name",
        ),
    ];
    for (path, message, code, field) in cases {
        let error = refused(&node, path, message).await;
        assert_eq!((error.code(), error.field_name()), (code, field), "{error}");
        assert!(error.found().contains("UTF-8"), "{error}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_call_that_there_is_not_is_told_by_its_path() {
    let node = Node::in_memory().await;
    for path in ["/airmail.v1.Airmail/Juggle", "/airmail.v9.Circus/Juggle"] {
        let error = refused(&node, path, b"").await;
        assert_eq!(error.code(), ErrorCode::Unimplemented, "{error}");
        assert_eq!((error.field_name(), error.found()), ("request", path));
    }
    node.stop().await;
}
