//! Sets, through a gateway whose tower is another process and knows nothing of them; and the bench that holds a node to them.

use crate::cluster::{gateway, tower};
use airmail_client::{AttributeValue, Client, SetItem, SetMember, SubscriptionSet};
use airmail_testkit::node::{self, Node, airmail};

async fn publish(client: &Client, topic: &str, price: i64) {
    let published = client.publish(topic, price.to_string());
    let published = published.attribute("price", AttributeValue::Integer(price));
    published.await.unwrap();
}

async fn payload(set: &mut SubscriptionSet) -> (usize, String) {
    match set.next().await.unwrap() {
        Some(SetItem::Message(members, message)) => {
            let payload = String::from_utf8(message.payload.to_vec()).unwrap();
            (members.len(), payload)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_comes_once_for_all_members_and_a_changed_filter_holds_from_its_place_on() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(&directory.path().join("data"), &[]);
    let front = gateway("front", &tower, &[]);
    let url = |node: &Node| format!("airmail://{}", node.grpc);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let publisher = Client::connect(&url(&tower)).await.unwrap();
        let client = Client::connect(&url(&front)).await.unwrap();
        let mut set = client.subscription_set().open().await.unwrap();
        let cheap = set.add(SetMember::prefix("q/", "price < 10")).unwrap();
        let all = set.add(SetMember::everything("has price")).unwrap();
        for _ in 0..2 {
            assert!(matches!(set.next().await, Ok(Some(SetItem::Ready(_)))));
        }
        for price in [5, 50] {
            publish(&publisher, "q/a", price).await;
        }
        assert_eq!(payload(&mut set).await, (2, "5".to_owned()));
        assert_eq!(payload(&mut set).await, (1, "50".to_owned()));
        set.change(cheap, "price > 10").unwrap();
        match set.next().await.unwrap() {
            Some(SetItem::Changed(member, from)) => {
                assert_eq!((member, from.logs[0].next.0), (cheap, 3));
            }
            other => panic!("{other:?}"),
        }
        for price in [5, 50] {
            publish(&publisher, "q/a", price).await;
        }
        assert_eq!(payload(&mut set).await, (1, "5".to_owned()));
        assert_eq!(payload(&mut set).await, (2, "50".to_owned()));
        assert_ne!(cheap, all);
        client.close().await.unwrap();
        publisher.close().await.unwrap();
    });
}

#[test]
fn a_node_in_two_processes_delivers_what_filters_match_that_change_and_nothing_else() {
    let ran = node::run(
        airmail().args([
            "bench",
            "filters",
            "--streams=8",
            "--filters=800",
            "--rate=2000",
            "--duration=2s",
            "--changes=200",
            "--apart",
        ]),
        b"",
    );
    let ran = ran.ok();
    assert!(ran.contains("400 changes of filters, 400 made"), "{ran}");
    assert!(
        ran.contains("missing 0, too much 0, out of order 0, gaps 0"),
        "{ran}"
    );
}
