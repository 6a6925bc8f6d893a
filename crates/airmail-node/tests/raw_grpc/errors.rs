//! Bad input: each error names field, value and limit, and a request id; the connection goes on,
//! and nothing stored is touched (G8).

use crate::node::{DEFAULT, Node, batch, batch_for, hello, message};
use airmail_model::{Error, ErrorCode, MapEpoch, NamespaceId};
use airmail_proto::error::{error_from_proto, error_from_status, request_id_of};
use airmail_proto::v1;
use airmail_proto::v1::publish_request::Kind;
use airmail_proto::v1::start::At;
use airmail_proto::v1::subscribe_request::Kind as Ask;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Status;

/// The error that a status carries; it must have a request id.
fn error_of(status: &Status) -> Error {
    assert!(!request_id_of(status).is_empty(), "{status:?}");
    error_from_status(status)
}

#[track_caller]
fn assert_names(error: &Error, code: ErrorCode, field: &str, value: &str, limit: &str) {
    assert_eq!(error.code(), code, "{error}");
    assert_eq!(error.field_name(), field, "{error}");
    assert!(error.found().contains(value), "{error}");
    assert!(error.expected().contains(limit), "{error}");
}

async fn refused(node: &Node, message: v1::Message, namespace: &str) -> Error {
    let request = v1::PublishOneRequest {
        namespace: namespace.into(),
        message: Some(message),
    };
    error_of(&node.client().publish_one(request).await.unwrap_err())
}

#[tokio::test]
async fn a_bad_message_names_what_is_wrong_with_it() {
    use ErrorCode::{AttributesInvalid, MessageTooLarge, NamespaceNotFound, TopicInvalid};
    let node = Node::in_memory().await;
    node.publish_one("kept", "before").await.unwrap();
    let large = message("t", &"x".repeat((1 << 20) + 1));
    let error = refused(&node, large, "").await;
    assert_names(
        &error,
        MessageTooLarge,
        error.field_name(),
        "1048577",
        "1048576",
    );
    let error = refused(&node, message("", "x"), "").await;
    assert_names(&error, TopicInvalid, "topic", "empty", "1 byte");
    let error = refused(&node, message(&"t".repeat(1025), "x"), "").await;
    assert_names(&error, TopicInvalid, "topic", "1025", "1024");
    let error = refused(&node, message("a\u{7}b", "x"), "").await;
    assert_names(&error, TopicInvalid, "topic", "", "control");
    let error = refused(&node, message("t", "x"), "nowhere").await;
    assert_names(&error, NamespaceNotFound, "namespace", "nowhere", "");
    let mut many = message("t", "x");
    let value = || v1::Attribute {
        value: Some(v1::attribute::Value::Integer(1)),
    };
    many.attributes = (0..65).map(|n| (n.to_string(), value())).collect();
    let error = refused(&node, many, "").await;
    assert_names(&error, AttributesInvalid, error.field_name(), "65", "64");
    let mut empty = message("t", "x");
    empty
        .attributes
        .insert("k".into(), v1::Attribute::default());
    let error = refused(&node, empty, "").await;
    assert_names(&error, AttributesInvalid, "attributes", "k", "text");
    assert_eq!(node.history("kept").await, ["before"]);
    assert!(node.history("t").await.is_empty());
    node.stop().await;
}

#[tokio::test]
async fn what_is_reserved_is_unimplemented_by_name() {
    let node = Node::in_memory().await;
    let plain = message("t", "x");
    let reserved = [
        (
            "key",
            v1::Message {
                key: Some("k".into()),
                ..plain.clone()
            },
        ),
        (
            "deliver_at_us",
            v1::Message {
                deliver_at_us: Some(1),
                ..plain.clone()
            },
        ),
        (
            "version",
            v1::Message {
                version: Some(1),
                ..plain.clone()
            },
        ),
    ];
    for (field, message) in reserved {
        let error = refused(&node, message, "").await;
        assert_names(&error, ErrorCode::Unimplemented, field, "", "");
    }
    node.stop().await;
}

#[tokio::test]
async fn an_oversized_request_is_refused_and_the_connection_goes_on() {
    let node = Node::in_memory().await;
    let large = message("t", &"x".repeat(4 << 20));
    let error = refused(&node, large, "").await;
    assert_names(
        &error,
        ErrorCode::BatchTooLarge,
        "request",
        "bytes",
        "3145728",
    );
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let body = v1::publish_batch::Body::Batch(vec![0; 4 << 20].into());
    publisher.publish(0, body).await;
    let error = error_of(&publisher.next().await.unwrap_err());
    assert_names(
        &error,
        ErrorCode::BatchTooLarge,
        "request",
        "bytes",
        "3145728",
    );
    // Another stream on the same connection is not disturbed.
    node.publish_one("t", "small").await.unwrap();
    assert_eq!(node.history("t").await, ["small"]);
    node.stop().await;
}

