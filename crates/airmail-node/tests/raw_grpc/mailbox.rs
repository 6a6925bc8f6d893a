//! Mailboxes as any gRPC client sees them: what is answered, and every error by its name.

use crate::node::Node;
use airmail_model::ErrorCode;
use airmail_proto::error::{error_from_status, request_id_of};
use airmail_proto::v1;
use airmail_proto::v1::mailbox_client::MailboxClient;
use airmail_proto::v1::receive_request::Take;
use tonic::transport::Channel;
use tonic::{Response, Status};

/// A queue, who sends and who receives, in a node.
struct World {
    node: Node,
    client: MailboxClient<Channel>,
    queue: i32,
    alice: i32,
    bob: i32,
}

impl World {
    async fn new() -> World {
        World::on(Node::in_memory().await).await
    }

    async fn on(node: Node) -> World {
        let mut client = MailboxClient::new(node.channel.clone())
            .max_encoding_message_size(usize::MAX)
            .max_decoding_message_size(4 << 20);
        let account = async |client: &mut MailboxClient<Channel>, name: &str| {
            let name = name.to_owned();
            let created = client.create_account(v1::CreateAccountRequest { name });
            created.await.unwrap().into_inner().id
        };
        let (alice, bob) = (
            account(&mut client, "alice").await,
            account(&mut client, "bob").await,
        );
        let name = "queue".to_owned();
        let settings = None;
        let created = client.create_queue(v1::CreateQueueRequest { name, settings });
        World {
            queue: created.await.unwrap().into_inner().id,
            node,
            client,
            alice,
            bob,
        }
    }

    fn message(&self, content: impl Into<Vec<u8>>) -> v1::OutgoingMessage {
        v1::OutgoingMessage {
            queue: self.queue,
            from: self.alice,
            to: self.bob,
            content: content.into().into(),
            ..Default::default()
        }
    }

    async fn send(&mut self, messages: Vec<v1::OutgoingMessage>) -> Vec<v1::SendResult> {
        let sent = self.client.send(v1::SendRequest { messages }).await;
        sent.unwrap().into_inner().results
    }

    fn for_bob(&self) -> v1::ReceiveRequest {
        v1::ReceiveRequest {
            queue: self.queue,
            reader: self.bob,
            ..Default::default()
        }
    }

    /// The pieces of an answer.
    async fn receive(
        &mut self,
        request: v1::ReceiveRequest,
    ) -> Result<Vec<Vec<v1::MailboxMessage>>, Status> {
        let mut answer = self.client.receive(request).await?.into_inner();
        let mut pieces = Vec::new();
        while let Some(piece) = answer.message().await? {
            pieces.push(piece.messages);
        }
        Ok(pieces)
    }
}

/// The code of a refusal, which has a request id.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Status>) -> ErrorCode {
    let status = result.unwrap_err();
    let error = error_from_status(&status);
    assert!(
        status.message().starts_with(error.code().name()),
        "{status:?}"
    );
    assert!(!request_id_of(&status).is_empty(), "{status:?}");
    assert_eq!(status.code() as i32, error.code().grpc() as i32);
    error.code()
}

fn get<T>(answer: Response<T>) -> T {
    answer.into_inner()
}

