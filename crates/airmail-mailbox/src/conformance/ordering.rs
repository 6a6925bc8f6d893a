//! Claims about the order of messages, and that none is handed out twice.

use super::Fixture;
use super::fixture::{LASTING, text};
use crate::Mailboxes;
use crate::message::{Message, Outgoing, Settle, Take};
use futures::future::join_all;
use std::collections::BTreeSet;

const RELEASE: Settle = Settle::Release { delay_ms: 0 };

/// Higher priorities go first, and within one priority the oldest message.
pub async fn higher_priorities_go_before(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    for (content, priority) in [
        ("a0", 0),
        ("b5", 5),
        ("c9", 9),
        ("d5", 5),
        ("e0", 0),
        ("f1", 1),
    ] {
        let message = Outgoing {
            priority,
            ..fixture.message(content)
        };
        fixture.mailboxes.send(message).await.unwrap();
    }
    let expected = ["c9", "b5", "d5", "f1", "a0", "e0"];
    let peek = fixture.for_bob().take(Take::Peek).count(10);
    assert_eq!(fixture.texts(peek).await, expected);
    assert_eq!(fixture.texts(fixture.for_bob().count(10)).await, expected);
}

/// A message that comes back goes before those that have not been handed out yet.
pub async fn what_comes_back_goes_before_what_is_younger(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    for content in ["a", "b", "c"] {
        fixture.send(content).await;
    }
    let leased = fixture
        .receive(fixture.for_bob().take(LASTING).count(2))
        .await
        .unwrap();
    for message in leased.iter().rev() {
        fixture.settle(message, RELEASE).await.unwrap();
    }
    fixture.send("d").await;
    assert_eq!(
        fixture.texts(fixture.for_bob().count(9)).await,
        ["a", "b", "c", "d"]
    );
}

/// A message of a key is handed out after the one before has been settled; other keys go on.
pub async fn messages_of_a_key_are_handed_out_one_at_a_time(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    for (content, key) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
        fixture.send_with_key(content, key).await;
    }
    fixture.send("free").await;
    let leased = fixture
        .receive(fixture.for_bob().take(LASTING).count(9))
        .await
        .unwrap();
    let texts: Vec<String> = leased.iter().map(text).collect();
    assert_eq!(texts, ["a1", "b1", "free"]);
    assert!(fixture.texts(fixture.for_bob()).await.is_empty());
    fixture
        .settle(&leased[1], Settle::Acknowledge)
        .await
        .unwrap();
    assert_eq!(fixture.texts(fixture.for_bob()).await, ["b2"]);
    fixture
        .settle(&leased[0], Settle::Acknowledge)
        .await
        .unwrap();
    assert_eq!(fixture.texts(fixture.for_bob()).await, ["a2"]);
}

/// A message that comes back, even after a delay, goes before the next one of its key.
pub async fn a_key_stays_in_order_through_releases(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    for content in ["1", "2", "3"] {
        fixture.send_with_key(content, "k").await;
    }
    let mut got = Vec::new();
    for turn in 0..6 {
        let message = fixture.wait(fixture.for_bob().take(LASTING)).await;
        if turn % 2 == 0 {
            let later = Settle::Release { delay_ms: 20 };
            fixture.settle(&message, later).await.unwrap();
        } else {
            fixture.settle(&message, Settle::Acknowledge).await.unwrap();
        }
        got.push(text(&message));
    }
    assert_eq!(got, ["1", "1", "2", "2", "3", "3"]);
}

/// Each message goes to exactly one of readers that ask at the same time, some of them for many.
pub async fn readers_at_once_never_get_the_same(mailboxes: Mailboxes) {
    const MESSAGES: usize = 600;
    let fixture = Fixture::new(mailboxes).await;
    let messages = (0..MESSAGES)
        .map(|n| fixture.message(&n.to_string()))
        .collect();
    fixture.mailboxes.send_all(messages).await.unwrap();
    let readers = (0..12_usize).map(|reader| {
        let fixture = fixture.clone();
        async move {
            let mut got: Vec<Message> = Vec::new();
            let take = if reader % 2 == 0 {
                Take::Remove
            } else {
                LASTING
            };
            let request = fixture.for_bob().take(take).count(1 + reader * 2);
            // Another may hold what is left for a moment, so one empty answer is not the end.
            let mut empty = 0;
            while empty < 3 {
                match fixture.receive(request).await {
                    Ok(found) => got.extend(found),
                    Err(_) => empty += 1,
                }
            }
            got
        }
    });
    let got: Vec<Vec<Message>> = join_all(readers).await;
    for of_one in &got {
        assert!(
            of_one.is_sorted_by_key(|message| message.id),
            "oldest first"
        );
    }
    let ids: Vec<_> = got.iter().flatten().map(|message| message.id).collect();
    let distinct: BTreeSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (MESSAGES, MESSAGES));
}
