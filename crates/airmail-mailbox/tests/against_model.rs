//! Both stores against a list: any requests, one after another, get what a simple model says; and
//! of requests that clients make at the same time, nothing is lost and nothing handed out twice.
//!
//! PostgreSQL's slots are made tiny here, so that the storage turns over all the time beneath.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod model;

use airmail_mailbox::conformance::World;
use airmail_mailbox::message::{BATCH_MAX, Receive, Take};
use airmail_mailbox::postgres::{Options, PostgresStore};
use airmail_mailbox::sqlite::{SqliteStore, WAITING_MAX};
use airmail_mailbox::{MailboxStore, Mailboxes};
use airmail_testkit::{postgres, waiting};
use futures::future::join_all;
use model::{Model, Step, steps};
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
    let strategy = (steps(60), proptest::collection::vec(steps(15), CLIENTS));
    runner
        .run(&strategy, |(one_by_one, at_once)| {
            runtime.block_on(async {
                let (store, _directory) = make();
                let world = World::new(Mailboxes::new(store)).await;
                let mut model = Model::new(&world);
                for step in &one_by_one {
                    model.check(step).await;
                }
                model.drain().await;
                interleave(&world, &at_once).await;
                world.mailboxes.close().await.unwrap();
            });
            Ok(())
        })
        .unwrap();
}

/// Clients make their requests at the same time; then all that is left is read.
async fn interleave(world: &World, clients: &[Vec<Step>]) {
    let clients = clients.iter().map(|steps| async move {
        let mut client = Model::new(world);
        for step in steps {
            client.do_blindly(step).await;
        }
        client
    });
    let clients = join_all(clients).await;
    let sent: Vec<_> = clients.iter().flat_map(Model::sent).collect();
    let mut got: Vec<_> = clients.iter().flat_map(Model::removed).collect();
    let lines = Model::lines(world);
    for client in &clients {
        client.release_all().await;
    }
    for line in lines {
        let request: Receive = line.count(BATCH_MAX).take(Take::Remove);
        while let Ok(found) = world.receive(request).await {
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