#[tokio::test]
async fn an_unknown_request_is_told_by_its_name() {
    let world = World::new().await;
    let mut grpc = tonic::client::Grpc::new(world.node.channel.clone());
    grpc.ready().await.unwrap();
    let path = "/airmail.v1.Mailbox/Juggle".parse().unwrap();
    let codec = tonic_prost::ProstCodec::<v1::PingRequest, v1::PingResponse>::default();
    let request = tonic::Request::new(v1::PingRequest::default());
    let answer = grpc.unary(request, path, codec).await;
    let status = answer.unwrap_err();
    let error = error_from_status(&status);
    assert_eq!(error.code(), ErrorCode::UnknownRequestType, "{status:?}");
    assert_eq!(error.found(), "Juggle");
    world.node.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_an_account_or_queue_is_told_by_name() {
    let mut world = World::new().await;
    let (queue, bob) = (world.queue, world.bob);
    world.send(vec![world.message("x")]).await;
    let client = &mut world.client;
    let name = || "alice".to_owned();
    let again = client.create_account(v1::CreateAccountRequest { name: name() });
    assert_eq!(refused(again.await), ErrorCode::AccountNameExists);
    let request = v1::CreateQueueRequest {
        name: "queue".into(),
        settings: None,
    };
    let again = client.create_queue(request).await;
    assert_eq!(refused(again), ErrorCode::QueueNameExists);
    let nobody = v1::FindAccountRequest { name: "x".into() };
    let found = client.find_account(nobody).await;
    assert_eq!(refused(found), ErrorCode::AccountNotFound);
    let nothing = v1::FindQueueRequest { name: "x".into() };
    let found = client.find_queue(nothing).await;
    assert_eq!(refused(found), ErrorCode::QueueNotFound);
    let (id, force) = (queue, false);
    let deleted = client.delete_queue(v1::DeleteQueueRequest { id, force });
    assert_eq!(refused(deleted.await), ErrorCode::QueueNotEmpty);
    let id = bob;
    let deleted = client.delete_account(v1::DeleteAccountRequest { id, force });
    assert_eq!(refused(deleted.await), ErrorCode::AccountNotEmpty);
    let bad = v1::CreateAccountRequest {
        name: "n".repeat(256),
    };
    let created = client.create_account(bad).await;
    assert_eq!(refused(created), ErrorCode::InvalidArgument);
    let listed = client.list_accounts(v1::ListAccountsRequest::default());
    let accounts = get(listed.await.unwrap()).accounts;
    let names: Vec<&str> = accounts.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["alice", "bob"]);
    world.node.stop().await;
}

#[tokio::test]
async fn what_is_not_there_to_be_read_is_told_by_name() {
    let mut world = World::new().await;
    let (queue, alice, bob) = (world.queue, world.alice, world.bob);
    let request = world.for_bob();
    assert_eq!(
        refused(world.receive(request).await),
        ErrorCode::QueueIsEmpty
    );
    let (from, reader) = (alice, bob);
    let client = &mut world.client;
    let found = client.find_message(v1::FindMessageRequest { from, reader });
    assert_eq!(refused(found.await), ErrorCode::NoMessageFound);
    let found = client.find_queues(v1::FindQueuesRequest { reader });
    assert_eq!(refused(found.await), ErrorCode::NoQueuesFound);
    let sent = world.send(vec![world.message("for bob")]).await;
    let Some(v1::send_result::Kind::Id(id)) = sent[0].kind else {
        panic!("{sent:?}");
    };
    let reader = alice;
    let client = &mut world.client;
    let shown = client.look_up_message(v1::LookUpMessageRequest { id, reader });
    assert_eq!(refused(shown.await), ErrorCode::NoPermissionToRead);
    let reader = bob;
    let shown = client.look_up_message(v1::LookUpMessageRequest { id, reader });
    assert_eq!(
        get(shown.await.unwrap()).message.unwrap().content,
        "for bob"
    );
    let found = client.find_queues(v1::FindQueuesRequest { reader });
    assert_eq!(get(found.await.unwrap()).queues, [queue]);
    for (queue, reader, code) in [
        (77, bob, ErrorCode::QueueNotFound),
        (queue, 77, ErrorCode::AccountNotFound),
    ] {
        let request = v1::ReceiveRequest {
            queue,
            reader,
            ..Default::default()
        };
        assert_eq!(refused(world.receive(request).await), code);
    }
    let long = v1::ReceiveRequest {
        wait_ms: u64::MAX,
        ..world.for_bob()
    };
    assert_eq!(
        refused(world.receive(long).await),
        ErrorCode::InvalidArgument
    );
    world.node.stop().await;
}

#[tokio::test]
async fn of_many_messages_each_is_sent_or_refused_by_itself() {
    let mut world = World::new().await;
    let nowhere = v1::OutgoingMessage {
        queue: 77,
        ..world.message("lost")
    };
    let large = world.message(vec![0; (1 << 20) + 1]);
    let sent = vec![world.message("1"), nowhere, large, world.message("2")];
    let results = world.send(sent).await;
    let names: Vec<&str> = results
        .iter()
        .map(|result| match result.kind.as_ref().unwrap() {
            v1::send_result::Kind::Id(_) => "sent",
            v1::send_result::Kind::Error(error) => error.name.as_str(),
        })
        .collect();
    assert_eq!(
        names,
        ["sent", "QUEUE_NOT_FOUND", "MESSAGE_TOO_LARGE", "sent"]
    );
    let too_large = v1::SendRequest {
        messages: vec![world.message(vec![0; 1 << 20]); 4],
    };
    let sent = world.client.send(too_large).await;
    assert_eq!(refused(sent), ErrorCode::BatchTooLarge);
    let none = world.client.send(v1::SendRequest::default()).await;
    assert_eq!(refused(none), ErrorCode::InvalidArgument);
    world.node.stop().await;
}

