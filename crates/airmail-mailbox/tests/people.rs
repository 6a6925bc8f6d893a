//! The functions of the schema that people call, within transactions of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_mailbox::conformance::Fixture;
use airmail_mailbox::message::{Recipients, Take};
use airmail_mailbox::{Mailboxes, postgres::PostgresStore};
use airmail_testkit::postgres::psql;
use airmail_testkit::{postgres, waiting};
use std::sync::Arc;

fn with_fixture<F: Future<Output = ()>>(test: impl FnOnce(Fixture, String) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (store, url): (PostgresStore, String) = postgres::new_store();
        let fixture = Fixture::new(Mailboxes::new(Arc::new(store))).await;
        let mailboxes = fixture.mailboxes.clone();
        test(fixture, url).await;
        mailboxes.close().await.unwrap();
    });
}

/// Messages sent and received, and rows written, commit or roll back as one.
#[test]
fn a_message_is_handed_over_within_a_transaction_of_the_users_own() {
    let _alive = waiting::alive("mailboxes");
    with_fixture(|fixture, url| async move {
        psql(&url, "CREATE TABLE done (content text)");
        fixture.send("job").await;
        let hand_over = "BEGIN;
            INSERT INTO done SELECT convert_from(content, 'UTF8') FROM airmail.receive('queue', 'bob');
            SELECT airmail.send('other', 'bob', 'carol', 'result');";
        psql(&url, &format!("{hand_over} ROLLBACK"));
        let peek = fixture.for_bob().take(Take::Peek);
        assert_eq!(fixture.texts(peek).await, ["job"]);
        assert!(
            fixture
                .mailboxes
                .queues_for(Recipients::Direct(fixture.carol))
                .await
                .is_err()
        );
        psql(&url, &format!("{hand_over} COMMIT"));
        assert!(fixture.texts(peek).await.is_empty());
        assert_eq!(psql(&url, "SELECT content FROM done"), "job");
        let result =
            "SELECT sender, convert_from(content, 'UTF8') FROM airmail.receive('other', 'carol')";
        assert_eq!(psql(&url, result), "bob|result");
    });
}

/// A reader that waits at a node is notified when a transaction commits.
#[test]
fn a_commit_notifies_a_reader_that_waits() {
    let _alive = waiting::alive("mailboxes");
    with_fixture(|fixture, url| async move {
        let other = std::thread::Builder::new().name("psql".to_owned());
        let sending = other.spawn(move || {
            let send =
                "SELECT airmail.send('queue', 'alice', 'bob', 'from psql', delay => '20 ms')";
            psql(&url, send)
        });
        let found = fixture.wait(fixture.for_bob()).await;
        let sent = sending.unwrap().join().unwrap();
        assert_eq!(sent, found.id.to_string());
        assert_eq!(found.content, "from psql");
    });
}

/// Leases, errors and options are those of the nodes.
#[test]
fn leases_and_errors_are_the_same_from_psql() {
    let _alive = waiting::alive("mailboxes");
    with_fixture(|fixture, url| async move {
        psql(
            &url,
            "SELECT airmail.send('queue', 'alice', NULL, 'to all', priority => 2)",
        );
        let lease = "SELECT id, lease_id FROM airmail.receive('queue', 'carol', broadcast => true, lease => '1 h')";
        let leased = psql(&url, lease).replace('|', ", ");
        assert!(
            fixture
                .texts(fixture.for_bob().broadcast())
                .await
                .is_empty()
        );
        psql(&url, &format!("SELECT airmail.extend({leased}, '2 h')"));
        psql(&url, &format!("SELECT airmail.release({leased})"));
        assert_eq!(
            psql(
                &url,
                "SELECT deliveries FROM airmail.peek('queue', 'bob', broadcast => true)"
            ),
            "1"
        );
        let leased = psql(&url, lease).replace('|', ", ");
        psql(&url, &format!("SELECT airmail.acknowledge({leased})"));
        let failing = [
            (format!("airmail.acknowledge({leased})"), "LEASE_ENDED"),
            (
                "airmail.send('none', 'alice', 'bob', 'x')".to_owned(),
                "QUEUE_NOT_FOUND",
            ),
            (
                "airmail.send('queue', 'alice', 'none', 'x')".to_owned(),
                "ACCOUNT_NOT_FOUND",
            ),
            (
                "airmail.send('queue', 'alice', 'bob', 'x', priority => 10)".to_owned(),
                "INVALID_ARGUMENT",
            ),
            (
                "airmail.receive('queue', 'none')".to_owned(),
                "ACCOUNT_NOT_FOUND",
            ),
        ];
        for (call, code) in failing {
            let told = psql(
                &url,
                &format!(
                    "DO $$ BEGIN PERFORM {call}; RAISE 'nothing failed';
                 EXCEPTION WHEN OTHERS THEN
                     IF SQLERRM <> '{code}' THEN RAISE; END IF; END $$"
                ),
            );
            assert_eq!(told, "");
        }
    });
}
