//! Health, reflection, HTTP, and namespaces while the node runs.

use crate::node::{Node, batch_for};
use airmail_model::{MapEpoch, NamespaceId};
use airmail_proto::v1;
use airmail_proto::v1::start::At;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

#[tokio::test]
async fn health_says_serving() {
    let node = Node::in_memory().await;
    for service in [
        "",
        "airmail.v1.Airmail",
        "airmail.v1.Admin",
        "airmail.v1.Mailbox",
    ] {
        let mut status = 0;
        // It is told a moment after the node is ready.
        for _ in 0..60_000 {
            let service = service.to_owned();
            let request = HealthCheckRequest { service };
            let answer = HealthClient::new(node.channel.clone()).check(request).await;
            status = answer.unwrap().into_inner().status;
            if status == 1 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(status, 1, "{service}");
    }
    node.stop().await;
}

#[tokio::test]
async fn reflection_lists_the_services_and_their_files() {
    let node = Node::in_memory().await;
    let ask = async |question| {
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(question),
        };
        let mut client = ServerReflectionClient::new(node.channel.clone());
        let requests = tokio_stream::iter([request]);
        let answers = client.server_reflection_info(requests).await.unwrap();
        let answer = answers.into_inner().message().await.unwrap().unwrap();
        answer.message_response.unwrap()
    };
    let MessageResponse::ListServicesResponse(list) =
        ask(MessageRequest::ListServices(String::new())).await
    else {
        panic!("a list expected");
    };
    let names: Vec<&str> = list.service.iter().map(|one| one.name.as_str()).collect();
    for name in [
        "airmail.v1.Airmail",
        "airmail.v1.Admin",
        "airmail.v1.Mailbox",
        "grpc.health.v1.Health",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    for symbol in [
        "airmail.v1.Airmail.Publish",
        "airmail.v1.Mailbox.Send",
        "google.rpc.ErrorInfo",
    ] {
        let symbol = MessageRequest::FileContainingSymbol(symbol.to_owned());
        let found = ask(symbol).await;
        let file = matches!(found, MessageResponse::FileDescriptorResponse(_));
        assert!(file, "{found:?}");
    }
    node.stop().await;
}

/// An answer of HTTP, with its head. A node whose shard has had no turn for seconds says so in its place, and
/// is asked again.
pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    loop {
        let answer = ask(address, path).await;
        if !answer.contains("the shard does not answer") {
            return answer;
        }
    }
}

async fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn http_answers_health_readiness_and_metrics() {
    let node = Node::in_memory().await;
    node.publish_one("t", "x").await.unwrap();
    let address = node.running.http_address.unwrap();
    let get = async |path: &str| get(address, path).await;
    for path in ["/healthz", "/readyz"] {
        assert!(get(path).await.starts_with("HTTP/1.1 200"), "{path}");
    }
    let metrics = get("/metrics").await;
    assert!(
        metrics.contains("airmail_published_messages_total 1"),
        "{metrics}"
    );
    assert!(metrics.contains("airmail_publish_latency_seconds_count 1"));
    assert!(metrics.contains("airmail_connections 1"));
    assert!(get("/nowhere").await.starts_with("HTTP/1.1 404"));
    node.stop().await;
}

#[tokio::test]
async fn a_namespace_is_created_used_and_deleted_while_the_node_runs() {
    let node = Node::in_memory().await;
    let create = v1::CreateNamespaceRequest {
        name: "audit".into(),
        spec: None,
    };
    let made = node.admin().create_namespace(create).await.unwrap();
    let made = made.into_inner();
    assert_eq!((made.name.as_str(), made.version), ("audit", 1));
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let one = batch_for(
        NamespaceId(made.id),
        MapEpoch(made.epoch),
        &[("t", "x")],
        None,
    );
    assert!(publisher.bytes(0, one.bytes()).await.error.is_none());

    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    let add = v1::Add {
        subscription: 0,
        namespace: "audit".into(),
        topic: "t".into(),
        start: Some(v1::Start {
            at: Some(At::Earliest(true)),
            high: String::new(),
        }),
        ..Default::default()
    };
    subscriber.send(v1::subscribe_request::Kind::Add(add)).await;
    assert_eq!(&*subscriber.messages(1).await[0].payload, b"x");

    let delete = v1::DeleteNamespaceRequest {
        name: "audit".into(),
        based_on: 0,
    };
    node.admin().delete_namespace(delete).await.unwrap();
    // Its subscribers are told, its publishers are refused.
    loop {
        if let v1::status::State::Failed(error) = subscriber.state().await {
            assert_eq!(error.name, "NAMESPACE_NOT_FOUND");
            break;
        }
    }
    let error = publisher.refused(1, one.bytes()).await;
    assert_eq!(error.code().name(), "NAMESPACE_NOT_FOUND");
    node.stop().await;
}

#[tokio::test]
async fn a_change_of_a_namespace_says_what_it_is_based_on() {
    let node = Node::in_memory().await;
    let create = v1::CreateNamespaceRequest {
        name: "audit".into(),
        spec: None,
    };
    node.admin().create_namespace(create).await.unwrap();
    let update = v1::UpdateNamespaceRequest {
        name: "audit".into(),
        spec: Some(v1::NamespaceSpec {
            retention: Some(v1::Retention {
                time_ms: Some(60_000),
                bytes: None,
            }),
            ..Default::default()
        }),
        based_on: 1,
    };
    let changed = node.admin().update_namespace(update.clone()).await.unwrap();
    assert_eq!(changed.into_inner().version, 2);
    let again = node.admin().update_namespace(update).await.unwrap_err();
    assert!(again.message().contains("NAMESPACE_CHANGED"), "{again:?}");

    let all = node
        .admin()
        .list_namespaces(v1::ListNamespacesRequest {})
        .await
        .unwrap();
    let names: Vec<String> = all
        .into_inner()
        .namespaces
        .into_iter()
        .map(|n| n.name)
        .collect();
    assert_eq!(names, ["audit", "default"]);
    node.stop().await;
}
