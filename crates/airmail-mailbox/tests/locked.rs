//! Requests while somebody has locked what they need: they wait with patience, and then fail with
//! nothing done. A request that succeeds afterwards is done once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_mailbox::Mailboxes;
use airmail_mailbox::conformance::Fixture;
use airmail_mailbox::id::{LeaseId, MessageId};
use airmail_mailbox::message::{Outgoing, Receipt, Receive, Recipients, Settle, Take};
use airmail_mailbox::postgres::{Options, PostgresStore};
use airmail_model::{Error, ErrorCode};
use airmail_testkit::postgres;
use airmail_testkit::postgres::{Holder, LOCK_ALL, psql};
use futures::future::{join, join_all};
use std::sync::Arc;
use std::time::Duration;

const PATIENT_MS: u64 = 600_000;

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

fn mailboxes(url: &str, patience_ms: u64, connections: usize) -> Mailboxes {
    let options = Options {
        patience_ms,
        connections,
        ..Options::new(url)
    };
    Mailboxes::new(Arc::new(PostgresStore::start(options).unwrap()))
}

/// A database with two queues and three accounts in it.
async fn database() -> (String, Fixture) {
    let url = postgres::shared_server().new_database();
    let fixture = Fixture::new(mailboxes(&url, PATIENT_MS, 4)).await;
    (url, fixture)
}

/// Repeats a request until the database is no longer away, a thousand times at most: with a patience of
/// milliseconds a busy machine soon counts as away.
async fn once_there<T>(mut ask: impl AsyncFnMut() -> Result<T, Error>) -> T {
    for _ in 0..1_000 {
        match ask().await {
            Err(error) if error.code() == ErrorCode::MailboxesAway => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            asked => return asked.unwrap(),
        }
    }
    panic!("the database is away for ever");
}

#[track_caller]
fn assert_away<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), ErrorCode::MailboxesAway, "{error}");
    assert!(error.delay().is_some(), "{error}");
}

#[test]
fn whatever_is_asked_while_all_is_locked_is_told_that_nothing_was_done() {
    block_on(async {
        let (url, fixture) = database().await;
        fixture.send("before").await;
        let impatient = mailboxes(&url, 300, 2);
        once_there(async || impatient.find_queue("queue").await).await;
        let holder = Holder::new(&url, LOCK_ALL);
        let sends = (0..300).map(|n| impatient.send(fixture.message(&n.to_string())));
        let takes = [Take::Peek, Take::Remove, Take::Lease { lease_ms: 9_000 }];
        let receives = takes.map(|take| {
            let request = Receive {
                take,
                ..fixture.for_bob()
            };
            impatient.receive(request, Duration::from_secs(3_600))
        });
        let receipt = Receipt {
            message: MessageId(1),
            lease: LeaseId(1),
        };
        let calls = async {
            let settled = impatient.settle(vec![receipt], Settle::Acknowledge);
            let (found, settled) = join(impatient.find_queue("queue"), settled).await;
            assert_away(found);
            assert_away(settled);
            assert_away(impatient.counts(fixture.queue).await);
            assert_away(impatient.purge(fixture.queue).await);
            assert_away(impatient.create_account("dora").await);
            assert_away(impatient.queues_for(Recipients::Direct(fixture.bob)).await);
        };
        let all = join(join_all(sends), join_all(receives));
        let ((sent, received), ()) = join(all, calls).await;
        sent.into_iter().for_each(assert_away);
        received.into_iter().for_each(assert_away);
        holder.release();
        // It was true.
        assert_eq!(
            fixture.mailboxes.counts(fixture.queue).await.unwrap().ready,
            1
        );
        let found = fixture.mailboxes.find_account("dora").await;
        assert_eq!(found.unwrap_err().code(), ErrorCode::AccountNotFound);
        once_there(async || impatient.send(fixture.message("after")).await).await;
        impatient.close().await.unwrap();
        fixture.mailboxes.close().await.unwrap();
    });
}

