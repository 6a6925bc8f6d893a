//! Claims about the requests of the Paštas report: sending, reading, finding.

use super::Fixture;
use super::fixture::{code, text};
use crate::Mailboxes;
use crate::id::MessageId;
use crate::message::{
    ANSWER_BYTES_MAX, BATCH_MAX, CONTENT_BYTES_MAX, Outgoing, Receive, Recipients, Take,
};
use airmail_model::ErrorCode;
use bytes::Bytes;
use std::time::Duration;

/// A ping returns its payload.
pub async fn a_ping_comes_back(mailboxes: Mailboxes) {
    assert_eq!(mailboxes.ping(Bytes::from_static(b"x")), "x");
}

/// Messages are handed out in the order in which they were sent.
pub async fn the_oldest_is_read_first(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let first = fixture.send("first").await;
    let second = fixture.send("second").await;
    assert!(second > first);
    assert_eq!(fixture.texts(fixture.for_bob()).await, ["first"]);
    fixture.send("third").await;
    assert_eq!(fixture.texts(fixture.for_bob()).await, ["second"]);
    assert_eq!(fixture.texts(fixture.for_bob()).await, ["third"]);
}

/// A peek shows the oldest, which stays.
pub async fn reading_without_removing_leaves_it(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    fixture.send("first").await;
    fixture.send("second").await;
    let peek = fixture.for_bob().take(Take::Peek);
    assert_eq!(fixture.texts(peek).await, ["first"]);
    assert_eq!(fixture.texts(peek.count(9)).await, ["first", "second"]);
    assert_eq!(fixture.texts(fixture.for_bob()).await, ["first"]);
    assert_eq!(fixture.texts(peek).await, ["second"]);
}

/// A message has the bytes, the sender, the time and the properties that it was sent with.
pub async fn a_message_is_as_it_was_sent(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let sizes = [0, 1, 200, 2000, 3000, 100_000, CONTENT_BYTES_MAX];
    for size in sizes {
        let content: Bytes = all_bytes.iter().copied().cycle().take(size).collect();
        let sent = Outgoing {
            content: content.clone(),
            priority: 3,
            key: Some("ключ".to_owned()),
            lifetime_ms: Some(600_000),
            ..fixture.message("")
        };
        let id = fixture.mailboxes.send(sent).await.unwrap();
        let shown = fixture.mailboxes.look_up(id, fixture.bob).await.unwrap();
        let found = fixture.receive(fixture.for_bob()).await.unwrap().remove(0);
        assert_eq!(
            (found.id, found.queue, found.origin),
            (id, fixture.queue, fixture.queue)
        );
        assert_eq!(
            (found.sender, found.recipients),
            (fixture.alice, Recipients::Direct(fixture.bob))
        );
        assert_eq!(found.content, content);
        assert_eq!((found.priority, found.key.as_deref()), (3, Some("ключ")));
        assert!(found.expires_at.unwrap() > found.created_at);
        assert_eq!((found.deliveries, found.lease), (1, None));
        assert_eq!(
            shown,
            crate::message::Message {
                deliveries: 0,
                ..found
            }
        );
    }
}

/// Nobody else gets a message that has a receiver.
pub async fn a_message_is_for_its_receiver_alone(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    fixture.send("for bob").await;
    let for_carol = Receive::new(fixture.queue, fixture.carol);
    assert!(fixture.texts(for_carol).await.is_empty());
    assert!(fixture.texts(for_carol.broadcast()).await.is_empty());
    assert!(
        fixture
            .texts(fixture.for_bob().broadcast())
            .await
            .is_empty()
    );
    assert!(
        fixture
            .texts(Receive::new(fixture.other, fixture.bob))
            .await
            .is_empty()
    );
    assert_eq!(fixture.texts(fixture.for_bob()).await, ["for bob"]);
}

/// Every account may read a broadcast, and whoever removes it removes it for all.
pub async fn a_broadcast_is_for_everyone_and_removed_once(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let recipients = Recipients::Broadcast;
    for content in ["one", "two"] {
        let message = Outgoing {
            recipients,
            ..fixture.message(content)
        };
        fixture.mailboxes.send(message).await.unwrap();
    }
    assert!(
        fixture.texts(fixture.for_bob()).await.is_empty(),
        "it is not for bob"
    );
    let for_bob = fixture.for_bob().broadcast();
    let for_carol = Receive::new(fixture.queue, fixture.carol).broadcast();
    assert_eq!(fixture.texts(for_bob.take(Take::Peek)).await, ["one"]);
    assert_eq!(fixture.texts(for_carol.take(Take::Peek)).await, ["one"]);
    assert_eq!(fixture.texts(for_carol).await, ["one"]);
    let found = fixture.receive(for_bob).await.unwrap();
    assert_eq!(
        (text(&found[0]).as_str(), found[0].recipients),
        ("two", Recipients::Broadcast)
    );
    assert!(fixture.texts(for_carol).await.is_empty());
}

