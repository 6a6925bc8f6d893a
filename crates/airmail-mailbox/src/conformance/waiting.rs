//! Readers that wait.

use super::World;
use super::world::{LASTING, LONG, code, text};
use crate::Mailboxes;
use crate::message::{Outgoing, Recipients, Settle};
use airmail_model::ErrorCode;
use futures::future::{join, join_all};
use std::time::Duration;

/// Direct messages and broadcasts, sent while the reader waits.
pub async fn a_waiting_reader_gets_what_is_sent(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    for recipients in [Recipients::Direct(world.bob), Recipients::Broadcast] {
        for round in 0..20 {
            let mut request = world.for_bob();
            request.broadcast = recipients == Recipients::Broadcast;
            let content = round.to_string();
            let message = Outgoing {
                recipients,
                ..world.message(&content)
            };
            let (found, sent) = join(world.wait(request), world.mailboxes.send(message)).await;
            sent.unwrap();
            assert_eq!(text(&found), content);
        }
    }
}

/// It says then that there is nothing.
pub async fn a_wait_ends_without_a_message(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let nothing = world
        .mailboxes
        .receive(world.for_bob(), Duration::from_millis(20))
        .await;
    assert_eq!(code(nothing), ErrorCode::QueueIsEmpty);
}

/// As many messages as readers that wait: none is left over and nobody waits on.
pub async fn each_of_many_waiting_readers_gets_one(mailboxes: Mailboxes) {
    const READERS: usize = 50;
    let world = World::new(mailboxes).await;
    let waiting = join_all((0..READERS).map(|_| world.wait(world.for_bob())));
    let sending = async {
        let half = || {
            (0..READERS / 2)
                .map(|n| world.message(&n.to_string()))
                .collect()
        };
        world.mailboxes.send_all(half()).await.unwrap();
        for message in half() {
            world.mailboxes.send(message).await.unwrap();
        }
    };
    let (got, ()) = join(waiting, sending).await;
    let mut ids: Vec<_> = got.iter().map(|message| message.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), READERS);
}

/// What a reader gives back goes to one that waits.
pub async fn a_waiting_reader_gets_what_is_released(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    world.send("back").await;
    let held = world
        .receive(world.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    let release = world.settle(&held, Settle::Release { delay_ms: 0 });
    let (found, released) = join(world.wait(world.for_bob()), release).await;
    released.unwrap();
    assert_eq!(found.id, held.id);
}

/// When the one before it is acknowledged, or was removed.
pub async fn a_waiting_reader_gets_the_next_of_a_key(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    for content in ["1", "2"] {
        world.send_with_key(content, "k").await;
    }
    let first = world
        .receive(world.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    let done = world.settle(&first, Settle::Acknowledge);
    let (second, acknowledged) = join(world.wait(world.for_bob()), done).await;
    acknowledged.unwrap();
    assert_eq!(text(&second), "2");
}

/// A wait that was given up takes nothing with it.
pub async fn a_reader_that_gave_up_leaves_the_message_to_others(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    for round in 0..10 {
        let given_up = world.mailboxes.receive(world.for_bob(), LONG);
        let soon = Duration::from_millis(round);
        assert!(tokio::time::timeout(soon, given_up).await.is_err());
        let content = round.to_string();
        let (found, _) = join(world.wait(world.for_bob()), world.send(&content)).await;
        assert_eq!(text(&found), content);
    }
}

/// At the end of a node nobody waits, and nothing is lost.
pub async fn readers_that_wait_are_sent_away_and_all_else_goes_on(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let waiting = world.mailboxes.receive(world.for_bob(), LONG);
    let (found, ()) = join(waiting, async { world.mailboxes.end_waits() }).await;
    assert_eq!(code(found), ErrorCode::ShuttingDown);
    world.send("for another node").await;
    assert_eq!(world.texts(world.for_bob()).await, ["for another node"]);
    let found = world.mailboxes.receive(world.for_bob(), LONG).await;
    assert_eq!(code(found), ErrorCode::ShuttingDown);
}

/// Requests, the round trips that they shared, and what waits.
pub async fn what_is_to_do_and_was_done_is_counted(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let before = world.mailboxes.load();
    let sends = (0..100).map(|n| world.mailboxes.send(world.message(&n.to_string())));
    for sent in join_all(sends).await {
        sent.unwrap();
    }
    let load = world.mailboxes.load();
    assert_eq!(load.requests - before.requests, 100);
    let round_trips = load.round_trips - before.round_trips;
    assert!((1..100).contains(&round_trips), "{round_trips}");
    assert!((1..=load.connections_max).contains(&load.connections));
    assert_eq!(load.waiting, 0);
    assert!(load.waiting_max > 0);
}