#[test]
fn who_is_patient_is_served_once_when_the_lock_is_gone() {
    block_on(async {
        let (url, fixture) = database().await;
        let holder = Holder::new(&url, LOCK_ALL);
        let names: Vec<String> = (0..300).map(|n| n.to_string()).collect();
        let sends = names
            .iter()
            .map(|name| fixture.mailboxes.send(fixture.message(name)));
        let release = async {
            // Some tries have come to nothing by then.
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            holder.release();
        };
        let (sent, ()) = join(join_all(sends), release).await;
        let mut ids: Vec<MessageId> = sent.into_iter().map(Result::unwrap).collect();
        ids.sort_unstable();
        let all = Receive {
            count: 1_000,
            ..fixture.for_bob()
        };
        let found = fixture.receive(all).await.unwrap();
        let mut received: Vec<MessageId> = found.iter().map(|message| message.id).collect();
        received.sort_unstable();
        assert_eq!(received, ids);
        fixture.mailboxes.close().await.unwrap();
    });
}

/// A lock on a queue, as its deletion takes it, makes only those wait who send to it.
#[test]
fn a_lock_on_one_queue_holds_up_no_other() {
    block_on(async {
        let (url, fixture) = database().await;
        let node = mailboxes(&url, PATIENT_MS, 1);
        let sql = format!("SELECT pg_advisory_xact_lock(740202, {})", fixture.queue.0);
        let holder = Holder::new(&url, &sql);
        let to = |queue| Outgoing {
            queue,
            ..fixture.message("x")
        };
        let held = join_all((0..50).map(|_| node.send(to(fixture.queue))));
        let free = join_all((0..50).map(|_| node.send(to(fixture.other))));
        tokio::pin!(held, free);
        let sent = match futures::future::select(&mut free, &mut held).await {
            futures::future::Either::Left((sent, _)) => sent,
            futures::future::Either::Right(_) => panic!("the lock is held"),
        };
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        holder.release();
        let sent = held.await;
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        node.close().await.unwrap();
        fixture.mailboxes.close().await.unwrap();
    });
}

#[test]
fn a_node_that_starts_while_the_schema_is_locked_says_so_and_goes_on_afterwards() {
    block_on(async {
        let (url, fixture) = database().await;
        let holder = Holder::new(
            &url,
            "LOCK TABLE airmail.schema_version IN ACCESS EXCLUSIVE MODE",
        );
        let impatient = mailboxes(&url, 100, 2);
        let patient = mailboxes(&url, PATIENT_MS, 2);
        assert_away(impatient.find_queue("queue").await);
        holder.release();
        patient.find_queue("queue").await.unwrap();
        for mailboxes in [impatient, patient, fixture.mailboxes] {
            mailboxes.close().await.unwrap();
        }
    });
}

/// The database of a halted machine keeps its connections and answers nothing on them.
#[test]
fn a_database_that_says_nothing_any_more_is_given_up_in_time() {
    block_on(async {
        let (url, fixture) = database().await;
        let impatient = mailboxes(&url, 100, 1);
        once_there(async || impatient.send(fixture.message("before")).await).await;
        let sql = "SELECT pid FROM pg_stat_activity
                   WHERE application_name = 'airmail' AND datname = current_database()";
        let pids = psql(&url, sql);
        let signal = |signal: &str| {
            let mut kill = std::process::Command::new("kill");
            kill.arg(signal).args(pids.lines());
            assert!(kill.status().unwrap().success());
        };
        signal("-STOP");
        let (sent, found) = join(
            impatient.send(fixture.message("x")),
            impatient.find_queue("queue"),
        )
        .await;
        signal("-CONT");
        let sent = sent.unwrap_err();
        assert_eq!(sent.code(), ErrorCode::OutcomeUnknown, "{sent}");
        assert_away(found);
        // On another connection.
        once_there(async || impatient.find_queue("queue").await).await;
        impatient.close().await.unwrap();
        fixture.mailboxes.close().await.unwrap();
    });
}
