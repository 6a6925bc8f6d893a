//! Refusals of a publish by the authorizer or the admission, as a user of the SDK meets them: the error with its
//! facts, the next message stored, nothing stored that was refused.

use crate::node::Node;
use airmail_broker::{Action, Admission, Admit, Authorizer, Cost, Grant, MailboxAction, Principal};
use airmail_client::mailbox::{
    AccountId, LeaseId, MessageId, Outgoing, QueueId, Receipt, Receive, Recipients,
};
use airmail_client::{Client, Error, ErrorCode, Item, Start};
use airmail_model::Now;
use airmail_node::Access;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Refuses one publish, with the error that it is given.
#[derive(Clone, Default)]
struct Once(Arc<Mutex<Option<Error>>>);

impl Once {
    fn refuse(&self, code: ErrorCode) {
        let error = Error::new(code).field("topic").value("t").limit("not now");
        let error = error.retry_after(Duration::from_millis(5));
        *self.0.lock() = Some(error);
    }
}

impl Authorizer for Once {
    fn authorize(&self, _: &Principal, action: Action) -> Result<Grant, Error> {
        let publish = matches!(action, Action::Publish(_));
        let refusal = publish.then(|| self.0.lock().take());
        refusal.flatten().map_or(Ok(Grant::default()), Err)
    }
}

impl Admission for Once {
    fn admit(&mut self, _: Now, _: &Principal, cost: Cost) -> Admit {
        let publish = cost.bytes > 0;
        let refusal = publish.then(|| self.0.lock().take());
        refusal.flatten().map_or(Admit::Go, Admit::Refuse)
    }
}

async fn guarded(access: Access) -> (Node, Client) {
    let node = Node::guarded(access).await;
    let client = node.client().await;
    (node, client)
}

async fn end(node: Node, client: Client) {
    client.close().await.unwrap();
    node.stop().await;
}

async fn payloads(client: &Client) -> Vec<String> {
    let mut past = client.history("t").since(Start::Earliest).open().unwrap();
    let mut all = Vec::new();
    while let Some(item) = past.next().await.unwrap() {
        if let Item::Message(message) = item {
            all.push(String::from_utf8_lossy(&message.payload).into_owned());
        }
    }
    all
}

#[tokio::test]
async fn who_may_not_publish_is_told_and_the_connection_goes_on() {
    let authorizer = Once::default();
    let (node, client) = guarded(Access {
        authorizer: Arc::new(authorizer.clone()),
        ..Access::default()
    })
    .await;
    for code in [ErrorCode::PermissionDenied, ErrorCode::Unauthenticated] {
        authorizer.refuse(code);
        let error = client.publish("t", "refused").await.unwrap_err();
        assert_eq!(error.code(), code);
        let facts = (error.field_name(), error.found(), error.expected());
        assert_eq!(facts, ("topic", "t", "not now"));
        client.publish("t", code.name()).await.unwrap();
    }
    let stored = ["PERMISSION_DENIED", "UNAUTHENTICATED"];
    assert_eq!(payloads(&client).await, stored);
    end(node, client).await;
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_stored_once() {
    let admission = Once::default();
    let of_shard = admission.clone();
    let (node, client) = guarded(Access {
        admission: Box::new(move || Box::new(of_shard.clone())),
        ..Access::default()
    })
    .await;
    let passing = [
        ErrorCode::Overloaded,
        ErrorCode::StorageFailed,
        ErrorCode::StorageFull,
        ErrorCode::LogSealed,
        ErrorCode::Elsewhere,
        ErrorCode::Unavailable,
    ];
    for code in passing {
        admission.refuse(code);
        client.publish("t", code.name()).await.unwrap();
        assert!(admission.0.lock().is_none(), "{code:?} was not met");
    }
    let stored: Vec<&str> = passing.iter().map(|code| code.name()).collect();
    assert_eq!(payloads(&client).await, stored);
    end(node, client).await;
}

#[tokio::test]
async fn what_has_an_unknown_outcome_is_sent_again_and_stored_once() {
    let admission = Once::default();
    let of_shard = admission.clone();
    let (node, client) = guarded(Access {
        admission: Box::new(move || Box::new(of_shard.clone())),
        ..Access::default()
    })
    .await;
    admission.refuse(ErrorCode::OutcomeUnknown);
    client.publish("t", "first").await.unwrap();
    client.publish("t", "second").await.unwrap();
    assert_eq!(payloads(&client).await, ["first", "second"]);
    end(node, client).await;
}

/// Nobody may do anything with mailboxes but what is noted here.
struct OnlyThis(MailboxAction);

impl Authorizer for OnlyThis {
    fn authorize(&self, _: &Principal, action: Action) -> Result<Grant, Error> {
        match action {
            Action::Mailbox(action) if action != self.0 => {
                Err(Error::new(ErrorCode::PermissionDenied).field("action"))
            }
            _ => Ok(Grant::default()),
        }
    }
}

#[tokio::test]
async fn every_request_of_mailboxes_asks_whether_it_may_be_made() {
    let (queue, me, other) = (QueueId(1), AccountId(1), AccountId(2));
    let asked = [
        MailboxAction::Ping,
        MailboxAction::Administer,
        MailboxAction::See,
        MailboxAction::Send(queue, me),
        MailboxAction::Receive(queue, me),
        MailboxAction::Find(me),
        MailboxAction::Settle,
    ];
    for allowed in asked {
        let access = Access {
            authorizer: Arc::new(OnlyThis(allowed)),
            ..Access::default()
        };
        let (node, client) = guarded(access).await;
        let mailbox = client.mailbox();
        let receipt = Receipt {
            message: MessageId(1),
            lease: LeaseId(1),
        };
        let denied = |code: Option<ErrorCode>| code == Some(ErrorCode::PermissionDenied);
        let from = |who| Outgoing::new(queue, who, Recipients::Broadcast, "text");
        let as_other = Receive::new(queue, other);
        let as_me = Receive::new(queue, me);
        let at_once = Duration::ZERO;
        let answers = [
            mailbox.ping("x").await.err(),
            mailbox.create_account("me").await.err(),
            mailbox.find_account("me").await.err(),
            mailbox.send(from(me)).await.err(),
            mailbox.receive(as_me, at_once).await.err(),
            mailbox.find_from(other, me).await.err(),
            mailbox.acknowledge(receipt).await.err(),
        ];
        for (action, error) in asked.iter().zip(answers) {
            let code = error.map(|error| error.code());
            assert_eq!(denied(code), *action != allowed, "{action:?}: {code:?}");
        }
        // Who may act as one account may not as another.
        let others = [
            mailbox.send(from(other)).await.err(),
            mailbox.receive(as_other, at_once).await.err(),
            mailbox.find_from(me, other).await.err(),
        ];
        assert!(
            others
                .into_iter()
                .all(|error| denied(error.map(|e| e.code())))
        );
        end(node, client).await;
    }
}
