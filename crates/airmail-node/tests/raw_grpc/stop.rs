//! Stopping: streams are told, what was taken in is answered, the data is all there.

use crate::node::{Node, batch};
use airmail_model::ErrorCode;
use airmail_proto::error::error_from_status;
use airmail_proto::v1;
use airmail_proto::v1::publish_batch::Body;
use airmail_proto::v1::start::At;

#[tokio::test]
async fn streams_are_told_that_the_node_is_stopping() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.add(0, "t", At::Latest(true)).await;
    subscriber.state().await;
    let (stopped, told, heard) = tokio::join!(
        node.stop(),
        async { publisher.next().await.unwrap_err() },
        async {
            loop {
                if let Err(status) = subscriber.next().await {
                    break status;
                }
            }
        }
    );
    let () = stopped;
    for status in [told, heard] {
        assert_eq!(error_from_status(&status).code(), ErrorCode::ShuttingDown);
    }
}

#[tokio::test]
async fn what_was_acknowledged_in_a_stop_is_there_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::on(directory.path()).await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let requests = publisher.requests.clone();
    let flood = tokio::spawn(async move {
        for request in 0_u64.. {
            let payload = request.to_string();
            let body = Body::Batch(batch(&[("t", &payload)], None).bytes().clone());
            let batches = vec![v1::PublishBatch {
                request,
                body: Some(body),
                namespace: String::new(),
                begins_epoch: false,
            }];
            let kind = v1::publish_request::Kind::Batches(v1::PublishBatches { batches });
            let request = v1::PublishRequest { kind: Some(kind) };
            if requests.send(request).await.is_err() {
                break;
            }
        }
    });
    let (under_way, has_begun) = tokio::sync::oneshot::channel::<()>();
    let listen = async {
        let mut under_way = Some(under_way);
        let mut acknowledged = Vec::new();
        loop {
            match publisher.next().await {
                Ok(v1::publish_response::Kind::Acks(acks)) => {
                    acknowledged.extend(acks.acks.into_iter().filter(|ack| ack.error.is_none()));
                    if !acknowledged.is_empty()
                        && let Some(under_way) = under_way.take()
                    {
                        under_way.send(()).unwrap();
                    }
                }
                Ok(_) => {}
                Err(_) => break acknowledged,
            }
        }
    };
    let stop = async {
        has_begun.await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        node.stop().await;
    };
    let (acknowledged, ()) = tokio::join!(listen, stop);
    flood.abort();
    assert!(!acknowledged.is_empty());
    let node = Node::on(directory.path()).await;
    let stored = node.history("t").await;
    for ack in &acknowledged {
        let at = usize::try_from(ack.first).unwrap() - 1;
        assert_eq!(stored[at], ack.request.to_string());
    }
    node.stop().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_does_not_hold_up_a_stop() {
    let mut config = airmail_node::config::Config {
        log_url: "memory:".into(),
        ..Default::default()
    };
    config.set("node.stop_timeout", "500ms").unwrap();
    let node = Node::with(config).await;
    let payload = "x".repeat(200 << 10);
    for _ in 0..20 {
        node.publish_one("big", &payload).await.unwrap();
    }
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.add(0, "big", At::Earliest(true)).await;
    subscriber.state().await;
    node.stop().await;
    drop(subscriber);
}
