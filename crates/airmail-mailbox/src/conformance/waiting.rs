//! Claims about readers that wait.

use super::Fixture;
use super::fixture::{LASTING, LONG, code, text};
use crate::Mailboxes;
use crate::message::{Outgoing, Recipients, Settle};
use airmail_model::ErrorCode;
use futures::future::{join, join_all};
use std::time::Duration;

/// A reader that waits gets a direct message or a broadcast that is sent meanwhile.
pub async fn a_waiting_reader_gets_what_is_sent(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    for recipients in [Recipients::Direct(fixture.bob), Recipients::Broadcast] {
        for round in 0..20 {
            let mut request = fixture.for_bob();
            request.broadcast = recipients == Recipients::Broadcast;
            let content = round.to_string();
            let message = Outgoing {
                recipients,
                ..fixture.message(&content)
            };
            let (found, sent) = join(fixture.wait(request), fixture.mailboxes.send(message)).await;
            sent.unwrap();
            assert_eq!(text(&found), content);
        }
    }
}

/// A wait without a message ends with the error of an empty queue.
pub async fn a_wait_ends_without_a_message(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let nothing = fixture
        .mailboxes
        .receive(fixture.for_bob(), Duration::from_millis(20))
        .await;
    assert_eq!(code(nothing), ErrorCode::QueueIsEmpty);
}

/// Messages as many as readers: none is left over, and no reader waits on.
pub async fn each_of_many_waiting_readers_gets_one(mailboxes: Mailboxes) {
    const READERS: usize = 50;
    let fixture = Fixture::new(mailboxes).await;
    let waiting = join_all((0..READERS).map(|_| fixture.wait(fixture.for_bob())));
    let sending = async {
        let half = || {
            (0..READERS / 2)
                .map(|n| fixture.message(&n.to_string()))
                .collect()
        };
        fixture.mailboxes.send_all(half()).await.unwrap();
        for message in half() {
            fixture.mailboxes.send(message).await.unwrap();
        }
    };
    let (got, ()) = join(waiting, sending).await;
    let mut ids: Vec<_> = got.iter().map(|message| message.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), READERS);
}

/// A message that a reader gives back goes to one that waits.
pub async fn a_waiting_reader_gets_what_is_released(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    fixture.send("back").await;
    let held = fixture
        .receive(fixture.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    let release = fixture.settle(&held, Settle::Release { delay_ms: 0 });
    let (found, released) = join(fixture.wait(fixture.for_bob()), release).await;
    released.unwrap();
    assert_eq!(found.id, held.id);
}

/// A reader that waits gets the next message of a key when the one before is acknowledged.
pub async fn a_waiting_reader_gets_the_next_of_a_key(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    for content in ["1", "2"] {
        fixture.send_with_key(content, "k").await;
    }
    let first = fixture
        .receive(fixture.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    let done = fixture.settle(&first, Settle::Acknowledge);
    let (second, acknowledged) = join(fixture.wait(fixture.for_bob()), done).await;
    acknowledged.unwrap();
    assert_eq!(text(&second), "2");
}

/// A wait that was abandoned takes no message with it.
pub async fn a_reader_that_gave_up_leaves_the_message_to_others(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    for round in 0..10 {
        let given_up = fixture.mailboxes.receive(fixture.for_bob(), LONG);
        let soon = Duration::from_millis(round);
        assert!(tokio::time::timeout(soon, given_up).await.is_err());
        let content = round.to_string();
        let (found, _) = join(fixture.wait(fixture.for_bob()), fixture.send(&content)).await;
        assert_eq!(text(&found), content);
    }
}

/// A node that stops sends readers away that wait, and loses no message.
pub async fn readers_that_wait_are_sent_away_and_all_else_goes_on(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let waiting = fixture.mailboxes.receive(fixture.for_bob(), LONG);
    let (found, ()) = join(waiting, async { fixture.mailboxes.end_waits() }).await;
    assert_eq!(code(found), ErrorCode::ShuttingDown);
    fixture.send("for another node").await;
    assert_eq!(fixture.texts(fixture.for_bob()).await, ["for another node"]);
    let found = fixture.mailboxes.receive(fixture.for_bob(), LONG).await;
    assert_eq!(code(found), ErrorCode::ShuttingDown);
}

/// The load counts requests, the round trips that they shared, and requests that wait.
pub async fn what_is_to_do_and_was_done_is_counted(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let before = fixture.mailboxes.load();
    let sends = (0..100).map(|n| fixture.mailboxes.send(fixture.message(&n.to_string())));
    for sent in join_all(sends).await {
        sent.unwrap();
    }
    let load = fixture.mailboxes.load();
    assert_eq!(load.requests - before.requests, 100);
    let round_trips = load.round_trips - before.round_trips;
    assert!((1..100).contains(&round_trips), "{round_trips}");
    assert!((1..=load.connections_max).contains(&load.connections));
    assert_eq!(load.waiting, 0);
    assert!(load.waiting_max > 0);
}
