//! The paper's requests: sending, reading, finding.

use super::World;
use super::world::{code, text};
use crate::Mailboxes;
use crate::id::MessageId;
use crate::message::{
    ANSWER_BYTES_MAX, BATCH_MAX, CONTENT_BYTES_MAX, Outgoing, Receive, Recipients, Take,
};
use airmail_model::ErrorCode;
use bytes::Bytes;
use std::time::Duration;

/// A ping is given back.
pub async fn a_ping_comes_back(mailboxes: Mailboxes) {
    assert_eq!(mailboxes.ping(Bytes::from_static(b"x")), "x");
}

/// Messages are handed out in the order in which they were sent.
pub async fn the_oldest_is_read_first(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let first = world.send("first").await;
    let second = world.send("second").await;
    assert!(second > first);
    assert_eq!(world.texts(world.for_bob()).await, ["first"]);
    world.send("third").await;
    assert_eq!(world.texts(world.for_bob()).await, ["second"]);
    assert_eq!(world.texts(world.for_bob()).await, ["third"]);
}

/// A peek shows the oldest, which stays.
pub async fn reading_without_removing_leaves_it(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    world.send("first").await;
    world.send("second").await;
    let peek = world.for_bob().take(Take::Peek);
    assert_eq!(world.texts(peek).await, ["first"]);
    assert_eq!(world.texts(peek.count(9)).await, ["first", "second"]);
    assert_eq!(world.texts(world.for_bob()).await, ["first"]);
    assert_eq!(world.texts(peek).await, ["second"]);
}

