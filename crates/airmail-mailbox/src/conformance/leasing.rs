//! Claims about leases, delays, expiry and dead letters.

use super::Fixture;
use super::fixture::{LASTING, LONG, SHORT, code, text};
use crate::Mailboxes;
use crate::id::LeaseId;
use crate::message::{Outgoing, Receipt, Receive, Recipients, Settle, Take};
use crate::store::QueueSettings;
use airmail_model::ErrorCode;
use std::num::NonZeroU32;

const RELEASE: Settle = Settle::Release { delay_ms: 0 };

/// A leased message is handed out to no other reader, and can be looked up.
pub async fn a_leased_message_is_at_one_reader(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    fixture.send("first").await;
    fixture.send("second").await;
    let first = fixture
        .receive(fixture.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    assert_eq!((text(&first).as_str(), first.deliveries), ("first", 1));
    assert!(first.lease.is_some());
    assert_eq!(
        fixture.texts(fixture.for_bob().take(Take::Peek)).await,
        ["second"]
    );
    assert_eq!(
        fixture.texts(fixture.for_bob().take(LASTING)).await,
        ["second"]
    );
    assert!(
        fixture
            .texts(fixture.for_bob().take(LASTING))
            .await
            .is_empty()
    );
    let shown = fixture
        .mailboxes
        .look_up(first.id, fixture.bob)
        .await
        .unwrap();
    assert_eq!(shown.deliveries, 1);
}

/// An acknowledged message is not handed out again, and its lease is over.
pub async fn an_acknowledged_message_is_gone(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let id = fixture.send("done").await;
    let leased = fixture
        .receive(fixture.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    fixture.settle(&leased, Settle::Acknowledge).await.unwrap();
    let gone = fixture.mailboxes.look_up(id, fixture.bob).await;
    assert_eq!(code(gone), ErrorCode::NoMessageFound);
    let again = fixture.settle(&leased, Settle::Acknowledge).await;
    assert_eq!(code(again), ErrorCode::LeaseEnded);
}

/// A reader whose message was handed out to another can settle nothing.
pub async fn a_lease_that_ended_cannot_be_settled(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    fixture.send("twice").await;
    let first = fixture
        .receive(fixture.for_bob().take(SHORT))
        .await
        .unwrap()
        .remove(0);
    let second = fixture.wait(fixture.for_bob().take(LASTING)).await;
    assert_eq!(first.id, second.id);
    for what in [Settle::Acknowledge, Settle::Extend { lease_ms: 9 }, RELEASE] {
        assert_eq!(
            code(fixture.settle(&first, what).await),
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
    let settled = fixture
        .mailboxes
        .settle(mixed, Settle::Acknowledge)
        .await
        .unwrap();
    assert_eq!(
        settled.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [false, true, false]
    );
}

/// A message that is not acknowledged in time is handed out to the next reader.
pub async fn a_lease_that_ends_hands_the_message_out_again(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    fixture.send("again").await;
    for delivery in 1..=3 {
        let leased = fixture.wait(fixture.for_bob().take(SHORT)).await;
        assert_eq!(
            (text(&leased).as_str(), leased.deliveries),
            ("again", delivery)
        );
    }
    let last = fixture.wait(fixture.for_bob()).await;
    assert_eq!((last.deliveries, last.lease), (4, None));
}

/// The last extension says when a lease ends, whatever it was before.
pub async fn an_extended_lease_does_not_end(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    fixture.send("mine").await;
    fixture.send("not mine").await;
    let request = fixture.for_bob().take(LASTING).count(2);
    let leased = fixture.receive(request).await.unwrap();
    let longer = Settle::Extend {
        lease_ms: 1_200_000,
    };
    fixture.settle(&leased[0], longer).await.unwrap();
    let shorter = Settle::Extend { lease_ms: 30 };
    fixture.settle(&leased[1], shorter).await.unwrap();
    assert_eq!(text(&fixture.wait(fixture.for_bob()).await), "not mine");
    fixture
        .settle(&leased[0], Settle::Acknowledge)
        .await
        .unwrap();
}

/// A release gives the message back at once, or after a delay.
pub async fn a_released_message_comes_again_and_counts_its_deliveries(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    fixture.send("back").await;
    let first = fixture
        .receive(fixture.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    fixture.settle(&first, RELEASE).await.unwrap();
    let second = fixture
        .receive(fixture.for_bob().take(LASTING))
        .await
        .unwrap()
        .remove(0);
    assert_eq!((second.id, second.deliveries), (first.id, 2));
    let later = Settle::Release { delay_ms: 30 };
    fixture.settle(&second, later).await.unwrap();
    assert_eq!(
        code(fixture.settle(&second, later).await),
        ErrorCode::LeaseEnded
    );
    assert_eq!(fixture.wait(fixture.for_bob()).await.deliveries, 3);
}

/// A message goes to the dead letters after as many leases as its queue allows.
pub async fn a_message_handed_out_too_often_is_a_dead_letter(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let settings = QueueSettings {
        dead_letter: Some(fixture.other),
        deliveries_max: NonZeroU32::new(2),
    };
    let queue = fixture
        .mailboxes
        .create_queue("strict", settings)
        .await
        .unwrap();
    fixture
        .mailboxes
        .send(Outgoing {
            queue,
            ..fixture.message("poison")
        })
        .await
        .unwrap();
    let strict = Receive::new(queue, fixture.bob);
    let first = fixture
        .receive(strict.take(LASTING))
        .await
        .unwrap()
        .remove(0);
    fixture.settle(&first, RELEASE).await.unwrap();
    fixture.receive(strict.take(SHORT)).await.unwrap();
    let dead = fixture.wait(Receive::new(fixture.other, fixture.bob)).await;
    assert_eq!(text(&dead), "poison");
    assert_eq!(
        (dead.queue, dead.origin, dead.deliveries),
        (fixture.other, queue, 1)
    );
    assert!(fixture.texts(strict).await.is_empty());
    let no_place = QueueSettings {
        dead_letter: None,
        ..settings
    };
    let refused = fixture.mailboxes.create_queue("lax", no_place).await;
    assert_eq!(code(refused), ErrorCode::InvalidArgument);
}

/// A delayed message is not handed out before it is due, and goes before younger ones then.
pub async fn a_delayed_message_comes_when_it_is_due(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let delayed = |content: &str, delay_ms| Outgoing {
        delay_ms,
        ..fixture.message(content)
    };
    let mailboxes = &fixture.mailboxes;
    mailboxes.send(delayed("never", 600_000)).await.unwrap();
    mailboxes.send(delayed("soon", 30)).await.unwrap();
    assert_eq!(text(&fixture.wait(fixture.for_bob()).await), "soon");
    assert_eq!(mailboxes.counts(fixture.queue).await.unwrap().delayed, 1);
}

/// An expired message is handed out to nobody, and is not counted in the end.
pub async fn what_expires_is_handed_to_nobody(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let lifetime_ms = Some(20);
    let short = Outgoing {
        lifetime_ms,
        ..fixture.message("short-lived")
    };
    let id = fixture.mailboxes.send(short).await.unwrap();
    // What is due later shows that the time has come.
    let witness = Outgoing {
        delay_ms: 60,
        ..fixture.message("witness")
    };
    fixture.mailboxes.send(witness).await.unwrap();
    let mut found = fixture.wait(fixture.for_bob().take(LASTING)).await;
    if found.id == id {
        found = fixture.wait(fixture.for_bob().take(LASTING)).await;
    }
    assert_eq!(text(&found), "witness");
    assert!(fixture.texts(fixture.for_bob()).await.is_empty());
    assert_eq!(
        fixture.mailboxes.counts(fixture.queue).await.unwrap().ready,
        0
    );
}

/// An expired message goes to the queue's dead letters if it has such.
pub async fn what_expires_goes_to_the_dead_letters(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let dead_letter = Some(fixture.other);
    let settings = QueueSettings {
        dead_letter,
        ..QueueSettings::default()
    };
    let queue = fixture
        .mailboxes
        .create_queue("mortal", settings)
        .await
        .unwrap();
    for recipients in [Recipients::Direct(fixture.bob), Recipients::Broadcast] {
        let lifetime_ms = Some(10);
        let message = Outgoing {
            queue,
            recipients,
            lifetime_ms,
            ..fixture.message("late")
        };
        fixture.mailboxes.send(message).await.unwrap();
    }
    let direct = Receive::new(fixture.other, fixture.bob);
    for request in [direct, direct.broadcast()] {
        let found = fixture.mailboxes.receive(request, LONG).await.unwrap();
        assert_eq!((text(&found[0]).as_str(), found[0].origin), ("late", queue));
        assert_eq!(found[0].expires_at, None);
    }
}