#[tokio::test]
async fn an_answer_comes_in_pieces_that_every_client_takes() {
    let mut world = World::new().await;
    for _ in 0..8 {
        world.send(vec![world.message(vec![7; 1 << 20])]).await;
    }
    let small = (0..100).map(|n| world.message(vec![7; n])).collect();
    world.send(small).await;
    let request = v1::ReceiveRequest {
        count: 1000,
        ..world.for_bob()
    };
    // The client takes 4 MiB at once with all that is around them, an answer has 4 MiB of content; the
    // first of the small ones is empty.
    for expected in [&[1, 1, 1, 1][..], &[1, 1, 1, 1, 1], &[99]] {
        let pieces = world.receive(request).await.unwrap();
        let lengths: Vec<usize> = pieces.iter().map(Vec::len).collect();
        assert_eq!(lengths, expected);
    }
    world.node.stop().await;
}

#[tokio::test]
async fn leases_are_extended_released_and_acknowledged_and_end() {
    let mut world = World::new().await;
    world.send(vec![world.message("work")]).await;
    let lease = v1::ReceiveRequest {
        take: Some(Take::LeaseMs(600_000)),
        ..world.for_bob()
    };
    let leased = world.receive(lease).await.unwrap()[0].remove(0);
    let receipts = vec![v1::MailboxReceipt {
        message: leased.id,
        lease: leased.lease,
    }];
    let request = v1::ExtendRequest {
        receipts: receipts.clone(),
        lease_ms: 700_000,
    };
    let extended = get(world.client.extend(request).await.unwrap());
    assert!(extended.results[0].error.is_none());
    let request = v1::ReleaseRequest {
        receipts: receipts.clone(),
        delay_ms: 0,
    };
    let released = get(world.client.release(request.clone()).await.unwrap());
    assert!(released.results[0].error.is_none());
    let again = get(world.client.release(request).await.unwrap());
    let error = again.results[0].error.as_ref().unwrap();
    assert_eq!(error.name, ErrorCode::LeaseEnded.name());
    let leased = world.receive(lease).await.unwrap()[0].remove(0);
    assert_eq!(leased.deliveries, 2);
    let receipts = vec![v1::MailboxReceipt {
        message: leased.id,
        lease: leased.lease,
    }];
    let request = v1::AcknowledgeRequest { receipts };
    let done = get(world.client.acknowledge(request).await.unwrap());
    assert!(done.results[0].error.is_none());
    let counted = v1::CountMessagesRequest { queue: world.queue };
    let counts = get(world.client.count_messages(counted).await.unwrap());
    assert_eq!((counts.ready, counts.leased), (0, 0));
    world.node.stop().await;
}

#[tokio::test]
async fn a_reader_that_waits_is_told_that_the_node_is_stopping() {
    let world = World::new().await;
    let mut client = world.client.clone();
    let request = v1::ReceiveRequest {
        wait_ms: 3_600_000,
        ..world.for_bob()
    };
    let waiting = async { client.receive(request).await.map(drop) };
    let stop = async {
        let address = world.node.running.http_address.unwrap();
        while !crate::services::get(address, "/metrics")
            .await
            .contains("airmail_mailbox_waiting_readers 1")
        {
            tokio::task::yield_now().await;
        }
        world.node.stop().await;
    };
    let (told, ()) = tokio::join!(waiting, stop);
    assert_eq!(refused(told), ErrorCode::ShuttingDown);
}

#[tokio::test]
async fn what_mailboxes_do_is_measured() {
    let mut world = World::new().await;
    world
        .send(vec![world.message("1"), world.message("2")])
        .await;
    let request = world.for_bob();
    world.receive(request).await.unwrap();
    let address = world.node.running.http_address.unwrap();
    let metrics = crate::services::get(address, "/metrics").await;
    for line in [
        r#"airmail_mailbox_requests_total{request="CreateAccount",code="OK"} 2"#,
        r#"airmail_mailbox_request_seconds_count{request="Receive"} 1"#,
        "airmail_mailbox_sent_messages_total 2",
        r#"airmail_mailbox_handed_out_messages_total{take="remove"} 1"#,
        "airmail_mailbox_waiting_readers 0",
        "airmail_mailbox_connections_max 1",
        "airmail_mailbox_queued_requests 0",
        "airmail_mailbox_store_requests_total 5",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    world.node.stop().await;
}