/// An empty inbox gives an error that says so.
pub async fn an_empty_queue_says_so(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    for take in [Take::Peek, Take::Remove, Take::Lease { lease_ms: 1 }] {
        for request in [fixture.for_bob(), fixture.for_bob().broadcast()] {
            let nothing = fixture.receive(request.take(take)).await;
            assert_eq!(code(nothing), ErrorCode::QueueIsEmpty);
        }
    }
}

/// The oldest message from a sender is shown, whichever queue it is in.
pub async fn a_message_is_found_by_its_sender(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let find = || fixture.mailboxes.find_from(fixture.alice, fixture.bob);
    assert_eq!(code(find().await), ErrorCode::NoMessageFound);
    let from_carol = Outgoing {
        sender: fixture.carol,
        ..fixture.message("from carol")
    };
    fixture.mailboxes.send(from_carol).await.unwrap();
    let to_all = Outgoing {
        recipients: Recipients::Broadcast,
        ..fixture.message("to all")
    };
    fixture.mailboxes.send(to_all).await.unwrap();
    assert_eq!(code(find().await), ErrorCode::NoMessageFound);
    let elsewhere = Outgoing {
        queue: fixture.other,
        ..fixture.message("elsewhere")
    };
    fixture.mailboxes.send(elsewhere).await.unwrap();
    fixture.send("younger").await;
    for _ in 0..2 {
        let found = find().await.unwrap();
        assert_eq!(
            (text(&found).as_str(), found.queue),
            ("elsewhere", fixture.other)
        );
    }
    fixture
        .receive(Receive::new(fixture.other, fixture.bob))
        .await
        .unwrap();
    assert_eq!(text(&find().await.unwrap()), "younger");
}

/// Lists have the queues with messages for one account, or with broadcasts.
pub async fn the_queues_that_hold_something_are_listed(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let (to_bob, to_all) = (Recipients::Direct(fixture.bob), Recipients::Broadcast);
    let queues = |recipients| fixture.mailboxes.queues_for(recipients);
    assert_eq!(code(queues(to_bob).await), ErrorCode::NoQueuesFound);
    assert_eq!(code(queues(to_all).await), ErrorCode::NoQueuesFound);
    fixture.send("one").await;
    fixture.send("two").await;
    let elsewhere = Outgoing {
        queue: fixture.other,
        ..fixture.message("three")
    };
    fixture.mailboxes.send(elsewhere.clone()).await.unwrap();
    let broadcast = Outgoing {
        recipients: to_all,
        ..elsewhere
    };
    fixture.mailboxes.send(broadcast).await.unwrap();
    assert_eq!(
        queues(to_bob).await.unwrap(),
        [fixture.queue, fixture.other]
    );
    assert_eq!(queues(to_all).await.unwrap(), [fixture.other]);
    fixture.receive(fixture.for_bob().count(2)).await.unwrap();
    assert_eq!(queues(to_bob).await.unwrap(), [fixture.other]);
}

/// A direct message is shown by its number to its receiver alone, a broadcast to everyone.
pub async fn a_message_for_another_may_not_be_read(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let id = fixture.send("for bob").await;
    let look = |id, reader| fixture.mailboxes.look_up(id, reader);
    assert_eq!(
        code(look(id, fixture.carol).await),
        ErrorCode::NoPermissionToRead
    );
    assert_eq!(text(&look(id, fixture.bob).await.unwrap()), "for bob");
    let none = look(MessageId(id.0 + 1000), fixture.bob).await;
    assert_eq!(code(none), ErrorCode::NoMessageFound);
    let to_all = Outgoing {
        recipients: Recipients::Broadcast,
        ..fixture.message("to all")
    };
    let to_all = fixture.mailboxes.send(to_all).await.unwrap();
    assert_eq!(text(&look(to_all, fixture.carol).await.unwrap()), "to all");
    fixture.receive(fixture.for_bob()).await.unwrap();
    assert_eq!(code(look(id, fixture.bob).await), ErrorCode::NoMessageFound);
}

