//! Mailboxes through the SDK.

use crate::node::{Node, PATIENCE, Wire, text};
use airmail_client::mailbox::{
    AccountId, BATCH_MAX, CONTENT_BYTES_MAX, Mailbox, MessageId, Outgoing, QueueId, QueueSettings,
    Receive, Recipients, Selection, Settle, Take,
};
use airmail_client::{Client, Error, ErrorCode};
use airmail_testkit::lasting::lasting_address;
use std::time::Duration;

const LASTING: Take = Take::Lease { lease_ms: 600_000 };

struct World {
    node: Node,
    mailbox: Mailbox,
    queue: QueueId,
    alice: AccountId,
    bob: AccountId,
}

impl World {
    async fn new() -> World {
        let node = Node::in_memory().await;
        let mailbox = Mailbox::connect(&node.url()).await.unwrap();
        let settings = QueueSettings::default();
        World {
            queue: mailbox.create_queue("queue", settings).await.unwrap(),
            alice: mailbox.create_account("alice").await.unwrap(),
            bob: mailbox.create_account("bob").await.unwrap(),
            node,
            mailbox,
        }
    }

    fn message(&self, content: impl Into<Vec<u8>>) -> Outgoing {
        let to_bob = Recipients::Direct(self.bob);
        Outgoing::new(self.queue, self.alice, to_bob, content.into())
    }

    fn for_bob(&self) -> Receive {
        Receive::new(self.queue, self.bob)
    }

    async fn texts(&self, request: Receive) -> Vec<String> {
        let found = self.mailbox.receive(request, Duration::ZERO).await;
        let texts = found.unwrap().into_iter();
        texts.map(|message| text(&message.content)).collect()
    }
}

#[track_caller]
fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorCode {
    result.unwrap_err().code()
}

#[tokio::test]
async fn a_message_is_handed_out_as_it_was_sent() {
    let world = World::new().await;
    let message = Outgoing {
        priority: 9,
        key: Some("key".into()),
        lifetime_ms: Some(600_000),
        ..world.message([0, 159, 255])
    };
    let id = world.mailbox.send(message.clone()).await.unwrap();
    let request = world.for_bob().take(LASTING);
    let found = world.mailbox.receive(request, Duration::ZERO).await;
    let found = found.unwrap().remove(0);
    assert_eq!(found.id, id);
    assert_eq!((found.queue, found.origin), (world.queue, world.queue));
    assert_eq!(
        (found.sender, found.recipients),
        (world.alice, message.recipients)
    );
    assert_eq!((found.content, found.priority), (message.content, 9));
    assert_eq!((found.key.as_deref(), found.deliveries), (Some("key"), 1));
    assert_eq!(
        found.expires_at.unwrap().0,
        found.created_at.0 + 600_000_000
    );
    world.node.stop().await;
}

#[tokio::test]
async fn any_number_is_sent_in_order_and_each_stands_alone() {
    let world = World::new().await;
    let mut messages: Vec<Outgoing> = (0..2 * BATCH_MAX)
        .map(|n| world.message(n.to_string()))
        .collect();
    messages.insert(7, world.message(vec![0; CONTENT_BYTES_MAX + 1]));
    let nowhere = Outgoing {
        queue: QueueId(77),
        ..world.message("lost")
    };
    messages.insert(1500, nowhere);
    let sent = world.mailbox.send_all(messages).await;
    assert_eq!(sent.len(), 2 * BATCH_MAX + 2);
    assert_eq!(code(sent[7].clone()), ErrorCode::MessageTooLarge);
    assert_eq!(code(sent[1500].clone()), ErrorCode::QueueNotFound);
    let ids: Vec<MessageId> = sent.into_iter().filter_map(Result::ok).collect();
    assert!(ids.is_sorted() && ids.len() == 2 * BATCH_MAX);
    let mut expected = (0..2 * BATCH_MAX).map(|n| n.to_string());
    for _ in 0..2 {
        for received in world.texts(world.for_bob().count(BATCH_MAX)).await {
            assert_eq!(Some(received), expected.next());
        }
    }
    assert!(world.mailbox.send_all(Vec::new()).await.is_empty());
    world.node.stop().await;
}

