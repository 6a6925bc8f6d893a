//! Both stores against a model, which is a list: random requests, one after another, get what the model
//! says; and of messages that clients send and read at the same time, none is lost and none handed out
//! twice.
//!
//! PostgreSQL's slots are made tiny here, so that the storage turns over all the time beneath.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod model;

use airmail_mailbox::conformance::Fixture;
use airmail_mailbox::message::{BATCH_MAX, Receive, Take};
use airmail_mailbox::postgres::{Options, PostgresStore};
use airmail_mailbox::sqlite::{SqliteStore, WAITING_MAX};
use airmail_mailbox::{MailboxStore, Mailboxes};
use airmail_testkit::{postgres, waiting};
use futures::future::join_all;
use model::{Model, Operation, operations};
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;
use std::sync::Arc;

const CLIENTS: usize = 5;

fn run(cases: u32, make: impl Fn() -> (Arc<dyn MailboxStore>, Option<tempfile::TempDir>)) {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut runner = TestRunner::new(config);
    let strategy = (
        operations(60),
        proptest::collection::vec(operations(15), CLIENTS),
    );
    runner
        .run(&strategy, |(one_by_one, at_once)| {
            runtime.block_on(async {
                let (store, _directory) = make();
                let fixture = Fixture::new(Mailboxes::new(store)).await;
                let mut model = Model::new(&fixture);
                for operation in &one_by_one {
                    model.check(operation).await;
                }
                model.drain().await;
                interleave(&fixture, &at_once).await;
                fixture.mailboxes.close().await.unwrap();
            });
            Ok(())
        })
        .unwrap();
}

/// Clients make their requests at the same time; then all that is left is read.
async fn interleave(fixture: &Fixture, clients: &[Vec<Operation>]) {
    let clients = clients.iter().map(|operations| async move {
        let mut client = Model::new(fixture);
        for operation in operations {
            client.do_blindly(operation).await;
        }
        client
    });
    let clients = join_all(clients).await;
    let sent: Vec<_> = clients.iter().flat_map(Model::sent).collect();
    let mut got: Vec<_> = clients.iter().flat_map(Model::removed).collect();
    let inboxes = Model::inboxes(fixture);
    for client in &clients {
        client.release_all().await;
    }
    for inbox in inboxes {
        let request: Receive = inbox.count(BATCH_MAX).take(Take::Remove);
        while let Ok(found) = fixture.receive(request).await {
            got.extend(found.iter().map(|message| message.id));
        }
    }
    let distinct: BTreeSet<_> = got.iter().copied().collect();
    assert_eq!(got.len(), distinct.len(), "nothing is handed out twice");
    assert_eq!(distinct, sent.into_iter().collect(), "nothing is lost");
}

#[test]
fn sqlite_does_what_the_model_does() {
    let _alive = waiting::alive("mailboxes");
    run(40, || {
        let directory = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::start(&directory.path().join("mailboxes.db"), WAITING_MAX).unwrap();
        (Arc::new(store), Some(directory))
    });
}

#[test]
fn postgres_does_what_the_model_does() {
    let _alive = waiting::alive("mailboxes");
    run(6, || {
        let options = Options {
            connections: 3,
            slot_bytes: 1,
            ..Options::new(postgres::shared_server().new_database())
        };
        (Arc::new(PostgresStore::start(options).unwrap()), None)
    });
}