/// Any bytes, and who sent them, when and how.
pub async fn a_message_is_as_it_was_sent(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let sizes = [0, 1, 200, 2000, 3000, 100_000, CONTENT_BYTES_MAX];
    for size in sizes {
        let content: Bytes = all_bytes.iter().copied().cycle().take(size).collect();
        let sent = Outgoing {
            content: content.clone(),
            priority: 3,
            key: Some("ключ".to_owned()),
            lifetime_ms: Some(600_000),
            ..world.message("")
        };
        let id = world.mailboxes.send(sent).await.unwrap();
        let shown = world.mailboxes.look_up(id, world.bob).await.unwrap();
        let found = world.receive(world.for_bob()).await.unwrap().remove(0);
        assert_eq!(
            (found.id, found.queue, found.origin),
            (id, world.queue, world.queue)
        );
        assert_eq!(
            (found.sender, found.recipients),
            (world.alice, Recipients::Direct(world.bob))
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
    let world = World::new(mailboxes).await;
    world.send("for bob").await;
    let for_carol = Receive::new(world.queue, world.carol);
    assert!(world.texts(for_carol).await.is_empty());
    assert!(world.texts(for_carol.broadcast()).await.is_empty());
    assert!(world.texts(world.for_bob().broadcast()).await.is_empty());
    assert!(
        world
            .texts(Receive::new(world.other, world.bob))
            .await
            .is_empty()
    );
    assert_eq!(world.texts(world.for_bob()).await, ["for bob"]);
}

/// Every account may read a broadcast, and whoever removes it removes it for all.
pub async fn a_broadcast_is_for_everyone_and_removed_once(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let recipients = Recipients::Broadcast;
    for content in ["one", "two"] {
        let message = Outgoing {
            recipients,
            ..world.message(content)
        };
        world.mailboxes.send(message).await.unwrap();
    }
    assert!(
        world.texts(world.for_bob()).await.is_empty(),
        "it is not for bob"
    );
    let for_bob = world.for_bob().broadcast();
    let for_carol = Receive::new(world.queue, world.carol).broadcast();
    assert_eq!(world.texts(for_bob.take(Take::Peek)).await, ["one"]);
    assert_eq!(world.texts(for_carol.take(Take::Peek)).await, ["one"]);
    assert_eq!(world.texts(for_carol).await, ["one"]);
    let found = world.receive(for_bob).await.unwrap();
    assert_eq!(
        (text(&found[0]).as_str(), found[0].recipients),
        ("two", Recipients::Broadcast)
    );
    assert!(world.texts(for_carol).await.is_empty());
}

/// Nothing there for this reader.
pub async fn an_empty_queue_says_so(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    for take in [Take::Peek, Take::Remove, Take::Lease { lease_ms: 1 }] {
        for request in [world.for_bob(), world.for_bob().broadcast()] {
            let nothing = world.receive(request.take(take)).await;
            assert_eq!(code(nothing), ErrorCode::QueueIsEmpty);
        }
    }
}

/// The oldest from a sender, in whichever queue, is shown.
pub async fn a_message_is_found_by_its_sender(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let find = || world.mailboxes.find_from(world.alice, world.bob);
    assert_eq!(code(find().await), ErrorCode::NoMessageFound);
    let from_carol = Outgoing {
        sender: world.carol,
        ..world.message("from carol")
    };
    world.mailboxes.send(from_carol).await.unwrap();
    let to_all = Outgoing {
        recipients: Recipients::Broadcast,
        ..world.message("to all")
    };
    world.mailboxes.send(to_all).await.unwrap();
    assert_eq!(code(find().await), ErrorCode::NoMessageFound);
    let elsewhere = Outgoing {
        queue: world.other,
        ..world.message("elsewhere")
    };
    world.mailboxes.send(elsewhere).await.unwrap();
    world.send("younger").await;
    for _ in 0..2 {
        let found = find().await.unwrap();
        assert_eq!(
            (text(&found).as_str(), found.queue),
            ("elsewhere", world.other)
        );
    }
    world
        .receive(Receive::new(world.other, world.bob))
        .await
        .unwrap();
    assert_eq!(text(&find().await.unwrap()), "younger");
}

/// For one receiver, and for broadcasts.
pub async fn the_queues_that_hold_something_are_listed(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let (to_bob, to_all) = (Recipients::Direct(world.bob), Recipients::Broadcast);
    let queues = |recipients| world.mailboxes.queues_for(recipients);
    assert_eq!(code(queues(to_bob).await), ErrorCode::NoQueuesFound);
    assert_eq!(code(queues(to_all).await), ErrorCode::NoQueuesFound);
    world.send("one").await;
    world.send("two").await;
    let elsewhere = Outgoing {
        queue: world.other,
        ..world.message("three")
    };
    world.mailboxes.send(elsewhere.clone()).await.unwrap();
    let broadcast = Outgoing {
        recipients: to_all,
        ..elsewhere
    };
    world.mailboxes.send(broadcast).await.unwrap();
    assert_eq!(queues(to_bob).await.unwrap(), [world.queue, world.other]);
    assert_eq!(queues(to_all).await.unwrap(), [world.other]);
    world.receive(world.for_bob().count(2)).await.unwrap();
    assert_eq!(queues(to_bob).await.unwrap(), [world.other]);
}

/// By its number only the receiver sees a direct message, and everyone a broadcast.
pub async fn a_message_for_another_may_not_be_read(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let id = world.send("for bob").await;
    let look = |id, reader| world.mailboxes.look_up(id, reader);
    assert_eq!(
        code(look(id, world.carol).await),
        ErrorCode::NoPermissionToRead
    );
    assert_eq!(text(&look(id, world.bob).await.unwrap()), "for bob");
    let none = look(MessageId(id.0 + 1000), world.bob).await;
    assert_eq!(code(none), ErrorCode::NoMessageFound);
    let to_all = Outgoing {
        recipients: Recipients::Broadcast,
        ..world.message("to all")
    };
    let to_all = world.mailboxes.send(to_all).await.unwrap();
    assert_eq!(text(&look(to_all, world.carol).await.unwrap()), "to all");
    world.receive(world.for_bob()).await.unwrap();
    assert_eq!(code(look(id, world.bob).await), ErrorCode::NoMessageFound);
}

/// One request with good and bad messages stores the good ones.
pub async fn many_are_sent_at_once_and_each_stands_alone(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let mut messages: Vec<Outgoing> = (0..BATCH_MAX - 2)
        .map(|n| world.message(&n.to_string()))
        .collect();
    let queue = crate::id::QueueId(77);
    messages.insert(
        1,
        Outgoing {
            queue,
            ..world.message("lost")
        },
    );
    messages.insert(
        3,
        Outgoing {
            priority: 10,
            ..world.message("wrong")
        },
    );
    let results = world.mailboxes.send_all(messages).await.unwrap();
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
    let found = world
        .receive(world.for_bob().count(BATCH_MAX))
        .await
        .unwrap();
    let got: Vec<MessageId> = found.iter().map(|message| message.id).collect();
    assert_eq!(got, ids);
    for wrong in [0, BATCH_MAX + 1] {
        let messages = vec![world.message(""); wrong];
        let refused = world.mailboxes.send_all(messages).await;
        assert_eq!(code(refused), ErrorCode::InvalidArgument);
        let refused = world.receive(world.for_bob().count(wrong)).await;
        assert_eq!(code(refused), ErrorCode::InvalidArgument);
    }
}

/// As many as there are, up to the number asked for.
pub async fn many_are_taken_at_once_oldest_first(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    for content in ["a", "b", "c", "d", "e"] {
        world.send(content).await;
    }
    assert_eq!(world.texts(world.for_bob().count(3)).await, ["a", "b", "c"]);
    assert_eq!(world.texts(world.for_bob().count(3)).await, ["d", "e"]);
    let nothing = world
        .mailboxes
        .receive(world.for_bob(), Duration::ZERO)
        .await;
    assert_eq!(code(nothing), ErrorCode::QueueIsEmpty);
}

/// Bounds are told with the field, and nothing is stored.
pub async fn what_is_too_large_is_refused(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let good = world.message("");
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
        assert_eq!(code(world.mailboxes.send(message).await), expected);
    }
    assert!(world.texts(world.for_bob()).await.is_empty());
}

/// However many are asked for. The rest is there, in order; a peek is bounded as well.
pub async fn an_answer_holds_no_more_than_its_bytes(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let content = |which: u8| Bytes::from(vec![which; CONTENT_BYTES_MAX]);
    for which in 0..6 {
        let message = Outgoing {
            content: content(which),
            ..world.message("")
        };
        world.mailboxes.send(message).await.unwrap();
    }
    let whole = ANSWER_BYTES_MAX / CONTENT_BYTES_MAX;
    let request = world.for_bob().count(10);
    for (take, first, count) in [
        (Take::Peek, 0, whole),
        (Take::Remove, 0, whole),
        (Take::Remove, whole, 6 - whole),
    ] {
        let found = world.receive(request.take(take)).await.unwrap();
        let found: Vec<u8> = found.iter().map(|message| message.content[0]).collect();
        let expected: Vec<u8> = (0..6).skip(first).take(count).collect();
        assert_eq!(found, expected, "{take:?}");
    }
}