/// A request with good and bad messages stores the good ones.
pub async fn many_are_sent_at_once_and_each_stands_alone(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let mut messages: Vec<Outgoing> = (0..BATCH_MAX - 2)
        .map(|n| fixture.message(&n.to_string()))
        .collect();
    let queue = crate::id::QueueId(77);
    messages.insert(
        1,
        Outgoing {
            queue,
            ..fixture.message("lost")
        },
    );
    messages.insert(
        3,
        Outgoing {
            priority: 10,
            ..fixture.message("wrong")
        },
    );
    let results = fixture.mailboxes.send_all(messages).await.unwrap();
    let failed: Vec<(usize, ErrorCode)> = results
        .iter()
        .enumerate()
        .filter_map(|(at, result)| Some((at, result.as_ref().err()?.code())))
        .collect();
    assert_eq!(
        failed,
        [
            (1, ErrorCode::QueueNotFound),
            (3, ErrorCode::InvalidArgument)
        ]
    );
    let ids: Vec<MessageId> = results.into_iter().filter_map(Result::ok).collect();
    assert!(ids.is_sorted());
    let found = fixture
        .receive(fixture.for_bob().count(BATCH_MAX))
        .await
        .unwrap();
    let got: Vec<MessageId> = found.iter().map(|message| message.id).collect();
    assert_eq!(got, ids);
    for wrong in [0, BATCH_MAX + 1] {
        let messages = vec![fixture.message(""); wrong];
        let refused = fixture.mailboxes.send_all(messages).await;
        assert_eq!(code(refused), ErrorCode::InvalidArgument);
        let refused = fixture.receive(fixture.for_bob().count(wrong)).await;
        assert_eq!(code(refused), ErrorCode::InvalidArgument);
    }
}

/// A request gets as many messages as there are, up to its count.
pub async fn many_are_taken_at_once_oldest_first(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    for content in ["a", "b", "c", "d", "e"] {
        fixture.send(content).await;
    }
    assert_eq!(
        fixture.texts(fixture.for_bob().count(3)).await,
        ["a", "b", "c"]
    );
    assert_eq!(fixture.texts(fixture.for_bob().count(3)).await, ["d", "e"]);
    let nothing = fixture
        .mailboxes
        .receive(fixture.for_bob(), Duration::ZERO)
        .await;
    assert_eq!(code(nothing), ErrorCode::QueueIsEmpty);
}

/// A message that exceeds a bound is refused, and not stored.
pub async fn what_is_too_large_is_refused(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let good = fixture.message("");
    let content = Bytes::from(vec![0; CONTENT_BYTES_MAX + 1]);
    let too_long = 11 * 366 * 24 * 3600 * 1000;
    let bad = [
        (
            ErrorCode::MessageTooLarge,
            Outgoing {
                content,
                ..good.clone()
            },
        ),
        (
            ErrorCode::InvalidArgument,
            Outgoing {
                priority: 10,
                ..good.clone()
            },
        ),
        (
            ErrorCode::InvalidArgument,
            Outgoing {
                key: Some(String::new()),
                ..good.clone()
            },
        ),
        (
            ErrorCode::InvalidArgument,
            Outgoing {
                key: Some("k".repeat(256)),
                ..good.clone()
            },
        ),
        (
            ErrorCode::InvalidArgument,
            Outgoing {
                delay_ms: too_long,
                ..good.clone()
            },
        ),
        (
            ErrorCode::InvalidArgument,
            Outgoing {
                lifetime_ms: Some(0),
                ..good
            },
        ),
    ];
    for (expected, message) in bad {
        assert_eq!(code(fixture.mailboxes.send(message).await), expected);
    }
    assert!(fixture.texts(fixture.for_bob()).await.is_empty());
}

/// An answer is bounded in bytes, whatever the count. The rest stays, in order; a peek is bounded too.
pub async fn an_answer_holds_no_more_than_its_bytes(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let content = |which: u8| Bytes::from(vec![which; CONTENT_BYTES_MAX]);
    for which in 0..6 {
        let message = Outgoing {
            content: content(which),
            ..fixture.message("")
        };
        fixture.mailboxes.send(message).await.unwrap();
    }
    let whole = ANSWER_BYTES_MAX / CONTENT_BYTES_MAX;
    let request = fixture.for_bob().count(10);
    for (take, first, count) in [
        (Take::Peek, 0, whole),
        (Take::Remove, 0, whole),
        (Take::Remove, whole, 6 - whole),
    ] {
        let found = fixture.receive(request.take(take)).await.unwrap();
        let found: Vec<u8> = found.iter().map(|message| message.content[0]).collect();
        let expected: Vec<u8> = (0..6).skip(first).take(count).collect();
        assert_eq!(found, expected, "{take:?}");
    }
}