#[tokio::test]
async fn leases_are_settled_one_by_one_and_together() {
    let world = World::new().await;
    let mailbox = &world.mailbox;
    let messages = ["a", "b", "c"].map(|content| world.message(content));
    mailbox.send_all(messages.to_vec()).await;
    let request = world.for_bob().count(3).take(LASTING);
    let leased = mailbox.receive(request, Duration::ZERO).await.unwrap();
    let second = Duration::from_secs(1);
    mailbox
        .extend(leased[0].receipt(), 600 * second)
        .await
        .unwrap();
    mailbox.acknowledge(leased[0].receipt()).await.unwrap();
    let again = mailbox.acknowledge(leased[0].receipt()).await;
    assert_eq!(code(again), ErrorCode::LeaseEnded);
    mailbox
        .release(leased[1].receipt(), Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(world.texts(world.for_bob()).await, ["b"]);
    let receipts: Vec<_> = leased.iter().filter_map(|one| one.receipt()).collect();
    let settled = mailbox
        .settle(&receipts, Settle::Acknowledge)
        .await
        .unwrap();
    let ended = |result: &Result<(), Error>| result.is_err();
    assert_eq!(
        settled.iter().map(ended).collect::<Vec<_>>(),
        [true, true, false]
    );
    mailbox.send(world.message("not leased")).await.unwrap();
    let shown = mailbox
        .receive(world.for_bob().take(Take::Peek), second)
        .await;
    let refused = mailbox.acknowledge(shown.unwrap()[0].receipt()).await;
    assert_eq!(code(refused), ErrorCode::InvalidArgument);
    world.node.stop().await;
}

#[tokio::test]
async fn accounts_queues_and_what_they_hold_are_found_and_told() {
    let world = World::new().await;
    let mailbox = &world.mailbox;
    assert_eq!(mailbox.ping("hello").await.unwrap(), "hello");
    assert_eq!(mailbox.find_account("bob").await.unwrap(), world.bob);
    assert_eq!(mailbox.find_queue("queue").await.unwrap(), world.queue);
    let accounts = mailbox.accounts(Selection::These(vec![world.bob])).await;
    assert_eq!(accounts.unwrap()[0].name.as_str(), "bob");
    let page = Selection::After {
        id: QueueId(0),
        limit: 5,
    };
    assert_eq!(mailbox.queues(page).await.unwrap()[0].id, world.queue);
    let recipients = Recipients::Direct(world.bob);
    let none = mailbox.queues_for(recipients).await;
    assert_eq!(code(none), ErrorCode::NoQueuesFound);
    let id = mailbox.send(world.message("x")).await.unwrap();
    assert_eq!(mailbox.queues_for(recipients).await.unwrap(), [world.queue]);
    assert_eq!(mailbox.counts(world.queue).await.unwrap().ready, 1);
    let found = mailbox.find_from(world.alice, world.bob).await.unwrap();
    assert_eq!(found.id, id);
    assert_eq!(mailbox.look_up(id, world.bob).await.unwrap().id, id);
    let refused = mailbox.look_up(id, world.alice).await;
    assert_eq!(code(refused), ErrorCode::NoPermissionToRead);
    let refused = mailbox.delete_account(world.bob, false).await;
    assert_eq!(code(refused), ErrorCode::AccountNotEmpty);
    assert_eq!(mailbox.purge(world.queue).await.unwrap(), 1);
    mailbox.delete_account(world.bob, false).await.unwrap();
    mailbox.delete_queue(world.queue, true).await.unwrap();
    let gone = mailbox.find_queue("queue").await;
    assert_eq!(code(gone), ErrorCode::QueueNotFound);
    world.node.stop().await;
}

#[tokio::test]
async fn a_reader_that_waits_is_sent_away_by_a_stop_and_waits_on_at_the_node_that_comes_back() {
    let data = tempfile::tempdir().unwrap();
    let address = lasting_address();
    let node = Node::on(data.path(), &address).await;
    let builder = Client::builder().url(node.url()).connect_timeout(PATIENCE);
    let client = builder.connect().await.unwrap();
    let mailbox = client.mailbox();
    let settings = QueueSettings::default();
    let queue = mailbox.create_queue("queue", settings).await.unwrap();
    let bob = mailbox.create_account("bob").await.unwrap();
    let waiting = mailbox.receive(Receive::new(queue, bob), PATIENCE);
    let others = async {
        // It may or may not wait already: either way it gets the message.
        tokio::time::sleep(Duration::from_millis(200)).await;
        node.stop().await;
        let node = Node::on(data.path(), &address).await;
        let message = Outgoing::new(queue, bob, Recipients::Direct(bob), "late");
        mailbox.send(message).await.unwrap();
        node
    };
    let (received, node) = tokio::join!(waiting, others);
    assert_eq!(received.unwrap()[0].content, "late");
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_change_whose_answer_is_lost_is_told_as_unknown() {
    let world = World::new().await;
    let wire = Wire::to(world.node.address).await;
    let url = format!("airmail://{}", wire.address);
    let far = Mailbox::connect(&url).await.unwrap();
    let cutter = wire.cutter();
    let waiting = far.receive(world.for_bob(), PATIENCE);
    // Again and again, since nobody tells when the request is on its way.
    let cut = async {
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cutter.cut();
        }
    };
    let received = tokio::select! {
        received = waiting => received,
        never = cut => never,
    };
    assert_eq!(code(received), ErrorCode::OutcomeUnknown);
    // A new connection is made, and the reader that is gone has taken nothing.
    world.mailbox.send(world.message("kept")).await.unwrap();
    let found = far.receive(world.for_bob(), PATIENCE).await.unwrap();
    assert_eq!(found[0].content, "kept");
    world.node.stop().await;
}
