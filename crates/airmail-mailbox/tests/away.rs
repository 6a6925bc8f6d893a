//! Requests while the database is not there, or not yet, or no longer.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_mailbox::Mailboxes;
use airmail_mailbox::conformance::Fixture;
use airmail_mailbox::message::Receive;
use airmail_mailbox::postgres::{Options, PostgresStore};
use airmail_model::{Error, ErrorCode};
use airmail_testkit::{postgres, waiting};
use std::sync::Arc;
use std::time::Duration;

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

fn mailboxes(options: Options) -> Mailboxes {
    Mailboxes::new(Arc::new(PostgresStore::start(options).unwrap()))
}

/// An impatient node fails the request; a patient one goes on when the database is there.
#[test]
fn requests_wait_for_a_database_that_is_away_and_then_say_so() {
    let _alive = waiting::alive("mailboxes");
    let mut server = postgres::Server::start();
    let url = server.new_database();
    server.kill();
    block_on(async {
        let impatient = mailboxes(Options {
            patience_ms: 50,
            ..Options::new(&url)
        });
        let error = impatient.find_queue("any").await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::MailboxesAway, "{error}");
        let error = impatient.receive(
            Receive::new(
                airmail_mailbox::id::QueueId(1),
                airmail_mailbox::id::AccountId(1),
            ),
            Duration::from_secs(60),
        );
        assert_eq!(error.await.unwrap_err().code(), ErrorCode::MailboxesAway);
        let patient = mailboxes(Options {
            patience_ms: 600_000,
            ..Options::new(&url)
        });
        let waiting = patient.create_account("early");
        let (created, ()) = futures::future::join(waiting, async {
            tokio::task::yield_now().await;
            server.start_again();
        })
        .await;
        created.unwrap();
        impatient.close().await.unwrap();
        patient.close().await.unwrap();
    });
}

/// The requests of a node go on when its database is back, with the messages that there were.
#[test]
fn a_node_goes_on_when_its_database_is_killed_and_started_again() {
    let _alive = waiting::alive("mailboxes");
    let mut server = postgres::Server::start();
    let url = server.new_database();
    block_on(async {
        let options = Options {
            patience_ms: 600_000,
            ..Options::new(&url)
        };
        let fixture = Fixture::new(mailboxes(options)).await;
        for round in 0..3 {
            let content = format!("round {round}");
            fixture.send(&content).await;
            server.kill();
            server.start_again();
            // What was under way on a connection that ended has an unknown outcome, once for each.
            let mut tries = 0;
            let found = loop {
                match fixture
                    .receive(fixture.for_bob().take(airmail_mailbox::message::Take::Peek))
                    .await
                {
                    Ok(found) => break found,
                    Err(error) => assert_eq!(error.code(), ErrorCode::OutcomeUnknown, "{error}"),
                }
                tries += 1;
                assert!(tries < 50);
            };
            assert_eq!(found[0].content, content);
            while !matches!(fixture.receive(fixture.for_bob()).await, Err(error) if empty(&error)) {
            }
            // A reader that waits is notified again.
            let (found, sent) = futures::future::join(
                fixture.wait(fixture.for_bob()),
                fixture
                    .mailboxes
                    .send(fixture.message("for one that waits")),
            )
            .await;
            assert_eq!(found.id, sent.unwrap());
        }
        fixture.mailboxes.close().await.unwrap();
    });
}

fn empty(error: &Error) -> bool {
    error.code() == ErrorCode::QueueIsEmpty
}

/// Nodes that start together bring the schema up once; a newer one is left alone.
#[test]
fn the_schema_is_brought_up_once() {
    let _alive = waiting::alive("mailboxes");
    let url = postgres::shared_server().new_database();
    block_on(async {
        let patient = || Options {
            patience_ms: 600_000,
            ..Options::new(&url)
        };
        let nodes: Vec<Mailboxes> = (0..4).map(|_| mailboxes(patient())).collect();
        let names: Vec<String> = (0..4).map(|node| format!("node {node}")).collect();
        let created = nodes
            .iter()
            .zip(&names)
            .map(|(node, name)| node.create_account(name));
        for created in futures::future::join_all(created).await {
            created.unwrap();
        }
        for node in nodes {
            node.close().await.unwrap();
        }
        let versions =
            "SELECT string_agg(number::text, ' ' ORDER BY number) FROM airmail.schema_version";
        assert_eq!(postgres::psql(&url, versions), "1 2");
        postgres::psql(&url, "INSERT INTO airmail.schema_version VALUES (99)");
        let older = mailboxes(patient());
        let error = older.find_account("any").await.unwrap_err();
        // ErrorCode::MailboxesUnusable: it is not worth while to try again.
        assert_eq!(error.code().name(), "MAILBOXES_UNUSABLE", "{error}");
        assert!(error.found().contains("version 99"), "{error}");
        assert!(!error.code().retriable());
        older.close().await.unwrap();
        let checked = Options::new(&url).check_database().await;
        assert_eq!(Error::from(checked.unwrap_err()), error);
        let away = Options::new("postgres://127.0.0.1:1/none");
        away.check_database().await.unwrap();
    });
}
