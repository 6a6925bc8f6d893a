//! Messages for some roles, for clients without an SDK.

use crate::node::{Node, hello, message};
use airmail_model::ErrorCode;
use airmail_node::config::Config;
use airmail_proto::error::error_from_status;
use airmail_proto::v1;
use airmail_proto::v1::start::At;
use tonic::Status;

async fn publish(node: &Node, payload: &str, audience: &[u32]) -> Result<(), Status> {
    let request = v1::PublishOneRequest {
        namespace: String::new(),
        message: Some(v1::Message {
            audience: audience.to_vec(),
            ..message("t", payload)
        }),
    };
    node.client().publish_one(request).await.map(drop)
}

#[tokio::test]
async fn plain_messages_come_to_who_has_a_role_that_they_are_for() {
    let node = Node::with(Config {
        log_url: "memory:".into(),
        trust_roles: true,
        ..Config::default()
    })
    .await;
    let name = || "cook".to_owned();
    let mut admin = node.admin();
    let made = admin.create_role(v1::CreateRoleRequest { name: name() });
    let made = made.await.unwrap().into_inner();
    assert_eq!((made.name.as_str(), made.id), ("cook", 1));
    let found = admin.get_role(v1::GetRoleRequest { name: name() }).await;
    assert_eq!(found.unwrap().into_inner(), made);
    let listed = admin.list_roles(v1::ListRolesRequest {}).await;
    assert_eq!(listed.unwrap().into_inner().roles, [made]);
    publish(&node, "secret", &[1]).await.unwrap();
    publish(&node, "open", &[]).await.unwrap();
    let error = publish(&node, "nobody's", &[1, 7]).await.unwrap_err();
    let error = error_from_status(&error);
    let facts = (error.code(), error.field_name(), error.found());
    assert_eq!(facts, (ErrorCode::RoleNotFound, "role", "7"));

    let roles = [vec![name()], Vec::new()];
    for (roles, expected) in roles.into_iter().zip([&["secret", "open"][..], &["open"]]) {
        let mut subscriber = node.subscriber().await;
        let hello = v1::ClientHello {
            features: vec!["roles".into()],
            roles: roles.clone(),
            ..hello()
        };
        subscriber.greet_with(hello).await;
        subscriber.add(0, "t", At::Earliest(true)).await;
        let messages = subscriber.messages(expected.len()).await;
        let payloads: Vec<&[u8]> = messages.iter().map(|of| &*of.payload).collect();
        assert_eq!(
            payloads,
            expected.iter().map(|of| of.as_bytes()).collect::<Vec<_>>()
        );
        let request = v1::HistoryRequest {
            topic: "t".into(),
            roles,
            ..Default::default()
        };
        assert_eq!(node.history_of(request).await, expected);
    }
    let deleted = admin.delete_role(v1::DeleteRoleRequest { name: name() });
    deleted.await.unwrap();
    node.stop().await;
}
