//! Publishing: from many tasks, with bounds, refusals, and a clean end.

use crate::node::{Node, message, numbers, stored};
use airmail_client::{Client, ErrorCode, Items};
use airmail_model::{Limits, TopicName};
use std::collections::BTreeSet;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

#[tokio::test]
async fn many_tasks_that_publish_at_once_are_each_told_their_own_number() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut tasks = JoinSet::new();
    for task in 0..100 {
        let client = client.clone();
        tasks.spawn(async move {
            let mut numbers = Vec::new();
            for n in 0..10 {
                let payload = format!("{task}/{n}");
                let published = client.publish("shared", payload.clone()).await.unwrap();
                numbers.push((published.sequence, payload));
            }
            assert!(numbers.is_sorted_by_key(|(sequence, _)| *sequence));
            numbers
        });
    }
    let told: BTreeSet<_> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(told.len(), 1_000);
    let payloads: Vec<String> = told.into_iter().map(|(_, payload)| payload).collect();
    assert_eq!(stored(&client, "shared").await, payloads);
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn closing_delivers_what_was_accepted() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let publisher = client.publisher();
    let mut acks = Vec::new();
    for n in 0..3_000 {
        acks.push(publisher.send(message("kept", n)).await.unwrap());
    }
    client.close().await.unwrap();
    for ack in acks {
        ack.await.unwrap();
    }
    let late = publisher.send(message("kept", "late")).await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::ShuttingDown);
    let client = node.client().await;
    assert_eq!(stored(&client, "kept").await, numbers(0..3_000));
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_publisher_whose_client_is_gone_is_told_and_does_not_wait_for_ever() {
    let node = Node::in_memory().await;
    // Its task has not begun when the client goes.
    let publisher = node.client().await.publisher();
    let told = match publisher.send(message("t", "x")).await {
        Ok(ack) => ack.await.map(drop),
        Err(error) => Err(error),
    };
    assert!(told.is_err());
    node.stop().await;
}

