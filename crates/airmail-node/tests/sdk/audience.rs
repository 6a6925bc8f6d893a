//! Messages for some roles, as users of the SDK see them.

use crate::node::{Node, take};
use airmail_client::{Client, ErrorCode, Item, ManyItem, Start};
use airmail_testkit::waiting::waiting;

async fn client_with(node: &Node, roles: &[&str]) -> Client {
    let builder = Client::builder().url(node.url()).roles(roles.to_vec());
    builder.connect().await.unwrap()
}

#[tokio::test]
async fn a_client_gets_what_is_for_its_roles_by_every_way_it_reads() {
    let _waiting = waiting("messages for some roles");
    let node = Node::that_has("security.trust_roles", "true").await;
    let (cook, other) = (
        client_with(&node, &["cook"]).await,
        client_with(&node, &[]).await,
    );
    let role = other.admin().create_role("cook").await.unwrap();
    assert_eq!(other.admin().role("cook").await.unwrap(), role);
    let mut live = cook.subscribe("t").open().await.unwrap();
    let mut live_of_other = other.subscribe("t").open().await.unwrap();
    let mut many = cook.subscribe_many(["t", "u"]).open().await.unwrap();
    let secret = other.publish("t", "secret").for_roles([role.id]);
    secret.await.unwrap();
    other.publish("t", "open").await.unwrap();
    assert_eq!(take(&mut live, 2).await, ["secret", "open"]);
    assert_eq!(take(&mut live_of_other, 1).await, ["open"]);
    for expected in ["secret", "open"] {
        match many.next().await.unwrap() {
            Some(ManyItem::Message(message)) => assert_eq!(message.payload, expected),
            got => panic!("{got:?}"),
        }
    }
    for (client, expected) in [(&cook, &["secret", "open"][..]), (&other, &["open"])] {
        let late = client.subscribe("t").from(Start::Earliest);
        let mut late = late.open().await.unwrap();
        assert_eq!(take(&mut late, expected.len()).await, expected);
        let mut history = client.history("t").open().unwrap();
        let mut got = Vec::new();
        while let Some(item) = history.next().await.unwrap() {
            match item {
                Item::Message(message) => got.push(message.payload),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(got, expected);
    }
    let nobody = other
        .publish("t", "x")
        .for_roles([airmail_model::RoleId(9)]);
    let error = nobody.await.unwrap_err();
    assert_eq!(
        (error.code(), error.found()),
        (ErrorCode::RoleNotFound, "9")
    );
    other.admin().delete_role("cook").await.unwrap();
    assert_eq!(other.admin().roles().await.unwrap(), []);
    for client in [cook, other] {
        client.close().await.unwrap();
    }
    node.stop().await;
}

#[tokio::test]
async fn a_role_that_is_not_believed_or_not_known_ends_what_was_asked() {
    let trusting = Node::that_has("security.trust_roles", "true").await;
    let node = Node::in_memory().await;
    let cases = [
        (&node, ErrorCode::PermissionDenied),
        (&trusting, ErrorCode::RoleNotFound),
    ];
    for (node, code) in cases {
        let client = client_with(node, &["cook"]).await;
        let error = client.subscribe("t").open().await.unwrap_err();
        assert_eq!((error.code(), error.found()), (code, "cook"));
        let error = client
            .history("t")
            .open()
            .unwrap()
            .next()
            .await
            .unwrap_err();
        assert_eq!((error.code(), error.found()), (code, "cook"));
        // To publish no role is needed.
        client.publish("t", "x").await.unwrap();
        client.close().await.unwrap();
    }
    trusting.stop().await;
    node.stop().await;
}