#[tokio::test]
async fn a_stale_map_is_refused_with_the_new_one_and_the_stream_goes_on() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let stale = batch_for(DEFAULT, MapEpoch(9), &[("t", "x")], None);
    let ack = publisher.bytes(1, stale.bytes()).await;
    let error = error_from_proto(&ack.error.unwrap());
    assert_eq!(error.code(), ErrorCode::MapStale);
    assert_eq!((error.found(), error.expected()), ("9", "1"));
    let map = ack.map.expect("the present map");
    assert_eq!((map.name.as_str(), map.epoch), ("default", 1));
    let good = publisher.bytes(2, batch(&[("t", "y")], None).bytes()).await;
    assert!(good.error.is_none());
    assert_eq!(node.history("t").await, ["y"]);
    node.stop().await;
}

#[tokio::test]
async fn an_out_of_order_producer_is_told_what_was_expected() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    publisher
        .bytes(0, batch(&[("t", "0")], Some((5, 0))).bytes())
        .await;
    let jump = batch(&[("t", "7")], Some((5, 7)));
    let error = publisher.refused(1, jump.bytes()).await;
    assert_eq!(error.code(), ErrorCode::OutOfOrder);
    assert_eq!(error.field_name(), "producer_sequence");
    assert_eq!((error.found(), error.expected()), ("7", "1"));
    let next = batch(&[("t", "1")], Some((5, 1)));
    assert!(publisher.bytes(2, next.bytes()).await.error.is_none());
    let stranger = batch(&[("t", "x")], Some((6, 3)));
    let error = publisher.refused(3, stranger.bytes()).await;
    assert_eq!(error.code(), ErrorCode::UnknownProducer);
    assert_eq!(node.history("t").await, ["0", "1"]);
    node.stop().await;
}

#[tokio::test]
async fn a_batch_for_another_namespace_is_refused() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let unknown = batch_for(NamespaceId(77), MapEpoch(1), &[("t", "x")], None);
    let error = publisher.refused(1, unknown.bytes()).await;
    assert_eq!(error.code(), ErrorCode::NamespaceNotFound);
    let reserved = batch_for(NamespaceId(0), MapEpoch(1), &[("t", "x")], None);
    let error = publisher.refused(2, reserved.bytes()).await;
    assert_eq!(error.code(), ErrorCode::NamespaceReserved);
    node.stop().await;
}

#[tokio::test]
async fn a_stream_that_does_not_begin_with_hello_is_told_so() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.send(Kind::Resolve(v1::Resolve::default())).await;
    let error = error_of(&publisher.next().await.unwrap_err());
    assert_names(
        &error,
        ErrorCode::HelloExpected,
        "kind",
        "before hello",
        "first",
    );
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    publisher.send(Kind::Hello(hello())).await;
    let error = error_of(&publisher.next().await.unwrap_err());
    assert_names(&error, ErrorCode::HelloExpected, "kind", "second", "first");
    let mut subscriber = node.subscriber().await;
    subscriber.add(0, "t", At::Latest(true)).await;
    let error = error_of(&subscriber.next().await.unwrap_err());
    assert_names(
        &error,
        ErrorCode::HelloExpected,
        "kind",
        "before hello",
        "first",
    );
    node.stop().await;
}

