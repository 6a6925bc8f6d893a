//! Jobs that gather while a connection is busy are one round trip, with one transaction for all changes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_mailbox::Mailboxes;
use airmail_mailbox::conformance::Fixture;
use airmail_mailbox::message::{Outgoing, Receipt, Receive, Settle, Take};
use airmail_mailbox::postgres::{Options, PostgresStore};
use airmail_mailbox::store::MailboxStore;
use airmail_testkit::postgres::psql;
use airmail_testkit::{postgres, waiting};
use std::sync::Arc;

const LEASE: Take = Take::Lease { lease_ms: 600_000 };

/// A store with one connection, with a message that is leased and one that waits.
struct Scene {
    store: Arc<PostgresStore>,
    fixture: Fixture,
    leased: Receipt,
    url: String,
}

impl Scene {
    async fn new() -> Scene {
        let url = postgres::shared_server().new_database();
        let options = Options {
            connections: 1,
            patience_ms: 600_000,
            ..Options::new(&url)
        };
        let store = Arc::new(PostgresStore::start(options).unwrap());
        let fixture =
            Fixture::new(Mailboxes::new(Arc::clone(&store) as Arc<dyn MailboxStore>)).await;
        fixture.send("leased").await;
        let leased = fixture
            .wait(Receive {
                take: LEASE,
                ..fixture.for_bob()
            })
            .await;
        fixture.send("waits").await;
        let leased = Receipt {
            message: leased.id,
            lease: leased.lease.unwrap(),
        };
        Scene {
            store,
            fixture,
            leased,
            url,
        }
    }

    /// Sends, removes and acknowledges at once, and returns the results.
    async fn at_once(&self, sent: Vec<Outgoing>) -> (Vec<bool>, Vec<String>, bool) {
        let sends = sent
            .into_iter()
            .map(|message| self.store.send(vec![message]));
        let receive = self.store.receive(self.fixture.for_bob());
        let settle = self.store.settle(vec![self.leased], Settle::Acknowledge);
        let (sent, received, settled) =
            futures::future::join3(futures::future::join_all(sends), receive, settle).await;
        let is_sent = |one: &Result<Vec<Result<_, _>>, _>| matches!(one, Ok(of) if of[0].is_ok());
        let received = received.unwrap().into_iter();
        (
            sent.iter().map(is_sent).collect(),
            received
                .map(|message| String::from_utf8_lossy(&message.content).into_owned())
                .collect(),
            settled.unwrap()[0].is_ok(),
        )
    }
}

fn with_scene<F: Future<Output = ()>>(test: impl FnOnce(Arc<Scene>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let scene = Arc::new(Scene::new().await);
        test(Arc::clone(&scene)).await;
        scene.store.close().await.unwrap();
    });
}

/// Notes each transaction that stores a message, hands one out or ends a lease.
const NOTED: &str = "
    CREATE TABLE public.noted (transaction xid8);
    CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO public.noted VALUES (pg_current_xact_id()); RETURN NULL; END';
    CREATE TRIGGER stored AFTER INSERT ON airmail.message FOR EACH ROW EXECUTE FUNCTION public.note();
    CREATE TRIGGER handed_out AFTER DELETE ON airmail.ready FOR EACH ROW EXECUTE FUNCTION public.note();
    CREATE TRIGGER done_with AFTER DELETE ON airmail.later FOR EACH ROW EXECUTE FUNCTION public.note();";

#[test]
fn what_changes_something_is_one_round_trip_and_one_transaction() {
    let _alive = waiting::alive("mailboxes");
    with_scene(|scene| async move {
        psql(&scene.url, NOTED);
        let before = scene.store.load().round_trips;
        let message = scene.fixture.message("sent");
        let done = scene.at_once(vec![message]).await;
        assert_eq!(done, (vec![true], vec!["waits".to_owned()], true));
        assert_eq!(scene.store.load().round_trips - before, 1);
        let sql = "SELECT count(*), count(DISTINCT transaction) FROM public.noted";
        assert_eq!(psql(&scene.url, sql), "3|1");
    });
}

/// The database takes no zero byte in a text, so it refuses the statement and with it the transaction.
#[test]
fn a_job_that_the_database_refuses_harms_no_other_of_its_round_trip() {
    let _alive = waiting::alive("mailboxes");
    with_scene(|scene| async move {
        let good = scene.fixture.message("good");
        let bad = Outgoing {
            key: Some("\0".to_owned()),
            ..scene.fixture.message("bad")
        };
        let done = scene.at_once(vec![good.clone(), bad, good]).await;
        assert_eq!(
            done,
            (vec![true, false, true], vec!["waits".to_owned()], true)
        );
        let mut all = scene.fixture.for_bob();
        all.count = 10;
        let left = scene.fixture.receive(all).await.unwrap();
        let contents: Vec<&[u8]> = left.iter().map(|message| &message.content[..]).collect();
        assert_eq!(contents, [b"good", b"good"]);
    });
}
