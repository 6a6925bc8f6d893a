//! Requests that meet a slot while it is emptied: what is alive in it is moved, and then its files are
//! truncated. A statement that waited for that must see the messages where they are now. One that saw
//! neither place would call a queue empty that is not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_mailbox::conformance::Fixture;
use airmail_mailbox::message::{Recipients, Take};
use airmail_mailbox::postgres::{Options, PostgresStore};
use airmail_mailbox::{Mailboxes, message::Counts};
use airmail_testkit::node::wait_until;
use airmail_testkit::postgres::{Holder, psql};
use airmail_testkit::{postgres, waiting};
use std::sync::Arc;
use std::thread;

/// Empties the slot that is active, and leaves the transaction open. No node's maintenance comes between.
const EMPTY: &str = "SELECT pg_advisory_xact_lock(740204, 1);
    DO $$
    DECLARE
        old int := (SELECT last_value FROM airmail.active_slot);
        new int := (old + 1) % 3;
    BEGIN
        PERFORM setval('airmail.active_slot', new);
        WHILE NOT airmail.empty(old, new, 1000) LOOP
            PERFORM pg_sleep(0.01);
        END LOOP;
    END $$";

/// A database with a message that can be handed out and one that is leased.
struct Scene {
    url: String,
    fixture: Fixture,
}

impl Scene {
    async fn new() -> Scene {
        let url = postgres::shared_server().new_database();
        let options = Options {
            patience_ms: 600_000,
            ..Options::new(&url)
        };
        let store = PostgresStore::start(options).unwrap();
        let fixture = Fixture::new(Mailboxes::new(Arc::new(store))).await;
        fixture.send("leased").await;
        let lease = fixture.for_bob().take(Take::Lease { lease_ms: 600_000 });
        assert_eq!(fixture.texts(lease).await, ["leased"]);
        fixture.send("ready").await;
        Scene { url, fixture }
    }

    /// Answer to a request that begins while the slot of all messages is being emptied, and waits for that
    /// in a statement with `call`.
    async fn meanwhile<T>(&self, call: &str, request: impl Future<Output = T>) -> T {
        let emptying = Holder::new(&self.url, EMPTY);
        let url = self.url.clone();
        let waits = format!(
            "SELECT count(*) FROM pg_stat_activity
             WHERE wait_event_type = 'Lock' AND query LIKE '%airmail.{call}%'"
        );
        let commit = thread::Builder::new().name("commit".to_owned());
        let commit = commit
            .spawn(move || {
                wait_until("a request that waits", || psql(&url, &waits) != "0");
                emptying.commit();
            })
            .unwrap();
        let answer = request.await;
        commit.join().unwrap();
        answer
    }
}

fn with_scene<F: Future<Output = ()>>(test: impl FnOnce(Scene) -> F) {
    let _alive = waiting::alive("mailboxes");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { test(Scene::new().await).await });
}

#[test]
fn no_message_is_left_out_of_the_counts() {
    with_scene(|scene| async move {
        let counts = scene.fixture.mailboxes.counts(scene.fixture.queue);
        let counts = scene.meanwhile("counts(", counts).await.unwrap();
        let all = Counts {
            ready: 1,
            delayed: 0,
            leased: 1,
        };
        assert_eq!(counts, all);
    });
}

#[test]
fn who_looks_without_taking_sees_what_is_there() {
    with_scene(|scene| async move {
        let Fixture {
            mailboxes,
            alice,
            bob,
            queue,
            ..
        } = &scene.fixture;
        let peek = scene.fixture.for_bob().take(Take::Peek);
        let peek = scene.fixture.texts(peek);
        assert_eq!(scene.meanwhile("peek_many(", peek).await, ["ready"]);
        let found = mailboxes.find_from(*alice, *bob);
        let found = scene.meanwhile("find_from(", found).await.unwrap();
        assert_eq!(found.content, "ready");
        let found = mailboxes.look_up(found.id, *bob);
        let found = scene.meanwhile("look_up(", found).await.unwrap();
        assert_eq!(found.content, "ready");
        let queues = mailboxes.queues_for(Recipients::Direct(*bob));
        let queues = scene.meanwhile("queues_for(", queues).await.unwrap();
        assert_eq!(queues, [*queue]);
        let shown = async { psql(&scene.url, "SELECT id FROM airmail.peek('queue', 'bob')") };
        let shown = scene.meanwhile("peek(", shown).await;
        assert_eq!(shown, found.id.to_string());
    });
}

#[test]
fn a_low_water_mark_is_not_raised_above_a_message() {
    with_scene(|scene| async move {
        // As maintenance asks, but with an array for each of its parameters.
        let first = "SELECT place FROM airmail.heads(ARRAY[1], ARRAY[2], ARRAY[0::bigint])";
        let first = async { psql(&scene.url, first) };
        let first = scene.meanwhile("heads(ARRAY", first).await;
        let ready = "SELECT place FROM airmail.ready";
        assert_eq!(first, psql(&scene.url, ready));
    });
}

#[test]
fn what_is_taken_and_what_is_removed_is_met_where_it_is_now() {
    with_scene(|scene| async move {
        let Fixture {
            mailboxes, queue, ..
        } = &scene.fixture;
        let taken = scene.fixture.texts(scene.fixture.for_bob());
        assert_eq!(scene.meanwhile("take_many(", taken).await, ["ready"]);
        scene.fixture.send("another").await;
        let purged = mailboxes.purge(*queue);
        assert_eq!(scene.meanwhile("purge(", purged).await.unwrap(), 2);
        let counts = mailboxes.counts(*queue).await.unwrap();
        assert_eq!(counts, Counts::default());
    });
}