#[tokio::test]
async fn a_hello_that_cannot_be_met_names_the_field() {
    let node = Node::in_memory().await;
    let cases = [
        (
            v1::ClientHello {
                protocol_min: 6,
                protocol_max: 7,
                ..hello()
            },
            (
                ErrorCode::ProtocolUnsupported,
                "protocol_min, protocol_max",
                "6 to 7",
                "1 to 5",
            ),
        ),
        (
            v1::ClientHello {
                token: "secret".into(),
                ..hello()
            },
            (ErrorCode::Unimplemented, "token", "6 bytes", "empty"),
        ),
        (
            v1::ClientHello {
                features: vec!["magic".into()],
                ..hello()
            },
            (ErrorCode::Unimplemented, "features", "magic", ""),
        ),
        (
            v1::ClientHello {
                roles: vec!["cook".into()],
                ..hello()
            },
            (
                ErrorCode::PermissionDenied,
                "roles",
                "cook",
                "security.trust_roles",
            ),
        ),
        (
            v1::ClientHello {
                namespaces: vec!["nowhere".into()],
                ..hello()
            },
            (ErrorCode::NamespaceNotFound, "namespace", "nowhere", ""),
        ),
    ];
    for (hello, (code, field, value, limit)) in cases {
        let mut publisher = node.publisher().await;
        publisher.send(Kind::Hello(hello.clone())).await;
        let error = error_of(&publisher.next().await.unwrap_err());
        assert_names(&error, code, field, value, limit);
        let mut subscriber = node.subscriber().await;
        subscriber.send(Ask::Hello(hello)).await;
        let error = error_of(&subscriber.next().await.unwrap_err());
        assert_names(&error, code, field, value, limit);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_bad_subscription_fails_alone() {
    let node = Node::in_memory().await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    let add = |subscription, topic: &str| v1::Add {
        subscription,
        topic: topic.into(),
        ..Default::default()
    };
    let position = v1::Start {
        at: Some(At::Position("pos1-nonsense".into())),
        high: String::new(),
    };
    let cases = [
        (
            v1::Add {
                filter: "x".into(),
                ..add(1, "t")
            },
            ErrorCode::FilterInvalid,
            "filter",
        ),
        (
            v1::Add {
                name: "n".into(),
                ..add(2, "t")
            },
            ErrorCode::Unimplemented,
            "name",
        ),
        (add(3, ""), ErrorCode::TopicInvalid, "topic"),
        (
            v1::Add {
                namespace: "nowhere".into(),
                ..add(4, "t")
            },
            ErrorCode::NamespaceNotFound,
            "namespace",
        ),
        (
            v1::Add {
                start: Some(position),
                ..add(5, "t")
            },
            ErrorCode::PositionInvalid,
            "position",
        ),
    ];
    subscriber.add(0, "good", At::Latest(true)).await;
    subscriber.state().await;
    for (add, code, field) in cases {
        subscriber.send(Ask::Add(add)).await;
        let v1::status::State::Failed(error) = subscriber.state().await else {
            panic!("{field}: a failure expected");
        };
        let error = error_from_proto(&error);
        assert_names(&error, code, field, "", "");
    }
    // A number in use.
    subscriber.add(0, "again", At::Latest(true)).await;
    let v1::status::State::Failed(error) = subscriber.state().await else {
        panic!("a failure expected");
    };
    assert_eq!(error.name, "SUBSCRIPTION_INVALID");
    node.publish_one("good", "x").await.unwrap();
    assert_eq!(subscriber.messages(1).await[0].topic, "good");
    node.stop().await;
}

#[tokio::test]
async fn garbage_on_the_port_disturbs_nobody() {
    let node = Node::in_memory().await;
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &[0xff; 4096],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let mut stream = tokio::net::TcpStream::connect(node.address).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        let mut rest = Vec::new();
        // Closed by the node, whether in order or by a reset.
        let _ = stream.read_to_end(&mut rest).await;
    }
    node.publish_one("t", "still here").await.unwrap();
    assert_eq!(node.history("t").await, ["still here"]);
    node.stop().await;
}

#[tokio::test]
async fn copies_want_a_durability_and_a_storage_that_has_as_many() {
    let node = Node::in_memory().await;
    let mut admin = node.admin();
    let mut refuse = async |durability: v1::Durability| {
        let spec = v1::NamespaceSpec {
            copies: 3,
            durability: durability.into(),
            ..Default::default()
        };
        let request = v1::CreateNamespaceRequest {
            name: "n".into(),
            spec: Some(spec),
        };
        let answer = admin.create_namespace(request).await;
        error_of(&answer.unwrap_err())
    };
    let error = refuse(v1::Durability::Unspecified).await;
    let needed = "with a durability";
    assert_names(&error, ErrorCode::InvalidArgument, "copies", "3", needed);
    let error = refuse(v1::Durability::Memory).await;
    let unavailable = ErrorCode::DurabilityUnavailable;
    assert_names(&error, unavailable, "durability", "memory:3", "memory");
    node.stop().await;
}

#[tokio::test]
async fn namespaces_say_what_is_wrong_with_them() {
    let node = Node::in_memory().await;
    let mut admin = node.admin();
    let spec = |spec: v1::NamespaceSpec| Some(spec);
    let create = |name: &str, spec| v1::CreateNamespaceRequest {
        name: name.into(),
        spec,
    };
    let mut refuse = async |request| {
        let answer = admin.create_namespace(request).await;
        error_of(&answer.unwrap_err())
    };
    let error = refuse(create("default", None)).await;
    assert_names(
        &error,
        ErrorCode::NamespaceExists,
        "namespace",
        "default",
        "",
    );
    let error = refuse(create("no spaces", None)).await;
    assert_names(
        &error,
        ErrorCode::NamespaceInvalid,
        "namespace",
        "no spaces",
        "letters",
    );
    let fsync = v1::Durability::Fsync as i32;
    let durable = v1::NamespaceSpec {
        durability: fsync,
        ..Default::default()
    };
    let error = refuse(create("n", spec(durable))).await;
    assert_names(
        &error,
        ErrorCode::DurabilityUnavailable,
        "durability",
        "fsync",
        "memory",
    );
    let logs = v1::NamespaceSpec {
        logs: 5000,
        ..Default::default()
    };
    let error = refuse(create("n", spec(logs))).await;
    assert_names(&error, ErrorCode::NamespaceInvalid, "logs", "5000", "1024");
    let delete = v1::DeleteNamespaceRequest {
        name: "nowhere".into(),
        based_on: 0,
    };
    let error = error_of(&node.admin().delete_namespace(delete).await.unwrap_err());
    assert_names(
        &error,
        ErrorCode::NamespaceNotFound,
        "namespace",
        "nowhere",
        "",
    );
    node.stop().await;
}