#[tokio::test]
async fn a_shutdown_that_was_passed_in_is_a_clean_end_too() {
    let node = Node::in_memory().await;
    let (stop, stopped) = oneshot::channel::<()>();
    let builder = Client::builder().url(node.url()).shutdown(async {
        let _ = stopped.await;
    });
    let client = builder.connect().await.unwrap();
    let publisher = client.publisher();
    let ack = publisher
        .send_all((0..500).map(|n| message("t", n)).collect())
        .await
        .unwrap();
    stop.send(()).unwrap();
    let summary = ack.await.unwrap();
    assert_eq!((summary.stored, summary.failed), (500, 0));
    while publisher.send(message("t", "late")).await.is_ok() {
        tokio::task::yield_now().await;
    }
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_small_memory_bound_makes_senders_wait_and_loses_nothing() {
    let node = Node::in_memory().await;
    let builder = Client::builder()
        .url(node.url())
        .publish_memory_bytes(10_000);
    let client = builder.connect().await.unwrap();
    let publisher = client.publisher();
    let messages = (0..5_000).map(|n| message("narrow", n)).collect();
    let ack = publisher.send_all(messages).await.unwrap();
    publisher.flush().await.unwrap();
    assert_eq!(ack.await.unwrap().stored, 5_000);
    assert_eq!(stored(&client, "narrow").await, numbers(0..5_000));
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn many_senders_that_wait_for_room_keep_each_its_order_and_lose_nothing() {
    let node = Node::in_memory().await;
    let builder = Client::builder().url(node.url()).publish_memory_bytes(500);
    let client = builder.connect().await.unwrap();
    let mut tasks = JoinSet::new();
    for sender in 0..20 {
        let publisher = client.publisher();
        tasks.spawn(async move {
            let topic = TopicName::new("full", &Limits::DEFAULT).unwrap();
            let mut acks = Vec::new();
            for n in 0..50 {
                let payload = format!("{sender}/{n}");
                let ack = match n % 2 {
                    0 => publisher.send_ref(&topic, payload.as_bytes()).await,
                    _ => publisher.send(message("full", payload)).await,
                };
                acks.push(ack.unwrap());
            }
            let mut numbers = Vec::new();
            for ack in acks {
                numbers.push(ack.await.unwrap().sequence);
            }
            assert!(numbers.is_sorted_by(|a, b| a < b));
        });
    }
    tasks.join_all().await;
    let payloads = stored(&client, "full").await;
    assert_eq!(payloads.len(), 1_000);
    for sender in 0..20 {
        let own = payloads.iter().filter_map(|payload| {
            let (from, n) = payload.split_once('/')?;
            (from == sender.to_string()).then(|| n.to_owned())
        });
        assert_eq!(own.collect::<Vec<_>>(), numbers(0..50));
    }
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn one_that_stops_waiting_for_room_has_sent_nothing_and_does_not_hold_up_the_others() {
    let node = Node::in_memory().await;
    let builder = Client::builder().url(node.url()).publish_memory_bytes(1);
    let client = builder.connect().await.unwrap();
    let publisher = client.publisher();
    for n in 0..200 {
        let mut sending = Box::pin(publisher.send(message("t", format!("dropped {n}"))));
        let taken = futures::poll!(&mut sending).is_ready();
        drop(sending);
        if !taken {
            drop(publisher.send(message("t", "kept")).await.unwrap());
        }
    }
    publisher.flush().await.unwrap();
    let payloads = stored(&client, "t").await;
    let kept = payloads.iter().filter(|payload| *payload == "kept").count();
    assert!(
        kept > 0 && payloads.len() == 200,
        "{kept} of {}",
        payloads.len()
    );
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn batches_hold_what_single_reading_gives_and_both_may_be_mixed() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut subscription = client.subscribe("t").open().await.unwrap();
    let publisher = client.publisher();
    let messages = (0..2_000).map(|n| message("t", n)).collect();
    let ack = publisher.send_all(messages).await.unwrap();
    assert_eq!(ack.await.unwrap().stored, 2_000);
    let mut payloads = Vec::new();
    while payloads.len() < 2_000 {
        payloads.extend(crate::node::take(&mut subscription, 1).await);
        if payloads.len() == 2_000 {
            break;
        }
        match subscription.next_batch().await.unwrap() {
            Some(Items::Messages(batch)) => {
                let texts = batch
                    .iter()
                    .map(|(_, record)| crate::node::text(record.payload));
                payloads.extend(texts);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(payloads, numbers(0..2_000));
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_refused_message_names_its_fault_and_the_others_go_on() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let large = client.publish("t", vec![0; 2 << 20]).await.unwrap_err();
    assert_eq!(large.code(), ErrorCode::MessageTooLarge);
    assert_eq!(
        (large.found(), large.expected()),
        ("2097152 bytes", "1048576 bytes")
    );
    let topic = client.publish("a\nb", "x").await.unwrap_err();
    assert_eq!(
        (topic.code(), topic.field_name()),
        (ErrorCode::TopicInvalid, "topic")
    );
    let twice = client
        .publish("t", "x")
        .attribute("a", 1)
        .attribute("a", 2)
        .await
        .unwrap_err();
    assert_eq!(twice.code(), ErrorCode::AttributesInvalid);
    let nowhere = client
        .publish("t", "x")
        .namespace("nowhere")
        .await
        .unwrap_err();
    assert_eq!(nowhere.code(), ErrorCode::NamespaceNotFound);
    assert_eq!(nowhere.found(), "nowhere");
    client.publish("t", "good").await.unwrap();
    assert_eq!(stored(&client, "t").await, ["good"]);
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn messages_of_a_deleted_namespace_fail_and_those_of_others_do_not() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    client
        .admin()
        .create("gone", Some(3), None, None)
        .await
        .unwrap();
    client.publish("t", "x").namespace("gone").await.unwrap();
    let mut subscription = client
        .subscribe("t")
        .namespace("gone")
        .open()
        .await
        .unwrap();
    client.admin().delete("gone", None).await.unwrap();
    let refused = client
        .publish("t", "y")
        .namespace("gone")
        .await
        .unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NamespaceNotFound);
    let ended = subscription.next().await.unwrap_err();
    assert_eq!(ended.code(), ErrorCode::NamespaceNotFound);
    assert_eq!(subscription.next().await.unwrap(), None);
    client.publish("t", "z").await.unwrap();
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn topics_over_many_logs_keep_their_order() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    client
        .admin()
        .create("wide", Some(16), None, None)
        .await
        .unwrap();
    let publisher = client.publisher().namespace("wide");
    let messages = (0..4_000)
        .map(|n| message(&format!("t{}", n % 40), n / 40))
        .collect();
    let ack = publisher.send_all(messages).await.unwrap();
    assert_eq!(ack.await.unwrap().stored, 4_000);
    for topic in 0..40 {
        let mut history = client
            .history(&format!("t{topic}"))
            .namespace("wide")
            .open()
            .unwrap();
        let mut payloads = Vec::new();
        while let Some(airmail_client::Item::Message(message)) = history.next().await.unwrap() {
            payloads.push(crate::node::text(&message.payload));
        }
        assert_eq!(payloads, numbers(0..100));
    }
    let mut topics = client.topics().namespace("wide").prefix("t1");
    let mut names = Vec::new();
    while let Some(topic) = topics.next().await.unwrap() {
        names.push(topic.name);
    }
    assert!(names.is_sorted() && names.len() == 11, "{names:?}");
    client.close().await.unwrap();
    node.stop().await;
}
