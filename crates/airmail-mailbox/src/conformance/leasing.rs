//! Leases, delays, expiry and dead letters.

use super::World;
use super::world::{LASTING, LONG, SHORT, code, text};
use crate::Mailboxes;
use crate::id::LeaseId;
use crate::message::{Outgoing, Receipt, Receive, Recipients, Settle, Take};
use crate::store::QueueSettings;
use airmail_model::ErrorCode;
use std::num::NonZeroU32;

const RELEASE: Settle = Settle::Release { delay_ms: 0 };

/// While it is leased nobody else gets it, and it can be looked up.
pub async fn a_leased_message_is_at_one_reader(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    world.send("first").await;
    world.send("second").await;
    let first = world
        .receive(world.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    assert_eq!((text(&first).as_str(), first.deliveries), ("first", 1));
    assert!(first.lease.is_some());
    assert_eq!(
        world.texts(world.for_bob().take(Take::Peek)).await,
        ["second"]
    );
    assert_eq!(world.texts(world.for_bob().take(LASTING)).await, ["second"]);
    assert!(world.texts(world.for_bob().take(LASTING)).await.is_empty());
    let shown = world.mailboxes.look_up(first.id, world.bob).await.unwrap();
    assert_eq!(shown.deliveries, 1);
}

/// It is not handed out again, and its lease is over.
pub async fn an_acknowledged_message_is_gone(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let id = world.send("done").await;
    let leased = world
        .receive(world.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    world.settle(&leased, Settle::Acknowledge).await.unwrap();
    let gone = world.mailboxes.look_up(id, world.bob).await;
    assert_eq!(code(gone), ErrorCode::NoMessageFound);
    let again = world.settle(&leased, Settle::Acknowledge).await;
    assert_eq!(code(again), ErrorCode::LeaseEnded);
}

/// Whose lease was given to another can do nothing to it.
pub async fn a_lease_that_ended_cannot_be_settled(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    world.send("twice").await;
    let first = world
        .receive(world.for_bob().take(SHORT))
        .await
        .unwrap()
        .remove(0);
    let second = world.wait(world.for_bob().take(LASTING)).await;
    assert_eq!(first.id, second.id);
    for what in [Settle::Acknowledge, Settle::Extend { lease_ms: 9 }, RELEASE] {
        assert_eq!(
            code(world.settle(&first, what).await),
            ErrorCode::LeaseEnded
        );
    }
    let mixed = vec![
        first.receipt().unwrap(),
        second.receipt().unwrap(),
        Receipt {
            message: second.id,
            lease: LeaseId(7777),
        },
    ];
    let settled = world
        .mailboxes
        .settle(mixed, Settle::Acknowledge)
        .await
        .unwrap();
    assert_eq!(
        settled.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [false, true, false]
    );
}

/// Who does not acknowledge in time loses it to the next.
pub async fn a_lease_that_ends_hands_the_message_out_again(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    world.send("again").await;
    for delivery in 1..=3 {
        let leased = world.wait(world.for_bob().take(SHORT)).await;
        assert_eq!(
            (text(&leased).as_str(), leased.deliveries),
            ("again", delivery)
        );
    }
    let last = world.wait(world.for_bob()).await;
    assert_eq!((last.deliveries, last.lease), (4, None));
}

/// A lease lasts until when it was last extended to, whatever it was given for.
pub async fn an_extended_lease_does_not_end(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    world.send("mine").await;
    world.send("not mine").await;
    let request = world.for_bob().take(LASTING).count(2);
    let leased = world.receive(request).await.unwrap();
    let longer = Settle::Extend {
        lease_ms: 1_200_000,
    };
    world.settle(&leased[0], longer).await.unwrap();
    let shorter = Settle::Extend { lease_ms: 30 };
    world.settle(&leased[1], shorter).await.unwrap();
    assert_eq!(text(&world.wait(world.for_bob()).await), "not mine");
    world.settle(&leased[0], Settle::Acknowledge).await.unwrap();
}

/// It can be given back, at once or for later.
pub async fn a_released_message_comes_again_and_counts_its_deliveries(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    world.send("back").await;
    let first = world
        .receive(world.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    world.settle(&first, RELEASE).await.unwrap();
    let second = world
        .receive(world.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    assert_eq!((second.id, second.deliveries), (first.id, 2));
    let later = Settle::Release { delay_ms: 30 };
    world.settle(&second, later).await.unwrap();
    assert_eq!(
        code(world.settle(&second, later).await),
        ErrorCode::LeaseEnded
    );
    assert_eq!(world.wait(world.for_bob()).await.deliveries, 3);
}

/// After as many leases as the queue allows, the message is in the queue of dead letters.
pub async fn a_message_handed_out_too_often_is_a_dead_letter(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let settings = QueueSettings {
        dead_letter: Some(world.other),
        deliveries_max: NonZeroU32::new(2),
    };
    let queue = world
        .mailboxes
        .create_queue("strict", settings)
        .await
        .unwrap();
    world
        .mailboxes
        .send(Outgoing {
            queue,
            ..world.message("poison")
        })
        .await
        .unwrap();
    let strict = Receive::new(queue, world.bob);
    let first = world.receive(strict.take(LASTING)).await.unwrap().remove(0);
    world.settle(&first, RELEASE).await.unwrap();
    world.receive(strict.take(SHORT)).await.unwrap();
    let dead = world.wait(Receive::new(world.other, world.bob)).await;
    assert_eq!(text(&dead), "poison");
    assert_eq!(
        (dead.queue, dead.origin, dead.deliveries),
        (world.other, queue, 1)
    );
    assert!(world.texts(strict).await.is_empty());
    let no_place = QueueSettings {
        dead_letter: None,
        ..settings
    };
    let refused = world.mailboxes.create_queue("lax", no_place).await;
    assert_eq!(code(refused), ErrorCode::InvalidArgument);
}

/// It is not there before, and then goes before what has not waited so.
pub async fn a_delayed_message_comes_when_it_is_due(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let delayed = |content: &str, delay_ms| Outgoing {
        delay_ms,
        ..world.message(content)
    };
    let mailboxes = &world.mailboxes;
    mailboxes.send(delayed("never", 600_000)).await.unwrap();
    mailboxes.send(delayed("soon", 30)).await.unwrap();
    assert_eq!(text(&world.wait(world.for_bob()).await), "soon");
    assert_eq!(mailboxes.counts(world.queue).await.unwrap().delayed, 1);
}

/// Nobody gets it, and in the end it is not counted.
pub async fn what_expires_is_handed_to_nobody(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let lifetime_ms = Some(20);
    let short = Outgoing {
        lifetime_ms,
        ..world.message("short-lived")
    };
    let id = world.mailboxes.send(short).await.unwrap();
    // What is due later shows that the time has come.
    let witness = Outgoing {
        delay_ms: 60,
        ..world.message("witness")
    };
    world.mailboxes.send(witness).await.unwrap();
    let mut found = world.wait(world.for_bob().take(LASTING)).await;
    if found.id == id {
        found = world.wait(world.for_bob().take(LASTING)).await;
    }
    assert_eq!(text(&found), "witness");
    assert!(world.texts(world.for_bob()).await.is_empty());
    assert_eq!(world.mailboxes.counts(world.queue).await.unwrap().ready, 0);
}

/// Where a queue has dead letters, what expires is there.
pub async fn what_expires_goes_to_the_dead_letters(mailboxes: Mailboxes) {
    let world = World::new(mailboxes).await;
    let dead_letter = Some(world.other);
    let settings = QueueSettings {
        dead_letter,
        ..QueueSettings::default()
    };
    let queue = world
        .mailboxes
        .create_queue("mortal", settings)
        .await
        .unwrap();
    for recipients in [Recipients::Direct(world.bob), Recipients::Broadcast] {
        let lifetime_ms = Some(10);
        let message = Outgoing {
            queue,
            recipients,
            lifetime_ms,
            ..world.message("late")
        };
        world.mailboxes.send(message).await.unwrap();
    }
    let direct = Receive::new(world.other, world.bob);
    for request in [direct, direct.broadcast()] {
        let found = world.mailboxes.receive(request, LONG).await.unwrap();
        assert_eq!((text(&found[0]).as_str(), found[0].origin), ("late", queue));
        assert_eq!(found[0].expires_at, None);
    }
}
